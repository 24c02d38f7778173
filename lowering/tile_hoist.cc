// Loads and stores of memory in element loops become tile copies, so that they are vectorised and predicated like any copy:
//   for i, j in T.Parallel(…): C[m + i, n + j] = A[m + i, n + j] + bias[n + j]
// becomes  a = copy(A[m:, n:]); b = copy(bias[n:]); for i, j: c[i, j] = a[i, j] + b[j]; copy(c, C[m:, n:]).
#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "ir/status_util.h"
#include "lowering/affine.h"
#include "lowering/tile_state.h"

namespace tilert {
namespace {

class Hoist {
 public:
  Hoist(TileState& state, Parallel loop, SourceLoc loc, Block& out) : s_(state), loop_(std::move(loop)), loc_(loc), out_(out) {}

  void Run() {
    if (AllKnown(s_.Extents(loop_.extents)) && !loop_.vars.empty()) {
      for (Stmt& stmt : loop_.body) {
        if (ChildBlocks(stmt).empty()) ForEachExpr(stmt, [&](Expr& e) { e = HoistLoads(e); });
        ForEachStmt(stmt, [&](const Stmt& inner) {
          if (auto* store = std::get_if<Store>(&inner.op)) stored_before_.insert(store->buffer);
        });
      }
      for (Stmt& stmt : loop_.body) {
        if (auto* store = std::get_if<Store>(&stmt.op); store && !Jumps()) HoistStore(*store);
      }
    }
    out_.push_back({std::move(loop_), loc_});
    for (Stmt& copy : after_) out_.push_back(std::move(copy));
  }

 private:
  // `continue` may skip a store: the element must then stay as it was.
  bool Jumps() const {
    bool jumps = false;
    ForEachStmt(loop_.body, [&](const Stmt& stmt) {
      jumps |= std::holds_alternative<Continue>(stmt.op) || std::holds_alternative<Break>(stmt.op);
    });
    return jumps;
  }

  bool InMemory(BufferId id) const { return s_.scope(id) == Scope::kGlobal || s_.scope(id) == Scope::kShared; }

  // The region that `indices` sweep when every subscript is base + one loop variable (or constant) and the last one runs with the
  // innermost variable, and the loop variables in the order of the region's dimensions.
  struct Swept {
    Region region;
    std::vector<int> vars;  // index into loop_.vars, one a dimension that moves
  };
  std::optional<Swept> Sweep(BufferId buffer, absl::Span<const Expr> indices) {
    Swept swept{{buffer, {}, {}}, {}};
    for (Expr index : indices) {
      const auto split = SplitUnit(s_.E(), index, loop_.vars);
      if (!split || UsesInner(split->base)) return std::nullopt;
      swept.region.start.push_back(split->base);
      swept.region.extent.push_back(split->var < 0 ? s_.Int(1) : loop_.extents[split->var]);
      if (split->var < 0) continue;
      if (!swept.vars.empty() && swept.vars.back() >= split->var) return std::nullopt;  // transposed or repeated: no vectors to gain
      swept.vars.push_back(split->var);
    }
    if (swept.vars.empty() || indices.empty() || !UsesAny(s_.E(), indices.back(), loop_.vars)) return std::nullopt;
    return swept;
  }

  // True when `e` uses a variable defined inside the loop, or memory that the loop writes.
  bool UsesInner(Expr e) {
    std::vector<VarId> inner;
    ForEachStmt(loop_.body, [&](const Stmt& stmt) {
      if (const VarId* var = BoundVar(stmt)) inner.push_back(*var);
      if (auto* walk = std::get_if<For>(&stmt.op)) inner.push_back(walk->var);
    });
    bool uses = UsesAny(s_.E(), e, inner);
    ForEachNode(s_.E(), e, [&](Expr, const ExprNode& node) { uses |= node.op == ExprOp::kLoad && WrittenInLoop(node.i); });
    return uses;
  }

  bool WrittenInLoop(BufferId id) const {
    bool written = false;
    ForEachStmt(loop_.body, [&](const Stmt& stmt) {
      if (auto* store = std::get_if<Store>(&stmt.op)) written |= store->buffer == id;
      if (auto* atomic = std::get_if<Atomic>(&stmt.op)) written |= atomic->buffer == id;
    });
    return written;
  }

