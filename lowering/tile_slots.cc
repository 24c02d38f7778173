// Shared buffers whose first dimension numbers tiles that are only ever touched one at a time, such as the stages of a pipeline written out by hand: they become
// versions of one tile, which tensor cores and bulk copies can take.
#include <algorithm>

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

}  // namespace

absl::Status FindSlots(TileState& state) {
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
