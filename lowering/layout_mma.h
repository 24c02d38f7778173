// Fragments of mma.sync by the size of an operand's elements: m16n8k16 of 16-bit, m16n8k32 of 8-bit types, m16n8k8 of tf32. All are the
// same in 32-bit registers (PTX ISA, "Matrix Fragments for mma"), which hold `4 / element_bytes` neighbours along K.
#pragma once

#include "lowering/layout.h"

namespace tilert {

// K of one instruction.
inline constexpr int64_t MmaDepth(int element_bytes) { return 32 / element_bytes; }

// `element_bytes`: 1, 2 or 4. Accumulators are MmaAccumulatorLayout's for all.
FragmentLayout MmaOperandALayout(int64_t m, int64_t k, WarpGrid grid, int element_bytes);
FragmentLayout MmaOperandBLayout(int64_t n, int64_t k, WarpGrid grid, int element_bytes);

}  // namespace tilert
