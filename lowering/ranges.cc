#include "lowering/ranges.h"

#include <algorithm>
#include <bit>

#include "ir/int_math.h"
#include "ir/limits.h"

namespace tilert {
namespace {

constexpr int64_t kMaxAlign = int64_t{1} << 30;
constexpr Range kEverything = {INT64_MIN, INT64_MAX, 1};

bool Fits(__int128 x) { return x >= INT64_MIN && x <= INT64_MAX; }

// What is computed modulo 2^64: any value where the exact one may not fit. Powers of two divide it all the same.
Range Wrapped(__int128 lo, __int128 hi, int64_t align) {
  if (!Fits(lo) || !Fits(hi)) return {INT64_MIN, INT64_MAX, align};
  return {static_cast<int64_t>(lo), static_cast<int64_t>(hi), align};
}

// Largest power of two that divides x.
int64_t PowerOfTwoIn(int64_t x) {
  return int64_t{1} << std::min(std::countr_zero(static_cast<uint64_t>(x)), std::countr_zero(static_cast<uint64_t>(kMaxAlign)));
}

Range Difference(const Range& a, const Range& b) {
  return Wrapped(static_cast<__int128>(a.lo) - b.hi, static_cast<__int128>(a.hi) - b.lo, std::min(a.align, b.align));
}

Range Product(const Range& a, const Range& b) {
  const __int128 corners[] = {static_cast<__int128>(a.lo) * b.lo, static_cast<__int128>(a.lo) * b.hi,
                              static_cast<__int128>(a.hi) * b.lo, static_cast<__int128>(a.hi) * b.hi};
  return Wrapped(*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4),
                 std::min(kMaxAlign, a.align * b.align));
}

Range Negative(const Range& a) { return Difference({0, 0, kMaxAlign}, a); }

Range Quotient(const Range& a, const Range& b) {
  if (b.lo <= 0) {
    // The divisor may be 0 (which gives 0) or negative: the quotient is no larger than the dividend, or than it is negated.
    if (a.lo >= 0 && b.lo >= 0) return {0, a.hi};
    const Range negated = Negative(a);
    return {std::min({a.lo, negated.lo, int64_t{-1}}), std::max({a.hi, negated.hi, int64_t{0}})};
  }
  Range r;
  r.lo = std::min(FloorDivInt(a.lo, b.lo), FloorDivInt(a.lo, b.hi));
  r.hi = std::max(FloorDivInt(a.hi, b.lo), FloorDivInt(a.hi, b.hi));
  if (b.IsConstant() && a.align % b.lo == 0) r.align = a.align / b.lo;
  return r;
}

Range Remainder(const Range& a, const Range& b) {
  if (b.lo <= 0) return b.lo == 0 ? Range{0, std::max<int64_t>(b.hi - 1, 0)} : Range{b.lo, std::max<int64_t>(b.hi, 0)};
  if (a.lo >= 0 && a.hi < b.lo) return a;
  return {0, b.hi - 1, b.IsConstant() ? std::min(a.align, PowerOfTwoIn(b.lo)) : 1};
}

Range Shifted(const ExprNode& node, const Range& a, const Range& b) {
  if (!b.IsConstant() || b.lo < 0 || b.lo > 61)
    return node.op == ExprOp::kShr && a.lo >= 0 ? Range{0, a.hi} : TypeRange(node.dtype);
  if (node.op == ExprOp::kShl) return Product(a, ConstantRange(int64_t{1} << b.lo));
  return {a.lo >> b.lo, a.hi >> b.lo, std::max<int64_t>(a.align >> b.lo, 1)};
}

// The range of a bitwise operator; useful only for operands that are not negative.
Range Bits(ExprOp op, const Range& a, const Range& b, DType type) {
  if (op == ExprOp::kBitAnd && (a.lo >= 0 || b.lo >= 0)) {
    return {0, a.lo < 0 ? b.hi : b.lo < 0 ? a.hi : std::min(a.hi, b.hi), std::max(a.align, b.align)};
  }
  if (a.lo < 0 || b.lo < 0) return TypeRange(type);
  const uint64_t top = std::bit_ceil(static_cast<uint64_t>(std::max(a.hi, b.hi)) + 1);
  return {0, static_cast<int64_t>(top - 1), std::min(a.align, b.align)};
}

bool HasLoad(const ExprArena& arena, Expr e) {
  bool found = false;
  ForEachNode(arena, e, [&found](Expr, const ExprNode& node) { found |= node.op == ExprOp::kLoad; });
  return found;
}

}  // namespace

