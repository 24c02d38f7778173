// Runs the statements of one block of a launch.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "ir/executor_eval.h"
#include "ir/executor_memory.h"
#include "ir/executor_plan.h"
#include "ir/executor_tile.h"

namespace tilert::exec {

// What the workers of one launch share.
struct LaunchState {
  const Program& program;
  const LaunchPlan& plan;
  const std::vector<BoundTensor>& tensors;  // by BufferId
  const ExecOptions& options;
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
    Lanes lanes() const { return {n, active.data(), first_agent}; }
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
  absl::Status Sync(const Context& c);
  void Leave(Context& c, bool to_next_iteration);

  // executor_block_data.cc: what moves and computes data
  absl::Status RunElement(const Step& step, Context& c);
  absl::Status RunTile(const Step& step, Context& c);
  absl::Status RunTileOn(const Step& step, const Context& c, int lane);
  absl::StatusOr<Box> NextBox(const Region& region, const Step& step, int n, int lane, size_t* root) const;
  absl::Status RunAnnotate(const Annotate& op, const Step& step, const Context& c);
  absl::Status RunPrint(const Print& op, const Step& step, const Context& c);
  absl::Status RunAssert(const Assert& op, const Step& step, const Context& c);

  void Eval(const Step& step, const Context& c);
  const Value* Result(const Step& step, size_t root, int n) const {
    return regs_.data() + static_cast<size_t>(step.code.results[root]) * static_cast<size_t>(n);
  }
  DType RootType(Expr e) const { return state_.program.exprs[e].dtype; }
  Value* VarOf(VarId var, const Context& c);
  void ResizeLanes(int n);

  LaunchState& state_;
  Memory memory_;
  TileOps tile_;
  std::vector<Value> block_vars_;  // by VarId
  std::vector<Value> lane_vars_;   // slot by slot, one value a lane
  std::vector<Value> regs_;
  uint64_t steps_left_ = 0;
  int64_t block_ = 0;
  bool blamed_ = false;  // the error on its way out names its statement
};

}  // namespace tilert::exec
