// Integer arithmetic exactly as docs/ir_spec.md defines it, without undefined behaviour: intN wraps; `//` and `%` round
// towards minus infinity; dividing by zero gives 0.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace tilert {

// `value` modulo 2^bits of `type`, as a sign- or zero-extended int64 (uint64 keeps its bit pattern). Bool: 0 or 1.
inline int64_t WrapInt(int64_t value, DType type) {
  const DTypeKind kind = KindOf(type);
  if (kind == DTypeKind::kBoolean) return value != 0;
  const int bits = DTypeBits(type);
  if (bits >= 64 || bits == 0) return value;
  const uint64_t low = static_cast<uint64_t>(value) & ((uint64_t{1} << bits) - 1);
  if (kind == DTypeKind::kSigned && (low >> (bits - 1)) != 0) return static_cast<int64_t>(low | ~((uint64_t{1} << bits) - 1));
  return static_cast<int64_t>(low);
}

// Quotient rounded towards minus infinity; 0 when b is 0; INT64_MIN / −1 wraps.
inline int64_t FloorDivInt(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  const int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

// Remainder with the sign of b; 0 when b is 0.
inline int64_t FloorModInt(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t r = a % b;
  return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}

}  // namespace tilert
