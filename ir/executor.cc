#include "ir/executor.h"

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <memory>
#include <numeric>
#include <random>
#include <system_error>
#include <thread>
#include <vector>

#include "ir/executor_block.h"
#include "ir/executor_plan.h"
#include "ir/int_eval.h"
#include "ir/status_util.h"

namespace tilert {
namespace {

using exec::BlockRunner;
using exec::LaunchState;

// The host may have changed the rounding mode or asked for subnormals to be flushed: not here. One thread's worth of scope.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&saved_); }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;

 private:
  std::fenv_t saved_;
};

// The buffers that `block` allocates.
std::vector<BufferId> Allocated(const Block& block) {
  std::vector<BufferId> buffers;
  ForEachStmt(block, [&](const Stmt& stmt) {
    if (const auto* alloc = std::get_if<Alloc>(&stmt.op)) buffers.push_back(alloc->buffer);
  });
  return buffers;
}

class Executor {
 public:
  Executor(const Program& program, const ExecOptions& options)
      : program_(program), options_(options), tensors_(program.buffers.size()) {}

  absl::Status Run(absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars) {
    TILERT_RETURN_IF_ERROR(BindArgs(program_, tensors, scalars, &bound_));
    size_t next = 0;
    for (const Param& param : program_.params) {
      if (param.kind == Param::Kind::kTensor) tensors_[param.index] = bound_.tensors[next++];
    }
    for (const Workspace& workspace : program_.workspaces) TILERT_RETURN_IF_ERROR(AllocateWorkspace(workspace));
    for (const Launch& launch : program_.launches) TILERT_RETURN_IF_ERROR(RunLaunch(launch));
    return absl::OkStatus();
  }

 private:
  absl::Status AllocateWorkspace(const Workspace& workspace) {
    const Buffer& buffer = program_.buffers[workspace.buffer];
    BoundTensor& tensor = tensors_[workspace.buffer];
    TILERT_RETURN_IF_ERROR(BindShape(program_, buffer, bound_, &tensor));
    const int64_t elements = std::accumulate(tensor.shape.begin(), tensor.shape.end(), int64_t{1}, MulIndex);
    const int64_t bytes = std::max<int64_t>(MulIndex(elements, DTypeBytes(buffer.dtype)), 1);
    workspace_bytes_ = AddIndex(workspace_bytes_, bytes);
    if (workspace_bytes_ > options_.max_bytes) {
      return absl::ResourceExhaustedError(
          Cat("workspace '", buffer.name, "' of ", bytes, " bytes: workspaces exceed the limit of ", options_.max_bytes));
    }
    // Zeroed or not, it reads zero: an unwritten element of a workspace that is not zeroed may read anything.
    workspaces_.emplace_back(new (std::nothrow) char[static_cast<size_t>(bytes)]());
    if (workspaces_.back() == nullptr) return absl::ResourceExhaustedError(Cat("no memory for workspace '", buffer.name, "'"));
    tensor.data = workspaces_.back().get();
    return absl::OkStatus();
  }

  absl::Status RunLaunch(const Launch& launch) {
    TILERT_ASSIGN_OR_RETURN(const exec::LaunchPlan plan, exec::PlanLaunch(program_, bound_, launch));
    for (BufferId buffer : Allocated(launch.body)) {
      const absl::Status status = BindShape(program_, program_.buffers[buffer], bound_, &tensors_[buffer]);
      if (!status.ok()) return exec::Located(program_, program_.buffers[buffer].loc, status);
    }
    LaunchState state{program_, plan, tensors_, options_, steps_};
    int64_t blocks = 1;
    for (Expr extent : launch.grid) {
      TILERT_ASSIGN_OR_RETURN(const int64_t e, EvalBound(program_, extent, bound_));
      if (e < 0) return exec::Located(program_, launch.loc, InvalidArgument("launch '", launch.name, "': a grid extent is ", e));
      state.grid.push_back(e);
      blocks = MulIndex(blocks, e);
    }
    TILERT_ASSIGN_OR_RETURN(const int64_t threads, EvalBound(program_, launch.threads, bound_));
    if (threads < 1 || threads > 1024) {
      return exec::Located(program_, launch.loc,
                           InvalidArgument("launch '", launch.name, "': ", threads, " threads; 1 to 1024 are possible"));
    }
    state.threads = static_cast<int>(threads);
    // Blocks of a launch with ordering atomics may talk to each other, so an access of two blocks may well be ordered.
    state.shared.check_races = options_.check_races && !plan.ordered_atomics;
    return RunBlocks(state, blocks);
  }