  // All stores to `id` in the loop go to exactly `indices`, at the top level: reading the same element first is safe.
  bool WrittenOnlyAt(BufferId id, absl::Span<const Expr> indices) const {
    bool only = true;
    ForEachStmt(loop_.body, [&](const Stmt& stmt) {
      if (auto* store = std::get_if<Store>(&stmt.op); store && store->buffer == id) {
        only &= std::equal(indices.begin(), indices.end(), store->indices.begin(), store->indices.end());
      }
      if (auto* atomic = std::get_if<Atomic>(&stmt.op)) only &= atomic->buffer != id;
    });
    return only;
  }

  // How many stores to `id` stand in the loop, nested ones included.
  int CountStores(BufferId id) const {
    int count = 0;
    ForEachStmt(loop_.body, [&](const Stmt& stmt) {
      if (auto* store = std::get_if<Store>(&stmt.op)) count += store->buffer == id;
    });
    return count;
  }

  bool LoadedInLoop(BufferId id) const {
    bool loaded = false;
    ForEachStmt(loop_.body, [&](const Stmt& stmt) { ForEachExpr(stmt, [&](Expr e) { loaded |= Loads(s_.program.exprs, e, id); }); });
    return loaded;
  }

  std::vector<int64_t> TileShape(const Swept& swept) const {
    std::vector<Expr> extents;
    for (int v : swept.vars) extents.push_back(loop_.extents[v]);
    return s_.Extents(extents);
  }

  std::vector<Expr> TileIndices(const Swept& swept) {
    std::vector<Expr> indices;
    for (int v : swept.vars) indices.push_back(s_.VarExpr(loop_.vars[v]));
    return indices;
  }

  // Unit extents of the loop itself would be dropped by the copy's matching of dimensions; the tile keeps them.
  BufferId NewTile(const Swept& swept) {
    const Buffer& buffer = s_.buffer(swept.region.buffer);
    return s_.NewBuffer(buffer.name + "_tile", buffer.dtype, Scope::kFragment, TileShape(swept));
  }

  Expr HoistLoads(Expr root) {
    return Rewrite(s_.E(), root, s_.E(), [&](Expr e, const ExprNode& node) -> Expr {
      if (node.op != ExprOp::kLoad || !InMemory(node.i)) return {};
      const ExprNode load = node;  // the arena may grow below
      if (stored_before_.contains(load.i) || (WrittenInLoop(load.i) && !WrittenOnlyAt(load.i, load.args))) return {};
      if (const auto it = hoisted_.find(e); it != hoisted_.end()) return it->second;
      const auto swept = Sweep(load.i, load.args);
      if (!swept) return {};
      const BufferId tile = NewTile(*swept);
      out_.push_back({Alloc{tile}, loc_});
      out_.push_back({Copy{swept->region, s_.Whole(tile)}, loc_});
      const Expr value = s_.E().Load(tile, load.dtype, TileIndices(*swept));
      hoisted_[e] = value;
      return value;
    });
  }

  void HoistStore(Store& store) {
    if (!InMemory(store.buffer) || CountStores(store.buffer) != 1 || LoadedInLoop(store.buffer)) return;
    const auto swept = Sweep(store.buffer, store.indices);
    if (!swept || swept->vars.size() != loop_.vars.size()) return;
    const BufferId tile = NewTile(*swept);
    out_.push_back({Alloc{tile}, loc_});
    after_.push_back({Copy{s_.Whole(tile), swept->region}, loc_});
    store.buffer = tile;
    store.indices = TileIndices(*swept);
  }

  TileState& s_;
  Parallel loop_;
  SourceLoc loc_;
  Block& out_;
  Block after_;
  absl::flat_hash_map<Expr, Expr> hoisted_;         // load → element of its tile
  absl::flat_hash_set<BufferId> stored_before_;     // by the statements already visited
};

}  // namespace

absl::Status HoistMemoryAccesses(TileState& state) {
  return RewriteBlock(state.L().body, [&](Stmt stmt, Block& out) {
    if (auto* loop = std::get_if<Parallel>(&stmt.op)) {
      Hoist(state, std::move(*loop), stmt.loc, out).Run();
    } else {
      out.push_back(std::move(stmt));
    }
    return absl::OkStatus();
  });
}

}  // namespace tilert
