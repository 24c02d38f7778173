#pragma once

#include <string>

#include "ir/program.h"
#include "tools/array.h"

namespace tilert::tool {

struct Comparison {
  bool equal = false;     // within the bound everywhere
  int64_t differing = 0;  // elements outside it
  double largest = 0;     // difference
  std::string worst;      // "[3, 7]: 1.5 instead of 1.25"; empty when nothing differs
};

// `actual` against `expected` of the same type and shape. Integers and bools must be equal; NaN must meet NaN and infinity the
// same infinity; other floats must satisfy |d| <= tolerance · (|expected| + rms), rms being that of all finite expected elements.
// A negative tolerance stands for DefaultTolerance.
Comparison Compare(const Array& actual, const Array& expected, double tolerance = -1);

// A few roundings of the type, and of float32 accumulation: 2^-6 (bfloat16), 2^-9 (float16), 2^-14 (float32), 2^-40 (float64),
// 2^-2 (float8).
double DefaultTolerance(DType dtype);

// The tolerance of an output of `program`: of the coarsest of its type and of the types that values are rounded to on the way, in
// memory that is read again; where products of types narrower than float32 are summed up at least 2^-12.
double DefaultTolerance(const Program& program, DType output);

// "min -3.1, max 2.9, mean 0.01", and counts of NaN and infinity.
std::string Statistics(const Array& array);

}  // namespace tilert::tool
