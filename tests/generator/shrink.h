// Delta debugging: from a case with a fault to a smaller one with the same fault.
#pragma once

#include <functional>

#include "tests/generator/tile_case.h"

namespace tilert {

// Whether a smaller case is still valid and fails in the same way.
using StillFails = std::function<bool(const TileCase&)>;

// The smallest case found by removing statements, parts of launches and tensors that nobody uses, by making loops and branches
// their bodies, expressions their operands, and numbers and dims smaller. Calls `fails` at most `max_tries` times.
TileCase Shrink(TileCase tile_case, const StillFails& fails, int max_tries = 2000);

}  // namespace tilert
