// Memory private to a point of a parallel loop becomes a fragment with an element (or row) a point, which the layout solve then
// places.
#include "absl/container/flat_hash_map.h"
#include "ir/status_util.h"
#include "lowering/tile_access.h"
#include "lowering/tile_state.h"

namespace tilert {
namespace {

constexpr int64_t kMaxUnrolled = 64;

class PrivateMemory {
 public:
  PrivateMemory(TileState& state, Parallel& loop) : s_(state), loop_(loop) {}

  // Moves the allocations of the loop's body to `before`.
  void Run(const SourceLoc& loc, Block& before) {
    TakeAllocs(loop_.body);
    if (shapes_.empty()) return;
    for (const auto& [id, own_shape] : shapes_) {
      Buffer& buffer = s_.program.buffers[id];
      buffer.scope = Scope::kFragment;
      buffer.shape = loop_.extents;
      buffer.shape.insert(buffer.shape.end(), own_shape.begin(), own_shape.end());
      before.push_back({Alloc{id}, loc});
    }
    Block body = std::move(loop_.body);
    loop_.body = Rewritten(body, {});
  }

 private:
  using Values = absl::flat_hash_map<VarId, Expr>;

  void TakeAllocs(Block& block) {
    Block kept;
    for (Stmt& stmt : block) {
      if (auto* alloc = std::get_if<Alloc>(&stmt.op)) {
        shapes_.push_back({alloc->buffer, s_.buffer(alloc->buffer).shape});
        continue;
      }
      for (Block* child : ChildBlocks(stmt)) TakeAllocs(*child);
      kept.push_back(std::move(stmt));
    }
    block = std::move(kept);
  }

  bool IsTaken(BufferId id) const {
    for (const auto& [taken, shape] : shapes_) {
      if (taken == id) return true;
    }
    return false;
  }

  std::vector<Expr> PointOf(std::vector<Expr> indices) {
    std::vector<Expr> at;
    for (VarId var : loop_.vars) at.push_back(s_.VarExpr(var));
    at.insert(at.end(), indices.begin(), indices.end());
    return at;
  }

  Expr Rewritten(Expr root, const Values& values) {
    const Expr result = Rewrite(s_.E(), root, s_.E(), [&](Expr, const ExprNode& node) -> Expr {
      if (node.op == ExprOp::kVar) {
        const auto value = values.find(static_cast<VarId>(node.i));
        return value == values.end() ? Expr{} : value->second;
      }
      if (node.op != ExprOp::kLoad || !IsTaken(static_cast<BufferId>(node.i))) return {};
      std::vector<Expr> indices;
      for (Expr arg : node.args) indices.push_back(Rewritten(arg, values));
      return s_.E().Load(node.i, node.dtype, PointOf(indices));
    });
    return Fold(s_.E(), result);
  }

  // `values`: what stands for variables, in loops that are unrolled.
  Block Rewritten(const Block& block, Values values) {
    Block out;
    for (const Stmt& original : block) {
      Stmt stmt = original;
      ForEachExpr(stmt, [&](Expr& e) { e = Rewritten(e, values); });
      if (auto* store = std::get_if<Store>(&stmt.op); store && IsTaken(store->buffer)) store->indices = PointOf(store->indices);
      if (auto* fill = std::get_if<Fill>(&stmt.op)) {
        AddFill(*fill, stmt.loc, out);
        continue;
      }
      if (auto* walk = std::get_if<For>(&stmt.op); walk && AddUnrolled(*walk, values, out)) continue;
      Rebind(stmt, values);
      for (Block* child : ChildBlocks(stmt)) *child = Rewritten(Block(*child), values);
      out.push_back(std::move(stmt));
    }
    return out;
  }

  // Copies of a loop's body need variables of their own.
  void Rebind(Stmt& stmt, Values& values) {
    if (copies_ == 0) return;
    const auto rename = [&](VarId* var) {
      const Var known = s_.program.vars[*var];
      const VarId fresh = s_.NewVar(known.name);
      s_.program.vars[fresh].dtype = known.dtype;
      values[*var] = s_.VarExpr(fresh);
      *var = fresh;
    };
    if (VarId* var = BoundVar(stmt)) rename(var);
    if (auto* walk = std::get_if<For>(&stmt.op)) rename(&walk->var);
  }

  // A private array lies in registers, which have no run-time subscripts: a short loop over one is written out.
  bool AddUnrolled(const For& loop, const Values& values, Block& out) {
    int64_t begin = 0, end = 0, step = 0;
    const bool is_known = s_.E().AsInt(loop.begin, &begin) && s_.E().AsInt(loop.end, &end) && s_.E().AsInt(loop.step, &step);
    if (!is_known || step < 1 || (end - begin) / step > kMaxUnrolled || !Subscripts(loop) || HasJump(loop.body)) return false;
    ++copies_;
    for (int64_t i = begin; i < end; i += step) {
      Values inner = values;
      inner[loop.var] = s_.Int(i);
      for (Stmt& stmt : Rewritten(loop.body, inner)) out.push_back(std::move(stmt));
    }
    --copies_;
    return true;
  }

  // Does the loop's variable choose elements of a private array?
  bool Subscripts(const For& loop) {
    bool found = false;
    const auto uses = [&](absl::Span<const Expr> indices) {
      for (Expr index : indices) {
        ForEachNode(s_.E(), index, [&](Expr, const ExprNode& node) { found |= node.op == ExprOp::kVar && node.i == loop.var; });
      }
    };
    ForEachStmt(loop.body, [&](const Stmt& stmt) {
      if (auto* store = std::get_if<Store>(&stmt.op); store && IsTaken(store->buffer)) uses(store->indices);
      ForEachExpr(stmt, [&](Expr e) {
        ForEachNode(s_.E(), e, [&](Expr, const ExprNode& node) {
          if (node.op == ExprOp::kLoad && IsTaken(static_cast<BufferId>(node.i))) uses(node.args);
        });
      });
    });
    return found;
  }

  void AddFill(const Fill& fill, const SourceLoc& loc, Block& out) {
    const std::vector<int64_t> extents = s_.Extents(fill.dst.extent);
    if (Product(extents) > kMaxUnrolled || !AllKnown(extents)) return out.push_back({fill, loc});
    std::vector<int64_t> at(extents.size(), 0);
    for (int64_t n = 0; n < Product(extents); ++n) {
      std::vector<Expr> indices;
      for (size_t d = 0; d < at.size(); ++d)
        indices.push_back(Fold(s_.E(), s_.E().Binary(ExprOp::kAdd, fill.dst.start[d], s_.Int(at[d]))));
      out.push_back({Store{fill.dst.buffer, PointOf(indices), fill.value}, loc});
      for (size_t d = at.size(); d-- > 0 && ++at[d] == extents[d];) at[d] = 0;
    }
  }

  TileState& s_;
  Parallel& loop_;
  std::vector<std::pair<BufferId, std::vector<Expr>>> shapes_;
  int copies_ = 0;
};

}  // namespace

absl::Status PrivateToFragments(TileState& state) {
  return RewriteBlock(state.L().body, [&](Stmt stmt, Block& out) {
    if (auto* loop = std::get_if<Parallel>(&stmt.op)) PrivateMemory(state, *loop).Run(stmt.loc, out);
    out.push_back(std::move(stmt));
    return absl::OkStatus();
  });
}

}  // namespace tilert
