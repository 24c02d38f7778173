// T.sync_grid(): everything that all blocks did before it is there for what follows. Programs say that by two launches.
#include "absl/container/flat_hash_set.h"
#include "frontend/legalize.h"
#include "frontend/program_edit.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

bool IsMarker(const Stmt& stmt) {
  const auto* note = std::get_if<Annotate>(&stmt.op);
  return note != nullptr && note->kind == AnnotationKind::kInvalid;
}

struct Uses {
  absl::flat_hash_set<BufferId> buffers;
  absl::flat_hash_set<VarId> vars;
};

Uses UsesOf(const Program& p, const Block& block) {
  Uses uses;
  ForEachStmt(block, [&](const Stmt& stmt) {
    if (!std::holds_alternative<Alloc>(stmt.op) && !std::holds_alternative<Annotate>(stmt.op))
      ForEachBuffer(stmt, [&](BufferId id) { uses.buffers.insert(id); });
    ForEachExpr(stmt, [&](Expr e) {
      ForEachNode(p.exprs, e, [&](Expr, const ExprNode& node) {
        if (node.op == ExprOp::kLoad) uses.buffers.insert(static_cast<BufferId>(node.i));
        if (node.op == ExprOp::kVar) uses.vars.insert(static_cast<VarId>(node.i));
      });
    });
  });
  return uses;
}

// Gives `launch` what stands in front of the marker, and returns a launch of the rest.
absl::StatusOr<Launch> TakeRest(Program* p, Launch* launch, size_t marker) {
  const SourceLoc loc = launch->body[marker].loc;
  Launch rest = *launch;
  rest.body.assign(launch->body.begin() + static_cast<ptrdiff_t>(marker) + 1, launch->body.end());
  Block before(launch->body.begin(), launch->body.begin() + static_cast<ptrdiff_t>(marker));
  const Uses first = UsesOf(*p, before), second = UsesOf(*p, rest.body);
  Block kept, moved;
  for (const Stmt& stmt : before) {
    const auto* alloc = std::get_if<Alloc>(&stmt.op);
    const VarId* const var = BoundVar(stmt);
    const bool stays = alloc == nullptr || !second.buffers.contains(alloc->buffer);
    const bool is_shared = alloc && !stays && first.buffers.contains(alloc->buffer);
    if (is_shared || (var && second.vars.contains(*var))) {
      const std::string& name = is_shared ? p->buffers[alloc->buffer].name : p->vars[*var].name;
      return absl::InvalidArgumentError(
          Cat(PlaceOf(*p, loc), "error: '", name, "' is used on both sides of T.sync_grid()\n  hint: make one for each side"));
    }
    (stays ? kept : moved).push_back(stmt);
  }
  launch->body = std::move(kept);
  rest.body.insert(rest.body.begin(), moved.begin(), moved.end());
  for (VarId& var : rest.block_vars) {
    const VarId fresh = FreshVar(*p, var);
    SubstituteVar(*p, rest.body, var, p->exprs.Leaf(ExprOp::kVar, fresh, p->vars[fresh].dtype));
    var = fresh;
  }
  return rest;
}

}  // namespace

Annotate GridSyncMarker() { return Annotate{AnnotationKind::kInvalid, kNoId, {}, "sync_grid"}; }

absl::Status SplitAtGridSyncs(Program* p) {
  std::vector<Launch> split;
  for (size_t i = 0; i < p->launches.size(); ++i) {
    Launch launch = std::move(p->launches[i]);
    const bool is_default = launch.name == Cat("k", i);
    std::vector<Launch> parts;
    for (size_t s = 0; s < launch.body.size(); ++s) {
      if (!IsMarker(launch.body[s])) continue;
      TILERT_ASSIGN_OR_RETURN(Launch rest, TakeRest(p, &launch, s));
      parts.push_back(std::move(launch));
      launch = std::move(rest);
      s = static_cast<size_t>(-1);
    }
    parts.push_back(std::move(launch));
    for (size_t part = 0; part < parts.size(); ++part) {
      SourceLoc nested;
      bool found = false;
      ForEachStmt(parts[part].body, [&](const Stmt& stmt) {
        if (IsMarker(stmt)) nested = stmt.loc, found = true;
      });
      if (found) {
        return absl::InvalidArgumentError(Cat(PlaceOf(*p, nested),
                                              "error: T.sync_grid() must stand in a launch, outside loops and conditions\n",
                                              "  hint: write the loop around two launches, or put the condition into each part"));
      }
      if (is_default) parts[part].name = Cat("k", split.size());
      if (!is_default && part > 0) parts[part].name += Cat("_", part);
      split.push_back(std::move(parts[part]));
    }
  }
  p->launches = std::move(split);
  return absl::OkStatus();
}

}  // namespace tilert::frontend
