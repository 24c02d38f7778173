#include "ir/reduction.h"

#include <limits>

namespace tilert {

Value IdentityOf(ReduceOp op, DType type) {
  const bool is_float = IsFloat(type);
  const double greatest = is_float ? (HasInfinity(type) ? std::numeric_limits<double>::infinity() : MaxFinite(type)) : 0;
  switch (op) {
    case ReduceOp::kMax:
      return is_float ? Value{.f = -greatest} : Value{.i = MinInt(type)};
    case ReduceOp::kMin:
      return is_float ? Value{.f = greatest} : Value{.i = MaxInt(type)};
    case ReduceOp::kBitAnd:
      return {.i = type == DType::kBool ? 1 : ConvertValue({.i = -1}, DType::kInt64, type).i};
    default:
      return is_float ? Value{.f = 0} : Value{.i = 0};
  }
}

Expr IdentityOf(ReduceOp op, DType type, ExprArena& arena) {
  const Value value = IdentityOf(op, type);
  return IsFloat(type) ? arena.Float(value.f, type) : arena.Int(value.i, type);
}

}  // namespace tilert
