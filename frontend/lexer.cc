#include "frontend/lexer.h"

#include <array>
#include <string>

#include "absl/strings/str_cat.h"

namespace tilert::frontend {
namespace {

constexpr size_t kMaxIndents = 100;
constexpr size_t kMaxBrackets = 200;
// Strings inside the braces of an f-string, inside braces, and so on.
constexpr int kMaxStringNesting = 12;
constexpr uint32_t kNone = UINT32_MAX;

bool IsIdentifierStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (static_cast<unsigned char>(c) >= 0x80);
}
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsIdentifier(char c) { return IsIdentifierStart(c) || IsDigit(c); }

// Letters before a quote that make it a string: any mix of r, b, u, f, t.
bool IsStringPrefix(std::string_view word) {
  if (word.size() > 2) return false;
  for (char c : word) {
    if (std::string_view("rRbBuUfFtT").find(c) == std::string_view::npos) return false;
  }
  return true;
}

bool HasLetter(std::string_view prefix, char lower) {
  return prefix.find(lower) != std::string_view::npos ||
         prefix.find(static_cast<char>(lower - 'a' + 'A')) != std::string_view::npos;
}

bool IsFormatted(std::string_view prefix) { return HasLetter(prefix, 'f') || HasLetter(prefix, 't'); }

// Finds where strings and their replacement fields end.
class StringScanner {
 public:
  StringScanner(std::string_view text, uint32_t limit) : text_(text), limit_(limit) {}

  // `quote` is the offset of the opening quote. Returns one past the closing one, or kNone.
  uint32_t String(uint32_t quote, std::string_view prefix, int depth) {
    const char q = text_[quote];
    const bool triple = At(quote + 1) == q && At(quote + 2) == q;
    uint32_t i = quote + (triple ? 3 : 1);
    while (i < limit_) {
      const char c = text_[i];
      if (c == '\\') {
        i = SkipEscape(i, prefix);
      } else if (c == '\n' && !triple) {
        return kNone;
      } else if (c == q && (!triple || (At(i + 1) == q && At(i + 2) == q))) {
        return i + (triple ? 3 : 1);
      } else if (c == '{' && IsFormatted(prefix)) {
        if (At(i + 1) == '{') {
          i += 2;
          continue;
        }
        FStringField field;
        if (!Field(i, &field, depth + 1)) return kNone;
        i = field.end;
      } else {
        ++i;
      }
    }
    return kNone;
  }

  bool Field(uint32_t open, FStringField* field, int depth) {
    if (depth > kMaxStringNesting) return false;
    uint32_t i = ScanExpression(open + 1, depth);
    if (i == kNone) return false;
    field->expression = {open + 1, i};
    TrimDebug(field);
    if (At(i) == '!') {
      ++i;
      field->conversion = At(i);
      while (i < limit_ && (IsIdentifier(text_[i]) || text_[i] == ' ')) ++i;
    }
    if (At(i) == ':') {
      const uint32_t begin = ++i;
      while (i < limit_ && text_[i] != '}') {
        if (text_[i] != '{') {
          ++i;
          continue;
        }
        FStringField inner;
        if (!Field(i, &inner, depth + 1)) return false;
        i = inner.end;
      }
      field->format = {begin, i};
    }
    if (At(i) != '}') return false;
    field->end = i + 1;
    return true;
  }

 private:
  char At(uint32_t i) const { return i < limit_ ? text_[i] : '\0'; }

  uint32_t SkipEscape(uint32_t i, std::string_view prefix) const {
    if (!IsFormatted(prefix)) return i + 2;
    // A brace after a backslash still opens a field, except in the named escape \N{...}.
    if (At(i + 1) == 'N' && At(i + 2) == '{' && !HasLetter(prefix, 'r')) {
      const size_t close = text_.find('}', i);
      return close >= limit_ ? limit_ : static_cast<uint32_t>(close) + 1;
    }
    return At(i + 1) == '{' || At(i + 1) == '}' ? i + 1 : i + 2;
  }

