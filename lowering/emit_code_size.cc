// Instructions that expressions and statements become, roughly: what NVRTC 13.0 makes of each for sm_90a, counted in SASS.
#include <algorithm>

#include "ir/status_util.h"
#include "lowering/emit_unroll.h"

namespace tilert {
namespace {

// A product with a stride that is no constant, in each of many addresses, is what takes NVVM longest.
constexpr int64_t kStrideSize = 30;

// Rounding to a narrow float type and back.
int64_t RoundingSize(DType type) {
  if (!IsNarrowFloat(type)) return 0;
  return type == DType::kFloat8E5M2 ? 8 : type == DType::kFloat8E4M3 ? 4 : 2;
}

int64_t CastSize(DType from, DType to) {
  if (from == to || SameValue(from, to)) return RoundingSize(to);
  if (IsFloat(to)) return !IsNarrowFloat(to) ? 1 : to == DType::kFloat8E5M2 ? 9 : 6;
  if (!IsFloat(from)) return 1;
  return to == DType::kBool ? 2 : DTypeBits(to) < 32 ? 5 : 3;
}

int64_t StrideSize(const EmitContext& c, const kir::Buffer& buffer, size_t d) {
  return c.ranges.Of(buffer.strides[d]).IsConstant() ? 1 : kStrideSize;
}

bool DependsOnPoint(const EmitContext& c, Expr e) {
  bool depends = false;
  ForEachNode(c.kernel.exprs, e, [&](Expr, const ExprNode& node) {
    depends |= node.op == ExprOp::kLoad || (node.op == ExprOp::kVar && (c.vars[node.i].has_coordinate || c.vars[node.i].thread));
  });
  return depends;
}

// An element's address, and its conditions: one a dimension that it may be outside of.
int64_t AccessSize(const EmitContext& c, BufferId id, absl::Span<const Expr> subscripts) {
  const kir::Buffer& buffer = c.buffer(id);
  if (buffer.space == kir::Space::kRegister) return PerWord(buffer.dtype) > 1 ? 2 : 1;
  const bool shared = buffer.space == kir::Space::kShared;
  const size_t first = shared ? 1 : 0;  // after the version
  int64_t size = 2;
  for (size_t d = first; d < subscripts.size(); ++d) {
    if (!c.ranges.ProveInside(buffer, d - first, c.ranges.Of(subscripts[d]), subscripts[d])) size += 2;
    size += shared ? 1 : DependsOnPoint(c, subscripts[d]) ? StrideSize(c, buffer, d) : 0;
  }
  return size;
}

// The same for one side of a copy.
int64_t SideSize(const EmitContext& c, const kir::TileAccess& access) {
  const kir::Buffer& buffer = c.buffer(access.buffer);
  if (buffer.space == kir::Space::kRegister) return 1;
  const bool shared = buffer.space == kir::Space::kShared;
  int64_t size = 2;
  for (size_t d = 0; d < access.follows.size(); ++d) {
    size += access.inside[d] ? 0 : 2;
    if (!shared && access.follows[d] >= 0) size += StrideSize(c, buffer, d);
  }
  return size;
}

int64_t DivisionSize(const EmitContext& c, const ExprNode& node) {
  const Range divisor = c.ranges.Of(node.args[1]);
  if (divisor.IsConstant()) return (divisor.lo & (divisor.lo - 1)) == 0 ? 1 : 5;
  const bool wide = DTypeBits(node.dtype) == 64 && node.dtype != DType::kIndex;
  return (KindOf(node.dtype) == DTypeKind::kUnsigned ? 23 : 40) + (wide ? 20 : 0);
}

int64_t IntegerSize(const ExprNode& node) {
  const int64_t wide = DTypeBits(node.dtype) == 64 && node.dtype != DType::kIndex ? 2 : 1;
  return (node.op == ExprOp::kShl || node.op == ExprOp::kShr ? 3 : 1) * wide;
}

int64_t DoubleSize(ExprOp op) {
  switch (op) {
    case ExprOp::kMin:
    case ExprOp::kMax: return 16;
    case ExprOp::kDiv:
    case ExprOp::kRsqrt: return 24;
    case ExprOp::kExp:
    case ExprOp::kExp2:
    case ExprOp::kSqrt:
    case ExprOp::kSigmoid: return 35;
    case ExprOp::kLog:
    case ExprOp::kLog2:
    case ExprOp::kLog1p:
    case ExprOp::kErf:
    case ExprOp::kTanh: return 90;
    case ExprOp::kSin:
    case ExprOp::kCos:
    case ExprOp::kPow: return 150;
    default: return 1;
  }
}

int64_t FloatSize(ExprOp op, bool fast) {
  switch (op) {
    case ExprOp::kDiv:
    case ExprOp::kExp: return fast ? 3 : 8;
    case ExprOp::kSin:
    case ExprOp::kCos: return fast ? 2 : 143;
    case ExprOp::kLog:
    case ExprOp::kLog2: return fast ? 2 : 25;
    case ExprOp::kTanh: return fast ? 1 : 15;
    case ExprOp::kSigmoid: return 15;
    case ExprOp::kErf: return 20;
    case ExprOp::kLog1p: return 28;
    case ExprOp::kPow: return 90;
    default: return 1;
  }
}

int64_t NodeSize(const EmitContext& c, const ExprNode& node) {
  if (node.args.empty()) return 0;
  switch (node.op) {
    case ExprOp::kLoad: return AccessSize(c, static_cast<BufferId>(node.i), node.args);
    case ExprOp::kCast: return CastSize(c.node(node.args[0]).dtype, node.dtype);
    case ExprOp::kFloorDiv:
    case ExprOp::kFloorMod: return DivisionSize(c, node);
    default: break;
  }
  if (!IsFloat(node.dtype)) return IntegerSize(node);
  if (node.dtype == DType::kFloat64) return DoubleSize(node.op);
  const bool rounds = node.op == ExprOp::kAdd || node.op == ExprOp::kSub || node.op == ExprOp::kMul || node.op == ExprOp::kDiv;
  return FloatSize(node.op, c.kernel.fast_math) + (rounds ? RoundingSize(node.dtype) : 0);
}

}  // namespace

int64_t TurnsOf(const EmitContext& c, const kir::For& loop, int64_t most) {
  const Range begin = c.ranges.Of(loop.begin), end = c.ranges.Of(loop.end), step = c.ranges.Of(loop.step);
  for (const Range& range : {begin, end, step}) {
    if (!range.IsConstant() || !range.FitsInt()) return 1;
  }
  if (step.lo <= 0) return 1;
  return std::clamp<int64_t>((end.lo - begin.lo + step.lo - 1) / step.lo, 1, most);
}

int64_t CodeSize(const EmitContext& c, const kir::Block& body) {
  int64_t size = 0;
  for (const kir::Stmt& stmt : body) {
    kir::ForEachExpr(stmt, [&](Expr e) {
      ForEachNode(c.kernel.exprs, e, [&](Expr, const ExprNode& node) { size += NodeSize(c, node); });
    });
    if (const auto* store = std::get_if<kir::Store>(&stmt.op))
      size += AccessSize(c, store->buffer, store->indices) + CastSize(c.node(store->value).dtype, c.buffer(store->buffer).dtype);
    int64_t inner = 0;
    for (const kir::Block* block : kir::ChildBlocks(stmt)) inner += CodeSize(c, *block) + 1;
    if (const auto* loop = std::get_if<kir::For>(&stmt.op)) inner *= TurnsOf(c, *loop, kUnrolledTurns);
    size += inner;
  }
  return size;
}

int64_t CodeSize(const EmitContext& c, const kir::Copy& copy, int64_t vector, int64_t src_vector, int64_t dst_vector) {
  const DType from = c.buffer(copy.src.buffer).dtype, to = c.buffer(copy.dst.buffer).dtype;
  const int64_t conversion = from == to ? 0 : SameValue(from, to) ? 1 : CastSize(from, to);
  return vector / src_vector * SideSize(c, copy.src) + vector / dst_vector * SideSize(c, copy.dst) + vector * conversion;
}

}  // namespace tilert
