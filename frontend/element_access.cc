#include "frontend/element_access.h"

#include <algorithm>
#include <utility>

#include "frontend/four_bits.h"
#include "frontend/joined_bits.h"

namespace tilert::frontend {

ElementAccess::ElementAccess(const std::vector<View>& views, Program* program) : p_(*program), views_(views) {}

void ElementAccess::EnterLaunch(uint32_t index) {
  const Launch& launch = p_.launches[index];
  active_.clear();
  for (const View& view : views_) {
    if (view.launch == kNoId || view.launch == index) active_[view.buffer] = &view;
  }
  for (size_t d = 0; d < launch.grid.size(); ++d) NoteVar(launch.block_vars[d], p_.exprs.Int(0), launch.grid[d]);
}

const View* ElementAccess::Find(BufferId buffer) const {
  const auto it = active_.find(buffer);
  return it == active_.end() ? nullptr : it->second;
}

void ElementAccess::NoteVar(VarId var, Expr begin, Expr end) {
  const auto low = BoundsOf(begin), high = BoundsOf(end);
  if (low && high) bounds_[var] = {low->low, std::max(low->low, high->high - 1)};
}

std::optional<ElementAccess::Bounds> ElementAccess::BoundsOf(Expr e) const {
  const ExprNode& node = p_.exprs[e];
  if (node.op == ExprOp::kIntImm) return Bounds{node.i, node.i};
  if (node.op == ExprOp::kVar) {
    const auto it = bounds_.find(static_cast<VarId>(node.i));
    return it == bounds_.end() ? std::nullopt : std::optional(it->second);
  }
  if (node.args.size() != 2 || (node.op != ExprOp::kAdd && node.op != ExprOp::kMul && node.op != ExprOp::kFloorDiv))
    return std::nullopt;
  const auto a = BoundsOf(node.args[0]), b = BoundsOf(node.args[1]);
  constexpr int64_t kLarge = int64_t{1} << 31;
  for (const auto& operand : {a, b}) {
    if (!operand || operand->low < 0 || operand->high > kLarge) return std::nullopt;
  }
  if (node.op == ExprOp::kAdd) return Bounds{a->low + b->low, a->high + b->high};
  if (node.op == ExprOp::kMul) return Bounds{a->low * b->low, a->high * b->high};
  if (b->low == 0) return std::nullopt;
  return Bounds{a->low / b->high, a->high / b->low};
}

Expr ElementAccess::Binary(ExprOp op, Expr a, Expr b) { return Fold(p_.exprs, p_.exprs.Binary(op, a, b)); }

// Is `index` within [0, extent)? None if it is in any case.
Expr ElementAccess::Inside(Expr index, Expr extent) {
  int64_t size = 0;
  const auto bounds = BoundsOf(index);
  if (p_.exprs.AsInt(extent, &size) && bounds && bounds->low >= 0 && bounds->high < size) return {};
  const Expr above = Binary(ExprOp::kGe, index, p_.exprs.Int(0)), below = Binary(ExprOp::kLt, index, extent);
  return bounds && bounds->low >= 0 ? below : Binary(ExprOp::kAnd, above, below);
}

Expr ElementAccess::Both(Expr a, Expr b) { return !a ? b : !b ? a : Binary(ExprOp::kAnd, a, b); }

// Where in its base an element of a view lies, until the base is no view.
void ElementAccess::Resolve(BufferId* buffer, std::vector<Expr>* indices) {
  while (const View* view = Find(*buffer)) {
    if (view->joins + view->splits > 0) return;  // its elements are no elements of the base
    Expr inside;
    const std::vector<Expr>& shape = p_.buffers[view->buffer].shape;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (view->guarded[i]) inside = Both(inside, Inside((*indices)[i], shape[i]));
    }
    std::vector<Expr> mapped;
    for (const Expr e : view->map) {
      mapped.push_back(Fold(p_.exprs, Rewrite(p_.exprs, e, p_.exprs, [&](Expr at, const ExprNode&) {
                              for (size_t i = 0; i < indices->size(); ++i) {
                                if (at == ViewSubscript(p_.exprs, i)) return (*indices)[i];
                              }
                              return Expr{};
                            })));
    }
    if (inside && !mapped.empty())
      mapped[0] = p_.exprs.Make(ExprOp::kSelect, DType::kIndex, {inside, mapped[0], p_.exprs.Int(-1)});
    *indices = std::move(mapped);
    const bool is_itself = view->base == *buffer;
    *buffer = view->base;
    if (is_itself) return;
  }
}

Expr ElementAccess::Lower(Expr root) {
  return Rewrite(p_.exprs, root, p_.exprs, [&](Expr, const ExprNode& node) -> Expr {
    if (node.op != ExprOp::kLoad || Find(static_cast<BufferId>(node.i)) == nullptr) return {};
    return LowerLoad(node);
  });
}

Expr ElementAccess::LowerLoad(const ExprNode& node) {
  auto buffer = static_cast<BufferId>(node.i);
  std::vector<Expr> indices;
  for (const Expr arg : node.args) indices.push_back(Lower(arg));
  const View* view = Find(buffer);
  const bool is_packed = view->packing != Packing::kNone && view->half;
  const Expr half = is_packed ? indices.back() : Expr{};
  const Expr value = Element(buffer, std::move(indices));
  return is_packed ? FourBits(p_).Decode(view->packing, value, half) : value;
}

// The element of a buffer, or of a view, in terms of buffers that exist.
Expr ElementAccess::Element(BufferId buffer, std::vector<Expr> indices) {
  Resolve(&buffer, &indices);
  const View* view = Find(buffer);
  const DType type = p_.buffers[buffer].dtype;
  if (view == nullptr || view->joins + view->splits == 0) return p_.exprs.Load(buffer, type, indices);
  if (view->splits > 0) {
    const Expr count = p_.exprs.Int(view->splits), place = Binary(ExprOp::kFloorMod, indices.back(), count);
    indices.back() = Binary(ExprOp::kFloorDiv, indices.back(), count);
    return JoinedBits(p_).Part(Element(view->base, std::move(indices)), place, type);
  }
  std::vector<Expr> neighbours;
  indices.emplace_back();
  for (int64_t i = 0; i < view->joins; ++i) {
    indices.back() = p_.exprs.Int(i);
    neighbours.push_back(Element(view->base, indices));
  }
  return JoinedBits(p_).Join(neighbours, type);
}

}  // namespace tilert::frontend
