#include "lowering/simulator/layout_tables.h"

namespace tilert::sim {
namespace {

int64_t Digit(const Factor& factor, int64_t place) { return (place / factor.stride) % factor.size; }

// Coordinates that the digits of `owner` contribute, for every place of it; and the place without digits that no factor owns.
struct OwnerTables {
  std::vector<int64_t> coords;  // [place][dim]
  std::vector<int64_t> owned;   // [place]
};

OwnerTables TablesOf(const FragmentLayout& layout, Owner owner, int64_t places) {
  const size_t rank = layout.dims.size();
  OwnerTables tables{std::vector<int64_t>(places * rank), std::vector<int64_t>(places)};
  for (int64_t place = 0; place < places; ++place) {
    for (size_t d = 0; d < rank; ++d) {
      int64_t weight = 1;
      for (const Factor& factor : layout.dims[d].factors) {
        if (factor.owner == owner && factor.size > 1) {
          tables.coords[place * rank + d] += Digit(factor, place) * weight;
          tables.owned[place] += Digit(factor, place) * factor.stride;
        }
        weight *= factor.size;
      }
    }
  }
  return tables;
}

int64_t RegisterCount(const FragmentLayout& layout) {
  int64_t last = 0;
  for (const LayoutDim& dim : layout.dims) {
    for (const Factor& factor : dim.factors) {
      if (factor.owner == Owner::kReg) last += (factor.size - 1) * factor.stride;
    }
  }
  return last + 1;
}

}  // namespace

LayoutTables::LayoutTables(const FragmentLayout& layout)
    : rank_(static_cast<int>(layout.dims.size())), regs_(RegisterCount(layout)), warps_(layout.warps) {
  OwnerTables reg = TablesOf(layout, Owner::kReg, regs_), lane = TablesOf(layout, Owner::kLane, kLanes),
              warp = TablesOf(layout, Owner::kWarp, warps_);
  reg_coords_ = std::move(reg.coords);
  lane_coords_ = std::move(lane.coords);
  warp_coords_ = std::move(warp.coords);
  for (int64_t r = 0; r < regs_; ++r) reg_owned_.push_back(reg.owned[r] == r);
  lane_owned_.assign(lane.owned.begin(), lane.owned.end());
  warp_owned_.assign(warp.owned.begin(), warp.owned.end());
  for (int l = 0; l < kLanes; ++l) lane_replica_zero_ |= uint32_t{lane_owned_[l] == l} << l;

  for (const LayoutDim& dim : layout.dims) {
    extents_.push_back(dim.extent);
    int64_t padded = 1;
    for (const Factor& factor : dim.factors) padded *= factor.size;
    std::vector<Part> parts(padded);
    for (int64_t c = 0; c < padded; ++c) {
      int64_t weight = 1;
      for (const Factor& factor : dim.factors) {
        const auto place = static_cast<int32_t>((c / weight) % factor.size * factor.stride);
        (factor.owner == Owner::kReg ? parts[c].reg : factor.owner == Owner::kLane ? parts[c].lane : parts[c].warp) += place;
        weight *= factor.size;
      }
    }
    parts_.push_back(std::move(parts));
  }

  valid_.resize(static_cast<size_t>(warps_ * regs_));
  for (int w = 0; w < warps_; ++w) {
    for (int64_t r = 0; r < regs_; ++r) {
      for (int l = 0; l < kLanes && reg_owned_[r]; ++l) {
        bool valid = true;
        for (int d = 0; d < rank_; ++d) valid = valid && Coord(r, l, w, d) < extents_[d];
        valid_[w * regs_ + r] |= uint32_t{valid} << l;
      }
    }
  }
}

}  // namespace tilert::sim
