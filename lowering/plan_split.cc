// Loops that several blocks share (tile_split_sums.cc). In a cluster sums meet in shared memory, and the first block goes on with them; those of all blocks meet in
// the workspace, and the block that has the last iterations of a tile goes on.
#include "ir/status_util.h"
#include "lowering/plan_builder.h"

namespace tilert {

// Which share is this block's: blocks of one share are neighbours in the cluster.
void PlanBuilder::BindShare() {
  if (!s_.split) return;
  if (s_.split->ways == 0) return BindShareOfAll();
  const int shares = s_.split->ways, blocks = kir::ClusterSize(k_) / shares;
  const Expr rank = VarExpr(k_.cluster_rank);
  substitutes_[s_.split->rank] = blocks == 1 ? rank : Fold(k_.exprs, k_.exprs.Binary(ExprOp::kFloorDiv, rank, Int(blocks)));
}

// Only blocks that walk over tiles can share them; others have all iterations of their one tile.
void PlanBuilder::BindShareOfAll() {
  const SplitSums& split = *s_.split;
  const Expr trips = Tr(split.trips);
  if (rings_.groups.empty()) {
    substitutes_[split.begin] = Int(0), substitutes_[split.end] = trips;
    s_.report += "  not shared: no tile of the loop comes by TMA\n";
    return;
  }
  k_.shared_trips = trips;
  k_.share_begin = NewVar("share_begin"), k_.share_end = NewVar("share_end");
  substitutes_[split.begin] = VarExpr(k_.share_begin), substitutes_[split.end] = VarExpr(k_.share_end);
}

// What follows the loop, for the block that comes to the last iteration.
absl::Status PlanBuilder::EmitLastShare(const If& branch) {
  if (!k_.shared_trips) return EmitBlock(branch.then_body, *block_);
  RetireAll();
  FillNow({});
  std::vector<BufferId> sums;
  for (BufferId id : s_.split->sums) sums.push_back(buffers_[id]);
  const Expr is_last = Tr(branch.cond);
  Emit(kir::If{k_.exprs.Unary(ExprOp::kNot, is_last), {{kir::SumsGive{sums}, loc_}}, {}});
  kir::If rest{is_last, {{kir::SumsTake{std::move(sums)}, loc_}}, {}};
  TILERT_RETURN_IF_ERROR(EmitBlock(branch.then_body, rest.then_body));
  Emit(std::move(rest));
  return absl::OkStatus();
}

// What follows the loop: every block but the first leaves its sums where the first can read them.
absl::Status PlanBuilder::EmitFirstShare(const If& branch) {
  RetireAll();
  FillNow({});
  const Expr is_first = Tr(branch.cond);
  kir::If others{k_.exprs.Unary(ExprOp::kNot, is_first), {}, {}}, first{is_first, {}, {}};
  for (BufferId id : s_.split->sums) {
    const BufferId sum = buffers_[id];
    const kir::Buffer held = k_.buffers[sum];
    const BufferId part = NewShared(held.name + "_part", held.dtype, RowMajorShared(kir::PartExtents(held.layout.regs(), s_.warps), 4));
    others.then_body.push_back({kir::PartStore{part, sum}, loc_});
    const int blocks = kir::ClusterSize(k_) / s_.split->ways;
    for (int share = 1; share < s_.split->ways; ++share) {
      const Expr peer = k_.exprs.Binary(ExprOp::kAdd, VarExpr(k_.cluster_rank), Int(int64_t{share} * blocks));
      first.then_body.push_back({kir::PartAdd{sum, part, peer}, loc_});
    }
  }
  Emit(std::move(others));
  Emit(kir::ClusterSync{});
  Emit(std::move(first));
  Emit(kir::ClusterSync{});  // the parts have been read: their memory may be used again
  kir::If rest{is_first, {}, {}};
  TILERT_RETURN_IF_ERROR(EmitBlock(branch.then_body, rest.then_body));
  Emit(std::move(rest));
  return absl::OkStatus();
}

}  // namespace tilert
