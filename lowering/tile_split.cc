// Element conditions in loops that hold for all elements in most iterations: masks then cost only the iterations at the edge of what they mask.
//   for k: … s[i, j] = select(k * 64 + j < n, 0, -inf) …
// A condition counts when it compares integers and is affine in the loop variable and the element variables; where it holds for the whole tile is
// then a range of iterations with bounds known before the loop. The Hopper family, where tensor cores wait for the masks, has the loop twice:
//   for k < n / 64: … s[i, j] = 0 …;   for the rest: as it was.
// In the Ampere family other warps have work meanwhile. There it is a branch:
//   for k: … if n - k * 64 - 63 > 0: s[i, j] = 0; else: as it was …
#include <algorithm>
#include <optional>

#include "ir/status_util.h"
#include "lowering/affine.h"
#include "lowering/tile_access.h"
#include "lowering/tile_state.h"

namespace tilert {
namespace {

// step·k + base > 0 for every element of the tile exactly when the condition holds for all of them.
struct Margin {
  int64_t step = 0;
  Expr base;
};

class LoopSplitter {
 public:
  LoopSplitter(TileState& state, const For& loop) : s_(state), loop_(loop) {
    ForEachStmt(loop.body, [&](const Stmt& stmt) {
      if (const VarId* var = BoundVar(stmt)) bound_.push_back(*var);
      if (auto* inner = std::get_if<For>(&stmt.op)) bound_.push_back(inner->var);
    });
  }

  // Where all conditions that can be told hold: [first, end) within the loop's range; none if there is nothing to gain.
  struct Clear { Expr first, end; };
  std::optional<Clear> Find() {
    for (const Stmt& stmt : loop_.body) Collect(stmt);
    std::erase_if(held_, [](const Held& held) { return held.margin.step == 0; });  // the same in all iterations
    if (held_.empty()) return std::nullopt;
    ExprArena& e = s_.E();
    Expr first, end;
    for (const Held& held : held_) Narrow(held.margin, &first, &end);
    const auto within = [&](Expr at) { return e.Binary(ExprOp::kMax, loop_.begin, e.Binary(ExprOp::kMin, at, loop_.end)); };
    Clear clear;
    if (first) clear.first = Fold(e, within(first));
    if (end) clear.end = Fold(e, within(end));
    if (clear.first && clear.end) clear.end = Fold(e, e.Binary(ExprOp::kMax, clear.first, clear.end));
    return clear;
  }

  // The body for iterations where the conditions hold.
  Block Cleared() {
    Block body = loop_.body;
    Simplify(body);
    return body;
  }

  // The statement, if it has conditions, with a branch to what is left of it where they hold for the whole tile.
  std::optional<If> Branch(const Stmt& stmt) {
    held_.clear();
    Collect(stmt);
    if (held_.empty()) return std::nullopt;
    ExprArena& e = s_.E();
    Expr all;
    for (const Held& held : held_) {
      const Expr steps = e.Binary(ExprOp::kMul, e.Leaf(ExprOp::kVar, loop_.var, DType::kIndex), e.Int(held.margin.step));
      const Expr above = Fold(e, e.Binary(ExprOp::kGt, AddIndex(e, held.margin.base, steps), e.Int(0)));
      all = all ? e.Binary(ExprOp::kAnd, all, above) : above;
    }
    If branch{all, {stmt}, {stmt}};
    Simplify(branch.then_body);
    return branch;
  }

 private:
  // A condition of elements, and where it holds for all of them.
  struct Held { Expr cond; Margin margin; };

  // The conditions of a statement that can be told.
  void Collect(const Stmt& stmt) {
    auto* elements = std::get_if<Parallel>(&stmt.op);
    if (elements == nullptr || !AllKnown(s_.Extents(elements->extents))) return;
    ForEachStmt(elements->body, [&](const Stmt& inner) { ForEachExpr(inner, [&](Expr e) { Conditions(*elements, e); }); });
  }

  void Conditions(const Parallel& elements, Expr root) {
    std::vector<Expr> selects;
    ForEachNode(s_.E(), root, [&](Expr, const ExprNode& node) {
      if (node.op == ExprOp::kSelect) selects.push_back(node.args[0]);
    });
    for (Expr cond : selects) Conjuncts(elements, cond);
  }

