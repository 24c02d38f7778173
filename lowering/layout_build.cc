// Makers of fragment layouts: blocked, and the operands of mma.m16n8k16.
#include <algorithm>

#include "lowering/layout.h"

namespace tilert {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Threads of one kind (lanes or warps) still to be given to a dimension.
struct Supply {
  Owner owner;
  int64_t left;
  int64_t stride = 1;
};

// How many of `supply` to spread `chunks` pieces of work over when `granted` threads share them already: the most that leave
// at most a quarter of the padded work idle, so that the others can serve another dimension. With `last`, the fewest that
// cover all the work: nobody else wants them.
int64_t Share(int64_t chunks, int64_t granted, int64_t supply, bool last) {
  const int64_t each = CeilDiv(chunks, granted);
  if (last) {
    for (int64_t n = 1; n < supply; ++n) {
      if (supply % n == 0 && n >= each) return n;
    }
    return supply;
  }
  for (int64_t n = supply; n > 1; --n) {
    if (supply % n != 0) continue;
    const int64_t threads = granted * n;
    if (threads * CeilDiv(chunks, threads) * 3 <= chunks * 4) return n;
  }
  return 1;
}

LayoutDim Dim(int64_t extent, std::vector<Factor> factors) { return LayoutDim{extent, std::move(factors)}; }

}  // namespace

FragmentLayout BlockedLayout(const std::vector<int64_t>& extents, int warps, int64_t vector) {
  FragmentLayout layout;
  layout.warps = warps;
  layout.dims.resize(extents.size());
  Supply supplies[] = {{Owner::kLane, kLanes}, {Owner::kWarp, warps}};
  int64_t reg_stride = 1;
  for (size_t d = extents.size(); d-- > 0;) {
    LayoutDim& dim = layout.dims[d];
    dim.extent = extents[d];
    int64_t chunks = std::max<int64_t>(extents[d], 1);
    if (d + 1 == extents.size() && vector > 1) {
      chunks = CeilDiv(chunks, vector);
      dim.factors.push_back({vector, Owner::kReg, reg_stride});
      reg_stride *= vector;
    }
    const bool last = std::all_of(extents.begin(), extents.begin() + static_cast<int64_t>(d), [](int64_t e) { return e <= 1; });
    int64_t granted = 1;
    for (Supply& supply : supplies) {
      const int64_t n = Share(chunks, granted, supply.left, last);
      if (n == 1) continue;
      dim.factors.push_back({n, supply.owner, supply.stride});
      supply.stride *= n;
      supply.left /= n;
      granted *= n;
    }
    if (const int64_t rest = CeilDiv(chunks, granted); rest > 1) {
      dim.factors.push_back({rest, Owner::kReg, reg_stride});
      reg_stride *= rest;
    }
  }
  return layout;
}

FragmentLayout MmaAccumulatorLayout(int64_t m, int64_t n, WarpGrid grid) {
  const int64_t m_atoms = CeilDiv(m, 16 * grid.m), n_atoms = CeilDiv(n, 8 * grid.n);
  FragmentLayout layout;
  layout.warps = grid.m * grid.n;
  layout.dims = {
      Dim(m, {{8, Owner::kLane, 4}, {2, Owner::kReg, 2}, {m_atoms, Owner::kReg, 4 * n_atoms}, {grid.m, Owner::kWarp, 1}}),
      Dim(n, {{2, Owner::kReg, 1}, {4, Owner::kLane, 1}, {n_atoms, Owner::kReg, 4}, {grid.n, Owner::kWarp, grid.m}}),
  };
  return layout;
}

FragmentLayout MmaOperandALayout(int64_t m, int64_t k, WarpGrid grid) {
  const int64_t m_atoms = CeilDiv(m, 16 * grid.m), k_atoms = CeilDiv(k, 16);
  FragmentLayout layout;
  layout.warps = grid.m * grid.n;
  layout.dims = {
      Dim(m, {{8, Owner::kLane, 4}, {2, Owner::kReg, 2}, {m_atoms, Owner::kReg, 8 * k_atoms}, {grid.m, Owner::kWarp, 1}}),
      Dim(k, {{2, Owner::kReg, 1}, {4, Owner::kLane, 1}, {2, Owner::kReg, 4}, {k_atoms, Owner::kReg, 8}}),
  };
  return layout;
}

FragmentLayout MmaOperandBLayout(int64_t n, int64_t k, WarpGrid grid) {
  const int64_t n_atoms = CeilDiv(n, 8 * grid.n), k_atoms = CeilDiv(k, 16);
  FragmentLayout layout;
  layout.warps = grid.m * grid.n;
  layout.dims = {
      Dim(n, {{8, Owner::kLane, 4}, {n_atoms, Owner::kReg, 4 * k_atoms}, {grid.n, Owner::kWarp, grid.m}}),
      Dim(k, {{2, Owner::kReg, 1}, {4, Owner::kLane, 1}, {2, Owner::kReg, 2}, {k_atoms, Owner::kReg, 4}}),
  };
  return layout;
}

}  // namespace tilert
