// A case on the GPU that is there.
#pragma once

#include <string>

#include "tests/generator/tile_case.h"

namespace tilert {

// Compiles `program` for the family ("auto", "ampere", "hopper") of device 0's lowering and runs it `times` times on the data,
// which holds the last results. Internal: two runs gave different bits. ResourceExhausted: shared memory or registers.
absl::Status RunOnDevice(const Program& program, const std::string& family, int times, CallData* call);

}  // namespace tilert
