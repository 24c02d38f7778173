// Thread block clusters: which blocks run together, and what for.
#include <algorithm>

#include "ir/status_util.h"
#include "lowering/plan_builder.h"

namespace tilert {

// A cluster has as many blocks along a dim of the grid as the program asks for where that saves loads, else one, and `split_`
// blocks for each.
void PlanBuilder::FormCluster() {
  std::vector<int> extents = ClusterWanted(s_);
  for (size_t d = 0; d < extents.size(); ++d) {
    const bool shares =
        std::any_of(rings_.shared.begin(), rings_.shared.end(), [d](const auto& copy) { return copy.second.axes >> d & 1; });
    if (!shares) extents[d] = 1;
  }
  if (s_.split && s_.split->ways > 0) split_ = s_.split->ways;
  if (std::all_of(extents.begin(), extents.end(), [](int extent) { return extent == 1; }) && split_ == 1) return;
  k_.cluster = std::move(extents);
  k_.cluster.push_back(split_);
  k_.cluster_rank = NewVar("cluster_rank");
  k_.has_block = NewVar("has_block");
  std::string text;
  for (int extent : k_.cluster) text += Cat(text.empty() ? "" : "x", extent);
  s_.report += Cat("  clusters of ", text, " blocks\n");
}

// Panels of the order over the grid count clusters then.
void PlanBuilder::FitRaster() {
  if (k_.cluster.empty() || k_.grid.size() < 2 || k_.raster_panel == 0) return;
  k_.raster_panel = std::max(1, k_.raster_panel / k_.cluster[k_.raster_column ? 0 : 1]);
}

// What a block outside the grid does for the others of its cluster while they compute: it gives back what its producer fills, so
// that everybody's rings go on.
absl::Status PlanBuilder::EmitDrain(kir::Block* out) {
  drains_ = true;
  SetProducerVars();
  const absl::Status status = EmitProducer(s_.L().body, *out);
  drains_ = false;
  return status;
}

// `tile` is run by blocks that are in the grid; the others of the cluster keep in step.
absl::Status PlanBuilder::OnlyInsideGrid(kir::Block* tile) {
  const bool all_inside = std::all_of(k_.cluster.begin(), k_.cluster.end() - 1, [](int extent) { return extent == 1; });
  if (all_inside) return absl::OkStatus();
  kir::If inside{k_.exprs.Binary(ExprOp::kEq, VarExpr(k_.has_block), Int(1)), std::move(*tile), {}};
  TILERT_RETURN_IF_ERROR(EmitDrain(&inside.else_body));
  if (instances_ > 1) TakeTurns(&inside.else_body);
  *tile = {};
  tile->push_back({std::move(inside), {}});
  return absl::OkStatus();
}

}  // namespace tilert
