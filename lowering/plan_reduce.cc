// Reductions: registers and lanes by LaneReduce; where several warps share a line, their partial results meet in shared memory.
#include <algorithm>

#include "ir/status_util.h"
#include "lowering/plan_builder.h"

namespace tilert {
namespace {

// `layout` with dimension `axis` reduced to its warp factors (`to_registers`: to one register a warp).
FragmentLayout WarpPartials(const FragmentLayout& layout, int axis, bool to_registers) {
  FragmentLayout partial = layout;
  LayoutDim& dim = partial.dims[axis];
  std::vector<Factor> warp_factors;
  int64_t count = 1;
  for (const Factor& factor : dim.factors) {
    if (factor.owner != Owner::kWarp) continue;
    warp_factors.push_back(factor);
    count *= factor.size;
  }
  dim = {count, warp_factors};
  if (to_registers) dim.factors.clear();
  partial = Dense(std::move(partial));
  if (to_registers) partial.dims[axis] = {count, {{count, Owner::kReg, partial.regs()}}};
  return partial;
}

ExprOp CombineOp(ReduceOp op) {
  switch (op) {
    case ReduceOp::kMax:
    case ReduceOp::kAbsMax:
      return ExprOp::kMax;
    case ReduceOp::kMin:
      return ExprOp::kMin;
    case ReduceOp::kBitAnd:
      return ExprOp::kBitAnd;
    case ReduceOp::kBitOr:
      return ExprOp::kBitOr;
    case ReduceOp::kBitXor:
      return ExprOp::kBitXor;
    default:
      return ExprOp::kAdd;
  }
}

// What combines partial results of `op`: the absolute values are taken once.
ReduceOp PartialOp(ReduceOp op) {
  if (op == ReduceOp::kAbsSum) return ReduceOp::kSum;
  if (op == ReduceOp::kAbsMax) return ReduceOp::kMax;
  return op;
}

}  // namespace

absl::Status PlanBuilder::EmitReduce(const Reduce& reduce) {
  BufferId src = buffers_[reduce.src.buffer];
  const BufferId dst = buffers_[reduce.dst.buffer];
  const int axis = static_cast<int>(reduce.axis);
  ReduceOp op = reduce.op;
  FragmentLayout layout = k_.buffers[src].layout;
  const DType dtype = k_.buffers[src].dtype;

  const auto& factors = layout.dims[axis].factors;
  const bool across_warps = std::any_of(factors.begin(), factors.end(), [](const Factor& f) { return f.owner == Owner::kWarp && f.size > 1; });
  if (across_warps) {
    const BufferId partial = NewRegister(k_.buffers[dst].name + "_partial", dtype, WarpPartials(layout, axis, false));
    Emit(kir::Declare{partial, false});
    Emit(kir::LaneReduce{op, partial, src, axis, true, false});
    op = PartialOp(op);
    const FragmentLayout gathered = WarpPartials(layout, axis, true);
    const size_t rank = layout.dims.size();
    const BufferId scratch = NewShared(k_.buffers[dst].name + "_warps", dtype, RowMajorShared(ExtentsOf(gathered), DTypeBytes(dtype)));
    EmitTileCopy(WholeAccess(scratch, rank), WholeAccess(partial, rank), k_.buffers[partial].layout);
    src = NewRegister(k_.buffers[dst].name + "_gathered", dtype, gathered);
    Emit(kir::Declare{src, false});
    EmitTileCopy(WholeAccess(src, rank), WholeAccess(scratch, rank), gathered);
    layout = gathered;
  }

  std::vector<int> keep;
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    if (static_cast<int>(d) != axis) keep.push_back(static_cast<int>(d));
  }
  const FragmentLayout result = Project(layout, keep);
  // The destination as the reduction sees it: without the unit dimension it may keep in place of the axis.
  const FragmentLayout dst_layout = k_.buffers[dst].layout;
  const bool same_shape = ExtentsOf(dst_layout) == ExtentsOf(result);
  const bool same_type = k_.buffers[dst].dtype == dtype;
  if (same_shape && same_type && CanWrite(dst_layout, result)) {
    Emit(kir::LaneReduce{op, dst, src, axis, false, !reduce.clear});
    return absl::OkStatus();
  }
  const BufferId reduced = NewRegister(k_.buffers[dst].name + "_reduced", dtype, result);
  Emit(kir::Declare{reduced, false});
  Emit(kir::LaneReduce{op, reduced, src, axis, false, false});
  // Dims of one element are dropped on either side where the shapes differ by them; the others agree in order.
  const auto paired = [&](const FragmentLayout& l) {
    std::vector<int> dims;
    for (size_t d = 0; d < l.dims.size(); ++d) {
      if (same_shape || l.dims[d].extent != 1) dims.push_back(static_cast<int>(d));
    }
    if (dims.empty() && !dst_layout.dims.empty() && !result.dims.empty()) dims = {0};
    return dims;
  };
  const std::vector<int> dst_dims = paired(dst_layout), src_dims = paired(result);
  if (dst_dims.size() != src_dims.size()) return Internal("a reduction's shapes disagree");
  if (reduce.clear) {
    MoveFragment(dst, reduced, dst_dims, src_dims);
    return absl::OkStatus();
  }
  const BufferId addend = NewRegister(k_.buffers[dst].name + "_addend", dtype, dst_layout);
  Emit(kir::Declare{addend, true});
  MoveFragment(addend, reduced, dst_dims, src_dims);
  CombineInto(dst, addend, op);
  return absl::OkStatus();
}

