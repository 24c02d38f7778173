// Programs with fewer buffers.
#include <functional>

#include "frontend/legalize.h"

namespace tilert::frontend {
namespace {

template <typename Visit>
void ForEachBuffer(Block& block, const Visit& visit) {
  for (Stmt& stmt : block) {
    std::visit(
        [&](auto& s) {
          if constexpr (requires { s.src.buffer; }) visit(&s.src.buffer);
          if constexpr (requires { s.dst.buffer; }) visit(&s.dst.buffer);
          if constexpr (requires { s.a.buffer; }) visit(&s.a.buffer), visit(&s.b.buffer), visit(&s.c.buffer);
          if constexpr (requires { s.buffer; }) visit(&s.buffer);
        },
        stmt.op);
    if (auto* copy = std::get_if<Copy>(&stmt.op)) visit(&copy->barrier);
    if (auto* barrier = std::get_if<BarrierOp>(&stmt.op)) visit(&barrier->barrier);
    for (Block* child : ChildBlocks(stmt)) ForEachBuffer(*child, visit);
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
  const auto move = [&](BufferId* id) {
    if (*id != kNoId) *id = number[*id];
  };
  for (Param& param : p->params) {
    if (param.kind == Param::Kind::kTensor) move(&param.index);
  }
  for (Workspace& workspace : p->workspaces) move(&workspace.buffer);
  for (Launch& launch : p->launches) ForEachBuffer(launch.body, move);
}

}  // namespace tilert::frontend
