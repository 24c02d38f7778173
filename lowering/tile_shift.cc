// Element loops over a part of a fragment, say f[i + 16] for i below 16, become loops over the fragment's own coordinates, of which those outside the part have
// nothing to do. Each thread then finds what it needs in its registers; else the whole fragment would go through shared memory.
#include <algorithm>

#include "ir/int_eval.h"
#include "lowering/affine.h"
#include "lowering/tile_state.h"

namespace tilert {
namespace {

struct Bounds {
  int64_t lo = 0, hi = 0;
};

// How a loop touches one fragment: in each dimension at a loop variable plus what is the same for all points.
struct Use {
  BufferId buffer = kNoId;
  std::vector<Expr> indices;
  std::vector<UnitIndex> parts;
  bool plain = true;
};

class Shift {
 public:
  explicit Shift(TileState& state) : s_(state) {}

  void Walk(Block& block) {
    for (Stmt& stmt : block) {
      if (auto* points = std::get_if<Parallel>(&stmt.op)) {
        Align(*points);
        continue;
      }
      if (auto* loop = std::get_if<For>(&stmt.op)) {
        const auto begin = Of(loop->begin), end = Of(loop->end), step = Of(loop->step);
        if (begin && end && step && step->lo >= 1) bounds_[loop->var] = {begin->lo, std::max(begin->lo, end->hi - 1)};
      }
      for (Block* child : ChildBlocks(stmt)) Walk(*child);
    }
  }

 private:
  std::optional<Bounds> Of(Expr e) const {
    const ExprNode& node = s_.program.exprs[e];
    int64_t number = 0;
    if (s_.program.exprs.AsInt(e, &number)) return Bounds{number, number};
    if (node.op == ExprOp::kVar) {
      const auto it = bounds_.find(static_cast<VarId>(node.i));
      return it == bounds_.end() ? std::nullopt : std::optional(it->second);
    }
    if (node.op == ExprOp::kCast && node.dtype == DType::kIndex) return Of(node.args[0]);
    if (node.op != ExprOp::kAdd && node.op != ExprOp::kSub && node.op != ExprOp::kMul) return std::nullopt;
    const auto a = Of(node.args[0]), b = Of(node.args[1]);
    if (!a || !b) return std::nullopt;
    if (node.op == ExprOp::kAdd) return Bounds{AddIndex(a->lo, b->lo), AddIndex(a->hi, b->hi)};
    if (node.op == ExprOp::kSub) return Bounds{AddIndex(a->lo, -b->hi), AddIndex(a->hi, -b->lo)};
    if (a->lo < 0 || b->lo < 0) return std::nullopt;
    return Bounds{MulIndex(a->lo, b->lo), MulIndex(a->hi, b->hi)};
  }

  // Points for which the body does something: a condition around it all may say that they are fewer.
  std::vector<int64_t> Extents(const Parallel& loop) const {
    std::vector<int64_t> extents = s_.Extents(loop.extents);
    const auto* guard = loop.body.size() == 1 ? std::get_if<If>(&loop.body[0].op) : nullptr;
    if (guard == nullptr || !guard->else_body.empty()) return extents;
    const std::function<void(Expr)> clip = [&](Expr cond) {
      const ExprNode& node = s_.program.exprs[cond];
      if (node.op == ExprOp::kAnd) clip(node.args[0]), clip(node.args[1]);
      int64_t end = 0;
      if (node.op != ExprOp::kLt || s_.program.exprs[node.args[0]].op != ExprOp::kVar || !s_.program.exprs.AsInt(node.args[1], &end)) return;
      const auto at = std::find(loop.vars.begin(), loop.vars.end(), static_cast<VarId>(s_.program.exprs[node.args[0]].i));
      if (at == loop.vars.end()) return;
      int64_t& extent = extents[static_cast<size_t>(at - loop.vars.begin())];
      extent = std::min(extent, std::max<int64_t>(end, 0));
    };
    clip(guard->cond);
    return extents;
  }

  void Add(std::vector<Use>& uses, BufferId buffer, const std::vector<Expr>& indices, const Parallel& loop) {
    if (s_.scope(buffer) != Scope::kFragment) return;
    const auto known = std::find_if(uses.begin(), uses.end(), [buffer](const Use& use) { return use.buffer == buffer; });
    if (known != uses.end()) {
      known->plain &= known->indices == indices;
      return;
    }
    Use use{buffer, indices, {}, true};
    std::vector<int> taken;
    for (Expr index : indices) {
      const auto part = SplitUnit(s_.E(), index, loop.vars);
      use.plain &= part && part->var >= 0 && std::count(taken.begin(), taken.end(), part->var) == 0;
      use.parts.push_back(part.value_or(UnitIndex{}));
      taken.push_back(use.parts.back().var);
    }
    uses.push_back(std::move(use));
  }

