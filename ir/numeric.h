// Numbers of every element type, as docs/ir_spec.md sections "Types" and "Conversions" define them.
//
// A value is carried in 64 bits whatever its type: integers and bool as a sign- or zero-extended int64_t (uint64 as its bits),
// floats as the double they exactly equal. All functions are pure and thread-safe, and assume round-to-nearest-even.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace tilert {

union Value {
  int64_t i;  // bool, integers, index
  double f;   // floats
};

// ---- floats. REQUIRES: IsFloat(type).

// The value of `type` nearest to `x`, ties to even, rounded once. Too large: infinity for float16, bfloat16 and float32;
// the largest finite value for the float8 types, for which infinite `x` counts as too large.
double RoundToType(DType type, double x);
// The code of RoundToType(type, x) in the low DTypeBits(type) bits, except that an infinite `x` gives infinity in float8_e5m2:
// values of the type keep their codes. Every NaN gives one code: positive, all mantissa bits set (float32 and float64: quiet,
// payload kept).
uint64_t EncodeFloat(DType type, double x);
// The value of a code; bits above DTypeBits(type) are ignored.
double DecodeFloat(DType type, uint64_t code);
// Largest finite value.
double MaxFinite(DType type);
// False only for float8_e4m3.
bool HasInfinity(DType type);

// ---- integers (arithmetic: ir/int_math.h).

// Range of an integer type or bool; uint64's maximum is returned as its bits (−1).
int64_t MinInt(DType type);
int64_t MaxInt(DType type);

// ---- between kinds.

// `v` of integer type `from`, rounded once to the float type `to`.
double IntToFloat(DType from, int64_t v, DType to);
// Towards zero, saturated to the range of `to`; NaN gives 0. bool: x != 0 (true for NaN).
int64_t FloatToInt(double x, DType to);

// `v` of type `from` as a value of type `to`: the cast of docs/ir_spec.md.
Value ConvertValue(Value v, DType from, DType to);

// ---- rows: n values, `stride` elements apart in memory (may be 0 or negative). `memory` needs no alignment.

void LoadRow(DType type, const void* memory, int64_t stride, int64_t n, Value* out);
// REQUIRES: the values are of type `type`.
void StoreRow(DType type, const Value* values, int64_t n, void* memory, int64_t stride);
void ConvertRow(DType from, DType to, Value* values, int64_t n);

}  // namespace tilert
