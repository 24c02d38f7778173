// Runs a Program on the CPU exactly as docs/ir_spec.md defines it. It is the oracle that lowered code is compared with, and
// shares no code with the lowering.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ir/bind_args.h"
#include "ir/program.h"

namespace tilert {

struct ExecOptions {
  int threads = 0;               // workers that run blocks; 0: one a processor
  bool check_races = false;      // report conflicting accesses of two points of a parallel loop, two threads, or two blocks
  bool check_unwritten = false;  // report reads of shared, fragment or local elements that were never written
  bool check_index = false;      // report index results that do not fit 64 bits, whose value is unspecified
  uint64_t seed = 0;             // other than 0: blocks and parallel points run in an order drawn from it
  int64_t max_bytes = int64_t{4} << 30;         // of workspaces, and of each block's own memory
  uint64_t max_steps = 0;                       // statements that all blocks together may execute, more or less; 0: no limit
  std::function<void(std::string_view)> print;  // receives T.print output, one call a statement, never two at once
};

// Runs every launch of `program` in order; outputs are written through `tensors` (see BindArgs). Workspaces are allocated here.
// REQUIRES: `program` is verified. Constants that are still open take their first candidate.
// Thread-safe as far as the tensors' memory allows.
//
// InvalidArgument: arguments that do not fit, regions that do not agree. FailedPrecondition: a failed T.device_assert, a reported
// race or unwritten read. ResourceExhausted: a limit of `options`. Unimplemented: a statement the executor does not run yet.
// Messages about a statement start with its source location. After an error the contents of outputs are unspecified.
absl::Status Execute(const Program& program, absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars,
                     const ExecOptions& options = {});

}  // namespace tilert
