// Which copies from global to shared memory a producer thread can issue through TMA, and the rings their tiles go round in.
//
// Copies are found by what they touch, never by what is computed: a whole tile written by such copies only, from a tensor that the launch does not write, at
// coordinates that the producer can compute by itself (block variables, dims, loop counters, read-only tensors). Copies of one block that are first
// needed by the same statement share a ring: one barrier says that all of them are there.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lowering/tile_state.h"

namespace tilert {

// Copies of one block that are first needed by the same statement.
struct RingGroup {
  const Block* block = nullptr;        // where its copies stand
  std::vector<const Copy*> copies;     // in program order
  size_t first_use = 0, last_use = 0;  // statements of `block` that read the tiles
  size_t ring = 0;
};

// How the blocks of a cluster that copy the same box share the work: along these axes of the cluster, a part of the panels or else of the rows each. No axes:
// they don't.
struct SharedCopy {
  kir::ClusterAxes axes = 0;
  int parts = 1;
  bool by_panel = false;
};

struct RingTiles {
  std::vector<BufferId> buffers;  // of the program
  int slots = 1;
  // How often a tile of the grid goes through it, where that is the same for all of them.
  bool trips_known = true;
  Expr trips;
  kir::ClusterAxes walked_alike = 0;  // axes of the cluster along which all blocks go through it in step
};

// Several groups share a ring when they fill the same tiles, as two loops that follow each other may.
struct RingPlan {
  std::vector<RingTiles> rings;
  std::vector<RingGroup> groups;
  absl::flat_hash_map<const Copy*, size_t> group_of;     // absent: not by TMA
  absl::flat_hash_map<BufferId, size_t> ring_of_buffer;  // program buffers
  absl::flat_hash_map<const Copy*, SharedCopy> shared;  // copies that blocks of a cluster share
  absl::flat_hash_map<const Copy*, std::string> why_not;  // of copies from global to shared memory, for people
  bool Has(const Copy& copy) const { return group_of.contains(&copy); }
};

// Empty when the target has no TMA, the program asks for no warp specialisation, or no pipelined loop has such a copy.
RingPlan FindRings(TileState& state);

// Width in elements of the panels in which TMA moves a box of a tensor (extents, one a dim) that starts where `place` does to or from `tile`; 0 when it cannot,
// and `why` says which rule is broken (PTX ISA "Tensor copies"; CUDA driver API cuTensorMapEncodeTiled). A start between multiples of 16 bytes of a row is an
// illegal instruction, of which neither says anything (seen on an H200).
int64_t TmaPanel(const TileState& state, const Region& place, const std::vector<int64_t>& box, const SharedLayout& tile, DType tile_dtype, std::string* why = nullptr);

// Blocks of a cluster along each dim of the grid, as the program asks for; all 1 where the target has no clusters, or blocks wait for each other in another way.
std::vector<int> ClusterWanted(const TileState& state);

// True when a producer can compute `e`: no tile is read, no tensor that the launch writes, no variable but `known`.
bool ProducerCanCompute(const TileState& state, Expr e, const std::vector<VarId>& known);

}  // namespace tilert
