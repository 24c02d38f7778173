// Elements of fragments that say where a tile begins: each is read once by the block, into a variable, before the statement; before the
// loop around it where the loop does not change it. (Copies in flight must not wait for values that their loop computes.)
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "lowering/tile_access.h"
#include "lowering/tile_state.h"

namespace tilert {
namespace {

class BlockValues {
 public:
  explicit BlockValues(TileState& state) : s_(state) {}

  void Run(Block& block) {
    Block out;
    for (Stmt& stmt : block) {
      if (std::holds_alternative<Parallel>(stmt.op)) {
        out.push_back(std::move(stmt));
        continue;
      }
      const auto outer = values_;
      if (std::holds_alternative<For>(stmt.op) || std::holds_alternative<While>(stmt.op)) {
        const auto written = BuffersWritten(stmt);
        ForEachInnerStart(stmt, [&](Expr& e) {
          if (DependsOnNothingIn(stmt, e, written)) Bind(e, stmt.loc, out);
        });
      }
      if (ChildBlocks(stmt).empty()) {
        ForEachRegionStart(stmt, [&](Expr& e) { Bind(e, stmt.loc, out); });
        ForEachRegionStart(stmt, [&](Expr& e) { e = Replaced(e); });
      }
      for (Block* child : ChildBlocks(stmt)) Run(*child);
      values_ = outer;
      // What was read before the statement holds until something writes it.
      out.push_back(std::move(stmt));
    }
    block = std::move(out);
  }

 private:
  template <typename Visit>
  static void ForEachInnerStart(Stmt& stmt, const Visit& visit) {
    for (Block* child : ChildBlocks(stmt)) {
      for (Stmt& inner : *child) {
        if (std::holds_alternative<Parallel>(inner.op)) continue;
        ForEachRegionStart(inner, visit);
        ForEachInnerStart(inner, visit);
      }
    }
  }

  bool IsFragmentLoad(const ExprNode& node) const {
    return node.op == ExprOp::kLoad && s_.scope(static_cast<BufferId>(node.i)) == Scope::kFragment;
  }

  // Every element of a fragment in `e` is the same before, in and after the loop.
  template <typename Written>
  bool DependsOnNothingIn(const Stmt& loop, Expr e, const Written& written) {
    absl::flat_hash_set<VarId> bound;
    const auto note = [&](const Stmt& stmt) {
      if (const auto* op = std::get_if<For>(&stmt.op)) bound.insert(op->var);
      if (const VarId* var = BoundVar(stmt)) bound.insert(*var);
    };
    note(loop);
    for (const Block* child : ChildBlocks(loop)) ForEachStmt(*child, note);
    bool same = true;
    ForEachNode(s_.E(), e, [&](Expr, const ExprNode& node) {
      if (!IsFragmentLoad(node)) return;
      same &= !written.contains(static_cast<BufferId>(node.i));
      for (const Expr index : node.args) {
        ForEachNode(s_.E(), index, [&](Expr, const ExprNode& inner) {
          same &= inner.op != ExprOp::kLoad && (inner.op != ExprOp::kVar || !bound.contains(static_cast<VarId>(inner.i)));
        });
      }
    });
    return same;
  }

  // A variable for each element of a fragment in `e` that has none.
  void Bind(Expr root, const SourceLoc& loc, Block& out) {
    std::vector<Expr> loads;
    ForEachNode(s_.E(), root, [&](Expr e, const ExprNode& node) {
      if (IsFragmentLoad(node) && !values_.contains(e.id)) loads.push_back(e);
    });
    for (const Expr load : loads) {
      values_[load.id] = s_.Bind(s_.buffer(static_cast<BufferId>(s_.E()[load].i)).name + "_value", load, loc, out);
    }
  }

  Expr Replaced(Expr root) {
    return Rewrite(s_.E(), root, s_.E(), [&](Expr e, const ExprNode&) {
      const auto value = values_.find(e.id);
      return value == values_.end() ? Expr{} : value->second;
    });
  }

  TileState& s_;
  absl::flat_hash_map<uint32_t, Expr> values_;  // element → variable that has its value here
};

}  // namespace

absl::Status ReadBlockValues(TileState& state) {
  BlockValues(state).Run(state.L().body);
  return absl::OkStatus();
}

}  // namespace tilert
