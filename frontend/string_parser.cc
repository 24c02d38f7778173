#include <string>
#include <utility>

#include "frontend/expr_parser.h"
#include "frontend/lexer.h"

namespace tilert::frontend {
namespace {

using ast::ExprPtr;

struct StringShape {
  std::string_view prefix;
  SourceRange contents;

  bool Has(char lower) const {
    return prefix.find(lower) != std::string_view::npos || prefix.find(static_cast<char>(lower - 0x20)) != std::string_view::npos;
  }
};

StringShape Shape(std::string_view text, SourceRange range) {
  StringShape shape;
  const size_t quote = text.find_first_of("'\"");
  if (quote == std::string_view::npos) return shape;
  shape.prefix = text.substr(0, quote);
  const std::string_view rest = text.substr(quote);
  const uint32_t marks = rest.size() >= 6 && rest[1] == rest[0] && rest[2] == rest[0] ? 3 : 1;
  shape.contents = {range.begin + static_cast<uint32_t>(quote) + marks, range.end - marks};
  return shape;
}

void AppendUtf8(uint32_t code, std::string* out) {
  if (code < 0x80) {
    *out += static_cast<char>(code);
  } else if (code < 0x800) {
    *out += static_cast<char>(0xC0 | code >> 6);
    *out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    *out += static_cast<char>(0xE0 | code >> 12);
    *out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    *out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x110000) {
    *out += static_cast<char>(0xF0 | code >> 18);
    *out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    *out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    *out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

// Reads up to `count` digits of `base` at `at` and moves it past them.
uint32_t ReadCode(std::string_view text, size_t* at, int count, int base) {
  uint32_t value = 0;
  for (; count > 0 && *at < text.size(); --count, ++*at) {
    const char c = text[*at];
    const int digit = c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : 99;
    if (digit >= base) break;
    value = value * base + digit;
  }
  return value;
}

// `at` is past the backslash; appends what the escape means and moves past it. Strings are bytes here, UTF-8 by convention: \xNN
// is one byte, as in the text form of programs.
void ReadEscape(std::string_view text, size_t* at, bool bytes, std::string* out) {
  static constexpr std::string_view kFrom = "abfnrtv\\'\"", kTo = "\a\b\f\n\r\t\v\\'\"";
  const char c = text[*at];
  if (const size_t simple = kFrom.find(c); simple != std::string_view::npos) {
    *out += kTo[simple];
    ++*at;
  } else if (c >= '0' && c <= '7') {
    *out += static_cast<char>(ReadCode(text, at, 3, 8));
  } else if (c == 'x') {
    *out += static_cast<char>(ReadCode(text, &++*at, 2, 16));
  } else if (!bytes && (c == 'u' || c == 'U')) {
    AppendUtf8(ReadCode(text, &++*at, c == 'u' ? 4 : 8, 16), out);
  } else if (c == '\n') {
    ++*at;
  } else {
    *out += '\\';  // an unknown escape means itself
  }
}

}  // namespace

std::string ExprParser::Unescape(SourceRange contents, bool bytes) const {
  const std::string_view text = diagnostics_->source().Text(contents);
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      ReadEscape(text, &++i, bytes, &out);
    } else if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') {
      ++i;
    } else {
      out += text[i++];
    }
  }
  return out;
}

// One or more adjacent strings make one.
ExprPtr ExprParser::Strings() {
  const uint32_t begin = Begin();
  ast::StringLit plain;
  std::vector<ast::FStringPart> parts;
  bool formatted = false;
  for (; IsKind(TokenKind::kString); Advance()) {
    const StringShape shape = Shape(Text(), Peek().range);
    const bool raw = shape.Has('r');
    plain.bytes = plain.bytes || shape.Has('b');
    if (shape.Has('f') || shape.Has('t')) {
      formatted = true;
      if (!plain.value.empty()) parts.push_back({std::exchange(plain.value, ""), nullptr, 0, nullptr});
      for (ast::FStringPart& part : FStringParts(shape.contents, raw, false)) parts.push_back(std::move(part));
    } else {
      plain.value += raw ? std::string(diagnostics_->source().Text(shape.contents)) : Unescape(shape.contents, plain.bytes);
    }
  }
  if (!formatted) return Make(begin, std::move(plain));
  if (!plain.value.empty()) parts.push_back({std::move(plain.value), nullptr, 0, nullptr});
  return Make(begin, ast::FString{std::move(parts)});
}

// `format`: the contents are a format specification, where doubled braces mean nothing.
std::vector<ast::FStringPart> ExprParser::FStringParts(SourceRange contents, bool raw, bool format) {
  Nest nest(this);
  const std::string_view text = diagnostics_->source().text();
  std::vector<ast::FStringPart> parts;
  std::string literal;
  const auto take_text = [&](uint32_t begin, uint32_t end) {
    literal += raw ? std::string(text.substr(begin, end - begin)) : Unescape({begin, end}, false);
  };
  uint32_t begin = contents.begin;
  for (uint32_t i = begin; i < contents.end && !panic();) {
    const bool doubled = !format && i + 1 < contents.end && text[i + 1] == text[i];
    if ((text[i] == '{' || text[i] == '}') && doubled) {
      take_text(begin, i + 1);
      begin = i += 2;
    } else if (text[i] == '\\' && !raw && i + 2 < contents.end && text[i + 1] == 'N' && text[i + 2] == '{') {
      i += 3;
    } else if (text[i] == '{') {
      take_text(begin, i);
      FStringField field;
      if (!ScanFStringField(diagnostics_->source(), i, contents.end, &field)) {
        Error({i, i + 1}, "this '{' is never closed", "write '{{' for a brace that is text");
        break;
      }
      if (field.debug) literal += std::string(text.substr(i + 1, field.expression.end - i - 1)) + "=";
      if (!literal.empty()) parts.push_back({std::exchange(literal, ""), nullptr, 0, nullptr});
      ExprParser inner(TokenizeExpression(field.expression, diagnostics_), diagnostics_, module_, depth_);
      ast::FStringPart part{"", inner.ParseField(), field.conversion, nullptr};
      if (field.format.end > field.format.begin) {
        part.format = &module_->exprs.emplace_back(ast::Expr{field.format, ast::FString{FStringParts(field.format, raw, true)}});
      }
      parts.push_back(std::move(part));
      begin = i = field.end;
    } else {
      ++i;
    }
  }
  if (begin < contents.end) take_text(begin, contents.end);
  if (!literal.empty()) parts.push_back({std::move(literal), nullptr, 0, nullptr});
  return parts;
}

}  // namespace tilert::frontend
