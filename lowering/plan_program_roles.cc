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

absl::Status PlanBuilder::EmitProgramRoles(const std::vector<RoleSpan>& parts) {
  const Block& body = s_.program.launches[s_.launch].body;
  absl::Status status;
  ForEachStmt(body, [&](const Stmt& stmt) {
    auto* alloc = std::get_if<Alloc>(&stmt.op);
    if (alloc == nullptr || !status.ok()) return;
    if (s_.scope(alloc->buffer) == Scope::kShared || s_.scope(alloc->buffer) == Scope::kBarrier) status = EmitAlloc(alloc->buffer, false);
  });
  TILERT_RETURN_IF_ERROR(status);
  const int all = s_.warps;
  wgmma_ = false;
  for (size_t i = 0; i < parts.size(); ++i) {
    s_.warps = parts[i].warps;
    ForEachRoleStmt(s_, body, parts[i], i == 0, [&](const Stmt& stmt) { wgmma_ |= IsWgmma(stmt); });
  }
  kir::Roles roles;
  std::vector<RoleNeeds> needs(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    s_.warps = parts[i].warps;
    first_thread_ = int64_t{parts[i].first} * kLanes;
    threads_ = int64_t{parts[i].warps} * kLanes;
    writes_tiles_ = false;
    ForEachRoleStmt(s_, body, parts[i], i == 0, [&](const Stmt& stmt) {
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
    TILERT_RETURN_IF_ERROR(EmitPart(body, parts[i], i == 0, role.body));
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
}

// What `part` does of `block`.
absl::Status PlanBuilder::EmitPart(const Block& block, const RoleSpan& part, bool first, kir::Block& out) {
  kir::Block* const outer = std::exchange(block_, &out);
  auto outer_fills = std::exchange(lazy_fills_, {});
  bool met = false;  // all parts have just met: the same in each of them
  for (size_t i = 0; i < block.size(); ++i) {
    const Stmt& stmt = block[i];
    loc_ = stmt.loc;
    if (auto* alloc = std::get_if<Alloc>(&stmt.op)) {
      TILERT_RETURN_IF_ERROR(EmitPartAlloc(alloc->buffer, part, first));
    } else if (auto* roles = std::get_if<Roles>(&stmt.op)) {
      for (const Role& role : roles->roles) {
        if (SpanOf(s_, role) == part) TILERT_RETURN_IF_ERROR(EmitBlock(role.body, *block_));
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
      TILERT_RETURN_IF_ERROR(EmitPartControl(stmt, part, first));
      met = false;
    } else {
      // Values, and what each thread does for itself, are everybody's.
      const bool everybodys = std::holds_alternative<Let>(stmt.op) || std::holds_alternative<BarrierOp>(stmt.op) || std::holds_alternative<AsyncWait>(stmt.op) ||
                              std::holds_alternative<Assert>(stmt.op) || std::holds_alternative<SyncThreads>(stmt.op) ||
                              (std::holds_alternative<Store>(stmt.op) && s_.scope(std::get<Store>(stmt.op).buffer) == Scope::kVar);
      const bool note = std::holds_alternative<Annotate>(stmt.op);
      if (std::holds_alternative<SyncThreads>(stmt.op)) {
        Meet();
        met = true;
        continue;
      }
      if (!everybodys && !note && !met) Meet();
      if (first || everybodys) {
        Prepare(stmt);
        TILERT_RETURN_IF_ERROR(EmitStmt(stmt));
      }
      if (!everybodys && !note) Meet();
      met = note ? met : !everybodys;
    }
  }
  FlushAsync();
  FillNow({});
  RetireAll();
  lazy_fills_ = std::move(outer_fills);
  block_ = outer;
  return absl::OkStatus();
}

// Registers belong to the only part that touches them.
absl::Status PlanBuilder::EmitPartAlloc(BufferId id, const RoleSpan& part, bool first) {
  const Scope scope = s_.scope(id);
  if (scope == Scope::kShared || scope == Scope::kBarrier) return absl::OkStatus();  // made already
  bool mine = false, others = false;
  const Block& body = s_.program.launches[s_.launch].body;
  const auto touches = [&](const Stmt& stmt) { return ReadsDirectly(s_.program, stmt, id) || WritesDirectly(stmt, id); };
  ForEachRoleStmt(s_, body, part, first, [&](const Stmt& stmt) { mine |= touches(stmt); });
  if (!mine) {
    if (scope == Scope::kVar) return EmitAlloc(id, false);
    return absl::OkStatus();
  }
  TILERT_ASSIGN_OR_RETURN(const std::vector<RoleSpan> parts, ProgramRoles(s_));
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == part) continue;
    ForEachRoleStmt(s_, body, parts[i], i == 0, [&](const Stmt& stmt) { others |= touches(stmt); });
  }
  if (others && scope == Scope::kFragment) {
    return absl::UnimplementedError(Cat("fragment '", s_.buffer(id).name, "' is spread over the threads of one role and used by another", Where(s_.program, loc_),
                                        "; pass it through shared memory"));
  }
  return EmitAlloc(id, false);
}

absl::Status PlanBuilder::EmitPartControl(const Stmt& stmt, const RoleSpan& part, bool first) {
  FlushAsync();
  RetireAll();
  FillNow({});
  if (auto* loop = std::get_if<For>(&stmt.op)) {
    kir::For out{loop->var, {}, {}, {}, loop->kind == ForKind::kUnrolled ? kir::Unroll::kFull : kir::Unroll::kNo, {}};
    TILERT_ASSIGN_OR_RETURN(out.begin, BlockExpr(loop->begin));
    TILERT_ASSIGN_OR_RETURN(out.end, BlockExpr(loop->end));
    TILERT_ASSIGN_OR_RETURN(out.step, BlockExpr(loop->step));
    ++loops_;
    TILERT_RETURN_IF_ERROR(EmitPart(loop->body, part, first, out.body));
    --loops_;
    Emit(std::move(out));
    return absl::OkStatus();
  }
  if (auto* branch = std::get_if<If>(&stmt.op)) {
    kir::If out;
    TILERT_ASSIGN_OR_RETURN(out.cond, BlockExpr(branch->cond));
    TILERT_RETURN_IF_ERROR(EmitPart(branch->then_body, part, first, out.then_body));
    TILERT_RETURN_IF_ERROR(EmitPart(branch->else_body, part, first, out.else_body));
    Emit(std::move(out));
    return absl::OkStatus();
  }
  if (auto* loop = std::get_if<While>(&stmt.op)) {
    return EmitWhile(*loop, [&](kir::Block& out) {
      kir::Block* const outer = std::exchange(block_, &out);
      if (LoadsFrom(s_.program, loop->cond, Scope::kShared)) Meet();  // all have seen the condition before it changes
      block_ = outer;
      return EmitPart(loop->body, part, first, out);
    });
  }
  return EmitStmt(stmt);  // the end of an iteration, or of the loop
}

}  // namespace tilert
