#include "absl/strings/str_cat.h"
#include "frontend/stmt_parser.h"

namespace tilert::frontend {

using ast::ExprPtr;

// From the colon on: statements on the same line, or an indented block.
ast::Body StmtParser::Block() {
  Nest nest(this);
  ast::Body body;
  Expect(":");
  if (!IsKind(TokenKind::kNewline)) {
    SimpleStatements(&body);
    return body;
  }
  Advance();
  if (!IsKind(TokenKind::kIndent)) {
    Unexpected("an indented block", "indent the statements that belong to the line above, or write `pass`");
    return body;
  }
  Advance();
  Statements(&body, true);
  if (IsKind(TokenKind::kDedent)) Advance();
  return body;
}

const ast::Stmt* StmtParser::IfStatement() {
  struct Branch {
    SourceRange range;
    ExprPtr condition;
    ast::Body body;
  };
  std::vector<Branch> branches;
  ast::Body otherwise;
  do {
    const uint32_t begin = Begin();
    Advance();
    const ExprPtr condition = NamedExpression();
    const SourceRange range = From(begin);
    branches.push_back({range, condition, Block()});
  } while (Is("elif"));
  if (Accept("else")) otherwise = Block();
  // Built from the back, so that long chains need no recursion here.
  const ast::Stmt* statement = nullptr;
  for (auto branch = branches.rbegin(); branch != branches.rend(); ++branch) {
    if (statement != nullptr) otherwise = {statement};
    statement = MakeStmt(branch->range, ast::If{branch->condition, std::move(branch->body), std::move(otherwise)});
  }
  return statement;
}

const ast::Stmt* StmtParser::ForStatement(uint32_t begin, bool is_async) {
  Expect("for");
  ast::For loop;
  loop.is_async = is_async;
  loop.target = Targets();
  CheckTarget(loop.target, "assign to");
  Expect("in", "write `for name in range(n):`");
  loop.iterable = StarExpressions();
  const SourceRange range = From(begin);
  loop.body = Block();
  if (Accept("else")) loop.otherwise = Block();
  return MakeStmt(range, std::move(loop));
}

const ast::Stmt* StmtParser::WhileStatement() {
  const uint32_t begin = Begin();
  Expect("while");
  ast::While loop;
  loop.condition = NamedExpression();
  const SourceRange range = From(begin);
  loop.body = Block();
  if (Accept("else")) loop.otherwise = Block();
  return MakeStmt(range, std::move(loop));
}

const ast::Stmt* StmtParser::TryStatement() {
  const uint32_t begin = Begin();
  Expect("try");
  const SourceRange range = From(begin);
  ast::Try attempt;
  attempt.body = Block();
  while (Accept("except")) {
    ast::Handler handler;
    Accept("*");
    if (!Is(":")) handler.type = StarExpressions();
    if (Accept("as")) handler.name = Identifier("a name");
    handler.body = Block();
    attempt.handlers.push_back(std::move(handler));
  }
  if (Accept("else")) attempt.otherwise = Block();
  if (Accept("finally")) {
    attempt.finally = Block();
  } else if (attempt.handlers.empty()) {
    Unexpected("'except' or 'finally'");
  }
  return MakeStmt(range, std::move(attempt));
}

// `with (a as b, c):` and not `with (a).b:`: the parenthesis that closes the first one is followed by a colon.
bool StmtParser::AtParenthesizedWith() const {
  if (!Is("(")) return false;
  int depth = 0;
  for (size_t i = 0; Peek(i).kind != TokenKind::kEnd && Peek(i).kind != TokenKind::kNewline; ++i) {
    if (Is("(", i) || Is("[", i) || Is("{", i)) ++depth;
    if (Is(")", i) || Is("]", i) || Is("}", i)) --depth;
    if (depth == 0) return Is(":", i + 1);
  }
  return false;
}

ast::WithItem StmtParser::WithItem(bool parenthesized) {
  const uint32_t begin = Begin();
  ast::WithItem item{Is("yield") ? YieldOrStarExpressions() : StarOrNamed(), nullptr};
  if (parenthesized && AtComprehension()) {
    item.context = GeneratorTail(begin, ast::ComprehensionKind::kGenerator, item.context, nullptr);
  }
  if (Accept("as")) {
    item.target = Primary();
    CheckTarget(item.target, "assign to");
  }
  return item;
}

const ast::Stmt* StmtParser::WithStatement(uint32_t begin, bool is_async) {
  Expect("with");
  ast::With with;
  with.is_async = is_async;
  const bool parenthesized = AtParenthesizedWith();
  if (parenthesized) Advance();
  do {
    if (parenthesized && Is(")")) break;
    with.items.push_back(WithItem(parenthesized));
  } while (Accept(","));
  if (parenthesized) Expect(")");
  const SourceRange range = From(begin);
  with.body = Block();
  return MakeStmt(range, std::move(with));
}

const ast::Stmt* StmtParser::Decorated() {
  std::vector<ExprPtr> decorators;
  while (Accept("@")) {
    decorators.push_back(NamedExpression());
    if (!IsKind(TokenKind::kNewline)) Unexpected("the end of the line");
    Advance();
  }
  const uint32_t begin = Begin();
  if (Is("class")) return ClassStatement(std::move(decorators));
  const bool is_async = Accept("async");
  return FunctionStatement(begin, std::move(decorators), is_async);
}

const ast::Stmt* StmtParser::FunctionStatement(uint32_t begin, std::vector<ExprPtr> decorators, bool is_async) {
  Expect("def");
  ast::FunctionDef function;
  function.decorators = std::move(decorators);
  function.is_async = is_async;
  const uint32_t name_begin = Begin();
  function.name = Identifier("a function name");
  function.name_range = From(name_begin);
  TypeParameters();
  Expect("(");
  function.params = Parameters(")", true);
  Expect(")");
  if (Accept("->")) function.returns = Expression();
  const SourceRange range = From(begin);
  function.body = Block();
  return MakeStmt(range, std::move(function));
}

const ast::Stmt* StmtParser::ClassStatement(std::vector<ExprPtr> decorators) {
  const uint32_t begin = Begin();
  Expect("class");
  ast::ClassDef definition;
  definition.decorators = std::move(decorators);
  definition.name = Identifier("a class name");
  TypeParameters();
  if (Accept("(")) Arguments(&definition.bases, &definition.keywords);
  const SourceRange range = From(begin);
  definition.body = Block();
  return MakeStmt(range, std::move(definition));
}

// [T: bound = default, *Ts, **P]: read and forgotten.
void StmtParser::TypeParameters() {
  if (!Accept("[")) return;
  while (!Is("]") && !panic()) {
    if (!Accept("*")) Accept("**");
    Identifier("a type parameter");
    if (Accept(":")) Expression();
    if (Accept("=")) StarOrNamed();
    if (!Accept(",")) break;
  }
  Expect("]");
}

}  // namespace tilert::frontend
