// Shared buffers whose first dimension numbers tiles that are only ever touched one at a time, such as the stages of a pipeline written out by hand: they become
// versions of one tile, which tensor cores and bulk copies can take.
#include <algorithm>

#include <functional>

#include "ir/status_util.h"
#include "lowering/tile_access.h"
#include "lowering/tile_state.h"

namespace tilert {
namespace {

class SlotFinder {
 public:
  explicit SlotFinder(TileState& state) : s_(state) {}

  void Run() {
    ForEachStmt(s_.L().body, [&](const Stmt& stmt) {
      if (auto* loop = std::get_if<For>(&stmt.op)) Note(*loop);
      if (auto* alloc = std::get_if<Alloc>(&stmt.op)) Propose(alloc->buffer);
      if (auto* gemm = std::get_if<Gemm>(&stmt.op)) {
        multiplied_.insert(gemm->a.buffer);
        multiplied_.insert(gemm->b.buffer);
      }
    });
    ForEachStmt(s_.L().body, [&](const Stmt& stmt) { Check(stmt); });
    for (const auto& [id, count] : s_.slots) {
      if (!multiplied_.contains(id)) other_.insert(id);
    }
    for (BufferId id : other_) s_.slots.erase(id);
  }

 private:
  void Propose(BufferId id) {
    const std::vector<int64_t> shape = s_.Shape(id);
    if (s_.scope(id) == Scope::kShared && shape.size() == 3 && AllKnown(shape) && shape[0] > 0) s_.slots[id] = shape[0];
  }
  void Note(const For& loop) {
    int64_t begin = 0, end = 0;
    if (s_.E().AsInt(loop.begin, &begin) && s_.E().AsInt(loop.end, &end) && begin >= 0) ends_[loop.var] = end;
  }

  // Is `index` sure to be one of the slots?
  bool IsSlot(Expr index, int64_t count) const {
    const ExprNode& node = s_.program.exprs[index];
    if (node.op == ExprOp::kIntImm) return node.i >= 0 && node.i < count;
    if (node.op == ExprOp::kFloorMod) {
      int64_t size = 0;
      return s_.program.exprs.AsInt(node.args[1], &size) && size > 0 && size <= count;
    }
    if (node.op != ExprOp::kVar) return false;
    const auto end = ends_.find(static_cast<VarId>(node.i));
    return end != ends_.end() && end->second <= count;
  }
  void Touch(BufferId id, Expr index, bool one) {
    const auto slot = s_.slots.find(id);
    if (slot != s_.slots.end() && !(one && IsSlot(index, slot->second))) other_.insert(id);
  }
  void Touch(const Region& region) {
    if (!region.start.empty()) Touch(region.buffer, region.start[0], s_.program.exprs.IsInt(region.extent[0], 1));
  }

  void Check(const Stmt& stmt) {
    ForEachExpr(stmt, [&](Expr e) {
      if (!e) return;
      ForEachNode(s_.program.exprs, e, [&](Expr, const ExprNode& node) {
        if (node.op == ExprOp::kLoad && !node.args.empty()) Touch(static_cast<BufferId>(node.i), node.args[0], true);
      });
    });
    std::visit(Overloaded{
                   [](const auto&) {},
                   [&](const Copy& s) { Touch(s.src), Touch(s.dst); },
                   [&](const Gemm& s) { Touch(s.a), Touch(s.b), Touch(s.c); },
                   [&](const Fill& s) { Touch(s.dst); },
                   [&](const Reduce& s) { Touch(s.src), Touch(s.dst); },
                   [&](const Scan& s) { Touch(s.src), Touch(s.dst); },
                   [&](const AtomicTile& s) { Touch(s.src), Touch(s.dst); },
                   [&](const Store& s) {
                     if (!s.indices.empty()) Touch(s.buffer, s.indices[0], true);
                   },
                   [&](const Atomic& s) {
                     if (!s.indices.empty()) Touch(s.buffer, s.indices[0], true);
                   },
               },
               stmt.op);
  }

