// Random tile programs that are valid and whose results are defined: exactly, so that every lowering must give the same bits.
#pragma once

#include <cstdint>

#include "tests/generator/tile_case.h"

namespace tilert {

// Equal seeds give equal cases. Nearly all verify and run on the executor without a race or an unwritten read; who uses one
// checks that (CheckInProcess does) and skips the rest.
//
// Floats hold integers, within bounds that the generator keeps track of, so that sums, products and gemms are exact in whatever
// order they are done; functions of real numbers are rounded to an integer at once.
TileCase RandomTileCase(uint64_t seed);

// The same with subscripts, bounds and numbers that lead out of every buffer: for what is safe whatever a program says.
TileCase RandomHostileCase(uint64_t seed);

}  // namespace tilert
