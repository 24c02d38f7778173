// Runs the statements of one block of a launch.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "ir/executor_eval.h"
#include "ir/executor_memory.h"
#include "ir/executor_plan.h"
#include "ir/executor_tile.h"
#include "ir/fiber.h"

namespace tilert::exec {

// A statement whose effect comes later: it holds what it touches until then.
struct AsyncOp {
  std::vector<HeldBox> boxes;
  std::function<absl::Status()> run;
  int64_t bytes = 0;  // that it brings
  Clock issued;       // when it was issued
};

// One barrier of an array. docs/ir_spec.md section 7.
struct Barrier {
  uint32_t count = 0;      // arrivals of a phase
  uint32_t left = 0;       // that are still to come
  int64_t phases = 0;      // completed
  int64_t announced = 0;   // bytes announced by hand less those that copies have brought
  bool by_hand = false;    // its bytes are announced by expect_tx, not by the copies
  std::vector<AsyncOp> copies;
  Clock arriving, completed;
  std::vector<int64_t> threads_arriving, threads_arrived;  // of a thread region, in this phase and the one before
};

// Threads that meet at a numbered barrier (T.sync_threads with a count).
struct Group {
  uint32_t arrived = 0;
  int64_t phases = 0;
  Clock arriving, completed;
};

// One thread of control of a block: the block itself, or a role.
struct Strand {
  int first_thread = 0, threads = 1;
  std::vector<Value> regs, lane_vars;
  std::deque<AsyncOp> copies, gemms;  // unfinished groups, oldest first
  size_t part = 0;
  Clock clock;
  // Of roles only.
  std::unique_ptr<Fiber> fiber;
  absl::Status status;
  const Stmt* waits_at = nullptr;
  std::function<bool()> ready;        // what it waits for has come; null: it waits for nothing
  std::function<std::string()> wants;  // what it waits for, for people
  Memory::LaneRaces lane_races;
};

// What the workers of one launch share.
struct LaunchState {
  const Program& program;
  const LaunchPlan& plan;
  const std::vector<BoundTensor>& tensors;  // by BufferId
  const ExecOptions& options;
  std::atomic<uint64_t>& steps;    // executed by blocks that have ended, of all launches
  std::vector<int64_t> grid = {};  // one extent a block variable
  int threads = 1;                 // of a block
  SharedState shared = {};
  std::mutex print_lock = {};
  std::atomic<bool> stop{false};  // set after an error: workers end early
};

// One worker: runs block after block. Not thread-safe; several share a LaunchState.
class BlockRunner {
 public:
  explicit BlockRunner(LaunchState* state);

  // `block`: row-major number in the grid, x fastest.
  absl::Status Run(int64_t block);

 private:
  using Mask = absl::InlinedVector<uint8_t, 16>;
  struct Loop {
    Mask continued;  // lanes waiting for the next iteration
  };
  // The lanes that execute a list of statements, and which of them still do.
  struct Context {
    Mode mode = Mode::kBlock;
    int n = 1;
    int64_t first_agent = 0;
    Mask active;
    Loop* loop = nullptr;
    int64_t first_lane = 0;
    Lanes lanes() const { return {n, active.data(), first_agent, first_lane}; }
    bool any() const;
  };

  absl::Status RunSteps(const Steps& steps, Context& c);
  absl::Status RunStep(const Step& step, Context& c);
  absl::Status CountStep();
  absl::Status Dispatch(const Step& step, Context& c);

  // executor_block.cc: control flow
  absl::Status RunIf(const Step& step, Context& c);
  absl::Status RunFor(const For& op, const Step& step, Context& c);
  absl::Status RunWhile(const Step& step, Context& c);
  absl::Status RunBody(const Steps& body, Context& c);
  absl::Status RunParallel(const Parallel& op, const Step& step, Context& c);
  absl::Status RunPoints(const Parallel& op, const Step& step, const std::vector<int64_t>& extents);
  absl::Status RunNestedPoints(const Parallel& op, const Step& step, Context& c);
  absl::Status RunThreads(const ThreadRegion& op, const Step& step);
  absl::Status RunAlloc(const Alloc& op, const Context& c);
  void Leave(Context& c, bool to_next_iteration);

  // executor_block_async.cc: roles, barriers, statements whose effect comes later
  absl::Status RunRoles(const Roles& op, const Step& step, Context& c);
  absl::Status RunStrands(std::vector<Strand>& strands);
  void Switch(Strand& strand);
  absl::Status Deadlock(const std::vector<Strand>& strands) const;
  absl::Status WaitFor(const Stmt& stmt, std::function<bool()> ready, std::function<std::string()> wants);
  absl::Status Sync(const SyncThreads& op, const Stmt& stmt, const Context& c);
  absl::Status SyncGroup(const SyncThreads& op, const Stmt& stmt);
  absl::StatusOr<Barrier*> BarrierAt(BufferId id, const Step& step, size_t root, size_t count, int n, int lane);
  absl::Status RunBarrierOp(const BarrierOp& op, const Step& step, const Context& c);
  absl::Status Arrive(Barrier& barrier, uint32_t arrivals);
  absl::Status CompletePhase(Barrier& barrier);
  absl::Status Finish(AsyncOp op);
  absl::Status Issue(const Step& step, const Context& c);
  absl::Status Drain(std::deque<AsyncOp>& groups, size_t pending);
  absl::Status RunShuffle(const Shuffle& op, const Step& step, const Context& c);
  void Tick();

  // executor_block_data.cc: what moves and computes data
  absl::Status RunElement(const Step& step, Context& c);
  absl::Status RunTile(const Step& step, Context& c);
  absl::Status RunTileOn(const Step& step, const Context& c, int lane);
  absl::StatusOr<Box> NextBox(const Region& region, const Step& step, const Context& c, int lane, size_t* root) const;
  absl::Status RunAnnotate(const Annotate& op, const Step& step, const Context& c);
  absl::Status RunPrint(const Print& op, const Step& step, const Context& c);
  absl::Status RunAssert(const Assert& op, const Step& step, const Context& c);

  void Eval(const Step& step, const Context& c);
  const Value* Result(const Step& step, size_t root, int n) const {
    return strand_->regs.data() + static_cast<size_t>(step.code.results[root]) * static_cast<size_t>(n);
  }
  DType RootType(Expr e) const { return state_.program.exprs[e].dtype; }
  Value* VarOf(VarId var, const Context& c);
  void ResizeLanes(int n);

  LaunchState& state_;
  Memory memory_;
  TileOps tile_;
  std::vector<Value> block_vars_;  // by VarId
  Strand main_;
  Strand* strand_ = &main_;        // the one that runs
  absl::flat_hash_map<BufferId, std::vector<Barrier>> barriers_;
  absl::flat_hash_map<uint32_t, Group> groups_;  // by number
  int64_t async_clock_ = 0;
  bool ending_ = false;            // roles end early after an error
  std::mt19937_64 random_;         // the order in which roles run
  uint64_t steps_left_ = 0;
  int64_t block_ = 0;
  bool blamed_ = false;  // the error on its way out names its statement
};

}  // namespace tilert::exec
