// How a gemm of the tile program is done: by which instruction, and who computes which part.
#pragma once

#include "lowering/tile_state.h"

namespace tilert {

struct GemmShape { int64_t m = 0, n = 0, k = 0; };
GemmShape ShapeOf(const TileState& state, const Gemm& gemm);

enum class GemmUnit : uint8_t { kSimt, kMma, kWgmma };

// kMma: `grid` of warps over (M, N). kWgmma: of warpgroups. `transposed` (wgmma): computed as Cᵀ = Bᵀ·Aᵀ, so that a small M lies along the
// instruction's N; grid.m then splits N.
struct GemmChoice {
  GemmUnit unit = GemmUnit::kSimt;
  WarpGrid grid;
  bool transposed = false;
  bool operator==(const GemmChoice&) const = default;
};
GemmChoice ChooseGemm(const TileState& state, const Gemm& gemm);

// What the choice wants of fragments, with the dims in the program's order: c [M, N]; a [M, K] or [K, M] as transpose_a says; b likewise.
FragmentLayout AccumulatorLayout(const TileState& state, const Gemm& gemm, const GemmChoice& choice);
FragmentLayout OperandALayout(const TileState& state, const Gemm& gemm, const GemmChoice& choice);
FragmentLayout OperandBLayout(const TileState& state, const Gemm& gemm, const GemmChoice& choice);

}  // namespace tilert
