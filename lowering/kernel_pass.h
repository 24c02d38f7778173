// The passes over KernelIr, in order. What each needs and why it stands there: lowering/lower.cc.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "lowering/lowered.h"

namespace tilert {

struct KernelState {
  kir::Kernel kernel;
  Target target;
  ArgClass args;
};

// Divisions by dims, of what is known when a block starts, are made once at the head of the kernel: the compiler does not move them out
// of loops and conditions by itself.
absl::Status HoistDivisions(KernelState& state);

// Gives every shared buffer its offset; buffers that are never live together share memory. ResourceExhausted names the buffers
// when the block needs more than the target has.
absl::Status PlanSharedMemory(KernelState& state);

// Inserts a BarSync before each statement that touches shared memory in conflict with what other threads did since the last one:
// read after write, write after read, write after write, along every path, including around loops.
absl::Status PlaceBarriers(KernelState& state);

// Marks subscripts of copies that are inside their buffer at every point, so that no check is emitted.
absl::Status ProveBounds(KernelState& state);

}  // namespace tilert
