#include "frontend/token_cursor.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace tilert::frontend {
namespace {

constexpr int kMaxNesting = 1000;
constexpr Token kEndToken;

bool IsKeyword(std::string_view word) {
  static const auto* keywords = new absl::flat_hash_set<std::string>{
      "False",  "None",     "True", "and",    "as",      "assert", "async",  "await",  "break", "class",  "continue", "def",
      "del",    "elif",     "else", "except", "finally", "for",    "from",   "global", "if",    "import", "in",       "is",
      "lambda", "nonlocal", "not",  "or",     "pass",    "raise",  "return", "try",    "while", "with",   "yield"};
  return keywords->contains(std::string(word));
}

}  // namespace

TokenCursor::Nest::Nest(TokenCursor* cursor) : cursor_(cursor) {
  if (++cursor_->depth_ > kMaxNesting) {
    cursor_->Error(cursor_->Peek().range, "this is nested too deeply", "compute a part of it first, under a name of its own");
  }
}

const Token& TokenCursor::Peek(size_t ahead) const {
  if (panic_) return kEndToken;
  return tokens_[std::min(index_ + ahead, tokens_.size() - 1)];
}

std::string_view TokenCursor::Text(size_t ahead) const { return diagnostics_->source().Text(Peek(ahead).range); }

bool TokenCursor::Is(std::string_view text, size_t ahead) const {
  const TokenKind kind = Peek(ahead).kind;
  return (kind == TokenKind::kOp || kind == TokenKind::kName) && Text(ahead) == text;
}

bool TokenCursor::IsIdentifier(size_t ahead) const { return Peek(ahead).kind == TokenKind::kName && !IsKeyword(Text(ahead)); }

void TokenCursor::Advance() {
  if (!panic_ || tokens_[index_].kind != TokenKind::kEnd) index_ = std::min(index_ + 1, tokens_.size() - 1);
}

bool TokenCursor::Accept(std::string_view text) {
  if (!Is(text)) return false;
  Advance();
  return true;
}

void TokenCursor::Expect(std::string_view text, std::string_view hint) {
  if (Accept(text)) return;
  Unexpected(absl::StrCat("'", std::string(text), "'"), hint);
}

std::string TokenCursor::Identifier(std::string_view what) {
  if (!IsIdentifier()) {
    Unexpected(what);
    return "";
  }
  std::string name(Text());
  Advance();
  return name;
}

void TokenCursor::Error(SourceRange range, std::string message, std::string hint) {
  if (!panic_) diagnostics_->Error(range, std::move(message), std::move(hint));
  panic_ = true;
}

void TokenCursor::Unexpected(std::string_view expected, std::string_view hint) {
  if (panic_) return;
  Error(Peek().range, absl::StrCat("expected ", std::string(expected), ", found ", Found()), std::string(hint));
}

std::string TokenCursor::Found() const {
  switch (Peek().kind) {
    case TokenKind::kEnd: return "the end of the source";
    case TokenKind::kNewline: return "the end of the line";
    case TokenKind::kIndent: return "an indented line";
    case TokenKind::kDedent: return "the end of the block";
    case TokenKind::kString: return "a string";
    default: return absl::StrCat("'", std::string(Text()), "'");
  }
}

SourceRange TokenCursor::From(uint32_t begin) const {
  const uint32_t end = index_ == 0 ? begin : tokens_[index_ - 1].range.end;
  return {begin, std::max(begin, end)};
}

}  // namespace tilert::frontend
