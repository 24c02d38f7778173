#include "frontend/span.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

namespace tilert::frontend {
namespace {

// A sorted product of atoms (expressions that are no sum, difference or product).
using Monomial = std::vector<uint32_t>;
using Polynomial = std::map<Monomial, int64_t>;

constexpr size_t kMaxTerms = 64;
constexpr int kMaxNodes = 2000;  // visited while expanding; shared parts count each time

bool AddTerm(Polynomial* sum, const Monomial& monomial, int64_t factor) {
  int64_t& coefficient = (*sum)[monomial];
  if (__builtin_add_overflow(coefficient, factor, &coefficient)) return false;
  if (coefficient == 0) sum->erase(monomial);
  return sum->size() <= kMaxTerms;
}

bool Accumulate(Polynomial* sum, const Polynomial& other, int64_t sign) {
  for (const auto& [monomial, coefficient] : other) {
    if (coefficient == INT64_MIN || !AddTerm(sum, monomial, sign * coefficient)) return false;
  }
  return true;
}

std::optional<Polynomial> Product(const Polynomial& a, const Polynomial& b) {
  Polynomial product;
  for (const auto& [x, cx] : a) {
    for (const auto& [y, cy] : b) {
      Monomial monomial = x;
      monomial.insert(monomial.end(), y.begin(), y.end());
      std::sort(monomial.begin(), monomial.end());
      int64_t factor = 0;
      if (__builtin_mul_overflow(cx, cy, &factor) || !AddTerm(&product, monomial, factor)) return std::nullopt;
    }
  }
  return product;
}

std::optional<Polynomial> Expand(const ExprArena& arena, Expr e, int* budget) {
  const ExprNode& node = arena[e];
  if (--*budget < 0) return std::nullopt;
  int64_t value = 0;
  if (arena.AsInt(e, &value)) {
    Polynomial constant;
    if (value != 0) constant[{}] = value;
    return constant;
  }
  const bool is_sum = node.op == ExprOp::kAdd || node.op == ExprOp::kSub;
  if (!is_sum && node.op != ExprOp::kMul) return Polynomial{{{e.id}, 1}};
  std::optional<Polynomial> a = Expand(arena, node.args[0], budget), b = Expand(arena, node.args[1], budget);
  if (!a || !b) return std::nullopt;
  if (node.op == ExprOp::kMul) return Product(*a, *b);
  if (!Accumulate(&*a, *b, node.op == ExprOp::kAdd ? 1 : -1)) return std::nullopt;
  return a;
}

Val Collect(ProgramBuilder& builder, const Polynomial& polynomial) {
  Val sum;
  for (const auto& [monomial, coefficient] : polynomial) {
    Val term;
    for (const uint32_t atom : monomial) {
      const Val factor = builder.Wrap(Expr{atom});
      term = term ? term * factor : factor;
    }
    if (!term) {
      term = builder.Lit(coefficient);
    } else if (coefficient != 1) {
      term = term * builder.Lit(coefficient);
    }
    sum = sum ? sum + term : term;
  }
  return sum ? sum : builder.Lit(int64_t{0});
}

}  // namespace

Val SpanOf(ProgramBuilder& builder, Val lower, Val upper) {
  lower = lower.In(&builder);
  upper = upper.In(&builder);
  const ExprArena& arena = builder.exprs();
  // Of a number of any type: the number.
  const auto plain = [&](Val value) {
    int64_t number = 0;
    return arena.AsInt(value.expr(), &number) ? builder.Lit(number) : value;
  };
  int64_t first = 0;
  if (arena.AsInt(lower.expr(), &first) && first == 0) return plain(upper);
  const ExprNode& node = arena[upper.expr()];
  if (node.op == ExprOp::kAdd && node.args[0] == lower.expr()) return plain(builder.Wrap(node.args[1]));
  int budget = kMaxNodes;
  const std::optional<Polynomial> a = Expand(arena, upper.expr(), &budget), b = Expand(arena, lower.expr(), &budget);
  if (a && b) {
    Polynomial difference = *a;
    if (Accumulate(&difference, *b, -1)) return Collect(builder, difference);
  }
  return upper - lower;
}

}  // namespace tilert::frontend
