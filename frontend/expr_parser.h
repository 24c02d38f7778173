#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/ast.h"
#include "frontend/token_cursor.h"

namespace tilert::frontend {

// Expressions, by recursive descent and, for operators, precedence climbing. Each function reads one construct and returns its
// node, never null: after an error it is some node that nobody will look at.
class ExprParser : public TokenCursor {
 public:
  ExprParser(std::vector<Token> tokens, Diagnostics* diagnostics, ast::Module* module, int depth)
      : TokenCursor(std::move(tokens), diagnostics, depth), module_(module) {}

  // All of the tokens, as the expression of a replacement field of an f-string.
  ast::ExprPtr ParseField();

 protected:
  // --- expr_parser.cc
  ast::ExprPtr StarExpressions();  // a, *b
  ast::ExprPtr StarOrNamed();      // *a, a := b, a
  ast::ExprPtr NamedExpression();  // a := b, a
  ast::ExprPtr Expression();       // lambda: a, a if b else c, a or b
  ast::ExprPtr YieldOrStarExpressions();
  ast::ExprPtr Targets();  // of for
  std::vector<ast::Param> Parameters(std::string_view close, bool annotations);
  void Arguments(std::vector<ast::ExprPtr>* args, std::vector<ast::Keyword>* keywords);
  ast::ExprPtr GeneratorTail(uint32_t begin, ast::ComprehensionKind kind, ast::ExprPtr element, ast::ExprPtr value);
  ast::ExprPtr Primary();  // an atom with its attributes, calls and subscripts
  ast::ExprPtr Strings();
  bool AtComprehension() const { return Is("for") || (Is("async") && Is("for", 1)); }

  template <typename Node>
  ast::ExprPtr Make(uint32_t begin, Node node) {
    return &module_->exprs.emplace_back(ast::Expr{From(begin), std::move(node)});
  }

  ast::Module* module_;

 private:
  ast::ExprPtr Disjunction() { return Operators(1); }
  ast::ExprPtr Operators(int min_precedence);
  ast::ExprPtr Comparison(uint32_t begin, ast::ExprPtr left);
  ast::ExprPtr Logic(uint32_t begin, ast::ExprPtr left, int precedence);
  ast::ExprPtr Unary();
  ast::ExprPtr Power();
  ast::ExprPtr Lambda();
  ast::Param Parameter(ast::ParamKind kind, bool annotations);
  // --- atom_parser.cc
  ast::ExprPtr Atom();
  ast::ExprPtr Number();
  ast::ExprPtr Parenthesized();
  ast::ExprPtr ListDisplay();
  ast::ExprPtr BraceDisplay();
  ast::ExprPtr SubscriptIndex();
  ast::ExprPtr SliceItem();
  // --- string_parser.cc
  std::vector<ast::FStringPart> FStringParts(SourceRange contents, bool raw, bool format);
  std::string Unescape(SourceRange contents, bool bytes) const;
};

}  // namespace tilert::frontend