// dst = dst op src, element by element; both in dst's layout.
void PlanBuilder::CombineInto(BufferId dst, BufferId src, ReduceOp op) {
  const FragmentLayout layout = k_.buffers[dst].layout;
  kir::Elementwise loop{layout, {}, {}};
  std::vector<Expr> at;
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    loop.vars.push_back(NewVar("r"));
    at.push_back(VarExpr(loop.vars.back()));
  }
  const DType dtype = k_.buffers[dst].dtype;
  const Expr a = k_.exprs.Load(dst, dtype, at), b = k_.exprs.Cast(k_.exprs.Load(src, k_.buffers[src].dtype, at), dtype);
  loop.body.push_back({kir::Store{dst, at, k_.exprs.Binary(CombineOp(op), a, b)}, loc_});
  Emit(std::move(loop));
}

// dst[dst_dims…] = src[src_dims…] with other dims, of one element, at 0: a renaming of registers where the threads agree, else through shared memory.
void PlanBuilder::MoveFragment(BufferId dst, BufferId src, const std::vector<int>& dst_dims, const std::vector<int>& src_dims) {
  const FragmentLayout dst_layout = k_.buffers[dst].layout, src_layout = k_.buffers[src].layout;
  // Dims to loop over: those that move, and before them what threads hold as padding of others, lest they seem to hold the element itself.
  const auto with_padding = [](const FragmentLayout& layout, std::vector<int> dims) {
    for (int d = static_cast<int>(layout.dims.size()); d-- > 0;) {
      if (layout.dims[d].padded() > 1 && std::count(dims.begin(), dims.end(), d) == 0) dims.insert(dims.begin(), d);
    }
    return dims;
  };
  // The side that has `dims`, of which the last ones follow the last dims of a loop of rank `loop_rank`.
  const auto side = [&](BufferId id, const std::vector<int>& dims, size_t loop_rank) {
    kir::TileAccess access;
    access.buffer = id;
    const size_t rank = k_.buffers[id].layout.dims.size();
    access.start.assign(rank, Int(0));
    access.follows.assign(rank, -1);
    access.inside.assign(rank, true);
    for (size_t i = 0; i < dims.size(); ++i) access.follows[dims[i]] = static_cast<int>(i + loop_rank - dims.size());
    return access;
  };
  const std::vector<int> to_dims = with_padding(dst_layout, dst_dims), from_dims = with_padding(src_layout, src_dims);
  FragmentLayout to = Project(dst_layout, to_dims), from = Project(src_layout, from_dims);
  const FragmentLayout have = Project(src_layout, src_dims);
  if (CanRead(have, Project(dst_layout, dst_dims))) {
    EmitTileCopy(side(dst, to_dims, to_dims.size()), side(src, src_dims, to_dims.size()), std::move(to));
    return;
  }
  s_.report += Cat("  ", k_.buffers[src].name, " → ", k_.buffers[dst].name, ": converted through shared memory\n");
  const std::vector<int64_t> extents = ExtentsOf(have);
  const BufferId scratch = NewScratch(k_.buffers[src].name, k_.buffers[src].dtype, extents);
  const auto memory = [&](size_t loop_rank) {
    kir::TileAccess access = WholeAccess(scratch, extents.size());
    for (int& follows : access.follows) follows += follows < 0 ? 0 : static_cast<int>(loop_rank - extents.size());
    return access;
  };
  EmitTileCopy(memory(from_dims.size()), side(src, from_dims, from_dims.size()), std::move(from));
  EmitTileCopy(side(dst, to_dims, to_dims.size()), memory(to_dims.size()), std::move(to));
}

}  // namespace tilert
