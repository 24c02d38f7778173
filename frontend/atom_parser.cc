#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "frontend/expr_parser.h"

namespace tilert::frontend {

using ast::ExprPtr;

ExprPtr ExprParser::Primary() {
  const uint32_t begin = Begin();
  ExprPtr value = Atom();
  while (!panic()) {
    if (Accept(".")) {
      const uint32_t name_begin = Begin();
      std::string name = Identifier("an attribute name");
      value = Make(begin, ast::Attribute{value, std::move(name), From(name_begin)});
    } else if (Accept("(")) {
      ast::Call call{value, {}, {}};
      Arguments(&call.args, &call.keywords);
      value = Make(begin, std::move(call));
    } else if (Accept("[")) {
      const ExprPtr index = SubscriptIndex();
      Expect("]");
      value = Make(begin, ast::Subscript{value, index});
    } else {
      break;
    }
  }
  return value;
}

ExprPtr ExprParser::Atom() {
  const uint32_t begin = Begin();
  if (IsKind(TokenKind::kNumber)) return Number();
  if (IsKind(TokenKind::kString)) return Strings();
  if (Is("(")) return Parenthesized();
  if (Is("[")) return ListDisplay();
  if (Is("{")) return BraceDisplay();
  if (Accept("...")) return Make(begin, ast::EllipsisLit{});
  if (Accept("None")) return Make(begin, ast::NoneLit{});
  if (Accept("True")) return Make(begin, ast::BoolLit{true});
  if (Accept("False")) return Make(begin, ast::BoolLit{false});
  if (IsIdentifier()) return Make(begin, ast::Name{Identifier("")});
  Unexpected("an expression");
  return Make(begin, ast::ErrorExpr{});
}

namespace {

// Digits of any base without underscores; false if they are no number.
bool ReadInteger(std::string_view digits, int base, ast::IntLit* out) {
  if (digits.empty()) return false;
  uint64_t value = 0;
  bool overflows = false;
  for (char c : digits) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (c | 0x20) - 'a' + 10 : 99;
    if (digit >= base) return false;
    overflows |= __builtin_mul_overflow(value, static_cast<uint64_t>(base), &value) ||
                 __builtin_add_overflow(value, static_cast<uint64_t>(digit), &value);
  }
  out->too_large = overflows || value > static_cast<uint64_t>(INT64_MAX);
  out->fits_unsigned = !overflows;
  out->value = static_cast<int64_t>(value);
  return true;
}

}  // namespace

ExprPtr ExprParser::Number() {
  const uint32_t begin = Begin();
  const SourceRange range = Peek().range;
  std::string digits(Text());
  digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
  Advance();
  const char marker = digits.size() > 1 && digits[0] == '0' ? static_cast<char>(digits[1] | 0x20) : '\0';
  const int base = marker == 'x' ? 16 : marker == 'o' ? 8 : marker == 'b' ? 2 : 10;
  ast::IntLit integer;
  if (ReadInteger(base == 10 ? digits : digits.substr(2), base, &integer)) return Make(begin, integer);
  ast::FloatLit number;
  if (digits.back() == 'j' || digits.back() == 'J') {
    number.imaginary = true;
    digits.pop_back();
  }
  if (base != 10 || !absl::SimpleAtod(digits, &number.value)) Error(range, "this is not a number");
  return Make(begin, number);
}

ExprPtr ExprParser::Parenthesized() {
  Nest nest(this);
  const uint32_t begin = Begin();
  Advance();
  if (Accept(")")) return Make(begin, ast::Sequence{ast::SequenceKind::kTuple, {}});
  ExprPtr value = YieldOrStarExpressions();
  if (AtComprehension()) value = GeneratorTail(begin, ast::ComprehensionKind::kGenerator, value, nullptr);
  Expect(")");
  return value;
}

