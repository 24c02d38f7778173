// Operators on integers of any type, exactly as docs/ir_spec.md section 3 says, except that an index result outside 64 bits
// saturates.
#pragma once

#include <cstdint>

#include "ir/expr.h"

namespace tilert {

// True for the operators that EvalInt knows: arithmetic, bits, shifts, comparisons, min, max, logic; unary ones take b = 0.
bool IsIntOp(ExprOp op);

// `a op b` on values of integer type or bool `type`; comparisons and logic give 0 or 1. REQUIRES: IsIntOp(op).
int64_t EvalInt(ExprOp op, DType type, int64_t a, int64_t b);

// Whether the exact result of an operator on index values fits 64 bits; true for other types. Code for a GPU wraps where it does
// not, so no shape may depend on it.
bool FitsIndex(ExprOp op, DType type, int64_t a, int64_t b);

// Index arithmetic that saturates at the ends of int64.
inline int64_t AddIndex(int64_t a, int64_t b) {
  int64_t r;
  return !__builtin_add_overflow(a, b, &r) ? r : a < 0 ? INT64_MIN : INT64_MAX;
}
inline int64_t SubIndex(int64_t a, int64_t b) {
  int64_t r;
  return !__builtin_sub_overflow(a, b, &r) ? r : a < 0 ? INT64_MIN : INT64_MAX;
}
inline int64_t MulIndex(int64_t a, int64_t b) {
  int64_t r;
  return !__builtin_mul_overflow(a, b, &r) ? r : (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
}

}  // namespace tilert
