// Roles that the program itself declares: each part of the threads gets its own walk over the launch, with the statements that are its own. What stands between
// partitions is for all threads: the first part does it while the others wait. Thread regions there are run by each part, for its threads.
#include <algorithm>

#include "ir/status_util.h"
#include "lowering/plan_builder.h"
#include "lowering/tile_roles.h"

namespace tilert {
namespace {

constexpr int kMeetingNumber = 9;  // of the barrier of all parts; T.sync_threads has 1 to 8

// What a role does that says how many registers its threads need.
struct RoleNeeds {
  bool fragments = false;  // results and accumulators
  bool threads = false;    // code by thread: addresses, values on their way
};

// Warpgroups that hold no fragments give registers to those that do, where the block's threads cannot all have the most. PTX ISA "setmaxnreg".
void DivideRegisters(const Target& target, const std::vector<RoleNeeds>& needs, kir::Roles* roles) {
  constexpr int kMost = 240, kByThread = 72, kCopies = 40;
  const auto of_light = [](const RoleNeeds& n) { return n.threads ? kByThread : kCopies; };
  int warps = 0, heavy = 0, light_registers = 0;
  for (size_t i = 0; i < needs.size(); ++i) {
    const int warpgroups = roles->roles[i].warps / kWarpgroupWarps;
    if (roles->roles[i].warps % kWarpgroupWarps != 0) return;
    warps += roles->roles[i].warps;
    if (needs[i].fragments) heavy += warpgroups;
    if (!needs[i].fragments) light_registers += warpgroups * of_light(needs[i]);
  }
  const int at_launch = target.registers_per_sm / (warps * kLanes) / 8 * 8;
  if (target.family != Family::kHopper || heavy == 0 || light_registers == 0 || at_launch >= kMost) return;
  const int each = std::min(kMost, (at_launch * (warps / kWarpgroupWarps) - light_registers) / heavy / 8 * 8);
  if (each <= at_launch) return;
  for (size_t i = 0; i < needs.size(); ++i) roles->roles[i].max_registers = needs[i].fragments ? each : of_light(needs[i]);
}

}  // namespace

absl::Status PlanBuilder::EmitProgramRoles() {
  const Block& body = s_.program.launches[s_.launch].body;
  absl::Status status;
  ForEachStmt(body, [&](const Stmt& stmt) {
    auto* alloc = std::get_if<Alloc>(&stmt.op);
    if (alloc == nullptr || !status.ok()) return;
    if (s_.scope(alloc->buffer) == Scope::kShared || s_.scope(alloc->buffer) == Scope::kBarrier) status = EmitAlloc(alloc->buffer, false);
  });
  TILERT_RETURN_IF_ERROR(status);
  for (const Stmt& stmt : body) {
    for (BufferId id : BuffersWritten(stmt)) {
      if (s_.scope(id) == Scope::kShared || s_.scope(id) == Scope::kGlobal) changing_.insert(id);
    }
  }
  const int all = s_.warps;
  wgmma_ = false;
  const std::vector<RoleSpan>& parts = parts_.spans;
  for (size_t i = 0; i < parts.size(); ++i) {
    s_.warps = parts[i].warps;
    ForEachRoleStmt(s_, body, parts_, i, [&](const Stmt& stmt) { wgmma_ |= IsWgmma(stmt); });
  }
  kir::Roles roles;
  std::vector<RoleNeeds> needs(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    s_.warps = parts[i].warps;
    first_thread_ = int64_t{parts[i].first} * kLanes;
    threads_ = int64_t{parts[i].warps} * kLanes;
    writes_tiles_ = false;
    ForEachRoleStmt(s_, body, parts_, i, [&](const Stmt& stmt) {
      auto* copy = std::get_if<Copy>(&stmt.op);
      const bool outer = std::holds_alternative<For>(stmt.op) || std::holds_alternative<While>(stmt.op) || std::holds_alternative<If>(stmt.op);
      if (outer || (copy != nullptr && PanelAtBarrier(*copy) > 0)) return;
      needs[i].threads |= std::holds_alternative<ThreadRegion>(stmt.op);
      for (BufferId id : BuffersWritten({stmt.op})) {
        writes_tiles_ |= s_.scope(id) == Scope::kShared;
        needs[i].fragments |= s_.scope(id) == Scope::kFragment;
      }
    });
    kir::Role role{.name = Cat("threads_", first_thread_), .warps = parts[i].warps};
    const auto outside = buffers_;
    TILERT_RETURN_IF_ERROR(EmitPart(body, i, role.body));
    buffers_ = outside;
    roles.roles.push_back(std::move(role));
    s_.report += Cat("  threads ", first_thread_, " to ", first_thread_ + threads_ - 1, ": a role of the program\n");
  }
  DivideRegisters(s_.target, needs, &roles);
  s_.warps = all;
  k_.warps = all;
  k_.body.push_back({std::move(roles), {}});
  return absl::OkStatus();
}

// All parts come here.
void PlanBuilder::Meet() {
  FlushAsync();
  RetireAll();
  FillNow({});
  if (wgmma_ && writes_tiles_) Emit(kir::ProxyFence{});
  Emit(kir::BarSync{false, kMeetingNumber, k_.warps});
  looked_ = false;
}

// Each part looks for itself: no role may change it before all have.
bool PlanBuilder::LooksAtMemory(Expr root) const {
  bool looks = false;
  ForEachNode(s_.program.exprs, root, [&](Expr, const ExprNode& node) {
    looks |= node.op == ExprOp::kLoad && changing_.contains(static_cast<BufferId>(node.i));
  });
  return looks;
}

bool PlanBuilder::LooksAtMemory(const Stmt& stmt) const {
  bool looks = false;
  ForEachExpr(stmt, [&](Expr e) { looks |= LooksAtMemory(e); });
  return looks;
}

// What `part` does of `block`.
absl::Status PlanBuilder::EmitPart(const Block& block, size_t part, kir::Block& out) {
  kir::Block* const outer = std::exchange(block_, &out);
  auto outer_fills = std::exchange(lazy_fills_, {});
  bool met = false;  // all parts have just met: the same in each of them
  for (size_t i = 0; i < block.size(); ++i) {
    const Stmt& stmt = block[i];
    loc_ = stmt.loc;
    if (auto* alloc = std::get_if<Alloc>(&stmt.op)) {
      TILERT_RETURN_IF_ERROR(EmitPartAlloc(alloc->buffer, part));
    } else if (auto* roles = std::get_if<Roles>(&stmt.op)) {
      if (looked_) Meet();
      for (const Role& role : roles->roles) {
        if (SpanOf(s_, role) == parts_.spans[part]) TILERT_RETURN_IF_ERROR(EmitBlock(role.body, *block_));
      }
      met = i + 1 < block.size() || loops_ > 0;
      if (met) Meet();
    } else if (std::holds_alternative<ThreadRegion>(stmt.op)) {
      if (!met) Meet();
      all_meet_ = true;
      TILERT_RETURN_IF_ERROR(EmitStmt(stmt));
      all_meet_ = false;
      Meet();
      met = true;
    } else if (EachPartRuns(stmt)) {
      TILERT_RETURN_IF_ERROR(EmitPartControl(stmt, part));
      met = false;
    } else {
      const bool everybodys = EverybodyDoes(s_, stmt);
      const bool note = std::holds_alternative<Annotate>(stmt.op);
      if (std::holds_alternative<SyncThreads>(stmt.op)) {
        Meet();
        met = true;
        continue;
      }
      if (!everybodys && !note && !met) Meet();
      if (everybodys || parts_.DoneBy(s_, stmt) == part) {
        Prepare(stmt);
        TILERT_RETURN_IF_ERROR(EmitStmt(stmt));
      }
      looked_ |= everybodys && LooksAtMemory(stmt);
      if (!everybodys && !note) Meet();
      met = note ? met : !everybodys;
    }
  }
  FlushAsync();
  FillNow({});
  RetireAll();
  if (looked_ && loops_ > 0) Meet();
  lazy_fills_ = std::move(outer_fills);
  block_ = outer;
  return absl::OkStatus();
}

// Registers belong to the only part that touches them.
absl::Status PlanBuilder::EmitPartAlloc(BufferId id, size_t part) {
  const Scope scope = s_.scope(id);
  if (scope == Scope::kShared || scope == Scope::kBarrier) return absl::OkStatus();  // made already
  bool mine = scope == Scope::kVar;
  ForEachRoleStmt(s_, s_.program.launches[s_.launch].body, parts_, part,
                  [&](const Stmt& stmt) { mine |= ReadsDirectly(s_.program, stmt, id) || WritesDirectly(stmt, id); });
  return mine ? EmitAlloc(id, false) : absl::OkStatus();
}

absl::Status PlanBuilder::EmitPartControl(const Stmt& stmt, size_t part) {
  FlushAsync();
  RetireAll();
  FillNow({});
  if (auto* loop = std::get_if<For>(&stmt.op)) {
    kir::For out{loop->var, {}, {}, {}, loop->kind == ForKind::kUnrolled ? kir::Unroll::kFull : kir::Unroll::kNo, {}};
    TILERT_ASSIGN_OR_RETURN(out.begin, BlockExpr(loop->begin));
    TILERT_ASSIGN_OR_RETURN(out.end, BlockExpr(loop->end));
    TILERT_ASSIGN_OR_RETURN(out.step, BlockExpr(loop->step));
    looked_ |= LooksAtMemory(loop->begin) || LooksAtMemory(loop->end) || LooksAtMemory(loop->step);
    ++loops_;
    TILERT_RETURN_IF_ERROR(EmitPart(loop->body, part, out.body));
    --loops_;
    Emit(std::move(out));
    return absl::OkStatus();
  }
  if (auto* branch = std::get_if<If>(&stmt.op)) {
    kir::If out;
    TILERT_ASSIGN_OR_RETURN(out.cond, BlockExpr(branch->cond));
    const bool looked = looked_ |= LooksAtMemory(branch->cond);
    TILERT_RETURN_IF_ERROR(EmitPart(branch->then_body, part, out.then_body));
    const bool looked_then = std::exchange(looked_, looked);
    TILERT_RETURN_IF_ERROR(EmitPart(branch->else_body, part, out.else_body));
    looked_ |= looked_then;
    Emit(std::move(out));
    return absl::OkStatus();
  }
  if (auto* loop = std::get_if<While>(&stmt.op)) {
    return EmitWhile(*loop, [&](kir::Block& out) {
      kir::Block* const outer = std::exchange(block_, &out);
      if (LooksAtMemory(loop->cond)) Meet();
      block_ = outer;
      return EmitPart(loop->body, part, out);
    });
  }
  if (looked_) Meet();
  return EmitStmt(stmt);  // the end of an iteration, or of the loop
}

}  // namespace tilert
