// Programs with fewer buffers.
#include <functional>

#include "frontend/legalize.h"
#include "frontend/program_edit.h"

namespace tilert::frontend {
namespace {

void MoveBuffers(Block& block, const std::function<void(BufferId&)>& move) {
  for (Stmt& stmt : block) {
    ForEachBuffer(stmt, move);
    for (Block* child : ChildBlocks(stmt)) MoveBuffers(*child, move);
  }
}

}  // namespace

void Renumber(const std::vector<BufferId>& number, Program* p) {
  std::vector<Buffer> kept;
  for (size_t i = 0; i < p->buffers.size(); ++i) {
    if (number[i] != kNoId) kept.push_back(std::move(p->buffers[i]));
  }
  p->buffers = std::move(kept);
  ExprArena arena;
  const std::function<Expr(Expr, const ExprNode&)> renumber = [&](Expr, const ExprNode& node) -> Expr {
    if (node.op != ExprOp::kLoad) return {};
    ExprNode load = node;
    load.i = number[load.i];
    for (Expr& arg : load.args) arg = Rewrite(p->exprs, arg, arena, renumber);
    return arena.Intern(std::move(load));
  };
  ForEachExpr(*p, [&](Expr& e) { e = Rewrite(p->exprs, e, arena, renumber); });
  p->exprs = std::move(arena);
  const auto move = [&](BufferId& id) { id = number[id]; };
  for (Param& param : p->params) {
    if (param.kind == Param::Kind::kTensor) move(param.index);
  }
  for (Workspace& workspace : p->workspaces) move(workspace.buffer);
  for (Launch& launch : p->launches) MoveBuffers(launch.body, move);
}

}  // namespace tilert::frontend
