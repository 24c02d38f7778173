// Programs on the CPU: what they mean, and whether somebody else has computed that.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "tools/arguments.h"

namespace tilert::tool {

// Runs the program in the executor on `arrays`, which are of the call's shapes. `check`: races and unwritten reads are errors.
absl::Status ExecuteOnCpu(const Program& program, bool check, CallArguments& call, std::vector<Array>& arrays);

// Compares the outputs of `call` with those of the executor on the arrays as they were before it, and says on standard output how
// far apart they are. FailedPrecondition: further than `tolerance` (tools/compare.h).
absl::Status CheckAgainstExecutor(double tolerance, const Program& program, CallArguments& call, std::vector<Array> before);

}  // namespace tilert::tool
