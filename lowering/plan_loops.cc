// Element loops: T.Parallel in the layout of the fragments it uses; fragments that don't fit are reached through shared memory.
#include <algorithm>

#include "ir/status_util.h"
#include "lowering/plan_builder.h"
#include "lowering/tile_access.h"

namespace tilert {

// True when the loop reads memory that it writes: of a point that several threads run, one would read what the first has written, and but one of them would have
// what an atomic gives back.
bool PlanBuilder::ReadsWhatItWrites(const Parallel& loop, const std::vector<FragmentUse>& uses, const FragmentLayout& layout) const {
  bool fetches = false;
  ForEachStmt(loop.body, [&](const Stmt& stmt) {
    auto* atomic = std::get_if<Atomic>(&stmt.op);
    fetches |= atomic != nullptr && atomic->prev != kNoId;
  });
  if (fetches) return true;
  const auto staged = [&](const FragmentUse& use) {
    return use.read && use.write && !DirectUse(s_.fragments.at(use.buffer), use, layout);
  };
  if (std::any_of(uses.begin(), uses.end(), staged)) return true;
  absl::flat_hash_set<BufferId> read, written;
  for (const Stmt& stmt : loop.body) {
    read.merge(BuffersRead(s_.program, stmt));
    written.merge(BuffersWritten(stmt));
  }
  return std::any_of(written.begin(), written.end(), [&](BufferId id) {
    return (s_.scope(id) == Scope::kGlobal || s_.scope(id) == Scope::kShared) && read.contains(id);
  });
}

absl::Status PlanBuilder::EmitParallel(const Parallel& loop) {
  const std::vector<int64_t> extents = s_.Extents(loop.extents);
  if (!AllKnown(extents)) {
    return InvalidArgument("T.Parallel needs extents that are fixed at specialisation", Where(s_.program, loc_),
                           "; make the dim a constant, or loop over tiles with T.serial around it");
  }
  const std::vector<FragmentUse> uses = FragmentUses(s_, loop);
  std::optional<FragmentLayout> layout = LoopLayout(s_, loop);
  if (!layout) layout = BlockedLayout(extents, s_.warps, 1);
  std::vector<VarId> vars = loop.vars;
  if (!layout->Replicas().empty() && ReadsWhatItWrites(loop, uses, *layout)) {
    if (vars.empty()) {
      vars.push_back(NewVar("once"));
      layout->dims.push_back({1, {}});
    }
    layout = WithoutReplicas(*std::move(layout));
  }

  std::vector<std::pair<BufferId, BufferId>> write_back;
  for (const FragmentUse& use : uses) {
    if (DirectUse(s_.fragments.at(use.buffer), use, *layout)) continue;
    const BufferId shared = StageOut(buffers_[use.buffer]);
    staged_[use.buffer] = shared;
    if (use.write) write_back.push_back({shared, buffers_[use.buffer]});
  }
  kir::Elementwise out{*layout, std::move(vars), {}};
  TILERT_RETURN_IF_ERROR(EmitElementBlock(loop.body, out.body));
  Emit(std::move(out));
  staged_.clear();
  for (const auto& [shared, fragment] : write_back) StageIn(shared, fragment);
  return absl::OkStatus();
}

// Of private memory.
absl::Status PlanBuilder::EmitElementFill(const Fill& fill, const SourceLoc& loc, kir::Block& out) {
  kir::Block* body = &out;
  std::vector<Expr> at;
  for (size_t d = 0; d < fill.dst.start.size(); ++d) {
    const VarId var = NewVar(Cat("i", d));
    body->push_back({kir::For{var, Int(0), Tr(fill.dst.extent[d]), Int(1), kir::Unroll::kFull, {}}, loc});
    body = &std::get<kir::For>(body->back().op).body;
    at.push_back(Fold(k_.exprs, k_.exprs.Binary(ExprOp::kAdd, Tr(fill.dst.start[d]), VarExpr(var))));
  }
  body->push_back({kir::Store{buffers_[fill.dst.buffer], std::move(at), Tr(fill.value)}, loc});
  return absl::OkStatus();
}

absl::Status PlanBuilder::EmitElementBlock(const Block& block, kir::Block& out) {
  for (const Stmt& stmt : block) TILERT_RETURN_IF_ERROR(EmitElementStmt(stmt, out));
  return absl::OkStatus();
}

absl::Status PlanBuilder::EmitElementStmt(const Stmt& stmt, kir::Block& out) {
  const auto emit = [&](kir::StmtOp op) {
    out.push_back({std::move(op), stmt.loc});
    return absl::OkStatus();
  };
  // Where an element goes: the fragment's stand-in, or the buffer with its version in front.
  const auto place = [&](BufferId id, const std::vector<Expr>& at) {
    const auto staged = staged_.find(id);
    std::vector<Expr> indices = Tr(at);
    if (staged != staged_.end() || (s_.scope(id) == Scope::kShared && !s_.slots.contains(id))) {
      indices.insert(indices.begin(), staged != staged_.end() ? Int(0) : Slot(id));
    }
    return std::pair(staged != staged_.end() ? staged->second : buffers_[id], std::move(indices));
  };
  if (auto* op = std::get_if<Store>(&stmt.op)) {
    auto [buffer, at] = place(op->buffer, op->indices);
    return emit(kir::Store{buffer, std::move(at), Tr(op->value)});
  }
  if (auto* op = std::get_if<Atomic>(&stmt.op)) {
    auto [buffer, at] = place(op->buffer, op->indices);
    return emit(kir::Atomic{op->op, buffer, std::move(at), Tr(op->value), op->order, op->scope, op->prev});
  }
  if (auto* op = std::get_if<Let>(&stmt.op)) return emit(kir::Let{op->var, Tr(op->value)});
  if (auto* op = std::get_if<BarrierOp>(&stmt.op)) return EmitElementBarrierOp(stmt, *op, out);
  if (auto* op = std::get_if<Shuffle>(&stmt.op)) return emit(kir::Shuffle{op->var, Tr(op->value), Tr(op->lane)});
  if (auto* op = std::get_if<Fill>(&stmt.op)) return EmitElementFill(*op, stmt.loc, out);
  if (std::holds_alternative<Alloc>(stmt.op)) return absl::OkStatus();  // of a thread region: declared in front of it
  if (auto* op = std::get_if<If>(&stmt.op)) {
    kir::If branch{Tr(op->cond), {}, {}};
    TILERT_RETURN_IF_ERROR(EmitElementBlock(op->then_body, branch.then_body));
    TILERT_RETURN_IF_ERROR(EmitElementBlock(op->else_body, branch.else_body));
    return emit(std::move(branch));
  }
  if (auto* op = std::get_if<For>(&stmt.op)) {
    const bool unrolled = op->kind == ForKind::kUnrolled || op->kind == ForKind::kVectorized;
    kir::For walk{op->var, Tr(op->begin), Tr(op->end), Tr(op->step), unrolled ? kir::Unroll::kFull : kir::Unroll::kNo, {}};
    TILERT_RETURN_IF_ERROR(EmitElementBlock(op->body, walk.body));
    return emit(std::move(walk));
  }
  if (auto* op = std::get_if<While>(&stmt.op)) {
    kir::While walk{Tr(op->cond), {}};
    TILERT_RETURN_IF_ERROR(EmitElementBlock(op->body, walk.body));
    return emit(std::move(walk));
  }
  if (std::holds_alternative<Break>(stmt.op)) return emit(kir::Break{});
  if (std::holds_alternative<Continue>(stmt.op)) return emit(kir::Continue{});
  if (std::holds_alternative<Annotate>(stmt.op)) return absl::OkStatus();
  if (auto* op = std::get_if<Print>(&stmt.op)) {
    struct kir::Print print{op->format, Tr(op->args)};
    return emit(std::move(print));
  }
  if (auto* op = std::get_if<Assert>(&stmt.op)) return emit(kir::Assert{Tr(op->cond), op->message});
  return Unsupported(stmt, "this statement inside T.Parallel");
}

}  // namespace tilert
