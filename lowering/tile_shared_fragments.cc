// Fragments that several roles use, or that all parts of the block look at outside of them, become shared buffers: registers belong to one part.
#include <utility>

#include "ir/status_util.h"
#include "lowering/tile_roles.h"
#include "lowering/tile_state.h"

namespace tilert {
namespace {

// Sums of products are made in registers, on the way from and to shared memory.
absl::Status MakeSumsInRegisters(TileState& s, Gemm gemm, const SourceLoc& loc, Block& out) {
  TILERT_ASSIGN_OR_RETURN(const Region sums, s.NewTileLike(gemm.c, "_sums", Scope::kFragment, loc, out));
  const Region shared = std::exchange(gemm.c, sums);
  gemm.is_async = false;
  if (!gemm.clear_accum) out.push_back({Copy{shared, sums}, loc});
  out.push_back({std::move(gemm), loc});
  out.push_back({Copy{sums, shared}, loc});
  return absl::OkStatus();
}

}  // namespace

absl::Status ShareBetweenRoles(TileState& state) {
  TILERT_ASSIGN_OR_RETURN(const std::vector<RoleSpan> spans, RoleSpans(state));
  if (spans.empty()) return absl::OkStatus();
  const absl::btree_set<BufferId> torn = FindHomes(state, spans).torn;
  if (torn.empty()) return absl::OkStatus();
  for (BufferId id : torn) {
    state.program.buffers[id].scope = Scope::kShared;
    state.report += Cat("  ", state.buffer(id).name, ": in shared memory, as several roles use it\n");
  }
  return RewriteBlock(state.L().body, [&](Stmt stmt, Block& out) {
    auto* gemm = std::get_if<Gemm>(&stmt.op);
    if (gemm != nullptr && torn.contains(gemm->c.buffer)) return MakeSumsInRegisters(state, std::move(*gemm), stmt.loc, out);
    out.push_back(std::move(stmt));
    return absl::OkStatus();
  });
}

}  // namespace tilert
