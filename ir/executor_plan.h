// A launch prepared for execution: its statements with their expressions compiled.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "ir/bind_args.h"
#include "ir/executor_code.h"
#include "ir/program.h"

namespace tilert::exec {

// How the statements of a block are executed: once for the whole block, or by lanes: the points of a parallel loop or threads.
enum class Mode : uint8_t { kBlock, kPoints, kThreads };

struct Step {
  const Stmt* stmt = nullptr;
  Code code = {};                              // roots: the statement's own expressions in the order of ForEachExpr
  std::vector<std::vector<Step>> blocks = {};  // as ChildBlocks
};
using Steps = std::vector<Step>;

struct LaunchPlan {
  const Launch* launch = nullptr;
  Steps body;
  int32_t lane_slots = 0;        // variables with a value a lane
  std::vector<int32_t> slot_of;  // by VarId; −1: one value for the block
  uint32_t max_regs = 0;
  std::vector<bool> thread_private;  // by BufferId: private memory that thread regions write
  std::vector<bool> by_hand;         // by BufferId: barriers whose bytes expect_tx announces
  bool ordered_atomics = false;  // some atomic orders other accesses, so blocks may talk to each other
};

// `program` and `bound` must outlive the plan. Unimplemented: a statement that the executor does not run; the message starts with
// its location.
absl::StatusOr<LaunchPlan> PlanLaunch(const Program& program, const BoundArgs& bound, const Launch& launch);

// `status` with the source location before its message; Blame also names the statement. The code stays.
absl::Status Located(const Program& program, const SourceLoc& loc, const absl::Status& status);
absl::Status Blame(const Program& program, const Stmt& stmt, const absl::Status& status);

}  // namespace tilert::exec
