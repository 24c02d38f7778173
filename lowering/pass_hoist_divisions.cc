#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "lowering/kernel_pass.h"

namespace tilert {
namespace {

// Moves divisions by what is known only at launch to the head of the kernel or of each tile (ForTiles), as soon as all they use is known.
class DivisionHoister {
 public:
  explicit DivisionHoister(kir::Kernel& kernel) : k_(kernel), block_vars_(kernel.block_vars.begin(), kernel.block_vars.end()) {}

  void Run() {
    tiles_ = kir::IsPersistent(k_);
    Head head{false, {}, {}};
    heads_ = {&head};
    Process(k_.body);
    k_.body.insert(k_.body.begin(), head.lets.begin(), head.lets.end());
  }

 private:
  // A place where quotients are computed: of the kernel, or of the tiles of a role.
  struct Head {
    bool has_tile = false;
    absl::flat_hash_map<Expr, Expr> vars;
    std::vector<kir::Stmt> lets;
  };

  void Process(kir::Block& block) {
    for (kir::Stmt& stmt : block) {
      kir::ForEachExpr(stmt, [&](Expr& e) {
        if (e) e = Hoisted(e);
      });
      const bool tile = std::holds_alternative<kir::ForTiles>(stmt.op);
      Head head{true, {}, {}};
      if (tile) heads_.push_back(&head);
      for (kir::Block* child : kir::ChildBlocks(stmt)) Process(*child);
      if (!tile) continue;
      heads_.pop_back();
      kir::Block& body = std::get<kir::ForTiles>(stmt.op).body;
      body.insert(body.begin(), head.lets.begin(), head.lets.end());
    }
  }

  Expr Hoisted(Expr root) {
    return Rewrite(k_.exprs, root, k_.exprs, [&](Expr e, const ExprNode& node) -> Expr {
      if (node.op != ExprOp::kFloorDiv && node.op != ExprOp::kFloorMod) return {};
      int64_t divisor = 0;
      if (k_.exprs.AsInt(node.args[1], &divisor)) return {};
      for (Head* head : heads_) {
        if (KnownAt(*head, e)) return At(*head, e, node.dtype);
      }
      return {};
    });
  }

  Expr At(Head& head, Expr e, DType dtype) {
    if (const auto it = head.vars.find(e); it != head.vars.end()) return it->second;
    k_.vars.push_back({"q", dtype});
    const VarId var = static_cast<VarId>(k_.vars.size() - 1);
    head.lets.push_back({kir::Let{var, e}, {}});
    return head.vars[e] = k_.exprs.Leaf(ExprOp::kVar, var, dtype);
  }

  bool KnownAt(const Head& head, Expr root) const {
    bool known = true;
    ForEachNode(k_.exprs, root, [&](Expr, const ExprNode& node) {
      const bool variable = node.op == ExprOp::kVar && (!block_vars_.contains(static_cast<VarId>(node.i)) || (tiles_ && !head.has_tile));
      known &= node.op != ExprOp::kLoad && !variable;
    });
    return known;
  }

  kir::Kernel& k_;
  const absl::flat_hash_set<VarId> block_vars_;
  bool tiles_ = false;
  std::vector<Head*> heads_;  // outermost first
};

}  // namespace

absl::Status HoistDivisions(KernelState& state) {
  DivisionHoister(state.kernel).Run();
  return absl::OkStatus();
}

}  // namespace tilert
