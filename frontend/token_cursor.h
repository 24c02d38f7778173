#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/diagnostics.h"
#include "frontend/token.h"

namespace tilert::frontend {

// Reads tokens one by one. After an error the cursor is in panic: it shows nothing but kEnd, so every loop of the parser ends by
// itself and no parsing function needs to check for failure; Calm() ends the panic where parsing can go on.
class TokenCursor {
 public:
  TokenCursor(std::vector<Token> tokens, Diagnostics* diagnostics, int depth)
      : depth_(depth), diagnostics_(diagnostics), tokens_(std::move(tokens)) {}

 protected:
  // One level of nesting of the grammar; refuses what would exhaust the stack.
  class Nest {
   public:
    explicit Nest(TokenCursor* cursor);
    ~Nest() { --cursor_->depth_; }

   private:
    TokenCursor* cursor_;
  };

  const Token& Peek(size_t ahead = 0) const;
  std::string_view Text(size_t ahead = 0) const;
  // Is it this operator or keyword?
  bool Is(std::string_view text, size_t ahead = 0) const;
  bool IsKind(TokenKind kind) const { return Peek().kind == kind; }
  // A name that is no keyword.
  bool IsIdentifier(size_t ahead = 0) const;
  void Advance();
  bool Accept(std::string_view text);
  void Expect(std::string_view text, std::string_view hint = "");
  // Takes an identifier; `what` names it in the message if there is none.
  std::string Identifier(std::string_view what);
  // Reports and panics; further errors are dropped until Calm().
  void Error(SourceRange range, std::string message, std::string hint = "");
  // Reports a token that cannot stand here.
  void Unexpected(std::string_view expected, std::string_view hint = "");
  bool panic() const { return panic_; }
  void Calm() { panic_ = false; }
  // From `begin` to the end of the last token taken.
  SourceRange From(uint32_t begin) const;
  uint32_t Begin() const { return Peek().range.begin; }

  int depth_;
  Diagnostics* diagnostics_;

 private:
  std::string Found() const;

  std::vector<Token> tokens_;
  size_t index_ = 0;
  bool panic_ = false;
};

}  // namespace tilert::frontend
