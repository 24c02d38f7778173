// Makers of fragment layouts: blocked, and those of mma and wgmma.
#include <algorithm>

#include "lowering/layout.h"
#include "lowering/layout_mma.h"

namespace tilert {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Threads of one kind (lanes or warps) still to be given to dimensions.
struct Supply {
  Owner owner;
  int64_t left;
  int64_t stride = 1;
};

// The most of `supply` that `chunks` pieces of work, shared by `granted` threads already, can use with at most a quarter of the
// padded work idle.
int64_t FairShare(int64_t chunks, int64_t granted, int64_t supply) {
  for (int64_t n = supply; n > 1; --n) {
    const int64_t threads = granted * n;
    if (supply % n == 0 && threads * CeilDiv(chunks, threads) * 3 <= chunks * 4) return n;
  }
  return 1;
}

// The fewest of `supply` that cover the work; all of it when that is not enough.
int64_t FullShare(int64_t chunks, int64_t granted, int64_t supply) {
  for (int64_t n = 1; n < supply; ++n) {
    if (supply % n == 0 && n >= CeilDiv(chunks, granted)) return n;
  }
  return supply;
}

LayoutDim DimOf(int64_t extent, std::vector<Factor> factors) { return LayoutDim{extent, std::move(factors)}; }

}  // namespace

FragmentLayout BlockedLayout(const std::vector<int64_t>& extents, int warps, int64_t vector) {
  const size_t rank = extents.size();
  FragmentLayout layout;
  layout.warps = warps;
  layout.dims.resize(rank);
  std::vector<int64_t> chunks(rank), granted(rank, 1);
  for (size_t d = 0; d < rank; ++d) {
    layout.dims[d].extent = extents[d];
    chunks[d] = std::max<int64_t>(extents[d], 1);
  }
  if (rank > 0 && vector > 1) {
    layout.dims.back().factors.push_back({vector, Owner::kReg, 1});
    chunks.back() = CeilDiv(chunks.back(), vector);
  }
  // First what fits well, so that earlier dimensions get what a ragged last one would waste; then whoever can use the rest.
  Supply supplies[] = {{Owner::kLane, kLanes}, {Owner::kWarp, warps}};
  for (const auto share : {FairShare, FullShare}) {
    for (size_t d = rank; d-- > 0;) {
      for (Supply& supply : supplies) {
        const int64_t n = share(chunks[d], granted[d], supply.left);
        if (n == 1) continue;
        layout.dims[d].factors.push_back({n, supply.owner, supply.stride});
        supply.stride *= n;
        supply.left /= n;
        granted[d] *= n;
      }
    }
  }
  int64_t reg_stride = std::max<int64_t>(vector, 1);
  for (size_t d = rank; d-- > 0;) {
    const int64_t rest = CeilDiv(chunks[d], granted[d]);
    if (rest == 1) continue;
    layout.dims[d].factors.push_back({rest, Owner::kReg, reg_stride});
    reg_stride *= rest;
  }
  return layout;
}

FragmentLayout MmaAccumulatorLayout(int64_t m, int64_t n, WarpGrid grid) {
  const int64_t m_atoms = CeilDiv(m, 16 * grid.m), n_atoms = CeilDiv(n, 8 * grid.n);
  FragmentLayout layout;
  layout.warps = grid.m * grid.n;
  layout.dims = {
      DimOf(m, {{8, Owner::kLane, 4}, {2, Owner::kReg, 2}, {m_atoms, Owner::kReg, 4 * n_atoms}, {grid.m, Owner::kWarp, 1}}),
      DimOf(n, {{2, Owner::kReg, 1}, {4, Owner::kLane, 1}, {n_atoms, Owner::kReg, 4}, {grid.n, Owner::kWarp, grid.m}}),
  };
  return layout;
}