  void Conjuncts(const Parallel& elements, Expr cond) {
    const ExprNode node = s_.E()[cond];
    if (node.op == ExprOp::kAnd) {
      Conjuncts(elements, node.args[0]);
      Conjuncts(elements, node.args[1]);
    } else if (!Contains(cond)) {
      if (const auto margin = MarginOf(elements, node)) held_.push_back({cond, *margin});
    }
  }

  bool Contains(Expr cond) const {
    return std::any_of(held_.begin(), held_.end(), [&](const Held& held) { return held.cond == cond; });
  }

  std::optional<Margin> MarginOf(const Parallel& elements, const ExprNode& node) {
    ExprArena& e = s_.E();
    Expr less, more;
    int64_t slack = 0;  // less < more + slack
    switch (node.op) {
      case ExprOp::kLt: less = node.args[0], more = node.args[1]; break;
      case ExprOp::kLe: less = node.args[0], more = node.args[1], slack = 1; break;
      case ExprOp::kGt: less = node.args[1], more = node.args[0]; break;
      case ExprOp::kGe: less = node.args[1], more = node.args[0], slack = 1; break;
      default: return std::nullopt;
    }
    if (IsFloat(e[less].dtype) || IsFloat(e[more].dtype)) return std::nullopt;
    Margin margin{0, e.Int(slack)};
    if (!AddTerms(elements, more, 1, &margin) || !AddTerms(elements, less, -1, &margin)) return std::nullopt;
    margin.base = Fold(e, margin.base);
    return margin;
  }

  // Adds factor·expr to the margin, element variables at the end of their range where it is least.
  bool AddTerms(const Parallel& elements, Expr expr, int64_t factor, Margin* margin) {
    ExprArena& e = s_.E();
    const ExprNode node = e[expr];
    int64_t scale = 0;
    if (node.op == ExprOp::kAdd || node.op == ExprOp::kSub) {
      return AddTerms(elements, node.args[0], factor, margin) && AddTerms(elements, node.args[1], node.op == ExprOp::kAdd ? factor : -factor, margin);
    }
    if (node.op == ExprOp::kMul && e.AsInt(node.args[1], &scale)) return AddTerms(elements, node.args[0], factor * scale, margin);
    if (node.op == ExprOp::kMul && e.AsInt(node.args[0], &scale)) return AddTerms(elements, node.args[1], factor * scale, margin);
    if (node.op == ExprOp::kCast && node.dtype == DType::kIndex) return AddTerms(elements, node.args[0], factor, margin);
    if (node.op == ExprOp::kVar && static_cast<VarId>(node.i) == loop_.var) return margin->step += factor, true;
    if (node.op == ExprOp::kVar) {
      const auto element = std::find(elements.vars.begin(), elements.vars.end(), static_cast<VarId>(node.i));
      if (element != elements.vars.end()) {
        int64_t extent = 0;
        e.AsInt(elements.extents[static_cast<size_t>(element - elements.vars.begin())], &extent);
        margin->base = AddIndex(e, margin->base, factor < 0 ? factor * (extent - 1) : 0);
        return true;
      }
    }
    // Anything else must be the same in all iterations and for all elements, and an index, which does not wrap.
    bool constant = node.dtype == DType::kIndex && !UsesAny(e, expr, {loop_.var}) && !UsesAny(e, expr, elements.vars) && !UsesAny(e, expr, bound_);
    ForEachNode(e, expr, [&](Expr, const ExprNode& part) { constant &= part.op != ExprOp::kLoad; });
    if (constant) margin->base = AddIndex(e, margin->base, factor == 1 ? expr : e.Binary(ExprOp::kMul, expr, e.Int(factor)));
    return constant;
  }

  // step·k + base > 0: k < ceil(base / −step) for a falling margin, k ≥ floor(−base / step) + 1 for a rising one.
  void Narrow(const Margin& margin, Expr* first, Expr* end) {
    ExprArena& e = s_.E();
    const int64_t step = margin.step < 0 ? -margin.step : margin.step;
    if (margin.step < 0) {
      const Expr here = e.Binary(ExprOp::kFloorDiv, AddIndex(e, margin.base, step - 1), e.Int(step));
      *end = *end ? e.Binary(ExprOp::kMin, *end, here) : here;
    } else {
      const Expr here = AddIndex(e, e.Binary(ExprOp::kFloorDiv, e.Binary(ExprOp::kSub, e.Int(0), margin.base), e.Int(step)), 1);
      *first = *first ? e.Binary(ExprOp::kMax, *first, here) : here;
    }
  }

