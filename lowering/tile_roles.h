// The partitions of a block that the program itself makes (Roles), as parts that run beside each other from the launch's beginning to its end.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "lowering/tile_state.h"

namespace tilert {

// Warps first … first + warps − 1 of the block.
struct RoleSpan {
  int first = 0, warps = 0;
  bool operator==(const RoleSpan&) const = default;
};

// The parts, ascending and without gaps; empty where the program has no roles. Unimplemented: partitions that overlap and are not the same.
absl::StatusOr<std::vector<RoleSpan>> ProgramRoles(const TileState& state);

RoleSpan SpanOf(const TileState& state, const Role& role);
bool HoldsRoles(const Stmt& stmt);
// True for what each part runs, wherever it stands: roles, thread regions, loops and conditions around them, and what leaves such a loop.
bool EachPartRuns(const Stmt& stmt);

// Calls `visit` on each statement that the part runs, parents first. What stands outside Roles is for all, and done by the `first` part, but for what
// EachPartRuns.
void ForEachRoleStmt(const TileState& state, const Block& block, const RoleSpan& span, bool first, const std::function<void(const Stmt&)>& visit);

}  // namespace tilert