FragmentLayout MmaOperandALayout(int64_t m, int64_t k, WarpGrid grid, int element_bytes) {
  const int64_t pack = 4 / element_bytes;  // elements of a 32-bit register
  const int64_t m_atoms = CeilDiv(m, 16 * grid.m), k_atoms = CeilDiv(k, MmaDepth(element_bytes));
  FragmentLayout layout;
  layout.warps = grid.m * grid.n;
  layout.dims = {
      DimOf(
          m,
          {{8, Owner::kLane, 4}, {2, Owner::kReg, pack}, {m_atoms, Owner::kReg, 4 * pack * k_atoms}, {grid.m, Owner::kWarp, 1}}),
      DimOf(k, {{pack, Owner::kReg, 1}, {4, Owner::kLane, 1}, {2, Owner::kReg, 2 * pack}, {k_atoms, Owner::kReg, 4 * pack}}),
  };
  return layout;
}

FragmentLayout MmaOperandBLayout(int64_t n, int64_t k, WarpGrid grid, int element_bytes) {
  const int64_t pack = 4 / element_bytes;
  const int64_t n_atoms = CeilDiv(n, 8 * grid.n), k_atoms = CeilDiv(k, MmaDepth(element_bytes));
  FragmentLayout layout;
  layout.warps = grid.m * grid.n;
  layout.dims = {
      DimOf(n, {{8, Owner::kLane, 4}, {n_atoms, Owner::kReg, 2 * pack * k_atoms}, {grid.n, Owner::kWarp, grid.m}}),
      DimOf(k, {{pack, Owner::kReg, 1}, {4, Owner::kLane, 1}, {2, Owner::kReg, pack}, {k_atoms, Owner::kReg, 2 * pack}}),
  };
  return layout;
}

FragmentLayout MmaOperandALayout(int64_t m, int64_t k, WarpGrid grid) { return MmaOperandALayout(m, k, grid, 2); }
FragmentLayout MmaOperandBLayout(int64_t n, int64_t k, WarpGrid grid) { return MmaOperandBLayout(n, k, grid, 2); }

FragmentLayout WgmmaAccumulatorLayout(int64_t m, int64_t n, WarpGrid warpgroups) {
  const int64_t m_blocks = CeilDiv(m, 64 * warpgroups.m), n_atoms = CeilDiv(n, 8 * warpgroups.n);
  FragmentLayout layout;
  layout.warps = 4 * warpgroups.m * warpgroups.n;
  layout.dims = {
      DimOf(m, {{8, Owner::kLane, 4},
                {2, Owner::kReg, 2},
                {4, Owner::kWarp, 1},
                {m_blocks, Owner::kReg, 4 * n_atoms},
                {warpgroups.m, Owner::kWarp, 4}}),
      DimOf(
          n,
          {{2, Owner::kReg, 1}, {4, Owner::kLane, 1}, {n_atoms, Owner::kReg, 4}, {warpgroups.n, Owner::kWarp, 4 * warpgroups.m}}),
  };
  return layout;
}

FragmentLayout WgmmaOperandALayout(int64_t m, int64_t k, WarpGrid warpgroups, int element_bytes) {
  const int64_t pack = 4 / element_bytes, regs = 4 * pack;  // elements of a 32-bit register, and of a thread a k step
  const int64_t m_blocks = CeilDiv(m, 64 * warpgroups.m), k_steps = CeilDiv(k, 8 * pack);
  FragmentLayout layout;
  layout.warps = 4 * warpgroups.m * warpgroups.n;
  layout.dims = {
      DimOf(m, {{8, Owner::kLane, 4},
                {2, Owner::kReg, pack},
                {4, Owner::kWarp, 1},
                {m_blocks, Owner::kReg, regs * k_steps},
                {warpgroups.m, Owner::kWarp, 4}}),
      DimOf(k, {{pack, Owner::kReg, 1}, {4, Owner::kLane, 1}, {2, Owner::kReg, 2 * pack}, {k_steps, Owner::kReg, regs}}),
  };
  return layout;
}

}  // namespace tilert
