#pragma once

#include <cstdint>

#include "tools/array.h"

namespace tilert::tool {

// Fills the array: floats from the normal distribution, integers from 0 to 15, bools evenly. The same on every machine.
void FillRandom(uint64_t seed, Array* array);

// Fills the array with a pattern that is a NaN in every float type: what is not written afterwards shows.
void FillPoison(Array* array);

}  // namespace tilert::tool