Range ConstantRange(int64_t value) { return {value, value, PowerOfTwoIn(value)}; }

Range TypeRange(DType type) {
  const int bits = DTypeBits(type);
  if (bits >= 64) return kEverything;
  switch (KindOf(type)) {
    case DTypeKind::kBoolean: return {0, 1};
    case DTypeKind::kUnsigned: return {0, (int64_t{1} << bits) - 1};
    default: return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
  }
}

Range Sum(const Range& a, const Range& b) {
  return Wrapped(static_cast<__int128>(a.lo) + b.lo, static_cast<__int128>(a.hi) + b.hi, std::min(a.align, b.align));
}

Range Union(const Range& a, const Range& b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi), std::min(a.align, b.align)}; }

Range LoopRange(const Range& begin, const Range& end, const Range& step) {
  const int64_t align = std::min(begin.align, step.align);
  if (end.hi <= begin.lo) return {begin.lo, begin.lo, align};  // no iteration
  int64_t last = end.hi - 1;
  if (begin.IsConstant() && step.IsConstant())
    last -= static_cast<int64_t>((static_cast<uint64_t>(last) - static_cast<uint64_t>(begin.lo)) % static_cast<uint64_t>(step.lo));
  return {begin.lo, last, align};
}

void Ranges::Bind(VarId var, const Range& range, Expr below) {
  vars_[var] = range;
  bound_[var] = true;
  below_[var] = below && !HasLoad(kernel_.exprs, below) ? below : Expr{};
  memo_.clear();
}

Range Ranges::Of(Expr e) const {
  const auto found = memo_.find(e.id);
  if (found != memo_.end()) return found->second;
  const ExprNode& node = kernel_.exprs[e];
  Range range = node.args.empty() ? Leaf(node) : Compute(node);
  const Range all = TypeRange(node.dtype);
  if (range.lo < all.lo || range.hi > all.hi) range = all;  // wraps
  memo_[e.id] = range;
  return range;
}

Range Ranges::Leaf(const ExprNode& node) const {
  switch (node.op) {
    case ExprOp::kIntImm: return ConstantRange(node.i);
    case ExprOp::kDim: return {positive_[static_cast<size_t>(node.i)] ? 1 : 0, kernel_.index32 ? (int64_t{1} << 30) - 1 : kMaxDim};
    case ExprOp::kVar:
      if (bound_[node.i]) return vars_[node.i];
      [[fallthrough]];
    default: return TypeRange(node.dtype);
  }
}

Range Ranges::Compute(const ExprNode& node) const {
  if (!IsFloat(node.dtype) && node.op != ExprOp::kLoad && node.op != ExprOp::kReinterpret &&
      !IsFloat(kernel_.exprs[node.args[0]].dtype)) {
    const Range a = Of(node.args[0]);
    const Range b = node.args.size() > 1 ? Of(node.args[1]) : Range{};
    if (node.dtype == DType::kUInt64 && (a.lo < 0 || b.lo < 0)) return Unsigned64(node);
    switch (node.op) {
      case ExprOp::kCast: return node.dtype == DType::kBool ? TypeRange(DType::kBool) : a;
      case ExprOp::kSelect: return Union(b, Of(node.args[2]));
      case ExprOp::kAdd: return Sum(a, b);
      case ExprOp::kSub: return Difference(a, b);
      case ExprOp::kMul: return Product(a, b);
      case ExprOp::kFloorDiv: return Quotient(a, b);
      case ExprOp::kFloorMod: return Remainder(a, b);
      case ExprOp::kShl:
      case ExprOp::kShr: return Shifted(node, a, b);
      case ExprOp::kBitAnd:
      case ExprOp::kBitOr:
      case ExprOp::kBitXor: return Bits(node.op, a, b, node.dtype);
      case ExprOp::kMin: return {std::min(a.lo, b.lo), std::min(a.hi, b.hi), std::min(a.align, b.align)};
      case ExprOp::kMax: return {std::max(a.lo, b.lo), std::max(a.hi, b.hi), std::min(a.align, b.align)};
      case ExprOp::kNeg: return Negative(a);
      case ExprOp::kAbs: {
        if (a.lo >= 0 || a.lo == INT64_MIN) return a.lo >= 0 ? a : kEverything;  // the least value has no absolute one
        return {a.hi < 0 ? -a.hi : 0, std::max(a.hi, -a.lo), a.align};
      }
      case ExprOp::kPopcount: return {0, DTypeBits(kernel_.exprs[node.args[0]].dtype)};
      default: break;
    }
  }
  return TypeRange(node.dtype);
}

