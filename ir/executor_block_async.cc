// Roles as fibers, barriers, and asynchronous statements, whose effect comes at their wait.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "ir/executor_block.h"
#include "ir/int_eval.h"
#include "ir/int_math.h"
#include "ir/limits.h"
#include "ir/printer.h"
#include "ir/status_util.h"

namespace tilert::exec {
namespace {

constexpr int kWarpLanes = 32;
constexpr size_t kAsyncPart = 0;

std::string NameOf(const Program& program, const Strand& strand) {
  const std::string range = Cat("role [", strand.first_thread, ", ", strand.first_thread + strand.threads, ")");
  if (strand.waits_at == nullptr) return range;
  const std::string at = PrintLoc(program, strand.waits_at->loc);
  return Cat(range, " waits at ", at.empty() ? "" : at + ": ", PrintStmtHead(program, *strand.waits_at));
}

}  // namespace

// ---- roles

absl::Status BlockRunner::RunRoles(const Roles& op, const Step& step, Context& c) {
  Eval(step, c);
  std::vector<Strand> strands(op.roles.size());
  for (size_t i = 0; i < strands.size(); ++i) {
    Strand& s = strands[i];
    s.first_thread = static_cast<int>(Result(step, 2 * i, 1)->i);
    s.threads = static_cast<int>(Result(step, 2 * i + 1, 1)->i) - s.first_thread;
    s.part = i + 1;
    s.clock.assign(strands.size() + 1, 0);
    s.clock[kAsyncPart] = async_clock_;
    s.clock[s.part] = 1;
    s.fiber = std::make_unique<Fiber>([this, &s, &body = step.blocks[i]] {
      ResizeLanes(1);
      Context own;
      own.active.assign(1, 1);
      s.status = RunSteps(body, own);
      if (s.status.ok()) s.status = Drain(s.gemms, 0);
      if (s.status.ok()) s.status = Drain(s.copies, 0);
    });
    if (!s.fiber->ok()) return absl::ResourceExhaustedError("no memory for the stack of a role");
  }
  memory_.BeginParts();
  const absl::Status status = RunStrands(strands);
  memory_.EndParts();
  return status;
}

// Runs one strand after the other, each until it waits for something that has not come, until all have ended.
absl::Status BlockRunner::RunStrands(std::vector<Strand>& strands) {
  size_t next = 0;
  absl::Status first_error;
  while (true) {
    std::vector<size_t> able;
    bool left = false;
    for (size_t k = 0; k < strands.size(); ++k) {
      const size_t i = (next + k) % strands.size();
      if (strands[i].fiber->done()) continue;
      left = true;
      if (ending_ || !strands[i].ready || strands[i].ready()) able.push_back(i);
    }
    if (!left) return first_error;
    if (able.empty()) {
      first_error = Deadlock(strands);
      blamed_ = ending_ = true;  // it says where everybody is
      continue;
    }
    const size_t chosen = able[state_.options.seed == 0 ? 0 : random_() % able.size()];
    Switch(strands[chosen]);
    next = chosen + 1;
    if (strands[chosen].fiber->done() && !strands[chosen].status.ok() && first_error.ok()) {
      first_error = strands[chosen].status;
      ending_ = true;
    }
  }
}

void BlockRunner::Switch(Strand& strand) {
  Strand* const outer = std::exchange(strand_, &strand);
  memory_.Exchange(&strand.lane_races);
  memory_.SetPart(strand.part, &strand.clock);
  strand.fiber->Resume();
  memory_.Exchange(&strand.lane_races);
  strand_ = outer;
}

absl::Status BlockRunner::Deadlock(const std::vector<Strand>& strands) const {
  std::vector<std::string> lines;
  for (const Strand& s : strands) {
    if (!s.fiber->done()) lines.push_back(Cat(NameOf(state_.program, s), s.wants ? " for " + s.wants() : ""));
  }
  return absl::FailedPreconditionError(Cat("deadlock in block ", block_, ": ", absl::StrJoin(lines, "; ")));
}

// Returns once `ready` holds. A strand that is alone waits in vain for what has not come.
absl::Status BlockRunner::WaitFor(const Stmt& stmt, std::function<bool()> ready, std::function<std::string()> wants) {
  if (ready()) return absl::OkStatus();
  if (strand_->fiber == nullptr) {
    return absl::FailedPreconditionError(
        Cat("deadlock in block ", block_, ": the block waits for ", wants(), ", and nobody else runs"));
  }
  Strand& strand = *strand_;
  strand.waits_at = &stmt;
  strand.ready = std::move(ready);
  strand.wants = std::move(wants);
  strand.fiber->Yield();
  strand.waits_at = nullptr;
  strand.ready = nullptr;
  strand.wants = nullptr;
  return ending_ ? absl::CancelledError("another role failed") : absl::OkStatus();
}

// What others learn of this strand from now on is newer than what they know already.
void BlockRunner::Tick() {
  if (strand_->part != kAsyncPart) ++strand_->clock[strand_->part];
}

// ---- threads that meet

// Between tile statements a block, or role, is in step anyway.
absl::Status BlockRunner::Sync(const SyncThreads& op, const Stmt& stmt, const Context& c) {
  if (c.mode != Mode::kThreads) {
    const bool meets_others = op.count > static_cast<uint32_t>(strand_->threads) && strand_->fiber != nullptr;
    return meets_others ? SyncGroup(op, stmt) : absl::OkStatus();
  }
  const auto here = std::count(c.active.begin(), c.active.end(), 1);
  const int64_t wanted = op.count == 0 ? c.n : op.count;
  if (here != wanted) {
    return absl::FailedPreconditionError(Cat("only some threads of the block reach this barrier: ", here, " of ", wanted));
  }
  memory_.BeginLaneRaces(/*threads=*/true);
  return absl::OkStatus();
}

absl::Status BlockRunner::SyncGroup(const SyncThreads& op, const Stmt& stmt) {
  Group& group = groups_[op.barrier];
  group.arrived += static_cast<uint32_t>(strand_->threads);
  Join(&group.arriving, strand_->clock);
  Tick();
  if (group.arrived > op.count)
    return absl::FailedPreconditionError(Cat("more than ", op.count, " threads reach barrier ", op.barrier));
  const int64_t phase = group.phases;
  if (group.arrived == op.count) {
    group.arrived = 0;
    ++group.phases;
    Join(&group.completed, group.arriving);
  }
  const uint32_t number = op.barrier, count = op.count;
  TILERT_RETURN_IF_ERROR(WaitFor(
      stmt, [this, number, phase] { return groups_[number].phases > phase; },
      [this, number, count] {
        return Cat("the other threads of barrier ", number, ": ", groups_[number].arrived, " of ", count, " are there");
      }));
  Join(&strand_->clock, groups_[number].completed);
  return absl::OkStatus();
}

absl::Status BlockRunner::RunShuffle(const Shuffle& op, const Step& step, const Context& c) {
  Eval(step, c);
  std::vector<Value> values(Result(step, 0, c.n), Result(step, 0, c.n) + c.n);
  const Value* lanes = Result(step, 1, c.n);
  Value* var = VarOf(op.var, c);
  for (int k = 0; k < c.n; ++k) {
    if (!c.active[static_cast<size_t>(k)]) continue;
    const int64_t from = k / kWarpLanes * kWarpLanes + FloorModInt(lanes[k].i, kWarpLanes);
    // A lane that is not there gives an unspecified value: here its own.
    const bool there = from < c.n && c.active[static_cast<size_t>(from)];
    if (from < c.n && !there)
      return absl::FailedPreconditionError(Cat("a shuffle reads from lane ", from % kWarpLanes, ", which does not take part"));
    var[k] = values[static_cast<size_t>(there ? from : k)];
  }
  return absl::OkStatus();
}

// ---- barriers

// The barrier that roots [root, root + count) of the statement name; with none of them the first.
absl::StatusOr<Barrier*> BlockRunner::BarrierAt(BufferId id, const Step& step, size_t root, size_t count, int n, int lane) {
  std::vector<Barrier>& array = barriers_[id];
  const absl::Span<const int64_t> shape = memory_.view(id).tensor.shape;
  int64_t at = 0;
  for (size_t d = 0; d < count; ++d) {
    const int64_t i = Result(step, root + d, n)[lane].i;
    if (i < 0 || i >= shape[d]) {
      return InvalidArgument("barrier '", state_.program.buffers[id].name, "' has no element ", i, " in dimension ", d,
                             ", whose extent is ", shape[d]);
    }
    at = at * shape[d] + i;
  }
  if (at >= static_cast<int64_t>(array.size()))
    return InvalidArgument("barrier '", state_.program.buffers[id].name, "' does not exist here");
  return &array[static_cast<size_t>(at)];
}

absl::Status BlockRunner::RunBarrierOp(const BarrierOp& op, const Step& step, const Context& c) {
  Eval(step, c);
  const size_t rank = op.indices.size();
  const Barrier* passed = nullptr;
  const bool all = std::count(c.active.begin(), c.active.end(), 1) == c.n;
  for (int lane = 0; lane < c.n; ++lane) {
    if (!c.active[static_cast<size_t>(lane)]) continue;
    if (lane > 0) Eval(step, c);  // another role may have run
    TILERT_ASSIGN_OR_RETURN(Barrier* const barrier, BarrierAt(op.barrier, step, 0, rank, c.n, lane));
    if (op.kind == BarrierOpKind::kArrive) {
      const int threads = c.mode == Mode::kThreads ? 1 : strand_->threads;
      if (c.mode == Mode::kThreads) {
        const std::vector<int64_t> known = memory_.KnownTo(c.first_agent + lane);
        barrier->threads_arriving.insert(barrier->threads_arriving.end(), known.begin(), known.end());
      }
      TILERT_RETURN_IF_ERROR(Arrive(*barrier, static_cast<uint32_t>(threads)));
      continue;
    }
    const int64_t operand = Result(step, rank, c.n)[lane].i;
    if (op.kind == BarrierOpKind::kExpectTx) {
      if (operand < 0 || operand > kMaxPhaseCount - barrier->announced)
        return InvalidArgument("expect_tx of ", operand, " bytes: a phase counts 0 to ", kMaxPhaseCount);
      barrier->announced += operand;
      TILERT_RETURN_IF_ERROR(CompletePhase(*barrier));
      continue;
    }
    const int64_t parity = FloorModInt(operand, 2);
    const auto wants = [this, &op, barrier, parity] {
      return Cat("a phase of parity ", parity, " of '", state_.program.buffers[op.barrier].name, "'[",
                 barrier - barriers_[op.barrier].data(), "] (", barrier->phases, " phases are complete; of this one ",
                 barrier->count - barrier->left, " of ", barrier->count, " arrivals have come",
                 barrier->announced > 0 ? Cat(", and ", barrier->announced, " bytes are missing") : "", ")");
    };
    // The phase of parity p is complete while the current one has the other parity.
    TILERT_RETURN_IF_ERROR(WaitFor(
        *step.stmt, [barrier, parity] { return (barrier->phases + 1) % 2 == parity; }, wants));
    Join(&strand_->clock, barrier->completed);
    if (c.mode == Mode::kThreads && !all) memory_.OrderLane(c.first_agent + lane, barrier->threads_arrived);
    if (c.mode == Mode::kThreads && all && barrier != passed) memory_.OrderLanes(barrier->threads_arrived);
    passed = barrier;
  }
  return absl::OkStatus();
}

absl::Status BlockRunner::Arrive(Barrier& barrier, uint32_t arrivals) {
  Join(&barrier.arriving, strand_->clock);
  Tick();
  for (; arrivals > 0; --arrivals) {
    if (barrier.left == 0) return absl::FailedPreconditionError("more arrivals than a phase of this barrier counts");
    --barrier.left;
    TILERT_RETURN_IF_ERROR(CompletePhase(barrier));
  }
  return absl::OkStatus();
}

// Once all have arrived and all bytes been announced, those come: copies have their effect as late as they may.
absl::Status BlockRunner::CompletePhase(Barrier& barrier) {
  if (barrier.left == 0 && barrier.by_hand && barrier.announced < 0) {
    return absl::FailedPreconditionError(
        Cat("copies bring ", -barrier.announced,
            " bytes more than this phase of the barrier has announced when its last arrival has come"));
  }
  if (barrier.left != 0 || (barrier.by_hand && barrier.announced != 0)) return absl::OkStatus();
  for (AsyncOp& copy : std::exchange(barrier.copies, {})) {
    TILERT_RETURN_IF_ERROR(Finish(std::move(copy)));
    if (barrier.arriving.empty()) barrier.arriving.resize(1);
    barrier.arriving[kAsyncPart] = async_clock_;
  }
  Join(&barrier.completed, barrier.arriving);
  ++barrier.phases;
  barrier.left = barrier.count;
  barrier.threads_arrived = std::exchange(barrier.threads_arriving, {});
  return absl::OkStatus();
}

// ---- asynchronous statements

absl::Status BlockRunner::Issue(const Step& step, const Context& c) {
  Eval(step, c);
  AsyncOp issued;
  std::vector<std::function<absl::Status()>> runs;
  const auto* copy = std::get_if<Copy>(&step.stmt->op);
  const auto* gemm = std::get_if<Gemm>(&step.stmt->op);
  Barrier* barrier = nullptr;
  for (int lane = 0; lane < c.n; ++lane) {
    if (!c.active[static_cast<size_t>(lane)]) continue;
    size_t root = 0;
    if (copy != nullptr) {
      TILERT_ASSIGN_OR_RETURN(const Box src, NextBox(copy->src, step, c, lane, &root));
      TILERT_ASSIGN_OR_RETURN(const Box dst, NextBox(copy->dst, step, c, lane, &root));
      Value fill = memory_.view(src.buffer).outside;
      if (copy->fill)
        fill = ConvertValue(Result(step, root++, c.n)[lane], RootType(copy->fill), state_.program.buffers[src.buffer].dtype);
      issued.boxes.insert(issued.boxes.end(), {{src, false}, {dst, true}});
      issued.bytes += MulIndex(dst.size(), DTypeBytes(state_.program.buffers[dst.buffer].dtype));
      runs.emplace_back([this, src, dst, fill] { return tile_.Copy(src, dst, fill); });
      if (copy->barrier != kNoId) {
        TILERT_ASSIGN_OR_RETURN(barrier, BarrierAt(copy->barrier, step, root, copy->barrier_indices.size(), c.n, lane));
      }
    } else {
      TILERT_ASSIGN_OR_RETURN(const Box a, NextBox(gemm->a, step, c, lane, &root));
      TILERT_ASSIGN_OR_RETURN(const Box b, NextBox(gemm->b, step, c, lane, &root));
      TILERT_ASSIGN_OR_RETURN(const Box acc, NextBox(gemm->c, step, c, lane, &root));
      issued.boxes.insert(issued.boxes.end(), {{a, false}, {b, false}, {acc, true, true}});
      runs.emplace_back([this, gemm, a, b, acc] { return tile_.Gemm(*gemm, a, b, acc); });
      break;  // by whole warpgroups together: one gemm
    }
  }
  memory_.Hold(issued.boxes);
  issued.run = [runs = std::move(runs)] {
    for (const auto& run : runs) TILERT_RETURN_IF_ERROR(run());
    return absl::OkStatus();
  };
  issued.issued = strand_->clock;
  if (barrier == nullptr) {
    (copy != nullptr ? strand_->copies : strand_->gemms).push_back(std::move(issued));
    return absl::OkStatus();
  }
  Tick();
  if (barrier->by_hand) barrier->announced -= issued.bytes;
  barrier->copies.push_back(std::move(issued));
  return CompletePhase(*barrier);
}

// The effect of an asynchronous statement, on behalf of nobody in particular.
absl::Status BlockRunner::Finish(AsyncOp op) {
  memory_.Release(op.boxes);
  if (op.issued.empty()) op.issued.resize(1);
  op.issued[kAsyncPart] = ++async_clock_;
  Memory::LaneRaces none;
  memory_.Exchange(&none);
  memory_.SetPart(kAsyncPart, &op.issued);
  memory_.SetChecksHeld(false);  // what overlaps was found when the later one was issued
  const absl::Status status = op.run();
  memory_.SetChecksHeld(true);
  memory_.SetPart(strand_->part, &strand_->clock);
  memory_.Exchange(&none);
  return status;
}

absl::Status BlockRunner::Drain(std::deque<AsyncOp>& groups, size_t pending) {
  while (groups.size() > pending) {
    AsyncOp oldest = std::move(groups.front());
    groups.pop_front();
    TILERT_RETURN_IF_ERROR(Finish(std::move(oldest)));
    if (strand_->part == kAsyncPart) continue;
    Clock seen;
    seen.resize(1);
    seen[kAsyncPart] = async_clock_;
    Join(&strand_->clock, seen);
  }
  return absl::OkStatus();
}

}  // namespace tilert::exec
