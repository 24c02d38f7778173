#pragma once

#include <string>

#include "absl/status/status.h"
#include "lowering/simulator.h"
#include "lowering/target.h"
#include "tools/arguments.h"

namespace tilert::tool {

// Lowers the program for `target` and the class of these arguments, and runs its kernels in the simulator, one launch after the
// other. Results are left in the arrays. `report`, if given, receives what was checked.
// REQUIRES: `program` is verified and specialised.
absl::Status RunSimulated(const Program& program, const Target& target, bool general, CallArguments& arguments,
                          const SimOptions& options, std::string* report);

}  // namespace tilert::tool
