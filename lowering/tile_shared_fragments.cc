// Fragments that several roles use, or that all parts of the block look at outside of them, become shared buffers: registers belong to one part.
#include <algorithm>

#include "ir/status_util.h"
#include "lowering/tile_roles.h"
#include "lowering/tile_state.h"

namespace tilert {
namespace {

// Sums of products are made in registers, on the way from and to shared memory.
absl::Status MakeSumsInRegisters(TileState& s, Gemm gemm, const SourceLoc& loc, Block& out) {
  const std::vector<int64_t> extents = s.Extents(gemm.c.extent);
  if (!AllKnown(extents)) return InvalidArgument("the region of '", s.buffer(gemm.c.buffer).name, "' has an extent that is not fixed", Where(s.program, loc));
  const Region sums = gemm.c;
  gemm.c = s.Whole(s.NewBuffer(s.buffer(sums.buffer).name + "_sums", s.buffer(sums.buffer).dtype, Scope::kFragment, extents));
  gemm.is_async = false;
  out.push_back({Alloc{gemm.c.buffer}, loc});
  if (!gemm.clear_accum) out.push_back({Copy{sums, gemm.c}, loc});
  const Region made = gemm.c;
  out.push_back({std::move(gemm), loc});
  out.push_back({Copy{made, sums}, loc});
  return absl::OkStatus();
}

}  // namespace

absl::Status ShareBetweenRoles(TileState& state) {
  TILERT_ASSIGN_OR_RETURN(const std::vector<RoleSpan> spans, RoleSpans(state));
  if (spans.empty()) return absl::OkStatus();
  const std::vector<BufferId> torn = FindHomes(state, spans).torn;
  if (torn.empty()) return absl::OkStatus();
  for (BufferId id : torn) {
    state.program.buffers[id].scope = Scope::kShared;
    state.report += Cat("  ", state.buffer(id).name, ": in shared memory, as several roles use it\n");
  }
  return RewriteBlock(state.L().body, [&](Stmt stmt, Block& out) {
    auto* gemm = std::get_if<Gemm>(&stmt.op);
    if (gemm != nullptr && std::ranges::find(torn, gemm->c.buffer) != torn.end()) return MakeSumsInRegisters(state, std::move(*gemm), stmt.loc, out);
    out.push_back(std::move(stmt));
    return absl::OkStatus();
  });
}

}  // namespace tilert
