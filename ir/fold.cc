// Constant folding of integer, index and bool expressions. Floats are left to the executor and the emitter.
#include "ir/fold.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "ir/int_eval.h"

namespace tilert {
namespace {

// Value of `a op b` on integers of `type`; nothing when the operator is none of integers, or for an index that may not have
// fitted 64 bits: at run time that is unspecified, so it is left as it stands.
std::optional<int64_t> Known(ExprOp op, DType type, int64_t a, int64_t b = 0) {
  if (!IsIntOp(op)) return std::nullopt;
  const int64_t value = EvalInt(op, type, a, b);
  if (type == DType::kIndex && (value == INT64_MIN || value == INT64_MAX)) return std::nullopt;
  return value;
}

bool IsIntegral(DType type) { return IsInteger(type) || type == DType::kBool; }

// x op identity = x, and x op absorbing = absorbing. Nothing when no rule applies.
Expr FoldIdentity(ExprArena& arena, const ExprNode& node) {
  const Expr a = node.args[0], b = node.args[1];
  const auto is = [&](Expr e, int64_t value) { return arena.IsInt(e, value); };
  switch (node.op) {
    case ExprOp::kAdd:
      if (is(a, 0)) return b;
      return is(b, 0) ? a : Expr{};
    case ExprOp::kSub: return is(b, 0) ? a : a == b ? arena.Int(0, node.dtype) : Expr{};
    case ExprOp::kMul:
      if (is(a, 1)) return b;
      if (is(b, 1)) return a;
      return is(a, 0) || is(b, 0) ? arena.Int(0, node.dtype) : Expr{};
    case ExprOp::kFloorDiv: return is(b, 1) ? a : Expr{};
    case ExprOp::kFloorMod: return is(b, 1) ? arena.Int(0, node.dtype) : Expr{};
    case ExprOp::kAnd:
      if (is(a, 0) || is(b, 0)) return arena.Int(0, DType::kBool);
      return is(a, 1) ? b : is(b, 1) || a == b ? a : Expr{};
    case ExprOp::kOr:
      if (is(a, 1) || is(b, 1)) return arena.Int(1, DType::kBool);
      return is(a, 0) ? b : is(b, 0) || a == b ? a : Expr{};
    case ExprOp::kMin:
    case ExprOp::kMax: return a == b ? a : Expr{};
    case ExprOp::kLe:
    case ExprOp::kGe:
    case ExprOp::kEq: return a == b ? arena.Int(1, DType::kBool) : Expr{};
    case ExprOp::kLt:
    case ExprOp::kGt:
    case ExprOp::kNe: return a == b ? arena.Int(0, DType::kBool) : Expr{};
    default: return Expr{};
  }
}

// The folded form of one node whose operands are already folded; `self` when nothing applies.
Expr FoldNode(ExprArena& arena, Expr self) {
  const ExprNode node = arena[self];
  int64_t a = 0, b = 0;
  if (node.op == ExprOp::kSelect) {
    if (arena.AsInt(node.args[0], &a)) return a != 0 ? node.args[1] : node.args[2];
    return node.args[1] == node.args[2] ? node.args[1] : self;
  }
  if (node.op == ExprOp::kCast) {
    const DType source = arena[node.args[0]].dtype;
    if (source == node.dtype) return node.args[0];
    return IsIntegral(node.dtype) && arena.AsInt(node.args[0], &a) ? arena.Int(a, node.dtype) : self;
  }
  if (node.args.empty() || !IsIntegral(node.dtype) || !IsIntegral(arena[node.args[0]].dtype)) return self;
  const DType type = arena[node.args[0]].dtype;
  if (node.args.size() == 1 && arena.AsInt(node.args[0], &a)) {
    const auto value = Known(node.op, type, a);
    return value ? arena.Int(*value, node.dtype) : self;
  }
  if (node.args.size() != 2 || !IsIntOp(node.op)) return self;
  if (arena.AsInt(node.args[0], &a) && arena.AsInt(node.args[1], &b)) {
    const auto value = Known(node.op, type, a, b);
    return value ? arena.Int(*value, node.dtype) : self;
  }
  const Expr folded = FoldIdentity(arena, node);
  return folded ? folded : self;
}

}  // namespace

std::vector<Expr> FoldAll(const ExprArena& from, ExprArena& to, const std::function<Expr(const ExprNode&)>& replace) {
  std::vector<Expr> folded;
  folded.reserve(from.size());
  for (const ExprNode& original : from.nodes()) {
    Expr result = replace(original);
    if (!result) {
      ExprNode node = original;
      for (Expr& arg : node.args) arg = folded[arg.id];
      result = FoldNode(to, to.Intern(std::move(node)));
    }
    folded.push_back(result);
  }
  return folded;
}

Expr Fold(ExprArena& arena, Expr root) {
  if (!root) return root;
  absl::InlinedVector<uint32_t, 32> order;  // ascending
  ForEachNode(arena, root, [&](Expr e, const ExprNode&) { order.push_back(e.id); });
  absl::InlinedVector<Expr, 32> folded(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    Expr self{order[i]};
    ExprNode node = arena[self];
    bool is_same = true;
    for (Expr& arg : node.args) {
      const Expr operand = folded[static_cast<size_t>(std::lower_bound(order.begin(), order.end(), arg.id) - order.begin())];
      is_same &= operand == arg;
      arg = operand;
    }
    if (!is_same) self = arena.Intern(std::move(node));
    folded[i] = FoldNode(arena, self);
  }
  return folded.back();
}

}  // namespace tilert
