#include "frontend/stmt_parser.h"

// `match` statements. Patterns are checked and dropped: nothing that a kernel needs is decided by one.
namespace tilert::frontend {

// `match` is an ordinary name unless its line ends in a colon and a `case` block follows.
bool StmtParser::AtMatch() const {
  if (!Is("match")) return false;
  size_t i = 1;
  while (Peek(i).kind != TokenKind::kNewline && Peek(i).kind != TokenKind::kEnd) ++i;
  return Is(":", i - 1) && Peek(i).kind == TokenKind::kNewline && Peek(i + 1).kind == TokenKind::kIndent && Is("case", i + 2);
}

const ast::Stmt* StmtParser::MatchStatement() {
  const uint32_t begin = Begin();
  Advance();
  ast::Match match{StarExpressions(), {}};
  const SourceRange range = From(begin);
  Expect(":");
  Advance();
  Advance();
  while (Accept("case")) {
    ast::Case branch;
    Patterns(":");
    if (Accept("if")) branch.guard = NamedExpression();
    branch.body = Block();
    match.cases.push_back(std::move(branch));
  }
  if (!IsKind(TokenKind::kDedent)) Unexpected("'case'");
  Advance();
  return MakeStmt(range, std::move(match));
}

// A list of patterns up to `close`, which is not taken.
void StmtParser::Patterns(std::string_view close) {
  while (!panic() && !Is(close) && !Is("if")) {
    if (IsIdentifier() && Is("=", 1)) {  // a keyword of a class pattern
      Advance();
      Advance();
    }
    Pattern();
    if (!Accept(",")) break;
  }
}

void StmtParser::Pattern() {
  Nest nest(this);
  Accept("*");
  do {
    ClosedPattern();
  } while (Accept("|"));
  if (Accept("as")) Identifier("a name");
}

void StmtParser::ClosedPattern() {
  if (Accept("(")) {
    Patterns(")");
    return Expect(")");
  }
  if (Accept("[")) {
    Patterns("]");
    return Expect("]");
  }
  if (Accept("{")) return MappingPattern();
  Accept("-");
  if (IsIdentifier()) {
    Identifier("");
    while (Accept(".")) Identifier("an attribute name");
    if (!Accept("(")) return;
    Patterns(")");
    return Expect(")");
  }
  Primary();  // a literal
  if (Accept("+") || Accept("-")) Primary();
}

void StmtParser::MappingPattern() {
  while (!Is("}") && !panic()) {
    if (Accept("**")) {
      Identifier("a name");
    } else {
      ClosedPattern();
      Expect(":");
      Pattern();
    }
    if (!Accept(",")) break;
  }
  Expect("}");
}

}  // namespace tilert::frontend
