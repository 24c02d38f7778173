// Coordinates of tiles as sums of digits: what lets the emitter tell compile-time, uniform and per-thread parts of an address
// apart.
#pragma once

#include <cstdint>
#include <vector>

#include "lowering/emit_text.h"
#include "lowering/ranges.h"

namespace tilert {

// One addend text·scale of a coordinate, 0 ≤ text ≤ hi; text is a multiple of `align` (a power of two).
struct Term {
  CText text;
  int64_t scale = 1;
  int64_t hi = 0;
  int64_t align = 1;
  bool thread = false;  // differs between threads; else the same in all of them
  bool fixed = false;   // a constant once loops are unrolled
  bool kept = false;    // of a loop that is not: registers go round in its place
};
// A coordinate as the sum of its terms; `known` is false when some term may be negative or unbounded, and then `whole` is all
// there is.
struct Coordinate {
  std::vector<Term> terms;
  CText whole;
  Range range;
  bool known = true;
};
Coordinate ConstantCoordinate(int64_t value);
Coordinate AddCoordinates(const Coordinate& a, const Coordinate& b);
// Digit (coordinate / weight) % size.
CText Digit(const Coordinate& coordinate, int64_t weight, int64_t size);

}  // namespace tilert
