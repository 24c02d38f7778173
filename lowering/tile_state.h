// What the tile passes work on: one launch of a specialised program, and what has been decided about it so far.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/program.h"
#include "lowering/layout.h"
#include "lowering/lowered.h"

namespace tilert {

// A loop whose iterations several blocks share: those of a cluster, or all blocks the iterations of all tiles (`ways` = 0).
struct SplitSums {
  int ways = 1;
  VarId rank = kNoId;               // which of the cluster's blocks this is: 0 … ways − 1
  VarId begin = kNoId, end = kNoId; // of all blocks: this one's iterations of the tile, 0 ≤ begin < end ≤ trips (all 0 where there are none)
  Expr trips;
  Expr goes_on;                     // condition of the If that holds what follows the loop: there the sums are added up
  std::vector<BufferId> sums;  // fragments of 4-byte elements
};

struct TileState {
  Program program;      // private copy; passes rewrite launches[launch].body and append buffers and vars
  size_t launch = 0;
  ArgClass args;
  Target target;
  int warps = 1;
  absl::flat_hash_map<BufferId, FragmentLayout> fragments;  // decided by SolveLayouts
  absl::flat_hash_map<BufferId, SharedLayout> shared;
  absl::flat_hash_map<BufferId, int64_t> slots;  // shared buffers whose first dimension numbers so many tiles, touched one at a time
  std::optional<SplitSums> split;
  std::string report;   // decisions, for people: one line each

  Launch& L() { return program.launches[launch]; }
  ExprArena& E() { return program.exprs; }
  const Buffer& buffer(BufferId id) const { return program.buffers[id]; }
  Scope scope(BufferId id) const { return program.buffers[id].scope; }
  // Extents of a tile; −1 where an extent is no immediate.
  std::vector<int64_t> Extents(const std::vector<Expr>& shape) const;
  std::vector<int64_t> Shape(BufferId id) const { return Extents(buffer(id).shape); }
  BufferId NewBuffer(std::string name, DType dtype, Scope scope, const std::vector<int64_t>& shape);
  VarId NewVar(std::string name);
  // A variable that has this value from here on.
  Expr Bind(std::string name, Expr value, const SourceLoc& loc, Block& out);
  // A whole new buffer of the region's extents, allocated in `out`; of its type if `dtype` is not given. Invalid: extents that are not fixed.
  absl::StatusOr<Region> NewTileLike(const Region& region, std::string_view suffix, Scope scope, const SourceLoc& loc, Block& out,
                                     DType dtype = DType::kInvalid);
  Expr VarExpr(VarId id) { return E().Leaf(ExprOp::kVar, id, program.vars[id].dtype); }
  Expr Int(int64_t value) { return E().Int(value); }
  Region Whole(BufferId id);
  bool IsWhole(const Region& region) const;
  // The same of the one tile of a slotted buffer; extents of a tile of it. (tile_slots.cc)
  bool IsWholeTile(const Region& region) const;
  std::vector<int64_t> TileShape(BufferId id) const;
  // True when an annotation asks for plain rows in shared memory.
  bool RowMajorWanted(BufferId id) const;
  // Alignment in bytes that is known of a global buffer (1 for others).
  uint32_t Alignment(BufferId id) const;
  // Largest power of two (≤ 2^20) that is known to divide `e` wherever it stands in the launch.
  int64_t KnownDivisor(Expr e) const;
};

// True for immediates-only regions or shapes: no −1 in `extents`.
bool AllKnown(const std::vector<int64_t>& extents);
int64_t Product(const std::vector<int64_t>& extents);

// Replaces every statement of `block`, children first, by what `rewrite` appends for it.
using StmtRewrite = std::function<absl::Status(Stmt stmt, Block& out)>;
absl::Status RewriteBlock(Block& block, const StmtRewrite& rewrite);

// "line 12" or "" – where a statement came from, for messages.
std::string Where(const Program& program, const SourceLoc& loc);

// The passes, in order; each rewrites or annotates the state. What each needs and why it stands there: lowering/lower.cc.
absl::Status ApplySafeValues(TileState& state);
absl::Status HoldOperands(TileState& state);
absl::Status SeparateOverlaps(TileState& state);
absl::Status FixExtents(TileState& state);
absl::Status PrivateToFragments(TileState& state);
absl::Status JoinRoles(TileState& state);
absl::Status ShareBetweenRoles(TileState& state);
absl::Status ReadBlockValues(TileState& state);
absl::Status DesugarTiles(TileState& state);
absl::Status SplitSumsOverBlocks(TileState& state);
absl::Status SplitLoops(TileState& state);
absl::Status HoistMemoryAccesses(TileState& state);
absl::Status FindSlots(TileState& state);
absl::Status ShiftLoops(TileState& state);
absl::Status SolveLayouts(TileState& state);
absl::Status CheckRegisters(TileState& state);

}  // namespace tilert