  std::vector<Use> Uses(const Parallel& loop) {
    std::vector<Use> uses;
    ForEachStmt(loop.body, [&](const Stmt& stmt) {
      std::vector<std::pair<BufferId, std::vector<Expr>>> loads;
      ForEachExpr(stmt, [&](Expr e) {
        if (!e) return;
        ForEachNode(s_.E(), e, [&](Expr, const ExprNode& node) {
          if (node.op == ExprOp::kLoad) loads.push_back({static_cast<BufferId>(node.i), {node.args.begin(), node.args.end()}});
        });
      });
      for (const auto& [buffer, indices] : loads) Add(uses, buffer, indices, loop);
      if (auto* store = std::get_if<Store>(&stmt.op)) Add(uses, store->buffer, store->indices, loop);
    });
    return uses;
  }

  bool IsPart(const Use& use, const std::vector<int64_t>& extents) const {
    const std::vector<int64_t> shape = s_.Shape(use.buffer);
    bool shifted = false;
    for (size_t d = 0; d < use.parts.size() && use.plain; ++d) {
      const auto base = Of(use.parts[d].base);
      if (!base || base->lo < 0 || AddIndex(base->hi, extents[static_cast<size_t>(use.parts[d].var)]) > shape[d]) return false;
      shifted |= !s_.program.exprs.IsInt(use.parts[d].base, 0);
    }
    return use.plain && shifted;
  }

  void Align(Parallel& loop) {
    if (!AllKnown(s_.Extents(loop.extents)) || loop.vars.empty()) return;
    const std::vector<int64_t> extents = Extents(loop);
    const std::vector<Use> uses = Uses(loop);
    const Use* best = nullptr;
    int64_t size = 0, all = 0;
    for (const Use& use : uses) {
      const int64_t elements = Product(s_.Shape(use.buffer));
      all += elements;
      if (!IsPart(use, extents) || elements <= size) continue;
      best = &use;
      size = elements;
    }
    if (best == nullptr || all - size >= size) return;  // the others would go through shared memory instead
    Follow(loop, *best, extents);
  }

  void Follow(Parallel& loop, const Use& use, const std::vector<int64_t>& extents) {
    ExprArena& e = s_.E();
    absl::flat_hash_map<uint32_t, Expr> replaced;
    Expr inside;
    const auto require = [&](Expr cond) { inside = inside ? e.Binary(ExprOp::kAnd, inside, cond) : cond; };
    for (size_t d = 0; d < use.parts.size(); ++d) {
      const Expr base = use.parts[d].base;
      const auto k = static_cast<size_t>(use.parts[d].var);
      if (e.IsInt(base, 0)) continue;
      const VarId old = loop.vars[k], at = s_.NewVar(s_.program.vars[old].name);
      replaced[use.indices[d].id] = s_.VarExpr(at);
      replaced[s_.VarExpr(old).id] = Fold(e, e.Binary(ExprOp::kSub, s_.VarExpr(at), base));
      require(e.Binary(ExprOp::kGe, s_.VarExpr(at), base));
      require(e.Binary(ExprOp::kLt, s_.VarExpr(at), AddIndex(e, base, extents[k])));
      loop.vars[k] = at;
      loop.extents[k] = e.Int(s_.Shape(use.buffer)[d]);
    }
    const std::function<void(Block&)> rewrite = [&](Block& block) {
      for (Stmt& stmt : block) {
        ForEachExpr(stmt, [&](Expr& root) {
          if (!root) return;
          root = Rewrite(e, root, e, [&](Expr id, const ExprNode&) {
            const auto it = replaced.find(id.id);
            return it == replaced.end() ? Expr{} : it->second;
          });
        });
        for (Block* child : ChildBlocks(stmt)) rewrite(*child);
      }
    };
    rewrite(loop.body);
    const SourceLoc loc = loop.body.front().loc;
    Stmt guarded{If{inside, std::move(loop.body), {}}, loc};
    loop.body.clear();
    loop.body.push_back(std::move(guarded));
  }

  TileState& s_;
  absl::flat_hash_map<VarId, Bounds> bounds_;  // of loops with known ends
};

}  // namespace

absl::Status ShiftLoops(TileState& state) {
  Shift(state).Walk(state.L().body);
  return absl::OkStatus();
}

}  // namespace tilert