  // Stops at the `}`, `!` or `:` that ends the expression.
  uint32_t ScanExpression(uint32_t i, int depth) {
    int brackets = 0;
    while (i < limit_) {
      const char c = text_[i];
      if (IsIdentifierStart(c)) {
        const uint32_t begin = i;
        while (i < limit_ && IsIdentifier(text_[i])) ++i;
        const std::string_view word = text_.substr(begin, i - begin);
        if ((At(i) == '"' || At(i) == '\'') && IsStringPrefix(word)) i = String(i, word, depth);
        if (i == kNone) return kNone;
        continue;
      }
      if (c == '"' || c == '\'') {
        i = String(i, "", depth);
        if (i == kNone) return kNone;
        continue;
      }
      if (c == '(' || c == '[' || c == '{') ++brackets;
      if (brackets == 0) {
        if (c == '}' || c == ':') return i;
        if (c == '!' && At(i + 1) != '=') return i;
        if (c == '!' || c == '=' || c == '<' || c == '>') i += At(i + 1) == '=' ? 1 : 0;
      }
      if (c == ')' || c == ']' || c == '}') --brackets;
      if (c == '#') {
        while (i + 1 < limit_ && text_[i + 1] != '\n') ++i;
      }
      ++i;
    }
    return kNone;
  }

  // Takes a trailing `=` off the expression, unless it belongs to a comparison.
  void TrimDebug(FStringField* field) const {
    uint32_t end = field->expression.end;
    while (end > field->expression.begin && text_[end - 1] == ' ') --end;
    if (end <= field->expression.begin + 1 || text_[end - 1] != '=') return;
    if (std::string_view("=!<>").find(text_[end - 2]) != std::string_view::npos) return;
    field->debug = true;
    field->expression.end = end - 1;
  }

  std::string_view text_;
  uint32_t limit_;
};

class Lexer {
 public:
  Lexer(SourceRange range, bool expression, Diagnostics* diagnostics)
      : text_(diagnostics->source().text()),
        pos_(range.begin),
        limit_(range.end),
        expression_(expression),
        diagnostics_(diagnostics) {}

  std::vector<Token> Run() {
    if (!expression_) {
      if (text_.substr(0, 3) == "\xEF\xBB\xBF") pos_ = 3;
      Indentation();
    }
    while (pos_ < limit_ && !diagnostics_->full() && !stop_) Next();
    Finish();
    return std::move(tokens_);
  }

 private:
  char At(uint32_t i) const { return i < limit_ ? text_[i] : '\0'; }
  bool Joined() const { return expression_ || !brackets_.empty(); }

  void Push(TokenKind kind, uint32_t begin, uint32_t end) { tokens_.push_back({kind, {begin, end}}); }

  void Error(uint32_t begin, uint32_t end, std::string message, std::string hint = "") {
    diagnostics_->Error({begin, end}, std::move(message), std::move(hint));
  }

  void Next() {
    const char c = text_[pos_];
    if (c == ' ' || c == '\t' || c == '\f' || c == '\r') {
      if (c == '\r' && At(pos_ + 1) != '\n') return LineBreak();
      ++pos_;
    } else if (c == '\n') {
      LineBreak();
    } else if (c == '#') {
      while (pos_ < limit_ && text_[pos_] != '\n' && text_[pos_] != '\r') ++pos_;
    } else if (c == '\\') {
      Continuation();
    } else if (c == '"' || c == '\'') {
      String(pos_, pos_);
    } else if (IsIdentifierStart(c)) {
      Word();
    } else if (IsDigit(c) || (c == '.' && IsDigit(At(pos_ + 1)))) {
      Number();
    } else {
      Operator();
    }
  }

  void LineBreak() {
    const uint32_t at = pos_++;
    if (Joined()) return;
    if (!tokens_.empty() && tokens_.back().kind != TokenKind::kNewline && tokens_.back().kind != TokenKind::kIndent &&
        tokens_.back().kind != TokenKind::kDedent) {
      Push(TokenKind::kNewline, at, at + 1);
    }
    Indentation();
  }

