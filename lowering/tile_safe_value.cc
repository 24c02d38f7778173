// annotate_safe_value: from there to the end of the statements that it stands among, reads outside the buffer give the value.
#include "absl/container/flat_hash_map.h"
#include "ir/status_util.h"
#include "lowering/tile_state.h"

namespace tilert {
namespace {

class SafeValues {
 public:
  explicit SafeValues(TileState& state) : s_(state) {}

  absl::Status Run(Block& block) {
    const auto before = values_;
    Block out;
    for (Stmt& stmt : block) {
      if (auto* note = std::get_if<Annotate>(&stmt.op); note && note->kind == AnnotationKind::kSafeValue) {
        const DType dtype = s_.buffer(note->buffer).dtype;
        const Expr value = s_.E()[note->args[0]].dtype == dtype ? note->args[0] : s_.E().Cast(note->args[0], dtype);
        values_[note->buffer] = Fixed(value, stmt.loc, out);
        continue;
      }
      if (!values_.empty()) TILERT_RETURN_IF_ERROR(Apply(stmt, out));
      for (Block* child : ChildBlocks(stmt)) TILERT_RETURN_IF_ERROR(Run(*child));
      out.push_back(std::move(stmt));
    }
    block = std::move(out);
    values_ = before;
    return absl::OkStatus();
  }

 private:
  // The value that `e` has now: what is in memory may change.
  Expr Fixed(Expr e, const SourceLoc& loc, Block& out) {
    bool loads = false;
    ForEachNode(s_.program.exprs, e, [&](Expr, const ExprNode& node) { loads |= node.op == ExprOp::kLoad; });
    if (!loads) return e;
    return s_.Bind("safe_value", Guarded(e), loc, out);
  }

  absl::Status Apply(Stmt& stmt, Block& out) {
    ForEachExpr(stmt, [&](Expr& e) { e = Guarded(e); });
    if (auto* copy = std::get_if<Copy>(&stmt.op)) {
      const auto value = values_.find(copy->src.buffer);
      if (value != values_.end() && !copy->fill) copy->fill = value->second;
    }
    Region* region = nullptr;
    if (auto* op = std::get_if<Reduce>(&stmt.op)) region = &op->src;
    if (auto* op = std::get_if<Scan>(&stmt.op)) region = &op->src;
    if (auto* op = std::get_if<AtomicTile>(&stmt.op)) region = &op->src;
    if (region == nullptr || !values_.contains(region->buffer) || s_.IsWhole(*region)) return absl::OkStatus();
    return CopyFirst(*region, stmt.loc, out);
  }

  // A part, which may lead outside, by a copy: that knows what to put there.
  absl::Status CopyFirst(Region& region, const SourceLoc& loc, Block& out) {
    TILERT_ASSIGN_OR_RETURN(const Region part, s_.NewTileLike(region, "_part", Scope::kFragment, loc, out));
    Copy copy{region, part};
    copy.fill = values_.at(region.buffer);
    out.push_back({std::move(copy), loc});
    region = part;
    return absl::OkStatus();
  }

  Expr Guarded(Expr root) {
    return Rewrite(s_.E(), root, s_.E(), [&](Expr, const ExprNode& node) -> Expr {
      if (node.op != ExprOp::kLoad) return {};
      const auto value = values_.find(static_cast<BufferId>(node.i));
      if (value == values_.end()) return {};
      std::vector<Expr> indices;
      Expr inside = s_.E().Int(1, DType::kBool);
      const std::vector<Expr> shape = s_.buffer(value->first).shape;
      for (size_t d = 0; d < node.args.size(); ++d) {
        const Expr index = Guarded(node.args[d]);
        indices.push_back(index);
        inside = s_.E().Binary(ExprOp::kAnd, inside, s_.E().Binary(ExprOp::kGe, index, s_.Int(0)));
        inside = s_.E().Binary(ExprOp::kAnd, inside, s_.E().Binary(ExprOp::kLt, index, shape[d]));
      }
      const Expr load = s_.E().Load(node.i, node.dtype, indices);
      return Fold(s_.E(), s_.E().Make(ExprOp::kSelect, node.dtype, {inside, load, value->second}));
    });
  }

  TileState& s_;
  absl::flat_hash_map<BufferId, Expr> values_;
};

}  // namespace

absl::Status ApplySafeValues(TileState& state) { return SafeValues(state).Run(state.L().body); }

}  // namespace tilert
