#include "lowering/tile_roles.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "ir/status_util.h"
#include "lowering/tile_access.h"

namespace tilert {
namespace {

template <typename... Ops>
bool IsOneOf(const Stmt& stmt) {
  return (std::holds_alternative<Ops>(stmt.op) || ...);
}

// True when one of the statements is, or stands in, `root`.
template <typename... Ops>
bool Holds(const Stmt& root) {
  bool holds = false;
  ForEachStmt(root, [&](const Stmt& stmt) { holds |= IsOneOf<Ops...>(stmt); });
  return holds;
}

// True of what may leave the loop around it, or an iteration of that: no part may go on alone.
bool LeavesLoop(const Stmt& stmt) {
  if (IsJump(stmt)) return true;
  auto* branch = std::get_if<If>(&stmt.op);
  return branch != nullptr && (std::ranges::any_of(branch->then_body, LeavesLoop) || std::ranges::any_of(branch->else_body, LeavesLoop));
}

// True for roles whose threads meet no others: whoever does what they do, in whatever order, it is the same.
bool MindNobody(const Roles& roles) {
  bool meet = false;
  for (const Role& role : roles.roles) {
    for (const Stmt& body : role.body) {
      meet |= LeavesLoop(body) || Holds<BarrierOp, AsyncWait, ThreadRegion, SyncThreads>(body);
      ForEachStmt(body, [&](const Stmt& stmt) {
        auto* copy = std::get_if<Copy>(&stmt.op);
        meet |= copy != nullptr && copy->barrier != kNoId;
      });
    }
  }
  return !meet;
}

bool IsFragment(const TileState& state, BufferId id) { return state.scope(id) == Scope::kFragment; }

// In the order of their numbers.
absl::btree_set<BufferId> FragmentsTouched(const TileState& state, const Stmt& stmt) {
  absl::btree_set<BufferId> touched;
  for (BufferId id : BuffersTouched(state.program, stmt)) {
    if (IsFragment(state, id)) touched.insert(id);
  }
  return touched;
}

// Which part holds each fragment: the one whose role touches it, or that of a fragment that some statement outside the roles touches with it.
class HomeFinder {
 public:
  HomeFinder(const TileState& state, const std::vector<RoleSpan>& spans) : s_(state), spans_(spans) {}

  FragmentHomes Run() {
    Collect(s_.program.launches[s_.launch].body);
    for (bool again = true; again;) {
      again = false;
      for (const auto& together : together_) again |= MakeOneHome(together);
    }
    return std::move(found_);
  }

 private:
  void Collect(const Block& block) {
    for (const Stmt& stmt : block) {
      if (auto* roles = std::get_if<Roles>(&stmt.op)) {
        for (const Role& role : roles->roles) {
          const auto part = std::find(spans_.begin(), spans_.end(), SpanOf(s_, role)) - spans_.begin();
          for (const Stmt& inner : role.body) {
            for (BufferId id : FragmentsTouched(s_, inner)) HeldBy(id, static_cast<size_t>(part));
          }
        }
      } else if (std::holds_alternative<ThreadRegion>(stmt.op)) {
        found_.torn.merge(FragmentsTouched(s_, stmt));
      } else if (EachPartRuns(stmt)) {
        TearLoads(stmt);
        for (const Block* child : ChildBlocks(stmt)) Collect(*child);
      } else if (EverybodyDoes(s_, stmt)) {
        TearLoads(stmt);
      } else {
        ForEachStmt(stmt, [&](const Stmt& inner) {
          ForEachRegionStart(inner, [&](const Expr& e) { TearLoads(e); });
        });
        together_.push_back(FragmentsTouched(s_, stmt));
      }
    }
  }

  // False where that was known.
  bool HeldBy(BufferId id, size_t part) {
    const auto [home, is_new] = found_.homes.try_emplace(id, part);
    return is_new || (home->second != part && found_.torn.insert(id).second);
  }
  // What the parts look at, each for itself.
  void TearLoads(Expr root) {
    ForEachNode(s_.program.exprs, root, [&](Expr, const ExprNode& node) {
      if (node.op == ExprOp::kLoad && IsFragment(s_, static_cast<BufferId>(node.i))) found_.torn.insert(static_cast<BufferId>(node.i));
    });
  }
  void TearLoads(const Stmt& stmt) {
    ForEachExpr(stmt, [&](Expr e) { TearLoads(e); });
  }

