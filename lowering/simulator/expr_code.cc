#include "lowering/simulator/expr_code.h"

#include <algorithm>

namespace tilert::sim {
namespace {

bool HoldsLoad(const ExprArena& arena, Expr root) {
  bool found = false;
  ForEachNode(arena, root, [&](Expr, const ExprNode& node) { found = found || node.op == ExprOp::kLoad; });
  return found;
}

Value IntValue(int64_t i) {
  Value value;
  value.i = i;
  return value;
}
Value FloatValue(double f) {
  Value value;
  value.f = f;
  return value;
}

}  // namespace

Slot ExprCompiler::Constant(Value value) {
  auto [it, added] = constant_slots_.try_emplace(value.i, ~static_cast<Slot>(constants_.size()));
  if (added) {
    Row row;
    row.fill(value);
    constants_.push_back(row);
  }
  return it->second;
}

Code ExprCompiler::Compile(Expr root) { return CompileAs(root, kernel_.exprs[root].dtype); }

Code ExprCompiler::CompileAs(Expr root, DType type) {
  code_ = Code();
  next_temp_ = 0;
  done_.clear();
  const DType from = kernel_.exprs[root].dtype;
  Slot slot = Visit(root);
  if (from != type) slot = Emit({.op = ExprOp::kCast, .type = from, .result = type, .a = slot});
  code_.result = slot;
  code_.type = type;
  return std::move(code_);
}

Slot ExprCompiler::Emit(Instr instr) {
  instr.dst = static_cast<Slot>(kernel_.vars.size() + next_temp_++);
  temps_ = std::max(temps_, next_temp_);
  code_.instrs.push_back(instr);
  return instr.dst;
}

// What the emitter knows of variables that no statement binds.
void ExprCompiler::BindKernelVars() {
  const auto below = [&](VarId var, int64_t count) {
    if (var != kNoId) ranges_.Bind(var, {0, std::max<int64_t>(count - 1, 0), 1});
  };
  for (size_t d = 0; d < kernel_.block_vars.size(); ++d) {
    const int64_t last = std::min<int64_t>(ranges_.Of(kernel_.grid[d]).hi, INT32_MAX) - 1;
    ranges_.Bind(kernel_.block_vars[d], {0, std::max<int64_t>(last, 0), 1}, kernel_.grid[d]);
  }
  for (const kir::Ring& ring : kernel_.rings) below(ring.slot, ring.slots);
  below(kernel_.cluster_rank, kir::ClusterSize(kernel_));
  below(kernel_.has_block, 2);
  if (!kernel_.shared_trips) return;
  const int64_t trips = std::min<int64_t>(std::max<int64_t>(ranges_.Of(kernel_.shared_trips).hi, 0), INT32_MAX);
  for (VarId var : {kernel_.share_begin, kernel_.share_end}) ranges_.Bind(var, {0, trips, 1});
}

std::vector<bool> ExprCompiler::Inside(BufferId id, const std::vector<Expr>& indices) const {
  const kir::Buffer& buffer = kernel_.buffers[id];
  const size_t first = buffer.space == kir::Space::kShared ? 1 : 0;
  std::vector<bool> inside(indices.size(), true);  // there is such a version; a register's element is the thread's
  for (size_t d = first; d < indices.size() && buffer.space != kir::Space::kRegister; ++d)
    inside[d] = ranges_.ProveInside(buffer, d - first, ranges_.Of(indices[d]), indices[d]);
  return inside;
}

// What is computed under a mask is not at hand outside it.
Slot ExprCompiler::VisitMasked(Instr::Kind kind, Slot cond, Expr e) {
  auto outside = done_;
  code_.instrs.push_back({.kind = kind, .a = cond});
  const Slot slot = Visit(e);
  code_.instrs.push_back({.kind = Instr::Kind::kUnmask});
  done_ = std::move(outside);
  return slot;
}

// Select, and, or: operands that may not be evaluated are masked if that can be seen (a load), else simply computed.
Slot ExprCompiler::VisitLogic(const ExprNode& node) {
  const Slot a = Visit(node.args[0]);
  auto visit = [&](size_t arg, Instr::Kind kind) {
    return HoldsLoad(kernel_.exprs, node.args[arg]) ? VisitMasked(kind, a, node.args[arg]) : Visit(node.args[arg]);
  };
  const bool is_or = node.op == ExprOp::kOr;
  Slot b = 0;
  if (is_or) {
    b = visit(1, Instr::Kind::kMaskNot);
  } else {
    const Ranges::Assume known(ranges_, node.args[0]);
    b = visit(1, Instr::Kind::kMask);
  }
  const Slot c = node.op == ExprOp::kSelect ? visit(2, Instr::Kind::kMaskNot) : 0;
  return Emit({.op = node.op, .type = node.dtype, .result = node.dtype, .a = a, .b = b, .c = c});
}

Slot ExprCompiler::Visit(Expr e) {
  if (auto it = done_.find(e.id); it != done_.end()) return it->second;
  const ExprNode& node = kernel_.exprs[e];
  Slot slot = 0;
  switch (node.op) {
    case ExprOp::kIntImm: slot = Constant(IntValue(node.i)); break;
    case ExprOp::kFloatImm: slot = Constant(FloatValue(RoundToType(node.dtype, node.f))); break;
    case ExprOp::kDim: slot = Constant(IntValue(dims_[node.i])); break;
    case ExprOp::kScalar: slot = Constant(scalars_[node.i]); break;
    case ExprOp::kVar: slot = static_cast<Slot>(node.i); break;
    case ExprOp::kSelect:
    case ExprOp::kAnd:
    case ExprOp::kOr: slot = VisitLogic(node); break;
    case ExprOp::kLoad: {
      LoadRef load{
          static_cast<BufferId>(node.i), {}, Inside(static_cast<BufferId>(node.i), {node.args.begin(), node.args.end()})};
      for (Expr index : node.args) load.indices.push_back(Visit(index));
      code_.loads.push_back(std::move(load));
      slot = Emit({.kind = Instr::Kind::kLoad, .result = node.dtype, .load = static_cast<int32_t>(code_.loads.size() - 1)});
      break;
    }
    default: {
      Slot args[3] = {0, 0, 0};
      for (size_t i = 0; i < node.args.size() && i < 3; ++i) args[i] = Visit(node.args[i]);
      slot = Emit({.op = node.op,
                   .type = kernel_.exprs[node.args[0]].dtype,
                   .result = node.dtype,
                   .a = args[0],
                   .b = args[1],
                   .c = args[2]});
    }
  }
  if (!IsFloat(node.dtype) && slot >= static_cast<Slot>(kernel_.vars.size()) && node.op != ExprOp::kLoad) {
    const Range range = ranges_.Of(e), all = TypeRange(node.dtype);
    Instr& last = code_.instrs.back();
    last.bounded = last.dst == slot && (range.lo > all.lo || range.hi < all.hi);
    last.lo = range.lo;
    last.hi = range.hi;
  }
  done_[e.id] = slot;
  return slot;
}

}  // namespace tilert::sim
