#pragma once

#include <utility>
#include <vector>

#include "frontend/expr_parser.h"

namespace tilert::frontend {

// Statements, one function each.
class StmtParser : public ExprParser {
 public:
  using ExprParser::ExprParser;

  void ParseFile();

 private:
  template <typename Node>
  const ast::Stmt* MakeStmt(SourceRange range, Node node) {
    return &module_->stmts.emplace_back(ast::Stmt{range, std::move(node)});
  }

  // --- stmt_parser.cc
  void Statements(ast::Body* body, bool nested);
  void Recover(bool nested);
  const ast::Stmt* CompoundStatement();  // null if none starts here
  void SimpleStatements(ast::Body* body);
  const ast::Stmt* SimpleStatement();
  const ast::Stmt* ExpressionStatement();
  const ast::Stmt* ImportStatement();
  const ast::Stmt* ScopeStatement(bool is_global);
  std::string DottedName();
  void CheckTarget(ast::ExprPtr target, std::string_view what);
  // --- block_parser.cc
  ast::Body Block();
  const ast::Stmt* IfStatement();
  const ast::Stmt* ForStatement(uint32_t begin, bool is_async);
  const ast::Stmt* WhileStatement();
  const ast::Stmt* TryStatement();
  const ast::Stmt* WithStatement(uint32_t begin, bool is_async);
  bool AtParenthesizedWith() const;
  ast::WithItem WithItem(bool parenthesized);
  const ast::Stmt* Decorated();
  const ast::Stmt* FunctionStatement(uint32_t begin, std::vector<ast::ExprPtr> decorators, bool is_async);
  const ast::Stmt* ClassStatement(std::vector<ast::ExprPtr> decorators);
  void TypeParameters();
  // --- pattern_parser.cc
  bool AtMatch() const;
  const ast::Stmt* MatchStatement();
  void Patterns(std::string_view close);
  void Pattern();
  void ClosedPattern();
  void MappingPattern();
};

}  // namespace tilert::frontend
