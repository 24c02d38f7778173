#include "lowering/fragment_uses.h"

#include <algorithm>

#include "ir/int_eval.h"
#include "ir/limits.h"

namespace tilert {
namespace {

bool IsFragment(const TileState& state, BufferId id) { return state.scope(id) == Scope::kFragment; }

// A loop dim in a subscript, and what its variable is multiplied by.
struct Digit {
  int dim = 0;
  int64_t weight = 1;
};

// The digits that `index` · weight is the sum of; false for anything else.
bool AddDigits(const ExprArena& arena, Expr index, const std::vector<VarId>& vars, int64_t weight, std::vector<Digit>* digits) {
  const ExprNode& node = arena[index];
  if (arena.IsInt(index, 0)) return true;
  if (node.op == ExprOp::kCast && node.dtype == DType::kIndex) return AddDigits(arena, node.args[0], vars, weight, digits);
  if (node.op == ExprOp::kAdd) return AddDigits(arena, node.args[0], vars, weight, digits) && AddDigits(arena, node.args[1], vars, weight, digits);
  int64_t factor = 0;
  if (node.op == ExprOp::kMul && arena.AsInt(node.args[1], &factor) && factor > 0 && factor <= kMaxBlockElements)
    return AddDigits(arena, node.args[0], vars, MulIndex(weight, factor), digits);
  const auto it = node.op == ExprOp::kVar ? std::find(vars.begin(), vars.end(), static_cast<VarId>(node.i)) : vars.end();
  if (it != vars.end()) digits->push_back({static_cast<int>(it - vars.begin()), weight});
  return it != vars.end();
}

// The loop dims that make up a subscript, the fastest first: each digit starts where those below it end.
std::optional<std::vector<int>> Follows(const ExprArena& arena, Expr index, const std::vector<VarId>& vars, const std::vector<int64_t>& extents) {
  std::vector<Digit> digits;
  if (!AddDigits(arena, index, vars, 1, &digits)) return std::nullopt;
  for (Digit& digit : digits) {
    if (extents[static_cast<size_t>(digit.dim)] == 1 && digits.size() > 1) digit.weight = INT64_MAX;  // always 0: it may stand anywhere
  }
  std::stable_sort(digits.begin(), digits.end(), [](const Digit& a, const Digit& b) { return a.weight < b.weight; });
  std::vector<int> dims;
  int64_t below = 1;
  for (const Digit& digit : digits) {
    const int64_t extent = extents[static_cast<size_t>(digit.dim)];
    if ((digit.weight != below && digit.weight != INT64_MAX) || (extent < 1 && digits.size() > 1)) return std::nullopt;
    below *= extent;
    dims.push_back(digit.dim);
  }
  return dims;
}

// A dimension cut into the digits of the given extents, the fastest first, and what is left; none where the cuts go through threads or registers unevenly.
std::optional<std::vector<LayoutDim>> Cut(const LayoutDim& dim, const std::vector<int64_t>& extents) {
  std::vector<LayoutDim> parts;
  std::vector<Factor> left = dim.factors;
  int64_t below = 1;
  for (size_t i = 0; i + 1 < extents.size(); ++i) {
    LayoutDim& part = parts.emplace_back(LayoutDim{extents[i], {}});
    int64_t missing = extents[i];
    while (missing > 1) {
      if (left.empty()) return std::nullopt;
      Factor& next = left.front();
      const int64_t size = std::min(next.size, missing);
      if (next.size % size != 0 || missing % size != 0) return std::nullopt;
      part.factors.push_back({size, next.owner, next.stride});
      missing /= size;
      next = {next.size / size, next.owner, next.stride * size};
      if (next.size == 1) left.erase(left.begin());
    }
    below *= extents[i];
  }
  if (dim.extent % below != 0) return std::nullopt;
  parts.push_back({dim.extent / below, std::move(left)});
  return parts;
}

class UseCollector {
 public:
  UseCollector(const TileState& state, const Parallel& loop) : state_(state), loop_(loop), extents_(state.Extents(loop.extents)) {}

  std::vector<FragmentUse> Run() {
    ForEachStmt(loop_.body, [&](const Stmt& stmt) {
      ForEachExpr(stmt, [&](Expr e) { Loads(e); });
      if (auto* store = std::get_if<Store>(&stmt.op)) Add(store->buffer, store->indices, true);
    });
    return std::move(uses_);
  }

