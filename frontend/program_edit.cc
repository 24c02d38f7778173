#include "frontend/program_edit.h"

#include "ir/printer.h"

namespace tilert::frontend {

absl::flat_hash_set<BufferId> TouchedBuffers(const Program& p, const Stmt& root) {
  absl::flat_hash_set<BufferId> touched;
  ForEachStmt(root, [&](const Stmt& stmt) {
    ForEachExpr(stmt, [&](Expr e) {
      ForEachNode(p.exprs, e, [&](Expr, const ExprNode& node) {
        if (node.op == ExprOp::kLoad) touched.insert(static_cast<BufferId>(node.i));
      });
    });
    ForEachBuffer(stmt, [&](BufferId id) { touched.insert(id); });
  });
  return touched;
}

void SubstituteVar(Program& p, Block& block, VarId var, Expr value) {
  for (Stmt& stmt : block) {
    ForEachExpr(stmt, [&](Expr& e) {
      e = Rewrite(p.exprs, e, p.exprs,
                  [&](Expr, const ExprNode& node) { return node.op == ExprOp::kVar && node.i == var ? value : Expr{}; });
    });
    for (Block* child : ChildBlocks(stmt)) SubstituteVar(p, *child, var, value);
  }
}

VarId FreshVar(Program& p, VarId var) {
  p.vars.push_back(Var(p.vars[var]));
  return static_cast<VarId>(p.vars.size() - 1);
}

std::string PlaceOf(const Program& p, const SourceLoc& loc) {
  const std::string at = PrintLoc(p, loc);
  return at.empty() ? at : at + ": ";
}

}  // namespace tilert::frontend
