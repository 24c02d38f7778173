// What a program is expected to cost on a GPU: how the runtime chooses between schedules of one program.
//
// The model adds up statements; it knows no kinds of kernels. A block's loops multiply what is in them: a count that depends on
// the block's number is taken at the middle of the grid, one that depends on data counts as 1. Of an `If` both sides count.
//
//   SM     = ceil(blocks / SMs) · (max(tensor, bytes / 60, elements / 128) + tile) + last
//   memory = bytes of the arguments / 2500 · max(1, 3/4 · SMs / min(blocks, SMs))
//   cycles = max(SM, memory) + min(SM, memory) / 16 + 4000 a launch
//
// Where the numbers come from: hand-written GEMMs on an H200 (132 SMs), their clocks read inside the kernel, and NVIDIA's tables.
//
// - tensor, wgmma: an instruction of 64 x n x 32 bytes of depth takes n/2 cycles (2048 multiply-adds of 16 bits a cycle and SM),
//   but never less than its operands take from shared memory at 128 bytes a cycle: n/4, and 16 for A unless that is in registers.
//   10 % more when B is stored along n and n is no multiple of 64 (11 % measured at n = 176).
// - tensor, mma.sync: 1024 multiply-adds of 16 bits a cycle and SM. float64: 128.
// - 60 bytes a cycle: what an SM gets from the L2 cache when all SMs read; reached by GEMMs with tiles of 128 x 128.
// - 128 elements a cycle: the lanes of an SM.
// - tile = 2300: filling the pipeline, the epilogue and the next tile's first loads. 1000 when two warpgroups take turns, which a
//   program of 128 threads with large accumulators does: only the change of turns shows, but for a block's last tile. Fitted to
//   GEMMs of 1 to 30 waves.
// - A loop that S blocks of a cluster share (T.Pipelined(split=S)) counts for an S-th, there are S times as many blocks, and 7000
//   cycles of waiting for each other and the bytes of the fragments, S − 1 times at 32 bytes a cycle, are added to the tile
//   (fitted to a GEMM of 257 x 4104 x 4096).
// - Tiles whose loop all blocks share (split=0): whole ones as long as there is one for each SM; the rest counts by its part of a
//   wave, two tiles' cycles, and the bytes of the fragments at 8 a cycle: what leaving and taking sums cost GEMMs of 4096 x 4096
//   x 4096 and 14336 and of 257 x 4104 x 4104. Where more than two blocks have a part of a tile, 32 bytes a cycle for each more.
// - Rows of a tensor whose pitch is no multiple of 128 bytes straddle lines: their bytes count 1.7 times (a GEMM of 4096 x 4096 x
// 4104 took 1.4 times as long).
//   Blocks of a cluster that load the same ask for a part each: for them it is so much less than 1.7. Where rows do not straddle,
//   clusters gain nothing (measured): what an SM gets stays the same. 100 cycles a tile are added for each dimension of the
//   cluster, so that of equals the schedule without is taken; blocks count in whole clusters.
// - 2500 bytes a cycle: 4.8 TB/s at 1.9 GHz. Three quarters of the SMs are needed to ask for that much.
// - 1/16 of the shorter part is not hidden by the longer one: a guess, by which the model ranks schedules that memory holds back.
// - An element of a tensor that is copied on its own, for want of alignment, takes 0.4 cycles of an SM: a GEMM of 4095 x 4097 x
// 4099 in tiles of
//   128 x 128 took 2315 us.
// - 4000 a launch: start, descriptors, first loads, last stores.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ir/program.h"
#include "lowering/target.h"
#include "runtime/dim_expr.h"

namespace tilert {

inline constexpr double kLaunchCycles = 4000;  // what a launch costs

// Immutable. Evaluating allocates nothing and takes a few hundred nanoseconds: callers remember what they learnt.
class CostModel {
 public:
  CostModel() = default;  // of nothing: costs a launch or nothing
  // `program`: verified and specialised. `any_arguments`: compiled for tensors that are aligned to their elements only.
  CostModel(const Program& program, const Target& target, bool any_arguments = false);

  // Cycles with these dims (one an entry of Program::dims; those that are fixed are not looked at). To compare, not to predict.
  double Cycles(absl::Span<const int64_t> dims) const;

 private:
  friend class CostModelBuilder;

  // What a block does as often as the product of `times` says.
  struct Work {
    std::vector<DimExpr> times;
    double tensor_cycles = 0, bytes = 0, elements = 0;
  };
  struct LaunchCost {
    std::vector<DimExpr> grid;
    std::vector<int64_t> cluster;  // blocks along each dim of the grid; empty: 1
    std::vector<Work> work;
    double tile_cycles = 0;
    double last_cycles = 0;  // more of a block's last tile
    double shares = 1;       // blocks that do each block's work together
    double given_bytes = 0;  // all blocks share the tiles: what one leaves for another
  };
  struct TensorBytes {
    std::vector<DimExpr> shape;
    double element_bytes = 0;
  };

  double SharedCycles(const LaunchCost& launch, double blocks, double block) const;

  double sms_ = 1;
  std::vector<LaunchCost> launches_;
  std::vector<TensorBytes> tensors_;
};

}  // namespace tilert