ExprPtr ExprParser::ListDisplay() {
  Nest nest(this);
  const uint32_t begin = Begin();
  Advance();
  ast::Sequence list{ast::SequenceKind::kList, {}};
  while (!Is("]") && !panic()) {
    list.items.push_back(StarOrNamed());
    if (list.items.size() == 1 && AtComprehension()) {
      const ExprPtr node = GeneratorTail(begin, ast::ComprehensionKind::kList, list.items[0], nullptr);
      Expect("]");
      return node;
    }
    if (!Accept(",")) break;
  }
  Expect("]");
  return Make(begin, std::move(list));
}

ExprPtr ExprParser::BraceDisplay() {
  Nest nest(this);
  const uint32_t begin = Begin();
  Advance();
  ast::Dict dict;
  ast::Sequence set{ast::SequenceKind::kSet, {}};
  while (!Is("}") && !panic()) {
    if (Accept("**")) {
      dict.items.push_back({nullptr, Expression()});
    } else {
      const ExprPtr first = StarOrNamed();
      const ExprPtr value = Accept(":") ? Expression() : nullptr;
      if (AtComprehension()) {
        const auto kind = value ? ast::ComprehensionKind::kDict : ast::ComprehensionKind::kSet;
        const ExprPtr node = GeneratorTail(begin, kind, first, value);
        Expect("}");
        return node;
      }
      if (value) dict.items.push_back({first, value});
      if (!value) set.items.push_back(first);
    }
    if (!Accept(",")) break;
  }
  Expect("}");
  if (!set.items.empty() && !dict.items.empty())
    Error(From(begin), "a set and a dict cannot be mixed", "write key: value for each item, or for none");
  if (!set.items.empty()) return Make(begin, std::move(set));
  return Make(begin, std::move(dict));
}

ExprPtr ExprParser::GeneratorTail(uint32_t begin, ast::ComprehensionKind kind, ExprPtr element, ExprPtr value) {
  ast::Comprehension node{kind, element, value, {}};
  while (AtComprehension()) {
    ast::Generator generator;
    generator.is_async = Accept("async");
    Expect("for");
    generator.target = Targets();
    Expect("in");
    generator.iterable = Disjunction();
    while (Accept("if")) generator.conditions.push_back(Is("lambda") ? Expression() : Disjunction());
    node.generators.push_back(std::move(generator));
  }
  return Make(begin, std::move(node));
}

// After `(`; takes the `)`.
void ExprParser::Arguments(std::vector<ExprPtr>* args, std::vector<ast::Keyword>* keywords) {
  Nest nest(this);
  while (!Is(")") && !panic()) {
    const uint32_t begin = Begin();
    if (Accept("**")) {
      const ExprPtr value = Expression();
      keywords->push_back({"", value, From(begin)});
    } else if (Accept("*")) {
      args->push_back(Make(begin, ast::Starred{Expression()}));
    } else if (IsIdentifier() && Is("=", 1)) {
      std::string name = Identifier("");
      Advance();
      const ExprPtr value = Expression();
      keywords->push_back({std::move(name), value, From(begin)});
    } else {
      ExprPtr value = NamedExpression();
      if (AtComprehension()) value = GeneratorTail(begin, ast::ComprehensionKind::kGenerator, value, nullptr);
      args->push_back(value);
    }
    if (!Accept(",")) break;
  }
  Expect(")", "a comma may be missing between two arguments");
}

ExprPtr ExprParser::SubscriptIndex() {
  Nest nest(this);
  const uint32_t begin = Begin();
  const ExprPtr first = SliceItem();
  if (!Is(",")) return first;
  ast::Sequence tuple{ast::SequenceKind::kTuple, {first}};
  while (Accept(",")) {
    if (Is("]")) break;
    tuple.items.push_back(SliceItem());
  }
  return Make(begin, std::move(tuple));
}

ExprPtr ExprParser::SliceItem() {
  const uint32_t begin = Begin();
  const ExprPtr lower = Is(":") ? nullptr : StarOrNamed();
  if (!Accept(":")) return lower;
  const auto part = [this] { return Is(":") || Is(",") || Is("]") ? nullptr : Expression(); };
  ast::SliceExpr slice{lower, part(), nullptr};
  if (Accept(":")) slice.step = part();
  return Make(begin, slice);
}

}  // namespace tilert::frontend
