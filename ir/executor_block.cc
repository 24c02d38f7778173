// Control flow of a block. Statements run for a set of lanes in lockstep, under a mask: one lane for the whole block, a batch of
// points of a parallel loop, or all threads of a thread region. Lockstep is one of the orders that the program allows.
#include "ir/executor_block.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "ir/int_eval.h"
#include "ir/int_math.h"
#include "ir/status_util.h"

namespace tilert::exec {
namespace {

constexpr int kBatch = 256;  // points of a parallel loop that run together

}  // namespace

bool BlockRunner::Context::any() const {
  return std::any_of(active.begin(), active.end(), [](uint8_t a) { return a != 0; });
}

BlockRunner::BlockRunner(LaunchState* state)
    : state_(*state),
      memory_(state->program, state->tensors, state->options, &state->shared),
      tile_(&memory_, state->options),
      block_vars_(state->program.vars.size()) {
  ResizeLanes(1);
}

void BlockRunner::ResizeLanes(int n) {
  const size_t lanes = static_cast<size_t>(n);
  std::vector<Value>& regs = strand_->regs;
  if (regs.size() < state_.plan.max_regs * lanes) regs.resize(state_.plan.max_regs * lanes);
  strand_->lane_vars.resize(static_cast<size_t>(state_.plan.lane_slots) * lanes);
}

absl::Status BlockRunner::Run(int64_t block) {
  block_ = block;
  blamed_ = ending_ = false;
  safe_before_.clear();
  memory_.StartBlock(block);
  barriers_.clear();
  groups_.clear();
  async_clock_ = 0;
  main_.threads = state_.threads;
  main_.copies.clear();
  main_.gemms.clear();
  if (state_.options.seed != 0) random_.seed(state_.options.seed + static_cast<uint64_t>(block));
  const uint64_t allowed = state_.options.max_steps == 0 ? UINT64_MAX : state_.options.max_steps;
  const uint64_t before = allowed - std::min(allowed, state_.steps.load(std::memory_order_relaxed));
  steps_left_ = before;
  TILERT_RETURN_IF_ERROR(CountStep());  // a block without statements counts too
  const Launch& launch = *state_.plan.launch;
  for (size_t d = 0; d < launch.block_vars.size(); ++d) {
    block_vars_[launch.block_vars[d]].i = block % state_.grid[d];
    block /= state_.grid[d];
  }
  Context c;
  c.active.assign(1, 1);
  TILERT_RETURN_IF_ERROR(RunSteps(state_.plan.body, c));
  TILERT_RETURN_IF_ERROR(Drain(main_.gemms, 0));
  state_.steps.fetch_add(before - steps_left_, std::memory_order_relaxed);
  return Drain(main_.copies, 0);
}

// Safe values hold to the end of the statements that they stand among.
absl::Status BlockRunner::RunSteps(const Steps& steps, Context& c) {
  const size_t annotated = safe_before_.size();
  absl::Status status;
  for (const Step& step : steps) {
    if (!c.any() || !status.ok()) break;
    status = RunStep(step, c);
  }
  for (; safe_before_.size() > annotated; safe_before_.pop_back())
    memory_.SetOutside(safe_before_.back().first, safe_before_.back().second);
  return status;
}

absl::Status BlockRunner::CountStep() {
  if (state_.stop.load(std::memory_order_relaxed)) return absl::CancelledError("another block failed");
  if (steps_left_-- != 0) return absl::OkStatus();
  steps_left_ = 0;
  return absl::ResourceExhaustedError(
      Cat("the blocks have executed the ", state_.options.max_steps,
          " statements that they may; a grid or a loop is longer than a CPU can run"));
}

absl::Status BlockRunner::RunStep(const Step& step, Context& c) {
  absl::Status status = CountStep();
  if (status.ok()) status = Dispatch(step, c);
  if (status.ok() && !memory_.ok()) status = memory_.TakeError();
  if (status.ok() || blamed_) return status;
  blamed_ = true;  // the statements around the one that failed add nothing
  return Blame(state_.program, *step.stmt, status);
}

absl::Status BlockRunner::Dispatch(const Step& step, Context& c) {
  return std::visit(Overloaded{
                        [&](const auto&) { return RunTile(step, c); },
                        [&](const Alloc& s) { return RunAlloc(s, c); },
                        [&](const Copy& s) { return s.is_async ? Issue(step, c) : RunTile(step, c); },
                        [&](const Gemm& s) { return s.is_async ? Issue(step, c) : RunTile(step, c); },
                        [&](const Parallel& s) { return RunParallel(s, step, c); },
                        [&](const For& s) { return RunFor(s, step, c); },
                        [&](const While&) { return RunWhile(step, c); },
                        [&](const If&) { return RunIf(step, c); },
                        [&](const Break&) { return Leave(c, false), absl::OkStatus(); },
                        [&](const Continue&) { return Leave(c, true), absl::OkStatus(); },
                        [&](const Let&) { return RunElement(step, c); },
                        [&](const Store&) { return RunElement(step, c); },
                        [&](const Atomic&) { return RunElement(step, c); },
                        [&](const Annotate& s) { return RunAnnotate(s, step, c); },
                        [&](const Print& s) { return RunPrint(s, step, c); },
                        [&](const Assert& s) { return RunAssert(s, step, c); },
                        [&](const ThreadRegion& s) { return RunThreads(s, step); },
                        [&](const SyncThreads& s) { return Sync(s, *step.stmt, c); },
                        [&](const Shuffle& s) { return RunShuffle(s, step, c); },
                        [&](const Roles& s) { return RunRoles(s, step, c); },
                        [&](const BarrierOp& s) { return RunBarrierOp(s, step, c); },
                        [&](const AsyncWait& s) { return Drain(s.gemm ? strand_->gemms : strand_->copies, s.pending); },
                    },
                    step.stmt->op);
}

void BlockRunner::Eval(const Step& step, const Context& c) {
  Evaluate(step.code, {c.lanes(), &memory_, block_vars_.data(), strand_->lane_vars.data(), strand_->regs.data()});
}

Value* BlockRunner::VarOf(VarId var, const Context& c) {
  if (c.mode == Mode::kBlock) return &block_vars_[var];
  return strand_->lane_vars.data() + static_cast<size_t>(state_.plan.slot_of[var]) * static_cast<size_t>(c.n);
}

absl::Status BlockRunner::RunIf(const Step& step, Context& c) {
  Eval(step, c);
  const Value* cond = Result(step, 0, c.n);
  Mask otherwise = c.active;
  for (size_t k = 0; k < otherwise.size(); ++k) {
    const bool holds = cond[k].i != 0;
    otherwise[k] &= !holds;
    c.active[k] &= holds;
  }
  TILERT_RETURN_IF_ERROR(RunSteps(step.blocks[0], c));
  std::swap(c.active, otherwise);
  TILERT_RETURN_IF_ERROR(RunSteps(step.blocks[1], c));
  for (size_t k = 0; k < otherwise.size(); ++k) c.active[k] |= otherwise[k];
  return absl::OkStatus();
}

// Takes the active lanes out of the rest of the loop's body, and with a break out of the loop.
void BlockRunner::Leave(Context& c, bool to_next_iteration) {
  for (size_t k = 0; k < c.active.size(); ++k) {
    if (to_next_iteration && c.loop != nullptr) c.loop->continued[k] |= c.active[k];
    c.active[k] = 0;
  }
}

// One iteration: afterwards the active lanes are those that go on.
absl::Status BlockRunner::RunBody(const Steps& body, Context& c) {
  Loop loop{Mask(c.active.size(), 0)};
  Loop* const outer = std::exchange(c.loop, &loop);
  const absl::Status status = RunSteps(body, c);
  c.loop = outer;
  for (size_t k = 0; k < c.active.size(); ++k) c.active[k] |= loop.continued[k];
  return status;
}

absl::Status BlockRunner::RunFor(const For& op, const Step& step, Context& c) {
  Eval(step, c);
  const size_t n = static_cast<size_t>(c.n);
  absl::InlinedVector<int64_t, 3> bounds;  // next value, end, step of each lane
  for (size_t root = 0; root < 3; ++root) {
    for (size_t k = 0; k < n; ++k) bounds.push_back(Result(step, root, c.n)[k].i);
  }
  const Mask entered = c.active;
  const DType type = state_.program.vars[op.var].dtype;
  while (true) {
    Value* var = VarOf(op.var, c);
    for (size_t k = 0; k < n; ++k) {
      const int64_t value = bounds[k], end = bounds[n + k], stride = bounds[2 * n + k];
      if (c.active[k] && stride == 0) return InvalidArgument("the loop's step is 0");
      c.active[k] &= stride > 0 ? value < end : value > end;
      if (!c.active[k]) continue;
      var[k].i = WrapInt(value, type);
      bounds[k] = AddIndex(value, stride);
    }
    if (!c.any()) break;
    TILERT_RETURN_IF_ERROR(RunBody(step.blocks[0], c));
    TILERT_RETURN_IF_ERROR(CountStep());
  }
  c.active = entered;
  return absl::OkStatus();
}

absl::Status BlockRunner::RunWhile(const Step& step, Context& c) {
  const Mask entered = c.active;
  while (true) {
    Eval(step, c);
    const Value* cond = Result(step, 0, c.n);
    for (size_t k = 0; k < c.active.size(); ++k) c.active[k] &= cond[k].i != 0;
    if (!c.any()) break;
    TILERT_RETURN_IF_ERROR(RunBody(step.blocks[0], c));
    TILERT_RETURN_IF_ERROR(CountStep());
  }
  c.active = entered;
  return absl::OkStatus();
}

absl::Status BlockRunner::RunParallel(const Parallel& op, const Step& step, Context& c) {
  Eval(step, c);
  if (c.mode != Mode::kBlock) return RunNestedPoints(op, step, c);
  std::vector<int64_t> extents;
  for (size_t d = 0; d < op.extents.size(); ++d) extents.push_back(std::max<int64_t>(Result(step, d, 1)->i, 0));
  memory_.BeginLaneRaces(/*threads=*/false);
  const absl::Status status = RunPoints(op, step, extents);
  memory_.EndLaneRaces();
  ResizeLanes(1);
  return status;
}

// Points in row-major order, kBatch at a time; the batches in an order drawn from the seed.
absl::Status BlockRunner::RunPoints(const Parallel& op, const Step& step, const std::vector<int64_t>& extents) {
  const int64_t total = std::accumulate(extents.begin(), extents.end(), int64_t{1}, MulIndex);
  const int64_t batches = (total - 1) / kBatch + 1;
  int64_t shift = 0;
  if (state_.options.seed != 0 && batches > 1) {
    shift = static_cast<int64_t>(std::mt19937_64(state_.options.seed + static_cast<uint64_t>(block_))() %
                                 static_cast<uint64_t>(batches));
  }
  Context c;
  c.mode = Mode::kPoints;
  for (int64_t batch = 0; total > 0 && batch < batches; ++batch) {
    const int64_t first = (batch + shift) % batches * kBatch;
    c.n = static_cast<int>(std::min<int64_t>(kBatch, total - first));
    c.first_agent = first;
    c.active.assign(static_cast<size_t>(c.n), 1);
    ResizeLanes(c.n);
    for (int k = 0; k < c.n; ++k) {
      int64_t rest = first + k;
      for (size_t d = extents.size(); d-- > 0;) {
        VarOf(op.vars[d], c)[k].i = rest % extents[d];
        rest /= extents[d];
      }
    }
    TILERT_RETURN_IF_ERROR(CountStep());
    TILERT_RETURN_IF_ERROR(RunSteps(step.blocks[0], c));
  }
  return absl::OkStatus();
}

// A parallel loop inside lanes: each lane runs its own points one after another.
absl::Status BlockRunner::RunNestedPoints(const Parallel& op, const Step& step, Context& c) {
  const size_t n = static_cast<size_t>(c.n), rank = op.extents.size();
  std::vector<int64_t> extents(rank * n), totals(n, 1);
  for (size_t d = 0; d < rank; ++d) {
    for (size_t k = 0; k < n; ++k) {
      extents[d * n + k] = std::max<int64_t>(Result(step, d, c.n)[k].i, 0);
      totals[k] = MulIndex(totals[k], extents[d * n + k]);
    }
  }
  const Mask entered = c.active;
  for (int64_t point = 0;; ++point) {
    for (size_t k = 0; k < n; ++k) {
      c.active[k] = entered[k] && point < totals[k];
      int64_t rest = point;
      for (size_t d = rank; c.active[k] && d-- > 0;) {
        VarOf(op.vars[d], c)[k].i = rest % extents[d * n + k];
        rest /= extents[d * n + k];
      }
    }
    if (!c.any()) break;
    TILERT_RETURN_IF_ERROR(CountStep());
    TILERT_RETURN_IF_ERROR(RunSteps(step.blocks[0], c));
  }
  c.active = entered;
  return absl::OkStatus();
}

absl::Status BlockRunner::RunThreads(const ThreadRegion& op, const Step& step) {
  Context c;
  c.mode = Mode::kThreads;
  c.n = strand_->threads;
  c.first_agent = c.first_lane = strand_->first_thread;
  c.active.assign(static_cast<size_t>(c.n), 1);
  ResizeLanes(c.n);
  for (int k = 0; k < c.n; ++k) VarOf(op.thread, c)[k].i = strand_->first_thread + k;
  memory_.BeginLaneRaces(/*threads=*/true);
  const absl::Status status = RunSteps(step.blocks[0], c);
  memory_.EndLaneRaces();
  ResizeLanes(1);
  return status;
}

// Memory of threads: one copy a thread of the block, so that a thread finds its own by its number wherever it is.
absl::Status BlockRunner::RunAlloc(const Alloc& op, const Context& c) {
  const Buffer& buffer = state_.program.buffers[op.buffer];
  if (buffer.scope == Scope::kBarrier) {
    int64_t count = 1;
    for (int64_t extent : memory_.view(op.buffer).tensor.shape) count = MulIndex(count, extent);
    TILERT_RETURN_IF_ERROR(memory_.Charge(op.buffer, MulIndex(count, sizeof(Barrier))));
    const Barrier fresh{buffer.arrive_count, buffer.arrive_count, 0, 0, state_.plan.by_hand[op.buffer]};
    barriers_[op.buffer].assign(static_cast<size_t>(std::max<int64_t>(count, 1)), fresh);
    return absl::OkStatus();
  }
  if (c.mode == Mode::kPoints) return memory_.Allocate(op.buffer, c.n);
  return memory_.Allocate(op.buffer, c.mode == Mode::kThreads || state_.plan.thread_private[op.buffer] ? state_.threads : 0);
}

}  // namespace tilert::exec
