#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "lowering/kernel_pass.h"

namespace tilert {
namespace {

// Moves divisions by what is known only at launch to the head of the kernel, when all they use is known there.
class DivisionHoister {
 public:
  explicit DivisionHoister(kir::Kernel& kernel) : k_(kernel), block_vars_(kernel.block_vars.begin(), kernel.block_vars.end()) {}

  void Run() {
    Process(k_.body);
    k_.body.insert(k_.body.begin(), lets_.begin(), lets_.end());
  }

 private:
  void Process(kir::Block& block) {
    for (kir::Stmt& stmt : block) {
      kir::ForEachExpr(stmt, [&](Expr& e) {
        if (e) e = Hoisted(e);
      });
      for (kir::Block* child : kir::ChildBlocks(stmt)) Process(*child);
    }
  }

  Expr Hoisted(Expr root) {
    return Rewrite(k_.exprs, root, k_.exprs, [&](Expr e, const ExprNode& node) -> Expr {
      if (node.op != ExprOp::kFloorDiv && node.op != ExprOp::kFloorMod) return {};
      int64_t divisor = 0;
      if (k_.exprs.AsInt(node.args[1], &divisor) || !KnownAtHead(e)) return {};
      if (const auto it = vars_.find(e); it != vars_.end()) return it->second;
      const DType dtype = node.dtype;
      k_.vars.push_back({"q", dtype});
      const VarId var = static_cast<VarId>(k_.vars.size() - 1);
      lets_.push_back({kir::Let{var, e}, {}});
      return vars_[e] = k_.exprs.Leaf(ExprOp::kVar, var, dtype);
    });
  }

  bool KnownAtHead(Expr root) const {
    bool known = true;
    ForEachNode(k_.exprs, root, [&](Expr, const ExprNode& node) {
      known &= node.op != ExprOp::kLoad && (node.op != ExprOp::kVar || block_vars_.contains(static_cast<VarId>(node.i)));
    });
    return known;
  }

  kir::Kernel& k_;
  const absl::flat_hash_set<VarId> block_vars_;
  absl::flat_hash_map<Expr, Expr> vars_;
  std::vector<kir::Stmt> lets_;
};

}  // namespace

absl::Status HoistDivisions(KernelState& state) {
  DivisionHoister(state.kernel).Run();
  return absl::OkStatus();
}

}  // namespace tilert
