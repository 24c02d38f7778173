// Tiles whose iterations all blocks of the launch share: each block's walk over its shares, and the sums that blocks leave for
// each other in the workspace.
#include <algorithm>

#include "ir/status_util.h"
#include "lowering/emit_context.h"

namespace tilert {
namespace {

int ThreadsOf(const EmitContext& c) { return (c.role.role == nullptr ? c.kernel.warps : c.role.role->warps) * kLanes; }

// One call for each of `sums`, with the bytes at which its part begins in a block's place.
template <typename Call>
void ForEachPart(const EmitContext& c, const std::vector<BufferId>& sums, const Call& call) {
  int64_t offset = kir::kFlagBytes;
  for (BufferId id : sums) {
    call(c.buffers[id], offset);
    offset += kir::PartBytes(c.buffer(id).layout.regs(), ThreadsOf(c) / kLanes);
  }
}

std::string GivenBy(const EmitContext& c, const std::string& block) {
  return Cat("given + (i64)", block, " * ", kir::GivenBytes(c.kernel));
}

}  // namespace

std::string OpenShares(EmitContext& c, const std::string& worker, const std::string& workers, const std::string& tiles) {
  const kir::Kernel& k = c.kernel;
  const Range trips = c.ranges.Of(k.shared_trips);
  c.out.Line(Cat("Shares shares(", worker, ", ", workers, ", ", tiles, ", ", EmitInt(c, k.shared_trips).text, ");"));
  // The compiler is to see that all lanes have the same share.
  const bool one_thread = c.role.role != nullptr && c.role.role->one_thread;
  const auto same = [&](const std::string& text) { return one_thread ? text : Cat("same_in_warp(", text, ")"); };
  c.out.Line("#pragma unroll 1");
  c.Open(Cat("while (", same("shares.next()"), ") {"));
  for (const auto& [var, member] : {std::pair{k.share_begin, "begin"}, std::pair{k.share_end, "end"}}) {
    c.ranges.Bind(var, {0, std::min<int64_t>(std::max<int64_t>(trips.hi, 0), INT32_MAX), 1});
    c.vars[var].name = c.names.Fresh(k.vars[var].name);
    c.out.Optional(c.vars[var].name, Cat("const int ", c.vars[var].name, " = ", same(Cat("shares.", member)), ";"));
  }
  const std::string tile = c.names.Fresh("tile");
  c.out.Line(Cat("const u32 ", tile, " = ", same("shares.tile"), ";"));
  return tile;
}

void Emit(EmitContext& c, const kir::SumsGive& s) {
  c.Open("{");
  c.out.Line(Cat("u8* const place = ", GivenBy(c, "blockIdx.x"), ";"));
  ForEachPart(c, s.sums, [&](const std::string& sum, int64_t offset) {
    c.out.Line(Cat("sum_give<", ThreadsOf(c), ">(place + ", offset, " + (warp * 32 + lane) * 16, ", sum, ");"));
  });
  c.out.Line(Cat("sums_given(place + warp * ", kir::kFlagEachBytes, ", lane);"));
  c.Close();
}

void Emit(EmitContext& c, const kir::SumsTake& s) {
  const int size = kir::ClusterSize(c.kernel);
  const std::string block = size == 1 ? "worker" : Cat("(worker * ", size, " + ", c.vars[c.kernel.cluster_rank].name, ")");
  c.out.Line("#pragma unroll 1");
  c.Open("for (u32 worker = shares.worker; shares.helped_by(worker);) {");
  c.out.Line(Cat("u8* const place = ", GivenBy(c, block), ";"));
  c.out.Line(Cat("sums_wait(place + warp * ", kir::kFlagEachBytes, ", lane);"));
  ForEachPart(c, s.sums, [&](const std::string& sum, int64_t offset) {
    c.out.Line(Cat("sum_take<", ThreadsOf(c), ">(", sum, ", place + ", offset, " + (warp * 32 + lane) * 16);"));
  });
  c.out.Line(Cat("sums_taken(place + warp * ", kir::kFlagEachBytes, ", lane);"));
  c.Close();
}

}  // namespace tilert
