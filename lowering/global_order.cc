#include "lowering/global_order.h"

#include <algorithm>
#include <map>

namespace tilert {
namespace {

constexpr __int128 kFar = int64_t{1} << 62;

// Σ factor·term + constant; the terms are expressions that are no sums.
struct Linear {
  std::map<uint32_t, __int128> terms;
  __int128 constant = 0;
};

void AddTo(Linear& sum, const ExprArena& arena, Expr e, __int128 scale) {
  const ExprNode& node = arena[e];
  int64_t factor = 0;
  if (scale > kFar || scale < -kFar) {
    sum.terms[e.id] += scale > 0 ? kFar : -kFar;
  } else if (node.op == ExprOp::kIntImm) {
    sum.constant += scale * node.i;
  } else if (node.op == ExprOp::kAdd || node.op == ExprOp::kSub) {
    AddTo(sum, arena, node.args[0], scale);
    AddTo(sum, arena, node.args[1], node.op == ExprOp::kAdd ? scale : -scale);
  } else if (node.op == ExprOp::kMul && arena.AsInt(node.args[1], &factor)) {
    AddTo(sum, arena, node.args[0], scale * factor);
  } else if (node.op == ExprOp::kMul && arena.AsInt(node.args[0], &factor)) {
    AddTo(sum, arena, node.args[1], scale * factor);
  } else {
    sum.terms[e.id] += scale;
  }
}

bool UsesVar(const ExprArena& arena, Expr root, VarId var) {
  bool uses = false;
  ForEachNode(arena, root, [&](Expr, const ExprNode& node) { uses |= node.op == ExprOp::kVar && static_cast<VarId>(node.i) == var; });
  return uses;
}

struct Interval {
  __int128 lo = -kFar, hi = kFar;
};

Interval RangeOf(const Linear& sum, const Ranges& ranges) {
  Interval all{sum.constant, sum.constant};
  for (const auto& [id, factor] : sum.terms) {
    if (factor == 0) continue;
    const Range range = ranges.Of(Expr{id});
    all.lo += factor * (factor > 0 ? range.lo : range.hi);
    all.hi += factor * (factor > 0 ? range.hi : range.lo);
  }
  return all;
}

}  // namespace

std::vector<VarId> BoundIn(const kir::Block& block) {
  std::vector<VarId> bound;
  for (const kir::Stmt& stmt : block) {
    if (auto* loop = std::get_if<kir::For>(&stmt.op)) bound.push_back(loop->var);
    if (auto* let = std::get_if<kir::Let>(&stmt.op)) bound.push_back(let->var);
    for (const kir::Block* child : kir::ChildBlocks(stmt)) {
      for (VarId var : BoundIn(*child)) bound.push_back(var);
    }
  }
  return bound;
}

GlobalOrder::GlobalOrder(const kir::Kernel& kernel) : k_(kernel), ranges_(kernel), step_(kernel.vars.size(), 0) {
  for (size_t d = 0; d < k_.block_vars.size(); ++d) {
    ranges_.Bind(k_.block_vars[d], Range{0, std::max<int64_t>(ranges_.Of(k_.grid[d]).hi - 1, 0), 1});
  }
}

void GlobalOrder::Bind(const kir::For& loop) {
  int64_t step = 0;
  if (!k_.exprs.AsInt(loop.step, &step) || step <= 0) return;
  step_[loop.var] = step;
  ranges_.Bind(loop.var, LoopRange(ranges_.Of(loop.begin), ranges_.Of(loop.end), ConstantRange(step)), loop.end);
}

void GlobalOrder::Bind(const kir::Let& let) { ranges_.Bind(let.var, ranges_.Of(let.value)); }

void GlobalOrder::Add(Access access, std::vector<int>* numbers) {
  if (k_.buffers[access.buffer].space != kir::Space::kGlobal) return;
  const auto found = std::find(accesses_.begin(), accesses_.end(), access);
  const int number = static_cast<int>(found - accesses_.begin());
  if (found == accesses_.end()) accesses_.push_back(std::move(access));
  if (std::find(numbers->begin(), numbers->end(), number) == numbers->end()) numbers->push_back(number);
}

std::vector<int> GlobalOrder::Accesses(const kir::Stmt& stmt) {
  std::vector<int> numbers;
  const auto any = [&](BufferId buffer, bool write, AtomicOp op = AtomicOp::kInvalid) {
    Access access;
    access.buffer = buffer;
    access.write = write;
    access.op = op;
    Add(std::move(access), &numbers);
  };
  if (auto* copy = std::get_if<kir::Copy>(&stmt.op)) {
    for (const kir::TileAccess* side : {&copy->src, &copy->dst}) {
      Access access{side->buffer, side == &copy->dst, AtomicOp::kInvalid, true, copy->method == kir::CopyMethod::kCpAsync,
                    side->start, {}, side->follows, copy->layout};
      for (int follows : side->follows) access.extent.push_back(follows < 0 ? 1 : copy->layout.dims[static_cast<size_t>(follows)].extent);
      Add(std::move(access), &numbers);
    }
  }
  kir::ForEachExpr(stmt, [&](Expr e) {
    ForEachNode(k_.exprs, e, [&](Expr, const ExprNode& node) {
      if (node.op == ExprOp::kLoad) any(static_cast<BufferId>(node.i), false);
    });
  });
  if (auto* store = std::get_if<kir::Store>(&stmt.op)) any(store->buffer, true);
  // Additions may come in any order, but for what the value before tells of it.
  if (auto* atomic = std::get_if<kir::Atomic>(&stmt.op)) any(atomic->buffer, true, atomic->prev == kNoId ? atomic->op : AtomicOp::kInvalid);
  for (const kir::Block* block : kir::ChildBlocks(stmt)) {
    for (const kir::Stmt& child : *block) {
      for (int number : Accesses(child)) {
        if (std::find(numbers.begin(), numbers.end(), number) == numbers.end()) numbers.push_back(number);
      }
    }
  }
  return numbers;
}

bool GlobalOrder::Uses(const Access& access, VarId var) const {
  return std::any_of(access.start.begin(), access.start.end(), [&](Expr e) { return UsesVar(k_.exprs, e, var); });
}

GlobalOrder::Earlier GlobalOrder::Around(Earlier earlier, VarId var, const std::vector<VarId>& inner) const {
  const Access& access = accesses_[static_cast<size_t>(earlier.access)];
  for (VarId v : inner) earlier.loose |= v != var && Uses(access, v);
  if (var == kNoId || !Uses(access, var)) return earlier;
  earlier.loose |= earlier.loop != kNoId && earlier.loop != var;
  earlier.loop = var;
  return earlier;
}

GlobalOrder::Earlier GlobalOrder::Behind(Earlier earlier, VarId var, const std::vector<VarId>& inner) const {
  const Access& access = accesses_[static_cast<size_t>(earlier.access)];
  earlier.loose |= var != kNoId && Uses(access, var);
  for (VarId v : inner) earlier.loose |= Uses(access, v);
  if (earlier.loop == var) earlier.loop = kNoId;
  return earlier;
}

bool GlobalOrder::SameThread(const Earlier& earlier, const Access& before, const Access& now) const {
  if (earlier.loose || earlier.loop != kNoId || before.async || now.async) return false;
  if (before.start != now.start || before.follows != now.follows || !(before.layout == now.layout)) return false;
  return (before.write && now.write) || before.layout.Replicas().empty();  // replica 0 writes, all of them read
}

bool GlobalOrder::Disjoint(const Earlier& earlier, const Access& before, const Access& now) const {
  for (size_t d = 0; d < before.start.size(); ++d) {
    Linear from, to;
    AddTo(from, k_.exprs, before.start[d], 1);
    AddTo(to, k_.exprs, now.start[d], 1);
    Interval distance;
    if (earlier.loose) {
      const Interval a = RangeOf(from, ranges_), b = RangeOf(to, ranges_);
      distance = {b.lo - a.hi, b.hi - a.lo};
    } else {
      Linear difference = to;
      for (const auto& [id, factor] : from.terms) difference.terms[id] -= factor;
      difference.constant -= from.constant;
      distance = RangeOf(difference, ranges_);
      __int128 a_step = 0;
      if (earlier.loop != kNoId) {  // back then the variable was smaller by at least one step
        bool known = step_[earlier.loop] > 0;
        for (const auto& [id, factor] : from.terms) {
          const ExprNode& node = k_.exprs[Expr{id}];
          const bool itself = node.op == ExprOp::kVar && static_cast<VarId>(node.i) == earlier.loop;
          if (itself) a_step = factor * step_[earlier.loop];
          known &= itself || !UsesVar(k_.exprs, Expr{id}, earlier.loop);
        }
        if (!known) continue;
      }
      if (a_step > 0) distance = {distance.lo + a_step, kFar * 4};
      if (a_step < 0) distance = {-kFar * 4, distance.hi + a_step};
    }
    if (distance.lo >= before.extent[d] || distance.hi <= -now.extent[d]) return true;
  }
  return false;
}

bool GlobalOrder::Conflict(const Earlier& earlier, int now_number) const {
  const Access& before = accesses_[static_cast<size_t>(earlier.access)];
  const Access& now = accesses_[static_cast<size_t>(now_number)];
  if (before.buffer != now.buffer || (!before.write && !now.write)) return false;
  if (before.op != AtomicOp::kInvalid && before.op == now.op) return false;  // in any order
  if (!before.box || !now.box) return true;
  return !SameThread(earlier, before, now) && !Disjoint(earlier, before, now);
}

}  // namespace tilert
