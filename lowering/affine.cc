#include "lowering/affine.h"

#include <algorithm>

namespace tilert {
namespace {

constexpr int64_t kMaxDivisor = int64_t{1} << 20;

int64_t PowerOfTwoPart(int64_t value) {
  const auto bits = static_cast<uint64_t>(value);
  return bits == 0 ? kMaxDivisor : static_cast<int64_t>(std::min(bits & (0 - bits), static_cast<uint64_t>(kMaxDivisor)));
}

}  // namespace

Expr AddIndex(ExprArena& arena, Expr a, Expr b) { return Fold(arena, arena.Binary(ExprOp::kAdd, a, b)); }
Expr AddIndex(ExprArena& arena, Expr a, int64_t b) { return AddIndex(arena, a, arena.Int(b)); }

bool UsesAny(const ExprArena& arena, Expr e, absl::Span<const VarId> vars) {
  bool found = false;
  ForEachNode(arena, e, [&](Expr, const ExprNode& node) {
    if (node.op == ExprOp::kVar) found |= std::find(vars.begin(), vars.end(), static_cast<VarId>(node.i)) != vars.end();
  });
  return found;
}

bool Loads(const ExprArena& arena, Expr e, BufferId buffer) {
  bool found = false;
  ForEachNode(arena, e, [&](Expr, const ExprNode& node) { found |= node.op == ExprOp::kLoad && node.i == buffer; });
  return found;
}

std::optional<UnitIndex> SplitUnit(ExprArena& arena, Expr index, absl::Span<const VarId> vars) {
  const ExprNode node = arena[index];
  if (!UsesAny(arena, index, vars)) return UnitIndex{-1, index};
  if (node.op == ExprOp::kVar) {
    const auto it = std::find(vars.begin(), vars.end(), static_cast<VarId>(node.i));
    return UnitIndex{static_cast<int>(it - vars.begin()), arena.Int(0)};
  }
  if (node.op == ExprOp::kCast && node.dtype == DType::kIndex) return SplitUnit(arena, node.args[0], vars);
  if (node.op != ExprOp::kAdd && node.op != ExprOp::kSub) return std::nullopt;
  const auto a = SplitUnit(arena, node.args[0], vars);
  const auto b = SplitUnit(arena, node.args[1], vars);
  if (!a || !b || (a->var >= 0 && b->var >= 0)) return std::nullopt;
  if (node.op == ExprOp::kSub && b->var >= 0) return std::nullopt;
  const Expr base = Fold(arena, arena.Binary(node.op, a->base, b->base));
  return UnitIndex{std::max(a->var, b->var), base};
}

std::optional<int64_t> Coefficient(const ExprArena& arena, Expr e, VarId var) {
  const ExprNode& node = arena[e];
  if (!UsesAny(arena, e, {var})) return 0;
  const auto operand = [&](int i) { return Coefficient(arena, node.args[i], var); };
  int64_t scale = 0;
  switch (node.op) {
    case ExprOp::kVar:
      return 1;
    case ExprOp::kCast:
      return node.dtype == DType::kIndex ? operand(0) : std::nullopt;
    case ExprOp::kAdd:
    case ExprOp::kSub: {
      const std::optional<int64_t> a = operand(0), b = operand(1);
      if (!a || !b) return std::nullopt;
      return node.op == ExprOp::kAdd ? *a + *b : *a - *b;
    }
    case ExprOp::kMul: {
      const bool second = arena.AsInt(node.args[1], &scale);
      if (!second && !arena.AsInt(node.args[0], &scale)) return std::nullopt;
      const std::optional<int64_t> a = operand(second ? 0 : 1);
      return a ? std::optional(*a * scale) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

int64_t KnownPowerOfTwoDivisor(const ExprArena& arena, Expr e, const ArgClass& args, const std::function<int64_t(VarId)>& of_var) {
  const ExprNode& node = arena[e];
  const auto operand = [&](int i) { return KnownPowerOfTwoDivisor(arena, node.args[i], args, of_var); };
  switch (node.op) {
    case ExprOp::kIntImm:
      return PowerOfTwoPart(node.i);
    case ExprOp::kDim:
      return static_cast<size_t>(node.i) < args.dim_divisor.size() ? PowerOfTwoPart(args.dim_divisor[node.i]) : 1;
    case ExprOp::kVar:
      return of_var ? of_var(static_cast<VarId>(node.i)) : 1;
    case ExprOp::kCast:
      return IsInteger(node.dtype) && IsInteger(arena[node.args[0]].dtype) ? operand(0) : 1;
    case ExprOp::kAdd:
    case ExprOp::kSub:
    case ExprOp::kMin:
    case ExprOp::kMax:
    case ExprOp::kFloorMod:
      return std::min(operand(0), operand(1));
    case ExprOp::kMul:
      return std::min(operand(0) * operand(1), kMaxDivisor);
    case ExprOp::kSelect:
      return std::min(operand(1), operand(2));
    default:
      return 1;
  }
}

}  // namespace tilert