 private:
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
      int64_t at = 0;
      const bool immediate = state_.program.exprs.AsInt(index, &at);
      const auto dims = immediate ? std::vector<int>() : Follows(state_.program.exprs, index, loop_.vars, extents_);
      const auto taken = [&](int dim) {
        return std::any_of(use.follows.begin(), use.follows.end(), [dim](const auto& others) { return std::count(others.begin(), others.end(), dim) > 0; });
      };
      if (!dims || std::any_of(dims->begin(), dims->end(), taken)) use.plain = false;
      if (immediate && (at < 0 || at >= shape[use.follows.size()])) use.plain = false;  // registers have no outside
      use.follows.push_back(dims.value_or(std::vector<int>()));
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
  const std::vector<int64_t> extents_;
  std::vector<FragmentUse> uses_;
};

bool FullRank(const FragmentUse& use, size_t rank) { return FollowedDims(use).size() == rank; }

}  // namespace

std::vector<FragmentUse> FragmentUses(const TileState& state, const Parallel& loop) { return UseCollector(state, loop).Run(); }

std::vector<int> FollowedDims(const FragmentUse& use) {
  std::vector<int> dims;
  for (const std::vector<int>& digits : use.follows) dims.insert(dims.end(), digits.begin(), digits.end());
  std::sort(dims.begin(), dims.end());
  return dims;
}

std::optional<FragmentLayout> FollowedLayout(const FragmentLayout& layout, const FragmentUse& use, const std::vector<int64_t>& loop_extents) {
  if (!use.plain || layout.dims.size() != use.follows.size()) return std::nullopt;
  FragmentLayout cut{{}, layout.warps};
  std::vector<int> follows;  // of each dim of `cut`
  for (size_t d = 0; d < use.follows.size(); ++d) {
    const std::vector<int>& digits = use.follows[d];
    std::vector<int64_t> extents;
    for (int dim : digits) extents.push_back(loop_extents[static_cast<size_t>(dim)]);
    const auto parts = digits.size() < 2 ? std::vector<LayoutDim>{layout.dims[d]} : Cut(layout.dims[d], extents);
    if (!parts) return std::nullopt;
    for (size_t i = parts->size(); i-- > 0;) {  // the slowest first, so that registers keep their order
      follows.push_back(digits.empty() ? -1 : digits[i]);
      cut.dims.push_back((*parts)[i]);
    }
  }
  std::vector<int> keep;
  for (int dim : FollowedDims(use)) {
    keep.push_back(static_cast<int>(std::find(follows.begin(), follows.end(), dim) - follows.begin()));
    if (loop_extents[static_cast<size_t>(dim)] > cut.dims[static_cast<size_t>(keep.back())].extent) return std::nullopt;
  }
  for (size_t d = 0; d < follows.size(); ++d) {
    const auto& factors = cut.dims[d].factors;
    const bool in_threads = std::any_of(factors.begin(), factors.end(), [](const Factor& f) { return f.owner != Owner::kReg && f.size > 1; });
    if (follows[d] < 0 && in_threads) return std::nullopt;
  }
  FragmentLayout followed = Project(cut, keep);
  const std::vector<int> dims = FollowedDims(use);
  for (size_t i = 0; i < dims.size(); ++i) followed.dims[i].extent = loop_extents[static_cast<size_t>(dims[i])];
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
    const std::vector<int>& digits = use.follows[d];
    int64_t extent = 1;
    for (size_t i = 0; i < digits.size(); ++i) {
      const LayoutDim& dim = loop.dims[static_cast<size_t>(digits[i])];
      extent *= dim.extent;
      if (i + 1 < digits.size() && dim.padded() != dim.extent) return std::nullopt;  // the next digit would begin too late
    }
    if (extent != shape[d]) return std::nullopt;
    keep.insert(keep.end(), digits.rbegin(), digits.rend());
  }
  const FragmentLayout parts = Project(loop, keep);
  FragmentLayout wanted{{}, parts.warps};
  size_t end = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    LayoutDim& dim = wanted.dims.emplace_back(LayoutDim{shape[d], {}});
    end += use.follows[d].size();
    for (size_t i = 0; i < use.follows[d].size(); ++i) {
      const std::vector<Factor>& factors = parts.dims[end - 1 - i].factors;
      dim.factors.insert(dim.factors.end(), factors.begin(), factors.end());
    }
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