  // Blocks of a cooperative launch may wait for each other: each has a thread of its own.
  absl::Status RunBlocks(LaunchState& state, int64_t blocks) {
    constexpr int64_t kMostTogether = 1024;
    const Launch& launch = *state.plan.launch;
    const bool together = launch.cooperative;
    const auto refused = [&] {
      const std::string message = Cat("launch '", launch.name, "' is cooperative: its ", blocks,
                                      " blocks run at the same time, more than there are threads for; launch fewer");
      return exec::Located(program_, launch.loc, absl::ResourceExhaustedError(message));
    };
    if (together && blocks > kMostTogether) return refused();
    const int wanted =
        options_.threads > 0 ? options_.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const int64_t workers = together ? blocks : std::min<int64_t>(wanted, blocks);
    Queue queue{blocks, options_.seed};
    std::vector<std::thread> threads;
    bool all_started = true;
    for (int64_t k = 1; k < workers; ++k) {
      try {
        threads.emplace_back([&] { Work(state, queue); });
      } catch (const std::system_error&) {
        all_started = false;
        state.stop = together;
        break;  // the system has no more threads: where blocks need not run together, those there are do the work
      }
    }
    Work(state, queue);
    for (std::thread& thread : threads) thread.join();
    return all_started || !together ? queue.status : refused();
  }

  // Blocks not yet taken, and the first error in the order of blocks among those seen.
  struct Queue {
    Queue(int64_t blocks, uint64_t seed) : blocks(blocks) {
      if (seed == 0 || blocks < 2) return;
      // A walk over all residues: b → (b · stride + first) mod blocks, the stride coprime with the count.
      std::mt19937_64 random(seed);
      first = static_cast<int64_t>(random() % static_cast<uint64_t>(blocks));
      const int64_t limit = std::min<int64_t>(blocks, int64_t{1} << 20);
      do {
        stride = static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
      } while (std::gcd(stride, blocks) != 1);
    }
    int64_t At(int64_t ticket) const { return static_cast<int64_t>((static_cast<__int128>(ticket) * stride + first) % blocks); }

    int64_t blocks, first = 0, stride = 1;
    std::atomic<int64_t> next{0};
    std::mutex lock;
    int64_t failed = INT64_MAX;
    absl::Status status;
  };

  static void Work(LaunchState& state, Queue& queue) {
    const DefaultFloatEnvironment environment;
    if (queue.blocks == 0) return;
    BlockRunner runner(&state);
    while (!state.stop.load(std::memory_order_relaxed)) {
      const int64_t ticket = queue.next.fetch_add(1);
      if (ticket >= queue.blocks) return;
      const int64_t block = queue.At(ticket);
      const absl::Status status = runner.Run(block);
      if (status.ok()) continue;
      const std::lock_guard lock(queue.lock);
      if (absl::IsCancelled(status) || block >= queue.failed) continue;
      queue.failed = block;
      queue.status = status;
      state.stop = true;
    }
  }

  const Program& program_;
  const ExecOptions& options_;
  BoundArgs bound_;
  std::atomic<uint64_t> steps_{0};
  std::vector<BoundTensor> tensors_;  // by BufferId
  std::vector<std::unique_ptr<char[]>> workspaces_;
  int64_t workspace_bytes_ = 0;
};

}  // namespace

absl::Status Execute(const Program& program, absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars,
                     const ExecOptions& options) {
  return Executor(program, options).Run(tensors, scalars);
}

}  // namespace tilert
