#include "lowering/fragment_uses.h"

#include <algorithm>

#include "lowering/affine.h"

namespace tilert {
namespace {

bool IsFragment(const TileState& state, BufferId id) { return state.scope(id) == Scope::kFragment; }

// The loop dim a subscript is, −1 for an immediate, −2 for anything else.
int Follows(const ExprArena& arena, Expr index, const std::vector<VarId>& vars) {
  const ExprNode& node = arena[index];
  if (node.op == ExprOp::kIntImm) return -1;
  if (node.op == ExprOp::kCast && node.dtype == DType::kIndex) return Follows(arena, node.args[0], vars);
  if (node.op != ExprOp::kVar) return -2;
  const auto it = std::find(vars.begin(), vars.end(), static_cast<VarId>(node.i));
  return it == vars.end() ? -2 : static_cast<int>(it - vars.begin());
}

class UseCollector {
 public:
  UseCollector(const TileState& state, const Parallel& loop) : state_(state), loop_(loop) {}

  std::vector<FragmentUse> Run() {
    ForEachStmt(loop_.body, [&](const Stmt& stmt) {
      ForEachExpr(stmt, [&](Expr e) { Loads(e); });
      if (auto* store = std::get_if<Store>(&stmt.op)) Add(store->buffer, store->indices, true);
    });
    return std::move(uses_);
  }

 private:
  bool IsInside(Expr index, int64_t extent) const {
    int64_t at = 0;
    return state_.program.exprs.AsInt(index, &at) && at >= 0 && at < extent;
  }

  void Loads(Expr root) {
    ForEachNode(state_.program.exprs, root, [&](Expr, const ExprNode& node) {
      if (node.op == ExprOp::kLoad) Add(static_cast<BufferId>(node.i), node.args, false);
    });
  }

  void Add(BufferId buffer, absl::Span<const Expr> indices, bool write) {
    if (!IsFragment(state_, buffer)) return;
    FragmentUse use{buffer, !write, write, true, {}};
    const std::vector<int64_t> shape = state_.Shape(buffer);
    for (Expr index : indices) {
      const int dim = Follows(state_.program.exprs, index, loop_.vars);
      if (dim == -2 || (dim >= 0 && std::count(use.follows.begin(), use.follows.end(), dim) > 0)) use.plain = false;
      if (dim == -1 && !IsInside(index, shape[use.follows.size()])) use.plain = false;  // registers have no outside
      use.follows.push_back(dim);
    }
    for (FragmentUse& known : uses_) {
      if (known.buffer != buffer) continue;
      known.read |= use.read;
      known.write |= use.write;
      known.plain &= use.plain && known.follows == use.follows;
      return;
    }
    uses_.push_back(std::move(use));
  }

  const TileState& state_;
  const Parallel& loop_;
  std::vector<FragmentUse> uses_;
};

bool FullRank(const FragmentUse& use, size_t rank) { return FollowedDims(use).size() == rank; }

}  // namespace

std::vector<FragmentUse> FragmentUses(const TileState& state, const Parallel& loop) { return UseCollector(state, loop).Run(); }

std::vector<int> FollowedDims(const FragmentUse& use) {
  std::vector<int> dims;
  for (int d : use.follows) {
    if (d >= 0) dims.push_back(d);
  }
  std::sort(dims.begin(), dims.end());
  return dims;
}

std::optional<FragmentLayout> FollowedLayout(const FragmentLayout& layout, const FragmentUse& use, const std::vector<int64_t>& loop_extents) {
  if (!use.plain || layout.dims.size() != use.follows.size()) return std::nullopt;
  std::vector<int> keep;
  for (int dim : FollowedDims(use)) {
    const auto at = std::find(use.follows.begin(), use.follows.end(), dim);
    keep.push_back(static_cast<int>(at - use.follows.begin()));
    if (loop_extents[dim] > layout.dims[keep.back()].extent) return std::nullopt;
  }
  for (size_t d = 0; d < use.follows.size(); ++d) {
    const auto& factors = layout.dims[d].factors;
    const bool in_threads = std::any_of(factors.begin(), factors.end(), [](const Factor& f) { return f.owner != Owner::kReg && f.size > 1; });
    if (use.follows[d] < 0 && in_threads) return std::nullopt;
  }
  FragmentLayout followed = Project(layout, keep);
  const std::vector<int> dims = FollowedDims(use);
  for (size_t i = 0; i < dims.size(); ++i) followed.dims[i].extent = loop_extents[dims[i]];
  return followed;
}

bool DirectUse(const FragmentLayout& layout, const FragmentUse& use, const FragmentLayout& loop) {
  const auto followed = FollowedLayout(layout, use, ExtentsOf(loop));
  if (!followed) return false;
  const FragmentLayout needed = Project(loop, FollowedDims(use));
  if (!CanRead(*followed, needed)) return false;
  return !use.write || CanWrite(*followed, needed);
}

std::optional<FragmentLayout> WantedLayout(const FragmentUse& use, const std::vector<int64_t>& shape, const FragmentLayout& loop) {
  if (!use.plain || shape.size() != use.follows.size()) return std::nullopt;
  std::vector<int> keep;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (use.follows[d] < 0 ? shape[d] != 1 : loop.dims[use.follows[d]].extent != shape[d]) return std::nullopt;
    if (use.follows[d] >= 0) keep.push_back(use.follows[d]);
  }
  FragmentLayout wanted = Project(loop, keep);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (use.follows[d] < 0) wanted.dims.insert(wanted.dims.begin() + d, LayoutDim{1, {}});
  }
  return wanted;
}

std::optional<FragmentLayout> LoopLayout(const TileState& state, const Parallel& loop) {
  const std::vector<int64_t> extents = state.Extents(loop.extents);
  const std::vector<FragmentUse> uses = FragmentUses(state, loop);
  std::optional<FragmentLayout> best;
  int64_t best_score = -1;
  for (const FragmentUse& candidate : uses) {
    const auto layout = state.fragments.find(candidate.buffer);
    if (!candidate.plain || !FullRank(candidate, extents.size()) || layout == state.fragments.end()) continue;
    const auto followed = FollowedLayout(layout->second, candidate, extents);
    if (!followed) continue;
    int64_t score = 0;
    for (const FragmentUse& use : uses) {
      const auto other = state.fragments.find(use.buffer);
      if (other != state.fragments.end() && DirectUse(other->second, use, *followed)) {
        score += Product(state.Shape(use.buffer)) * (use.write ? 2 : 1);
      }
    }
    if (score > best_score) {
      best_score = score;
      best = followed;
    }
  }
  return best;
}

std::vector<int> MovingDims(const std::vector<int64_t>& extents) {
  std::vector<int> dims;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] != 1) dims.push_back(static_cast<int>(d));
  }
  return dims;
}

}  // namespace tilert
