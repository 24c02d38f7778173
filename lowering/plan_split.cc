// Loops that several blocks share (tile_split_sums.cc): their sums meet in shared memory, and the first block goes on with them.
#include "ir/status_util.h"
#include "lowering/plan_builder.h"

namespace tilert {

// Which share is this block's: blocks of one share are neighbours in the cluster.
void PlanBuilder::BindShare() {
  if (!s_.split) return;
  const int shares = s_.split->ways, blocks = kir::ClusterSize(k_) / shares;
  const Expr rank = VarExpr(k_.cluster_rank);
  substitutes_[s_.split->rank] = blocks == 1 ? rank : Fold(k_.exprs, k_.exprs.Binary(ExprOp::kFloorDiv, rank, Int(blocks)));
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
