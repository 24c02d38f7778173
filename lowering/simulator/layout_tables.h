// A fragment layout as tables, straight from the definition in lowering/layout.h: coordinates of a place are the sum of a
// register, a lane and a warp part, and so is the place of coordinates.
#pragma once

#include <cstdint>
#include <vector>

#include "lowering/layout.h"

namespace tilert::sim {

class LayoutTables {
 public:
  explicit LayoutTables(const FragmentLayout& layout);

  int rank() const { return rank_; }
  int64_t regs() const { return regs_; }
  int warps() const { return warps_; }
  int64_t extent(int d) const { return extents_[d]; }
  int64_t padded(int d) const { return static_cast<int64_t>(parts_[d].size()); }

  int64_t Coord(int64_t reg, int lane, int warp, int d) const {
    return reg_coords_[reg * rank_ + d] + lane_coords_[lane * rank_ + d] + warp_coords_[warp * rank_ + d];
  }
  // False for a register that no factor reaches (a gap in the numbering): it holds no element.
  bool HoldsElement(int64_t reg) const { return reg_owned_[reg]; }
  // Lanes whose element in `reg` lies inside the valid extents; 0 for a gap.
  uint32_t Valid(int64_t reg, int warp) const { return valid_[warp * regs_ + reg]; }
  // Lanes of `warp` that are replica zero; 0 when the warp itself is another replica.
  uint32_t ReplicaZero(int warp) const { return warp_owned_[warp] == warp ? lane_replica_zero_ : 0; }
  // Lanes that are replica zero among the lanes of any warp.
  uint32_t LaneReplicaZero() const { return lane_replica_zero_; }
  // The register of thread (lane, warp) that holds the element; −1 when the thread does not hold it.
  // `coord(d)` must lie in [0, padded(d)).
  template <typename CoordOf>
  int64_t RegOf(int lane, int warp, CoordOf coord) const {
    Part sum;
    for (int d = 0; d < rank_; ++d) {
      const Part& part = parts_[d][coord(d)];
      sum.reg += part.reg;
      sum.lane += part.lane;
      sum.warp += part.warp;
    }
    return sum.lane == lane_owned_[lane] && sum.warp == warp_owned_[warp] ? sum.reg : -1;
  }

 private:
  struct Part {
    int32_t reg = 0, lane = 0, warp = 0;
  };
  int rank_ = 0;
  int64_t regs_ = 1;
  int warps_ = 1;
  std::vector<int64_t> extents_;
  std::vector<int64_t> reg_coords_, lane_coords_, warp_coords_;  // [place][dim]
  std::vector<std::vector<Part>> parts_;                         // [dim][coordinate]
  std::vector<bool> reg_owned_;
  std::vector<int> lane_owned_, warp_owned_;                     // the place with its replica digits set to zero
  std::vector<uint32_t> valid_;                                  // [warp][reg]
  uint32_t lane_replica_zero_ = 0;
};

}  // namespace tilert::sim