  void Continuation() {
    uint32_t i = pos_ + 1;
    if (At(i) == '\r') ++i;
    if (i < limit_ && (text_[i] == '\n' || text_[i - 1] == '\r')) {
      pos_ = i + (text_[i] == '\n' ? 1 : 0);
      return;
    }
    Error(pos_, pos_ + 1, "a backslash must be the last character of its line",
          "remove it, or move what follows to the next line");
    ++pos_;
  }

  // Measures the indentation of the line that starts here and opens or closes blocks. Lines without code do not count.
  void Indentation() {
    const uint32_t begin = pos_;
    int column = 0, narrow = 0;  // with tabs to multiples of eight, and with tabs as one column
    for (; pos_ < limit_; ++pos_) {
      const char c = text_[pos_];
      if (c == ' ') {
        ++column, ++narrow;
      } else if (c == '\t') {
        column = (column / 8 + 1) * 8, ++narrow;
      } else if (c == '\f') {
        column = narrow = 0;
      } else {
        break;
      }
    }
    const char c = At(pos_);
    if (pos_ >= limit_ || c == '\n' || c == '\r' || c == '#') return;
    const Indent now{column, narrow};
    if (now.column > indents_.back().column) {
      if (now.narrow <= indents_.back().narrow) return TabError(begin);
      if (indents_.size() >= kMaxIndents) {
        Error(pos_, pos_ + 1, absl::StrCat("more than ", kMaxIndents, " levels of indentation"),
              "move the inner part into a function");
        stop_ = true;
        return;
      }
      indents_.push_back(now);
      Push(TokenKind::kIndent, begin, pos_);
      return;
    }
    while (now.column < indents_.back().column) {
      indents_.pop_back();
      Push(TokenKind::kDedent, pos_, pos_);
    }
    if (now.column != indents_.back().column) {
      Error(begin, pos_, "this indentation matches no outer block", "align the line with the block that it belongs to");
    } else if (now.narrow != indents_.back().narrow) {
      TabError(begin);
    }
  }

  void TabError(uint32_t begin) {
    Error(begin, pos_, "tabs and spaces are mixed in this indentation", "indent with spaces only");
  }

  void Word() {
    const uint32_t begin = pos_;
    while (pos_ < limit_ && IsIdentifier(text_[pos_])) ++pos_;
    if ((At(pos_) == '"' || At(pos_) == '\'') && IsStringPrefix(text_.substr(begin, pos_ - begin))) return String(begin, pos_);
    Push(TokenKind::kName, begin, pos_);
  }

  void String(uint32_t begin, uint32_t quote) {
    StringScanner scanner(text_, limit_);
    const uint32_t end = scanner.String(quote, text_.substr(begin, quote - begin), 0);
    if (end == kNone) {
      Error(begin, quote + 1, "this string is not closed", absl::StrCat("end it with ", std::string(1, text_[quote])));
      // What follows may be inside the string or not; reading on from the next line keeps the damage small.
      const size_t line_end = text_.find('\n', quote);
      pos_ = line_end >= limit_ ? limit_ : static_cast<uint32_t>(line_end);
      Push(TokenKind::kString, begin, begin);
      return;
    }
    Push(TokenKind::kString, begin, end);
    pos_ = end;
  }

  void Digits() {
    while (IsDigit(At(pos_)) || At(pos_) == '_') ++pos_;
  }

  void Number() {
    const uint32_t begin = pos_;
    const char marker = static_cast<char>(At(pos_ + 1) | 0x20);
    if (At(pos_) == '0' && (marker == 'x' || marker == 'o' || marker == 'b')) {
      pos_ += 2;
      while (IsIdentifier(At(pos_))) ++pos_;
      return Push(TokenKind::kNumber, begin, pos_);
    }
    Digits();
    if (At(pos_) == '.') {
      ++pos_;
      Digits();
    }
    if ((At(pos_) | 0x20) == 'e') {
      const uint32_t sign = At(pos_ + 1) == '+' || At(pos_ + 1) == '-' ? 1 : 0;
      if (IsDigit(At(pos_ + 1 + sign))) {
        pos_ += 1 + sign;
        Digits();
      }
    }
    if ((At(pos_) | 0x20) == 'j') ++pos_;
    Push(TokenKind::kNumber, begin, pos_);
  }

