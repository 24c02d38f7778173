#pragma once

#include <random>

#include "lowering/layout.h"

namespace tilert {

// A random well-formed layout: random factors of random owners, digits placed with gaps (replicas) in random order, valid extents
// below the padded ones. Padded extents of at most `max_extent`.
FragmentLayout RandomLayout(std::mt19937& rng, int rank, int warps, int64_t max_extent = 48);

// Calls `visit(coords)` for every coordinate below the padded (or the valid) extents.
template <typename Visit>
void ForEachCoord(const FragmentLayout& layout, bool padded, Visit visit) {
  std::vector<int64_t> limits;
  for (const LayoutDim& dim : layout.dims) limits.push_back(padded ? dim.padded() : dim.extent);
  for (int64_t limit : limits) {
    if (limit == 0) return;
  }
  std::vector<int64_t> coords(limits.size(), 0);
  while (true) {
    visit(const_cast<const std::vector<int64_t>&>(coords));
    size_t d = limits.size();
    while (d > 0 && ++coords[d - 1] == limits[d - 1]) coords[--d] = 0;
    if (d == 0) return;
  }
}

// Every register, lane and warp; `visit(place)`.
template <typename Visit>
void ForEachPlace(const FragmentLayout& layout, Visit visit) {
  for (int warp = 0; warp < layout.warps; ++warp) {
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int64_t reg = 0; reg < layout.regs(); ++reg) visit(Place{reg, lane, warp});
    }
  }
}

}  // namespace tilert
