// The partitions of a block that the program itself makes (Roles), as parts that run beside each other from the launch's beginning to its end.
#pragma once

#include <functional>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "lowering/tile_state.h"

namespace tilert {

// Warps first … first + warps − 1 of the block.
struct RoleSpan {
  int first = 0, warps = 0;
  bool operator==(const RoleSpan&) const = default;
};

struct RoleParts {
  std::vector<RoleSpan> spans;  // ascending and without gaps; empty where the program has no roles
  // Of fragments that a statement outside the roles touches: the part that holds them.
  absl::flat_hash_map<BufferId, size_t> homes;
  // The part that does a statement outside the roles: the one that holds its fragments, or the first.
  size_t DoneBy(const TileState& state, const Stmt& stmt) const;
};

// Unimplemented: partitions that overlap and are not the same.
absl::StatusOr<std::vector<RoleSpan>> RoleSpans(const TileState& state);
// Of a program behind ShareBetweenRoles.
absl::StatusOr<RoleParts> ProgramRoles(const TileState& state);

struct FragmentHomes {
  absl::flat_hash_map<BufferId, size_t> homes;
  absl::btree_set<BufferId> torn;  // fragments that several parts use: registers cannot hold them
};
FragmentHomes FindHomes(const TileState& state, const std::vector<RoleSpan>& spans);

RoleSpan SpanOf(const TileState& state, const Role& role);
bool HoldsRoles(const Stmt& stmt);
// True for what each part runs, wherever it stands: roles, thread regions, loops and conditions around them, and what leaves such a loop.
bool EachPartRuns(const Stmt& stmt);

// True for what each part does for itself, where it stands outside the roles: values, and what each thread does.
bool EverybodyDoes(const TileState& state, const Stmt& stmt);

// Calls `visit` on each statement that part `part` runs, parents first. What stands outside Roles is for all, and done by one part, but for what
// EachPartRuns.
void ForEachRoleStmt(const TileState& state, const Block& block, const RoleParts& parts, size_t part, const std::function<void(const Stmt&)>& visit);

}  // namespace tilert