// Operands may be above 2^63, which is negative here: only what says nothing of their order holds.
Range Ranges::Unsigned64(const ExprNode& node) const {
  const Range a = Of(node.args[0]), b = node.args.size() > 1 ? Of(node.args[1]) : Range{};
  if (node.op == ExprOp::kBitAnd) return Bits(node.op, a, b, node.dtype);
  if (node.op == ExprOp::kFloorMod && b.lo > 0) return {0, b.hi - 1};
  if (node.op == ExprOp::kPopcount) return {0, 64};
  return kEverything;
}

bool Ranges::Fits64(Expr e) const {
  const ExprNode& node = kernel_.exprs[e];
  if (node.dtype != DType::kIndex || node.args.empty()) return true;
  switch (node.op) {
    case ExprOp::kAdd:
    case ExprOp::kSub:
    case ExprOp::kMul:
    case ExprOp::kNeg:
    case ExprOp::kAbs: {
      const Range range = Of(e);
      return range.lo != INT64_MIN || range.hi != INT64_MAX;
    }
    default: return true;
  }
}

Ranges::Assume::Assume(Ranges& ranges, Expr cond) : ranges_(ranges), facts_(ranges.facts_.size()) {
  std::vector<Expr> pending = {cond};
  while (!pending.empty()) {
    const Expr e = pending.back();
    pending.pop_back();
    const ExprNode& node = ranges.kernel_.exprs[e];
    if (node.op == ExprOp::kAnd) {
      pending.insert(pending.end(), node.args.begin(), node.args.end());
    } else if (!HasLoad(ranges.kernel_.exprs, e)) {  // what is in memory may change
      ranges.facts_.push_back(e);
    }
  }
}

Ranges::Assume::~Assume() { ranges_.facts_.resize(facts_); }

bool Ranges::ProveLess(Expr a, Expr b) const {
  const Range range_a = Of(a), range_b = Of(b);
  if (range_a.hi < range_b.lo) return true;
  if (const ExprNode& node = kernel_.exprs[a]; node.op == ExprOp::kVar && below_[node.i] == b && b) return true;
  return std::any_of(facts_.begin(), facts_.end(), [&](Expr fact) {
    const ExprNode& node = kernel_.exprs[fact];
    if (node.op == ExprOp::kLt) return node.args[0] == a && (node.args[1] == b || Of(node.args[1]).hi <= range_b.lo);
    if (node.op == ExprOp::kGt) return node.args[1] == a && (node.args[0] == b || Of(node.args[0]).hi <= range_b.lo);
    if (node.op == ExprOp::kLe) return node.args[0] == a && Of(node.args[1]).hi < range_b.lo;
    return false;
  });
}

bool Ranges::ProveInside(const kir::Buffer& buffer, size_t d, const Range& at, Expr e) const {
  if (at.lo < 0) return false;
  if (buffer.space == kir::Space::kGlobal) return at.hi < Of(buffer.shape[d]).lo || (e && ProveLess(e, buffer.shape[d]));
  return at.hi < (buffer.space == kir::Space::kShared ? buffer.shared.extents[d] : buffer.layout.dims[d].extent);
}

}  // namespace tilert
