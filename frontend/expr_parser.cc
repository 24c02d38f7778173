#include "frontend/expr_parser.h"

#include <array>
#include <optional>

namespace tilert::frontend {
namespace {

using ast::BinaryOp;
using ast::CompareOp;
using ast::ExprPtr;
using ast::UnaryOp;

// Binding strengths. Unary minus and ** have functions of their own.
constexpr int kOr = 1, kAnd = 2, kNot = 3, kComparison = 4, kBitOr = 5;

struct Infix {
  std::string_view text;
  int precedence;
  BinaryOp op;
};
constexpr std::array<Infix, 12> kInfix = {{{"|", kBitOr, BinaryOp::kOr},
                                           {"^", 6, BinaryOp::kXor},
                                           {"&", 7, BinaryOp::kAnd},
                                           {"<<", 8, BinaryOp::kShiftLeft},
                                           {">>", 8, BinaryOp::kShiftRight},
                                           {"+", 9, BinaryOp::kAdd},
                                           {"-", 9, BinaryOp::kSub},
                                           {"*", 10, BinaryOp::kMul},
                                           {"/", 10, BinaryOp::kDiv},
                                           {"//", 10, BinaryOp::kFloorDiv},
                                           {"%", 10, BinaryOp::kMod},
                                           {"@", 10, BinaryOp::kMatMul}}};

struct Relation {
  std::string_view text;
  CompareOp op;
};
constexpr std::array<Relation, 8> kRelations = {{{"==", CompareOp::kEq},
                                                 {"!=", CompareOp::kNe},
                                                 {"<", CompareOp::kLt},
                                                 {"<=", CompareOp::kLe},
                                                 {">", CompareOp::kGt},
                                                 {">=", CompareOp::kGe},
                                                 {"is", CompareOp::kIs},
                                                 {"in", CompareOp::kIn}}};

}  // namespace

ExprPtr ExprParser::ParseField() {
  const ExprPtr value = YieldOrStarExpressions();
  if (!panic() && !IsKind(TokenKind::kEnd)) Unexpected("'}'");
  return value;
}

ExprPtr ExprParser::YieldOrStarExpressions() {
  if (!Is("yield")) return StarExpressions();
  const uint32_t begin = Begin();
  Advance();
  if (Accept("from")) return Make(begin, ast::Yield{Expression(), true});
  const bool empty =
      Is(")") || Is("]") || Is("}") || Is("=") || Is(";") || IsKind(TokenKind::kNewline) || IsKind(TokenKind::kEnd);
  return Make(begin, ast::Yield{empty ? nullptr : StarExpressions(), false});
}

ExprPtr ExprParser::StarExpressions() {
  const uint32_t begin = Begin();
  const ExprPtr first = StarOrNamed();
  if (!Is(",")) return first;
  ast::Sequence tuple{ast::SequenceKind::kTuple, {first}};
  while (Accept(",")) {
    const bool ends =
        IsKind(TokenKind::kNewline) || IsKind(TokenKind::kEnd) || Is("=") || Is(")") || Is("]") || Is(":") || Is(";") || Is("}");
    if (ends) break;
    tuple.items.push_back(StarOrNamed());
  }
  return Make(begin, std::move(tuple));
}

ExprPtr ExprParser::StarOrNamed() {
  if (!Is("*")) return NamedExpression();
  const uint32_t begin = Begin();
  Advance();
  return Make(begin, ast::Starred{Operators(kBitOr)});
}

ExprPtr ExprParser::NamedExpression() {
  const uint32_t begin = Begin();
  const ExprPtr value = Expression();
  if (!Is(":=")) return value;
  if (!value->As<ast::Name>()) Error(value->range, "only a name can stand before ':='", "assign on a line of its own");
  Advance();
  return Make(begin, ast::NamedExpr{value, Expression()});
}

ExprPtr ExprParser::Expression() {
  Nest nest(this);
  if (Is("lambda")) return Lambda();
  const uint32_t begin = Begin();
  const ExprPtr value = Disjunction();
  if (!Accept("if")) return value;
  const ExprPtr condition = Disjunction();
  Expect("else", "write `a if condition else b`");
  return Make(begin, ast::IfExp{condition, value, Expression()});
}

ExprPtr ExprParser::Targets() {
  const uint32_t begin = Begin();
  const auto target = [this] {
    if (!Is("*")) return Operators(kBitOr);
    const uint32_t star = Begin();
    Advance();
    return Make(star, ast::Starred{Operators(kBitOr)});
  };
  const ExprPtr first = target();
  if (!Is(",")) return first;
  ast::Sequence tuple{ast::SequenceKind::kTuple, {first}};
  while (Accept(",")) {
    if (Is("in") || Is("=")) break;
    tuple.items.push_back(target());
  }
  return Make(begin, std::move(tuple));
}

ExprPtr ExprParser::Operators(int min_precedence) {
  Nest nest(this);
  const uint32_t begin = Begin();
  ExprPtr left;
  if (Is("not")) {
    // `not` binds looser than comparisons: as an operand of anything tighter it is an error.
    if (min_precedence > kNot) Unexpected("an operand", "put parentheses around `not …`");
    Advance();
    left = Make(begin, ast::Unary{UnaryOp::kNot, Operators(kNot)});
  } else {
    left = Unary();
  }
  while (!panic()) {
    const Infix* infix = nullptr;
    for (const Infix& candidate : kInfix) {
      if (Is(candidate.text)) infix = &candidate;
    }
    if (infix != nullptr) {
      if (infix->precedence < min_precedence) return left;
      Advance();
      left = Make(begin, ast::Binary{infix->op, left, Operators(infix->precedence + 1)});
    } else if (min_precedence <= kComparison &&
               (Is("not") ? Is("in", 1)
                          : Is("<") || Is(">") || Is("==") || Is("!=") || Is("<=") || Is(">=") || Is("is") || Is("in"))) {
      left = Comparison(begin, left);
    } else if (Is("and") && min_precedence <= kAnd) {
      left = Logic(begin, left, kAnd);
    } else if (Is("or") && min_precedence <= kOr) {
      left = Logic(begin, left, kOr);
    } else {
      return left;
    }
  }
  return left;
}

ExprPtr ExprParser::Comparison(uint32_t begin, ExprPtr left) {
  ast::Compare compare{left, {}, {}};
  const auto relation = [this]() -> std::optional<CompareOp> {
    if (Is("not") && Is("in", 1)) {
      Advance();
      Advance();
      return CompareOp::kNotIn;
    }
    for (const Relation& candidate : kRelations) {
      if (!Accept(candidate.text)) continue;
      return candidate.op == CompareOp::kIs && Accept("not") ? CompareOp::kIsNot : candidate.op;
    }
    return std::nullopt;
  };
  while (const std::optional<CompareOp> op = relation()) {
    compare.ops.push_back(*op);
    compare.rights.push_back(Operators(kBitOr));
  }
  return Make(begin, std::move(compare));
}

// a and b and c, as one node.
ExprPtr ExprParser::Logic(uint32_t begin, ExprPtr left, int precedence) {
  ast::BoolOp logic{precedence == kAnd, {left}};
  while (Accept(logic.is_and ? "and" : "or")) logic.values.push_back(Operators(precedence + 1));
  return Make(begin, std::move(logic));
}

ExprPtr ExprParser::Unary() {
  static constexpr std::array<std::pair<std::string_view, UnaryOp>, 3> kSigns = {
      {{"-", UnaryOp::kNegate}, {"+", UnaryOp::kPlus}, {"~", UnaryOp::kInvert}}};
  const uint32_t begin = Begin();
  for (const auto& [text, op] : kSigns) {
    if (!Is(text)) continue;
    Nest nest(this);
    Advance();
    return Make(begin, ast::Unary{op, Unary()});
  }
  return Power();
}

ExprPtr ExprParser::Power() {
  const uint32_t begin = Begin();
  ExprPtr base;
  if (Accept("await")) {
    base = Make(begin, ast::Await{Primary()});
  } else {
    base = Primary();
  }
  if (!Accept("**")) return base;
  Nest nest(this);
  return Make(begin, ast::Binary{BinaryOp::kPow, base, Unary()});
}

ExprPtr ExprParser::Lambda() {
  const uint32_t begin = Begin();
  Advance();
  ast::Lambda lambda;
  lambda.params = Parameters(":", false);
  Expect(":");
  lambda.body = Expression();
  return Make(begin, std::move(lambda));
}

std::vector<ast::Param> ExprParser::Parameters(std::string_view close, bool annotations) {
  std::vector<ast::Param> params;
  ast::ParamKind kind = ast::ParamKind::kNormal;
  while (!Is(close) && !panic()) {
    if (Accept("/")) {
      for (ast::Param& param : params) param.kind = ast::ParamKind::kPositionalOnly;
    } else if (Accept("**")) {
      params.push_back(Parameter(ast::ParamKind::kVarKeywords, annotations));
    } else if (Accept("*")) {
      if (!Is(",")) params.push_back(Parameter(ast::ParamKind::kVarArgs, annotations));
      kind = ast::ParamKind::kKeywordOnly;
    } else {
      params.push_back(Parameter(kind, annotations));
    }
    if (!Accept(",")) break;
  }
  return params;
}

ast::Param ExprParser::Parameter(ast::ParamKind kind, bool annotations) {
  ast::Param param;
  const uint32_t begin = Begin();
  param.kind = kind;
  param.name = Identifier("a parameter name");
  param.range = From(begin);
  if (annotations && Accept(":")) param.annotation = kind == ast::ParamKind::kVarArgs ? StarOrNamed() : Expression();
  if (Accept("=")) param.default_value = Expression();
  return param;
}

}  // namespace tilert::frontend