  void Operator() {
    static constexpr std::array<std::string_view, 24> kLong = {"**=", "//=", ">>=", "<<=", "...", "**", "//", ">>",
                                                               "<<",  "<=",  ">=",  "==",  "!=",  "->", "+=", "-=",
                                                               "*=",  "/=",  "%=",  "&=",  "|=",  "^=", "@=", ":="};
    uint32_t length = 1;
    for (std::string_view op : kLong) {
      if (text_.substr(pos_, op.size()) == op && pos_ + op.size() <= limit_) {
        length = static_cast<uint32_t>(op.size());
        break;
      }
    }
    const char c = text_[pos_];
    if (length == 1 && std::string_view("+-*/%@&|^~<>()[]{},:.;=").find(c) == std::string_view::npos) {
      Error(pos_, pos_ + 1, "this character has no meaning here");
      ++pos_;
      return;
    }
    if (length == 1 && !Bracket(c)) return;
    Push(TokenKind::kOp, pos_, pos_ + length);
    pos_ += length;
  }

  // Keeps track of open brackets. Returns false if the character is to be skipped.
  bool Bracket(char c) {
    if (c == '(' || c == '[' || c == '{') {
      if (brackets_.size() >= kMaxBrackets) {
        Error(pos_, pos_ + 1, absl::StrCat("brackets are nested more than ", kMaxBrackets, " deep"),
              "compute a part of it first, under a name of its own");
        stop_ = true;
        return false;
      }
      brackets_.push_back(pos_);
      return true;
    }
    if (c != ')' && c != ']' && c != '}') return true;
    if (brackets_.empty()) {
      Error(pos_, pos_ + 1, absl::StrCat("'", std::string(1, c), "' closes nothing"), "remove it, or add the opening bracket");
      ++pos_;
      return false;
    }
    const char open = text_[brackets_.back()];
    const char expected = open == '(' ? ')' : open == '[' ? ']' : '}';
    if (c != expected) {
      Error(pos_, pos_ + 1, absl::StrCat("'", std::string(1, c), "' cannot close '", std::string(1, open), "'"),
            absl::StrCat("write '", std::string(1, expected), "'"));
      diagnostics_->Note({brackets_.back(), brackets_.back() + 1}, "opened here");
      stop_ = true;
      return false;
    }
    brackets_.pop_back();
    return true;
  }

  void Finish() {
    if (!brackets_.empty() && !stop_ && !expression_) {
      Error(brackets_.back(), brackets_.back() + 1,
            absl::StrCat("'", std::string(1, text_[brackets_.back()]), "' is never closed"));
    }
    if (!expression_) {
      if (!tokens_.empty() && tokens_.back().kind != TokenKind::kNewline) Push(TokenKind::kNewline, pos_, pos_);
      for (size_t i = 1; i < indents_.size(); ++i) Push(TokenKind::kDedent, pos_, pos_);
    }
    Push(TokenKind::kEnd, pos_, pos_);
  }

  struct Indent {
    int column;
    int narrow;
  };

  std::string_view text_;
  uint32_t pos_;
  uint32_t limit_;
  bool expression_;
  bool stop_ = false;  // the rest cannot be read sensibly
  Diagnostics* diagnostics_;
  std::vector<Token> tokens_;
  std::vector<Indent> indents_ = {{0, 0}};
  std::vector<uint32_t> brackets_;
};

}  // namespace

std::vector<Token> Tokenize(Diagnostics* diagnostics) {
  const uint32_t size = static_cast<uint32_t>(diagnostics->source().text().size());
  return Lexer({0, size}, false, diagnostics).Run();
}

std::vector<Token> TokenizeExpression(SourceRange range, Diagnostics* diagnostics) {
  return Lexer(range, true, diagnostics).Run();
}

bool ScanFStringField(const SourceFile& source, uint32_t open, uint32_t limit, FStringField* field) {
  return StringScanner(source.text(), limit).Field(open, field, 0);
}

}  // namespace tilert::frontend