  // True in place of the conditions; a loop over elements that is left with one constant is a fill.
  void Simplify(Block& body) {
    for (Stmt& stmt : body) {
      auto* elements = std::get_if<Parallel>(&stmt.op);
      if (elements == nullptr) continue;
      for (Stmt& inner : elements->body) {
        ForEachExpr(inner, [&](Expr& root) {
          root = Fold(s_.E(), Rewrite(s_.E(), root, s_.E(), [&](Expr at, const ExprNode&) { return Contains(at) ? s_.E().Int(1, DType::kBool) : Expr{}; }));
        });
      }
      if (const auto fill = AsFill(*elements)) stmt.op = *fill;
    }
  }

  std::optional<Fill> AsFill(const Parallel& elements) {
    auto* store = elements.body.size() == 1 ? std::get_if<Store>(&elements.body[0].op) : nullptr;
    if (store == nullptr || s_.scope(store->buffer) != Scope::kFragment || store->indices.size() != elements.vars.size()) return std::nullopt;
    const ExprNode& value = s_.E()[store->value];
    if (value.op != ExprOp::kFloatImm && value.op != ExprOp::kIntImm) return std::nullopt;
    const std::vector<int64_t> shape = s_.Shape(store->buffer), extents = s_.Extents(elements.extents);
    for (size_t d = 0; d < store->indices.size(); ++d) {
      const ExprNode& index = s_.E()[store->indices[d]];
      if (index.op != ExprOp::kVar || static_cast<VarId>(index.i) != elements.vars[d] || shape[d] != extents[d]) return std::nullopt;
    }
    return Fill{s_.Whole(store->buffer), store->value};
  }

  TileState& s_;
  const For& loop_;
  std::vector<VarId> bound_;   // variables bound inside the loop
  std::vector<Held> held_;
};

// Code grows: only beside products is that worth it.
bool IsWorthSplitting(const TileState& state, const For& loop) {
  if (loop.kind == ForKind::kUnrolled || !state.program.exprs.IsInt(loop.step, 1) || HasJump(loop.body)) return false;
  return std::any_of(loop.body.begin(), loop.body.end(), [](const Stmt& stmt) { return std::holds_alternative<Gemm>(stmt.op); });
}

}  // namespace

absl::Status SplitLoops(TileState& state) {
  return RewriteBlock(state.L().body, [&](Stmt stmt, Block& out) {
    auto* loop = std::get_if<For>(&stmt.op);
    if (loop == nullptr || !IsWorthSplitting(state, *loop)) return out.push_back(std::move(stmt)), absl::OkStatus();
    LoopSplitter splitter(state, *loop);
    if (state.target.family == Family::kAmpere) {
      for (Stmt& inner : loop->body) {
        const auto branch = splitter.Branch(inner);
        if (!branch) continue;
        state.report += Cat("  masks", Where(state.program, inner.loc), ": asked for only where they are not all true\n");
        inner.op = *branch;
      }
      return out.push_back(std::move(stmt)), absl::OkStatus();
    }
    const auto clear = splitter.Find();
    if (!clear) return out.push_back(std::move(stmt)), absl::OkStatus();
    state.report += Cat("  loop", Where(state.program, stmt.loc), ": split where its masks are all true\n");
    const auto part = [&](Expr begin, Expr end, Block body) {
      For piece = *loop;
      piece.begin = begin;
      piece.end = end;
      piece.body = std::move(body);
      out.push_back({std::move(piece), stmt.loc});
    };
    const Expr first = clear->first ? clear->first : loop->begin, end = clear->end ? clear->end : loop->end;
    if (clear->first) part(loop->begin, first, loop->body);
    part(first, end, splitter.Cleared());
    if (clear->end) part(end, loop->end, loop->body);
    return absl::OkStatus();
  });
}

}  // namespace tilert
