#include "lowering/tile_roles.h"

#include <algorithm>

#include "ir/status_util.h"
#include "lowering/tile_access.h"

namespace tilert {
namespace {

// True when one of the statements is, or stands in, `root`.
template <typename... Ops>
bool Holds(const Stmt& root) {
  bool holds = false;
  ForEachStmt(root, [&](const Stmt& stmt) { holds |= (std::holds_alternative<Ops>(stmt.op) || ...); });
  return holds;
}

// True of what may leave the loop around it, or an iteration of that: no part may go on alone.
bool LeavesLoop(const Stmt& stmt) {
  if (IsJump(stmt)) return true;
  auto* branch = std::get_if<If>(&stmt.op);
  return branch != nullptr && (std::ranges::any_of(branch->then_body, LeavesLoop) || std::ranges::any_of(branch->else_body, LeavesLoop));
}

}  // namespace

RoleSpan SpanOf(const TileState& state, const Role& role) {
  int64_t begin = 0, end = 0;
  state.program.exprs.AsInt(role.thread_begin, &begin);
  state.program.exprs.AsInt(role.thread_end, &end);
  return {static_cast<int>(begin / kLanes), static_cast<int>((end - begin) / kLanes)};
}

bool HoldsRoles(const Stmt& root) { return Holds<Roles>(root); }
bool EachPartRuns(const Stmt& root) { return Holds<Roles, ThreadRegion>(root) || LeavesLoop(root); }

absl::StatusOr<std::vector<RoleSpan>> ProgramRoles(const TileState& state) {
  std::vector<RoleSpan> spans;
  ForEachStmt(state.program.launches[state.launch].body, [&](const Stmt& stmt) {
    auto* roles = std::get_if<Roles>(&stmt.op);
    for (size_t i = 0; roles != nullptr && i < roles->roles.size(); ++i) {
      const RoleSpan span = SpanOf(state, roles->roles[i]);
      if (std::find(spans.begin(), spans.end(), span) == spans.end()) spans.push_back(span);
    }
  });
  std::sort(spans.begin(), spans.end(), [](const RoleSpan& a, const RoleSpan& b) { return a.first < b.first; });
  std::vector<RoleSpan> parts;
  int end = 0;
  for (const RoleSpan& span : spans) {
    if (span.first < end) return absl::UnimplementedError("the roles of this launch divide its threads in different ways, which is not lowered to GPU code");
    if (span.first > end) parts.push_back({end, span.first - end});
    parts.push_back(span);
    end = span.first + span.warps;
  }
  if (!parts.empty() && end < state.warps) parts.push_back({end, state.warps - end});
  return parts;
}

void ForEachRoleStmt(const TileState& state, const Block& block, const RoleSpan& span, bool first, const std::function<void(const Stmt&)>& visit) {
  for (const Stmt& stmt : block) {
    if (auto* roles = std::get_if<Roles>(&stmt.op)) {
      for (const Role& role : roles->roles) {
        if (SpanOf(state, role) == span) ForEachStmt(role.body, visit);
      }
    } else if (std::holds_alternative<ThreadRegion>(stmt.op)) {
      ForEachStmt(stmt, visit);
    } else if (EachPartRuns(stmt)) {
      visit(stmt);
      for (const Block* child : ChildBlocks(stmt)) ForEachRoleStmt(state, *child, span, first, visit);
    } else if (first || std::holds_alternative<Alloc>(stmt.op)) {
      visit(stmt);
      for (const Block* child : ChildBlocks(stmt)) ForEachStmt(*child, visit);
    }
  }
}

}  // namespace tilert
