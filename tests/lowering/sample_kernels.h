#pragma once

#include "lowering/kernel_ir.h"

namespace tilert {

// Ids into the kernel that SampleGemm builds, for tests that damage it.
struct SampleIds {
  BufferId a, b, c, a_shared, b_shared, a_reg, b_reg, acc;
  VarId bx, by, ko, i, j;
};

// C[M, N] = A[M, K] · B[N, K]ᵀ in bfloat16, K a multiple of 32: 64×64×32 tiles, four warps, double-buffered cp.async, written out
// by hand. Body: declare acc; prologue; for ko {wait, barrier, issue, declare a, declare b, ldmatrix, ldmatrix, mma}; elementwise
// store.
kir::Kernel SampleGemm(SampleIds* ids);

}  // namespace tilert