  TileState& s_;
  absl::flat_hash_map<VarId, int64_t> ends_;
  absl::flat_hash_set<BufferId> multiplied_, other_;
};

constexpr int64_t kLongestUnrolled = 16;

bool Mentions(const ExprArena& exprs, Expr e, VarId var) {
  bool found = false;
  ForEachNode(exprs, e, [&](Expr, const ExprNode& node) { found |= node.op == ExprOp::kVar && static_cast<VarId>(node.i) == var; });
  return found;
}

// Does the body multiply parts of tiles that the loop's variable chooses?
bool SlicesOperands(const TileState& state, const For& loop) {
  bool slices = false, allocates = false;
  ForEachStmt(loop.body, [&](const Stmt& stmt) {
    allocates |= std::holds_alternative<Alloc>(stmt.op);
    auto* gemm = std::get_if<Gemm>(&stmt.op);
    for (const Region* region : gemm == nullptr ? std::vector<const Region*>{} : std::vector<const Region*>{&gemm->a, &gemm->b}) {
      for (size_t d = 0; d < region->start.size(); ++d) slices |= d + 2 >= region->start.size() && Mentions(state.program.exprs, region->start[d], loop.var);
    }
  });
  return slices && !allocates && !HasJump(loop.body);
}

// `block` for one value of `var`, with variables of its own.
void Instantiate(TileState& state, Block& block, VarId var, Expr value) {
  const auto replace = [&](Block& part, VarId from, Expr to) {
    const std::function<void(Block&)> visit = [&](Block& b) {
      for (Stmt& stmt : b) {
        ForEachExpr(stmt, [&](Expr& e) {
          if (!e) return;
          e = Fold(state.E(), Rewrite(state.E(), e, state.E(), [&](Expr, const ExprNode& node) {
            return node.op == ExprOp::kVar && static_cast<VarId>(node.i) == from ? to : Expr{};
          }));
        });
        for (Block* child : ChildBlocks(stmt)) visit(*child);
      }
    };
    visit(part);
  };
  replace(block, var, value);
  const std::function<void(Block&)> renew = [&](Block& part) {
    for (Stmt& stmt : part) {
      const auto fresh = [&](VarId& bound) {
        state.program.vars.push_back(state.program.vars[bound]);
        const VarId next = static_cast<VarId>(state.program.vars.size() - 1);
        replace(block, bound, state.VarExpr(next));
        bound = next;
      };
      if (auto* loop = std::get_if<For>(&stmt.op)) fresh(loop->var);
      if (VarId* var = BoundVar(stmt)) fresh(*var);
      if (auto* region = std::get_if<ThreadRegion>(&stmt.op)) fresh(region->thread);
      if (auto* points = std::get_if<Parallel>(&stmt.op)) {
        for (VarId& bound : points->vars) fresh(bound);
      }
      for (Block* child : ChildBlocks(stmt)) renew(*child);
    }
  };
  renew(block);
}

// Unrolled loops over parts of operands are written out: where a part begins is a number then, as tensor cores want it.
absl::Status UnrollSlices(TileState& state) {
  return RewriteBlock(state.L().body, [&](Stmt stmt, Block& out) {
    auto* loop = std::get_if<For>(&stmt.op);
    int64_t begin = 0, end = 0, step = 0;
    const bool known = loop != nullptr && loop->kind == ForKind::kUnrolled && state.E().AsInt(loop->begin, &begin) && state.E().AsInt(loop->end, &end) &&
                       state.E().AsInt(loop->step, &step) && step > 0 && end - begin <= kLongestUnrolled * step;
    if (!known || !SlicesOperands(state, *loop)) {
      out.push_back(std::move(stmt));
      return absl::OkStatus();
    }
    for (int64_t i = begin; i < end; i += step) {
      Block body = loop->body;
      Instantiate(state, body, loop->var, state.Int(i));
      for (Stmt& part : body) {
        // A condition on the variable is decided.
        auto* branch = std::get_if<If>(&part.op);
        if (branch == nullptr || state.program.exprs[branch->cond].op != ExprOp::kIntImm) {
          out.push_back(std::move(part));
          continue;
        }
        Block taken = std::move(state.E().IsInt(branch->cond, 0) ? branch->else_body : branch->then_body);
        for (Stmt& inner : taken) out.push_back(std::move(inner));
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status FindSlots(TileState& state) {
  TILERT_RETURN_IF_ERROR(UnrollSlices(state));
  SlotFinder(state).Run();
  return absl::OkStatus();
}

std::vector<int64_t> TileState::TileShape(BufferId id) const {
  std::vector<int64_t> shape = Shape(id);
  if (slots.contains(id)) shape.erase(shape.begin());
  return shape;
}

bool TileState::IsWholeTile(const Region& region) const {
  for (size_t d = slots.contains(region.buffer) ? 1 : 0; d < region.start.size(); ++d) {
    if (!program.exprs.IsInt(region.start[d], 0) || region.extent[d] != buffer(region.buffer).shape[d]) return false;
  }
  return true;
}

}  // namespace tilert