  // The first of them that has a home gives it to the others; false where they had it.
  bool MakeOneHome(const absl::btree_set<BufferId>& together) {
    std::optional<size_t> home;
    bool changed = false;
    for (BufferId id : together) {
      const auto known = found_.homes.find(id);
      if (!home && !found_.torn.contains(id) && known != found_.homes.end()) home = known->second;
    }
    for (BufferId id : together) changed |= home && !found_.torn.contains(id) && HeldBy(id, *home);
    return changed;
  }

  const TileState& s_;
  const std::vector<RoleSpan>& spans_;
  std::vector<absl::btree_set<BufferId>> together_;
  FragmentHomes found_;
};

}  // namespace

RoleSpan SpanOf(const TileState& state, const Role& role) {
  int64_t begin = 0, end = 0;
  state.program.exprs.AsInt(role.thread_begin, &begin);
  state.program.exprs.AsInt(role.thread_end, &end);
  return {static_cast<int>(begin / kLanes), static_cast<int>((end - begin) / kLanes)};
}

bool HoldsRoles(const Stmt& root) { return Holds<Roles>(root); }
bool EachPartRuns(const Stmt& root) { return Holds<Roles, ThreadRegion>(root) || LeavesLoop(root); }

bool EverybodyDoes(const TileState& state, const Stmt& stmt) {
  auto* store = std::get_if<Store>(&stmt.op);
  return IsOneOf<Let, BarrierOp, AsyncWait, Assert, SyncThreads>(stmt) || (store != nullptr && state.scope(store->buffer) == Scope::kVar);
}

FragmentHomes FindHomes(const TileState& state, const std::vector<RoleSpan>& spans) { return HomeFinder(state, spans).Run(); }

size_t RoleParts::DoneBy(const TileState& state, const Stmt& stmt) const {
  for (BufferId id : FragmentsTouched(state, stmt)) {
    if (const auto home = homes.find(id); home != homes.end()) return home->second;
  }
  return 0;
}

absl::StatusOr<std::vector<RoleSpan>> RoleSpans(const TileState& state) {
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
    if (span.first < end) return absl::UnimplementedError("roles of this launch that wait at barriers divide its threads in different ways, which is not lowered to GPU code");
    if (span.first > end) parts.push_back({end, span.first - end});
    parts.push_back(span);
    end = span.first + span.warps;
  }
  if (!parts.empty() && end < state.warps) parts.push_back({end, state.warps - end});
  return parts;
}

absl::StatusOr<RoleParts> ProgramRoles(const TileState& state) {
  TILERT_ASSIGN_OR_RETURN(std::vector<RoleSpan> spans, RoleSpans(state));
  if (spans.empty()) return RoleParts();
  FragmentHomes found = FindHomes(state, spans);
  if (!found.torn.empty()) return absl::InternalError(Cat("fragment '", state.buffer(*found.torn.begin()).name, "' is used by several roles"));
  return RoleParts{std::move(spans), std::move(found.homes)};
}

absl::Status JoinRoles(TileState& state) {
  if (RoleSpans(state).ok()) return absl::OkStatus();
  return RewriteBlock(state.L().body, [&](Stmt stmt, Block& out) {
    auto* roles = std::get_if<Roles>(&stmt.op);
    if (roles == nullptr || !MindNobody(*roles)) return out.push_back(std::move(stmt)), absl::OkStatus();
    for (Role& role : roles->roles) std::ranges::move(role.body, std::back_inserter(out));
    state.report += Cat("  roles", Where(state.program, stmt.loc), ": one after the other, by all threads: others divide these in another way\n");
    return absl::OkStatus();
  });
}

void ForEachRoleStmt(const TileState& state, const Block& block, const RoleParts& parts, size_t part, const std::function<void(const Stmt&)>& visit) {
  for (const Stmt& stmt : block) {
    if (auto* roles = std::get_if<Roles>(&stmt.op)) {
      for (const Role& role : roles->roles) {
        if (SpanOf(state, role) == parts.spans[part]) ForEachStmt(role.body, visit);
      }
    } else if (std::holds_alternative<ThreadRegion>(stmt.op)) {
      ForEachStmt(stmt, visit);
    } else if (EachPartRuns(stmt)) {
      visit(stmt);
      for (const Block* child : ChildBlocks(stmt)) ForEachRoleStmt(state, *child, parts, part, visit);
    } else if (parts.DoneBy(state, stmt) == part || std::holds_alternative<Alloc>(stmt.op)) {
      visit(stmt);
      for (const Block* child : ChildBlocks(stmt)) ForEachStmt(*child, visit);
    }
  }
}

}  // namespace tilert
