// Thread regions: what stands between two barriers is an Elementwise of one point a thread; control around barriers stays what it
// is. Memory of a thread is registers that every thread has of its own, so that they outlive an Elementwise.
#include "lowering/plan_threads.h"

#include <algorithm>

#include "ir/status_util.h"
#include "lowering/affine.h"

namespace tilert {
namespace {

// Is the statement, or one nested in it, an Op that `is` holds for?
bool Any(const Stmt& root, const std::function<bool(const Stmt&)>& is) {
  bool any = false;
  ForEachStmt(root, [&](const Stmt& stmt) { any |= is(stmt); });
  return any;
}

bool IsLoop(const Stmt& stmt) { return std::holds_alternative<For>(stmt.op) || std::holds_alternative<While>(stmt.op); }

}  // namespace

ThreadPlanner::ThreadPlanner(PlanBuilder& builder, const ThreadRegion& region, int64_t first, int64_t threads)
    : b_(builder), region_(region), uniform_(builder.s_.program, region), first_(first), threads_(threads) {
  layout_ = builder.PointPerThread();
}

absl::Status ThreadPlanner::Run() {
  for (const Stmt& stmt : region_.body) TILERT_RETURN_IF_ERROR(CheckMeetings(stmt));
  if (SomeCome(BarrierOpKind::kArrive) && !IsAlone()) {  // on behalf of all threads: what they did among tile statements must be done
    Fence();
    b_.Emit(kir::BarSync{});
  }
  MarkStructure(region_.body);
  while (MarkJumps(region_.body, nullptr)) {
  }
  TILERT_RETURN_IF_ERROR(EmitBlock(region_.body));
  b_.substitutes_.erase(region_.thread);
  if (SomeCome(BarrierOpKind::kWait) && !IsLast()) b_.Emit(kir::BarSync{});  // so did they for all threads
  return absl::OkStatus();
}

absl::Status ThreadPlanner::CheckMeetings(const Stmt& root) const {
  absl::Status status;
  ForEachStmt(root, [&](const Stmt& stmt) {
    if (std::holds_alternative<Copy>(stmt.op) || std::holds_alternative<Gemm>(stmt.op) ||
        std::holds_alternative<AsyncWait>(stmt.op))
      status = b_.Unsupported(stmt, "an asynchronous statement of single threads");
  });
  return status;
}

// What not whole warps do at one barrier each thread does by itself. So it announces bytes, in any case.
bool ThreadPlanner::ByThread(const Stmt& stmt) const {
  auto* op = std::get_if<BarrierOp>(&stmt.op);
  if (op == nullptr) return false;
  bool own = uniform_.ControlOf(stmt) > Uniformity::kWarp || op->kind == BarrierOpKind::kExpectTx ||
             (op->kind == BarrierOpKind::kArrive && threads_ % kLanes != 0);
  ForEachExpr(stmt, [&](Expr e) { own |= uniform_.Of(e) > Uniformity::kWarp; });
  return own;
}

bool ThreadPlanner::IsMeeting(const Stmt& stmt) const {
  return std::holds_alternative<SyncThreads>(stmt.op) || (std::holds_alternative<BarrierOp>(stmt.op) && !ByThread(stmt));
}

// Is there an arrival, or a wait, to which not all threads of the region come?
bool ThreadPlanner::SomeCome(BarrierOpKind kind) const {
  return std::any_of(region_.body.begin(), region_.body.end(), [&](const Stmt& root) {
    return Any(root, [&](const Stmt& stmt) {
      auto* op = std::get_if<BarrierOp>(&stmt.op);
      return op != nullptr && op->kind == kind && uniform_.ControlOf(stmt) != Uniformity::kBlock;
    });
  });
}

// Is the region all that the launch does?
bool ThreadPlanner::IsAlone() const {
  const Block& body = b_.s_.program.launches[b_.s_.launch].body;
  return std::all_of(body.begin(), body.end(), [&](const Stmt& stmt) {
    return std::get_if<ThreadRegion>(&stmt.op) == &region_ || std::holds_alternative<Alloc>(stmt.op) ||
           std::holds_alternative<Annotate>(stmt.op);
  });
}

// Or the last thing?
bool ThreadPlanner::IsLast() const { return std::get_if<ThreadRegion>(&b_.s_.program.launches[b_.s_.launch].body.back().op) == &region_; }

// Others may multiply what these threads have written, once one of them says so.
void ThreadPlanner::Fence() {
  if (b_.wgmma_ && b_.writes_tiles_) b_.Emit(kir::ProxyFence{});
}

// What holds barriers is control of the kernel, not of threads.
bool ThreadPlanner::MarkStructure(const Block& block) {
  bool any = false;
  for (const Stmt& stmt : block) {
    bool structural = IsMeeting(stmt);
    for (const Block* child : ChildBlocks(stmt)) structural |= MarkStructure(*child);
    if (structural) structural_.insert(&stmt);
    any |= structural;
  }
  return any;
}

// So is what leaves such a loop, and the conditions around that. True: something new was found.
bool ThreadPlanner::MarkJumps(const Block& block, const Stmt* loop) {
  bool found = false;
  for (const Stmt& stmt : block) {
    const Stmt* const inner = IsLoop(stmt) ? &stmt : loop;
    for (const Block* child : ChildBlocks(stmt)) found |= MarkJumps(*child, inner);
    const bool leaves = IsJump(stmt) && loop != nullptr && structural_.contains(loop);
    const bool around = std::holds_alternative<If>(stmt.op) && [&] {
      for (const Block* child : ChildBlocks(stmt)) {
        if (std::any_of(child->begin(), child->end(), [&](const Stmt& s) { return structural_.contains(&s); })) return true;
      }
      return false;
    }();
    if ((leaves || around) && structural_.insert(&stmt).second) found = true;
  }
  return found;
}

// Variables of a segment that later statements use live on in registers.
void ThreadPlanner::KeepVars(const std::vector<const Stmt*>& segment, absl::Span<const Stmt> rest,
                             std::vector<std::pair<VarId, BufferId>>* kept) {
  for (const Stmt* stmt : segment) {
    const VarId* const bound = BoundVar(*stmt);
    if (bound == nullptr) continue;
    const VarId var = *bound;
    const bool used = std::any_of(rest.begin(), rest.end(), [&](const Stmt& later) {
      return Any(later, [&](const Stmt& s) {
        bool uses = false;
        ForEachExpr(s, [&](Expr e) {
          if (!e) return;
          ForEachNode(b_.s_.program.exprs, e,
                      [&](Expr, const ExprNode& node) { uses |= node.op == ExprOp::kVar && static_cast<VarId>(node.i) == var; });
        });
        return uses;
      });
    });
    if (used) kept->push_back({var, NewScalar(b_.s_.program.vars[var].name, b_.s_.program.vars[var].dtype)});
  }
}

BufferId ThreadPlanner::NewScalar(const std::string& name, DType type) {
  const BufferId id = b_.NewRegister(name, type == DType::kIndex ? DType::kInt64 : type, FragmentLayout{{}, b_.s_.warps});
  b_.Emit(kir::Declare{id, true});
  return id;
}
Expr ThreadPlanner::ScalarValue(BufferId id, DType type) {
  const Expr value = b_.k_.exprs.Load(id, b_.k_.buffers[id].dtype, {});
  return type == b_.k_.buffers[id].dtype ? value : b_.k_.exprs.Cast(value, type);
}
Expr ThreadPlanner::AsStored(BufferId id, Expr value) {
  const DType type = b_.k_.buffers[id].dtype;
  return b_.k_.exprs[value].dtype == type ? value : b_.k_.exprs.Cast(value, type);
}

// An Elementwise whose body `fill` makes.
absl::Status ThreadPlanner::Points(const std::function<absl::Status(kir::Block&)>& fill) {
  const VarId point = b_.NewVar(b_.s_.program.vars[region_.thread].name);
  b_.substitutes_[region_.thread] = AddIndex(b_.k_.exprs, b_.VarExpr(point), first_);
  kir::Elementwise points{layout_, {point}, {}};
  TILERT_RETURN_IF_ERROR(fill(points.body));
  Ranges ranges(b_.k_);
  ranges.Bind(point, {0, threads_ - 1, 1});
  Guard(points.body, ranges);
  b_.Emit(std::move(points));
  return absl::OkStatus();
}

absl::Status ThreadPlanner::EmitBlock(const Block& block) {
  std::vector<const Stmt*> segment;
  const auto flush = [&](size_t end) -> absl::Status {
    if (segment.empty()) return absl::OkStatus();
    for (const Stmt* stmt : segment) TILERT_RETURN_IF_ERROR(Declare(*stmt));
    std::vector<std::pair<VarId, BufferId>> kept;
    KeepVars(segment, absl::MakeConstSpan(block).subspan(end), &kept);
    TILERT_RETURN_IF_ERROR(Points([&](kir::Block& out) -> absl::Status {
      for (const Stmt* stmt : segment) {
        TILERT_RETURN_IF_ERROR(b_.EmitElementStmt(*stmt, out));
        for (const auto& [var, id] : kept) {
          const VarId* const bound = BoundVar(*stmt);
          if (bound == nullptr || *bound != var) continue;
          const Expr value = b_.k_.exprs.Leaf(ExprOp::kVar, var, b_.k_.vars[var].dtype);
          out.push_back({kir::Store{id, {}, AsStored(id, value)}, stmt->loc});
        }
      }
      return absl::OkStatus();
    }));
    for (const auto& [var, id] : kept) b_.substitutes_[var] = ScalarValue(id, b_.s_.program.vars[var].dtype);
    segment.clear();
    return absl::OkStatus();
  };
  for (size_t i = 0; i < block.size(); ++i) {
    const Stmt& stmt = block[i];
    if (!structural_.contains(&stmt)) {
      if (segment.empty()) b_.loc_ = stmt.loc;
      segment.push_back(&stmt);
      continue;
    }
    TILERT_RETURN_IF_ERROR(flush(i));
    b_.loc_ = stmt.loc;
    TILERT_RETURN_IF_ERROR(EmitStructure(stmt));
  }
  return flush(block.size());
}

// Private memory that the statement, or one nested in it, allocates.
absl::Status ThreadPlanner::Declare(const Stmt& root) {
  absl::Status status;
  ForEachStmt(root, [&](const Stmt& stmt) {
    auto* alloc = std::get_if<Alloc>(&stmt.op);
    if (alloc != nullptr && status.ok()) status = b_.EmitAlloc(alloc->buffer, false);
  });
  return status;
}

// ---- control around barriers

// A value that all threads that come here, of each warp at least, agree on. One that only threads can compute is computed by
// them.
absl::StatusOr<Expr> ThreadPlanner::Agreed(Expr e) {
  bool by_thread = LoadsFrom(b_.s_.program, e, Scope::kLocal);
  ForEachNode(b_.s_.program.exprs, e, [&](Expr, const ExprNode& node) {
    by_thread |= node.op == ExprOp::kVar && static_cast<VarId>(node.i) == region_.thread;
  });
  if (!by_thread) return b_.Tr(e);
  const DType type = b_.s_.program.exprs[e].dtype;
  const BufferId id = NewScalar("agreed", type);
  TILERT_RETURN_IF_ERROR(Points([&](kir::Block& out) {
    out.push_back({kir::Store{id, {}, AsStored(id, b_.Tr(e))}, b_.loc_});
    return absl::OkStatus();
  }));
  return ScalarValue(id, type);
}

// Statements that only some warps come to.
bool ThreadPlanner::ByWarp(const Stmt& stmt) const {
  return !by_warp_ && Any(stmt, [&](const Stmt& s) {
    auto* sync = std::get_if<SyncThreads>(&s.op);
    return (sync != nullptr && sync->count != 0) || (IsMeeting(s) && uniform_.ControlOf(s) != Uniformity::kBlock);
  });
}

absl::Status ThreadPlanner::EmitStructure(const Stmt& stmt) {
  if (!ChildBlocks(stmt).empty() && ByWarp(stmt)) {
    kir::If some{b_.k_.exprs.Int(1, DType::kBool), {}, {}, true};
    by_warp_ = true;
    TILERT_RETURN_IF_ERROR(Inside(some.then_body, [&] { return EmitControl(stmt); }));
    by_warp_ = false;
    b_.Emit(std::move(some));
    return absl::OkStatus();
  }
  return EmitControl(stmt);
}

absl::Status ThreadPlanner::Inside(kir::Block& out, const std::function<absl::Status()>& emit) {
  kir::Block* const outer = std::exchange(b_.block_, &out);
  const absl::Status status = emit();
  b_.block_ = outer;
  return status;
}

absl::Status ThreadPlanner::EmitControl(const Stmt& stmt) {
  if (auto* op = std::get_if<SyncThreads>(&stmt.op)) {
    if (op->count == 0 && SomeCome(BarrierOpKind::kArrive)) Fence();
    return b_.EmitSync(*op, threads_);
  }
  if (auto* op = std::get_if<BarrierOp>(&stmt.op)) {
    std::vector<Expr> indices;
    for (Expr e : op->indices) {
      TILERT_ASSIGN_OR_RETURN(indices.emplace_back(), Agreed(e));
    }
    Expr operand;
    if (op->operand) {
      TILERT_ASSIGN_OR_RETURN(operand, Agreed(op->operand));
    }
    return b_.EmitBarrierOp(*op, indices, operand);
  }
  if (std::holds_alternative<Break>(stmt.op)) return b_.Emit(kir::Break{}), absl::OkStatus();
  if (std::holds_alternative<Continue>(stmt.op)) return b_.Emit(kir::Continue{}), absl::OkStatus();
  if (auto* op = std::get_if<If>(&stmt.op)) {
    kir::If branch;
    TILERT_ASSIGN_OR_RETURN(branch.cond, Agreed(op->cond));
    TILERT_RETURN_IF_ERROR(Inside(branch.then_body, [&] { return EmitBlock(op->then_body); }));
    TILERT_RETURN_IF_ERROR(Inside(branch.else_body, [&] { return EmitBlock(op->else_body); }));
    b_.Emit(std::move(branch));
  } else if (auto* op = std::get_if<For>(&stmt.op)) {
    kir::For loop{op->var, {}, {}, {}, kir::Unroll::kNo, {}};
    TILERT_ASSIGN_OR_RETURN(loop.begin, Agreed(op->begin));
    TILERT_ASSIGN_OR_RETURN(loop.end, Agreed(op->end));
    TILERT_ASSIGN_OR_RETURN(loop.step, Agreed(op->step));
    TILERT_RETURN_IF_ERROR(Inside(loop.body, [&] { return EmitBlock(op->body); }));
    b_.Emit(std::move(loop));
  } else if (auto* op = std::get_if<While>(&stmt.op)) {
    kir::While loop{b_.k_.exprs.Int(1, DType::kBool), {}};
    TILERT_RETURN_IF_ERROR(Inside(loop.body, [&]() -> absl::Status {
      TILERT_ASSIGN_OR_RETURN(const Expr cond, Agreed(op->cond));
      b_.Emit(kir::If{b_.k_.exprs.Unary(ExprOp::kNot, cond), {{kir::Break{}, stmt.loc}}, {}});
      return EmitBlock(op->body);
    }));
    b_.Emit(std::move(loop));
  }
  return absl::OkStatus();
}

// ---- subscripts of private memory

// Registers have no bounds of their own: what is not proven to lie inside is asked for.
Expr ThreadPlanner::Inside(BufferId id, absl::Span<const Expr> at, const Ranges& ranges) {
  ExprArena& exprs = b_.k_.exprs;
  Expr inside;
  const kir::Buffer& buffer = b_.k_.buffers[id];
  if (buffer.space != kir::Space::kRegister) return inside;
  for (size_t d = 0; d < at.size() && d < buffer.layout.dims.size(); ++d) {
    const int64_t extent = buffer.layout.dims[d].extent;
    const Range range = ranges.Of(at[d]);
    const auto ask = [&](ExprOp op, int64_t bound) {
      const Expr cond = exprs.Intern({op, DType::kBool, 0, 0, {at[d], exprs.Int(bound)}});
      inside = inside ? exprs.Binary(ExprOp::kAnd, inside, cond) : cond;
    };
    if (range.lo < 0) ask(ExprOp::kGe, 0);
    if (range.hi >= extent) ask(ExprOp::kLt, extent);
  }
  return inside;
}

// What a guard has seen may be another value when it is read again: the access is inside whatever is read then.
static std::vector<Expr> Clamped(ExprArena& exprs, const kir::Buffer& buffer, std::vector<Expr> at) {
  for (size_t d = 0; d < at.size() && d < buffer.layout.dims.size(); ++d) {
    bool loads = false;
    ForEachNode(exprs, at[d], [&](Expr, const ExprNode& node) { loads |= node.op == ExprOp::kLoad; });
    if (!loads) continue;
    at[d] =
        exprs.Binary(ExprOp::kMax, exprs.Binary(ExprOp::kMin, at[d], exprs.Int(buffer.layout.dims[d].extent - 1)), exprs.Int(0));
  }
  return at;
}

Expr ThreadPlanner::Guarded(Expr e, const Ranges& ranges) {
  ExprArena& exprs = b_.k_.exprs;
  return Rewrite(exprs, e, exprs, [&](Expr load, const ExprNode& node) -> Expr {
    if (node.op != ExprOp::kLoad || node.args.empty()) return {};
    const BufferId id = static_cast<BufferId>(node.i);
    const DType type = node.dtype;
    std::vector<Expr> at(node.args.begin(), node.args.end());
    if (b_.k_.buffers[id].space != kir::Space::kRegister) return {};
    for (Expr& index : at) index = Guarded(index, ranges);
    const Expr inside = Inside(id, at, ranges);
    if (!inside) return load;
    const Expr zero = IsFloat(type) ? exprs.Float(0, type) : exprs.Int(0, type);
    return exprs.Intern(
        {ExprOp::kSelect, type, 0, 0, {inside, exprs.Load(id, type, Clamped(exprs, b_.k_.buffers[id], at)), zero}});
  });
}

void ThreadPlanner::Guard(kir::Block& block, Ranges& ranges) {
  for (kir::Stmt& stmt : block) {
    kir::ForEachExpr(stmt, [&](Expr& e) { e = Guarded(e, ranges); });
    if (auto* loop = std::get_if<kir::For>(&stmt.op)) {
      const Range begin = ranges.Of(loop->begin), end = ranges.Of(loop->end), step = ranges.Of(loop->step);
      if (step.lo > 0) ranges.Bind(loop->var, LoopRange(begin, end, step));
    } else if (auto* let = std::get_if<kir::Let>(&stmt.op)) {
      if (!IsFloat(b_.k_.vars[let->var].dtype)) ranges.Bind(let->var, ranges.Of(let->value));
    }
    for (kir::Block* child : kir::ChildBlocks(stmt)) Guard(*child, ranges);
    auto* store = std::get_if<kir::Store>(&stmt.op);
    const Expr inside = store != nullptr ? Inside(store->buffer, store->indices, ranges) : Expr{};
    if (inside) {
      kir::If guarded{inside, {}, {}};
      store->indices = Clamped(b_.k_.exprs, b_.k_.buffers[store->buffer], store->indices);
      const SourceLoc loc = stmt.loc;
      guarded.then_body.push_back(std::move(stmt));
      stmt = kir::Stmt{std::move(guarded), loc};
    }
  }
}

}  // namespace tilert
