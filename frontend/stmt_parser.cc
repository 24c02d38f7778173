#include "frontend/stmt_parser.h"

#include <array>
#include <optional>

#include "absl/strings/str_cat.h"
#include "frontend/lexer.h"
#include "frontend/parser.h"

namespace tilert::frontend {

using ast::BinaryOp;
using ast::ExprPtr;

std::unique_ptr<ast::Module> ParseModule(Diagnostics* diagnostics) {
  auto module = std::make_unique<ast::Module>();
  StmtParser(Tokenize(diagnostics), diagnostics, module.get(), 0).ParseFile();
  return module;
}

void StmtParser::ParseFile() { Statements(&module_->body, false); }

// Up to the end of the block, or of the source.
void StmtParser::Statements(ast::Body* body, bool nested) {
  while (!diagnostics_->full()) {
    if (IsKind(TokenKind::kEnd) || (nested && IsKind(TokenKind::kDedent))) return;
    if (IsKind(TokenKind::kIndent)) {
      Unexpected("a statement", "this line is indented more than the one before it");
    } else if (const ast::Stmt* compound = CompoundStatement()) {
      body->push_back(compound);
    } else {
      SimpleStatements(body);
    }
    if (panic()) Recover(nested);
  }
}

// Goes on after the line with the error and whatever is indented under it.
void StmtParser::Recover(bool nested) {
  Calm();
  while (!IsKind(TokenKind::kNewline) && !IsKind(TokenKind::kEnd)) {
    if (IsKind(TokenKind::kDedent) && nested) return;
    if (IsKind(TokenKind::kIndent) || IsKind(TokenKind::kDedent)) break;
    Advance();
  }
  if (IsKind(TokenKind::kNewline)) Advance();
  int depth = 0;
  while (!IsKind(TokenKind::kEnd)) {
    if (IsKind(TokenKind::kIndent)) {
      ++depth;
    } else if (IsKind(TokenKind::kDedent)) {
      if (depth == 0 && nested) return;
      depth = depth > 0 ? depth - 1 : 0;
    } else if (depth == 0) {
      return;
    }
    Advance();
  }
}

const ast::Stmt* StmtParser::CompoundStatement() {
  const uint32_t begin = Begin();
  if (Is("if")) return IfStatement();
  if (Is("for")) return ForStatement(begin, false);
  if (Is("while")) return WhileStatement();
  if (Is("try")) return TryStatement();
  if (Is("with")) return WithStatement(begin, false);
  if (Is("def")) return FunctionStatement(begin, {}, false);
  if (Is("class")) return ClassStatement({});
  if (Is("@")) return Decorated();
  if (AtMatch()) return MatchStatement();
  if (!Accept("async")) return nullptr;
  if (Is("for")) return ForStatement(begin, true);
  if (Is("with")) return WithStatement(begin, true);
  return FunctionStatement(begin, {}, true);
}

void StmtParser::SimpleStatements(ast::Body* body) {
  do {
    body->push_back(SimpleStatement());
  } while (Accept(";") && !IsKind(TokenKind::kNewline));
  if (IsKind(TokenKind::kNewline)) return Advance();
  Unexpected("the end of the statement");
}

const ast::Stmt* StmtParser::SimpleStatement() {
  const uint32_t begin = Begin();
  const auto at_end = [this] { return IsKind(TokenKind::kNewline) || IsKind(TokenKind::kEnd) || Is(";"); };
  if (Accept("pass")) return MakeStmt(From(begin), ast::Pass{});
  if (Accept("break")) return MakeStmt(From(begin), ast::Break{});
  if (Accept("continue")) return MakeStmt(From(begin), ast::Continue{});
  if (Accept("return")) {
    const ExprPtr value = at_end() ? nullptr : StarExpressions();
    return MakeStmt(From(begin), ast::Return{value});
  }
  if (Accept("raise")) {
    ast::Raise raise{nullptr, nullptr};
    if (!at_end()) raise.value = Expression();
    if (Accept("from")) raise.cause = Expression();
    return MakeStmt(From(begin), raise);
  }
  if (Accept("assert")) {
    ast::Assert assertion{Expression(), nullptr};
    if (Accept(",")) assertion.message = Expression();
    return MakeStmt(From(begin), assertion);
  }
  if (Accept("del")) {
    const ExprPtr target = StarExpressions();
    CheckTarget(target, "delete");
    return MakeStmt(From(begin), ast::Delete{{target}});
  }
  if (Is("import") || Is("from")) return ImportStatement();
  if (Is("global") || Is("nonlocal")) return ScopeStatement(Is("global"));
  if (Is("type") && IsIdentifier(1)) {  // type X[T] = value
    Advance();
    const uint32_t name_begin = Begin();
    std::string name = Identifier("a name");
    const ExprPtr target = Make(name_begin, ast::Name{std::move(name)});
    TypeParameters();
    Expect("=");
    const ExprPtr value = Expression();
    return MakeStmt(From(begin), ast::Assign{{target}, value});
  }
  return ExpressionStatement();
}

namespace {

std::optional<BinaryOp> AugmentedOp(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, BinaryOp>, 13> kOps = {{{"+=", BinaryOp::kAdd},
                                                                                  {"-=", BinaryOp::kSub},
                                                                                  {"*=", BinaryOp::kMul},
                                                                                  {"/=", BinaryOp::kDiv},
                                                                                  {"//=", BinaryOp::kFloorDiv},
                                                                                  {"%=", BinaryOp::kMod},
                                                                                  {"**=", BinaryOp::kPow},
                                                                                  {"@=", BinaryOp::kMatMul},
                                                                                  {"<<=", BinaryOp::kShiftLeft},
                                                                                  {">>=", BinaryOp::kShiftRight},
                                                                                  {"&=", BinaryOp::kAnd},
                                                                                  {"|=", BinaryOp::kOr},
                                                                                  {"^=", BinaryOp::kXor}}};
  for (const auto& [name, op] : kOps) {
    if (name == text) return op;
  }
  return std::nullopt;
}

}  // namespace

const ast::Stmt* StmtParser::ExpressionStatement() {
  const uint32_t begin = Begin();
  const ExprPtr first = YieldOrStarExpressions();
  if (Accept(":")) {
    if (first->As<ast::Sequence>())
      Error(first->range, "only one name can be annotated at a time", "annotate each on a line of its own");
    CheckTarget(first, "annotate");
    const ExprPtr annotation = Expression();
    const ExprPtr value = Accept("=") ? YieldOrStarExpressions() : nullptr;
    return MakeStmt(From(begin), ast::AnnAssign{first, annotation, value});
  }
  if (const std::optional<BinaryOp> op = IsKind(TokenKind::kOp) ? AugmentedOp(Text()) : std::nullopt) {
    if (first->As<ast::Sequence>()) Error(first->range, "an augmented assignment has one target", "write one line for each");
    CheckTarget(first, "assign to");
    Advance();
    const ExprPtr value = YieldOrStarExpressions();
    return MakeStmt(From(begin), ast::AugAssign{first, *op, value});
  }
  if (!Is("=")) return MakeStmt(From(begin), ast::ExprStmt{first});
  ast::Assign assign{{}, first};
  while (Accept("=")) {
    CheckTarget(assign.value, "assign to");
    assign.targets.push_back(assign.value);
    assign.value = YieldOrStarExpressions();
  }
  return MakeStmt(From(begin), std::move(assign));
}

void StmtParser::CheckTarget(ExprPtr target, std::string_view what) {
  if (target->As<ast::Name>() || target->As<ast::Attribute>() || target->As<ast::Subscript>()) return;
  if (const auto* starred = target->As<ast::Starred>()) return CheckTarget(starred->value, what);
  const auto* sequence = target->As<ast::Sequence>();
  if (sequence != nullptr && sequence->kind != ast::SequenceKind::kSet) {
    for (const ExprPtr item : sequence->items) CheckTarget(item, what);
    return;
  }
  Error(target->range, absl::StrCat("cannot ", std::string(what), " this expression"),
        target->As<ast::Compare>() ? "" : "write '==' to compare");
}

std::string StmtParser::DottedName() {
  std::string name = Identifier("a module name");
  while (Accept(".")) absl::StrAppend(&name, ".", Identifier("a module name"));
  return name;
}

const ast::Stmt* StmtParser::ImportStatement() {
  const uint32_t begin = Begin();
  ast::Import import;
  import.is_from = Is("from");
  Advance();
  if (import.is_from) {
    while (Is(".") || Is("...")) {
      import.from += std::string(Text());
      Advance();
    }
    if (!Is("import")) import.from += DottedName();
    Expect("import");
    if (Accept("*")) {
      import.names.push_back({"*", ""});
      return MakeStmt(From(begin), std::move(import));
    }
  }
  const bool parenthesized = import.is_from && Accept("(");
  do {
    if (parenthesized && Is(")")) break;
    ast::ImportName name{import.is_from ? Identifier("a name to import") : DottedName(), ""};
    if (Accept("as")) name.alias = Identifier("a name");
    import.names.push_back(std::move(name));
  } while (Accept(","));
  if (parenthesized) Expect(")");
  return MakeStmt(From(begin), std::move(import));
}

const ast::Stmt* StmtParser::ScopeStatement(bool is_global) {
  const uint32_t begin = Begin();
  Advance();
  ast::ScopeDecl decl{is_global, {}};
  do {
    decl.names.push_back(Identifier("a name"));
  } while (Accept(","));
  return MakeStmt(From(begin), std::move(decl));
}

}  // namespace tilert::frontend
