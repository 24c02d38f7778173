#include "random_layout.h"

#include <algorithm>

namespace tilert {
namespace {

int64_t Pick(std::mt19937& rng, const std::vector<int64_t>& values) {
  return values[std::uniform_int_distribution<size_t>(0, values.size() - 1)(rng)];
}

// A random divisor of `n` above 1, or 1.
int64_t Divisor(std::mt19937& rng, int64_t n) {
  std::vector<int64_t> divisors = {1};
  for (int64_t d = 2; d <= n; ++d) {
    if (n % d == 0) divisors.push_back(d);
  }
  return Pick(rng, divisors);
}

}  // namespace

FragmentLayout RandomLayout(std::mt19937& rng, int rank, int warps, int64_t max_extent) {
  FragmentLayout layout;
  layout.warps = warps;
  layout.dims.resize(static_cast<size_t>(rank));
  int64_t lanes = kLanes, lane_stride = 1, warps_left = warps, warp_stride = 1, reg_stride = 1;
  std::vector<int64_t> padded(static_cast<size_t>(rank), 1);
  for (int step = 0; step < 9 && rank > 0; ++step) {
    const size_t d = std::uniform_int_distribution<size_t>(0, static_cast<size_t>(rank) - 1)(rng);
    Factor f;
    f.owner = static_cast<Owner>(Pick(rng, {0, 1, 1, 2}));
    int64_t* left = f.owner == Owner::kLane ? &lanes : &warps_left;
    int64_t* stride = f.owner == Owner::kReg ? &reg_stride : f.owner == Owner::kLane ? &lane_stride : &warp_stride;
    if (f.owner != Owner::kReg && Pick(rng, {0, 0, 0, 1}) == 1) {  // a gap: replicas
      const int64_t gap = Divisor(rng, *left);
      *left /= gap;
      *stride *= gap;
    }
    f.size = f.owner == Owner::kReg ? Pick(rng, {1, 2, 3, 4}) : Divisor(rng, *left);
    if (padded[d] * f.size > max_extent) continue;
    f.stride = *stride;
    if (f.owner != Owner::kReg) *left /= f.size;
    *stride *= f.size;
    padded[d] *= f.size;
    layout.dims[d].factors.push_back(f);
  }
  for (size_t d = 0; d < padded.size(); ++d)
    layout.dims[d].extent = Pick(rng, {padded[d], padded[d], padded[d] - padded[d] / 3, 1});
  return layout;
}

}  // namespace tilert
