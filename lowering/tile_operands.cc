// Operands are evaluated once, before their statement does anything. Threads that each do a part of it would evaluate them again,
// after others have written, and loops in every turn: what a statement reads of the memory that it writes itself becomes a variable
// in front of it.
#include "ir/status_util.h"
#include "lowering/tile_access.h"
#include "lowering/tile_state.h"

namespace tilert {
namespace {

class Operands {
 public:
  explicit Operands(TileState& state) : s_(state) {}

  void Run(Block& block) {
    Block out;
    for (Stmt& stmt : block) {
      for (Block* child : ChildBlocks(stmt)) Run(*child);
      Run(std::move(stmt), out);
    }
    block = std::move(out);
  }

 private:
  void Run(Stmt stmt, Block& out) {
    loc_ = stmt.loc;
    written_ = BuffersWritten(stmt);
    if (auto* loop = std::get_if<For>(&stmt.op)) {
      is_pipeline_ = loop->kind == ForKind::kPipelined;
      const std::string name = s_.program.vars[loop->var].name;
      Hold(loop->begin, out, name + "_begin"), Hold(loop->end, out, name + "_end");
      is_pipeline_ = false;
    }
    ForEachRegion(stmt, [&](Region& region) {
      for (Expr& e : region.start) Hold(e, out);
      for (Expr& e : region.extent) Hold(e, out);
    });
    if (auto* copy = std::get_if<Copy>(&stmt.op); copy != nullptr && copy->fill) Hold(copy->fill, out);
    auto* fill = std::get_if<Fill>(&stmt.op);
    if (fill != nullptr && IsRead(fill->value, [](BufferId) { return true; })) Bind(fill->value, out);  // also: of no element's thread
    out.push_back(std::move(stmt));
  }

  template <typename Which>
  bool IsRead(Expr e, const Which& which) const {
    bool found = false;
    ForEachNode(s_.program.exprs, e, [&](Expr, const ExprNode& node) {
      found |= node.op == ExprOp::kLoad && which(static_cast<BufferId>(node.i));
    });
    return found;
  }

  // A pipeline asks how far it goes while copies are on their way.
  void Hold(Expr& e, Block& out, const std::string& name = "operand") {
    const auto changes = [&](BufferId id) {
      const bool is_tile = s_.scope(id) == Scope::kShared || s_.scope(id) == Scope::kFragment;
      return written_.contains(id) || (is_pipeline_ && is_tile);
    };
    if (IsRead(e, changes)) Bind(e, out, name);
  }

  void Bind(Expr& e, Block& out, const std::string& name = "operand") {
    e = s_.Bind(name, e, loc_, out);
  }

  TileState& s_;
  SourceLoc loc_;
  absl::flat_hash_set<BufferId> written_;
  bool is_pipeline_ = false;
};

}  // namespace

absl::Status HoldOperands(TileState& state) {
  Operands(state).Run(state.L().body);
  return absl::OkStatus();
}

}  // namespace tilert
