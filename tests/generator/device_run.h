// Cases on the GPU that is there.
#pragma once

#include <memory>
#include <string>

#include "tests/generator/tile_case.h"

namespace tilert {

struct DeviceRunOptions {
  std::string family = "auto";  // of device 0's lowering: "auto", "ampere", "hopper"
  int times = 3;                // runs from the same data, which must agree bit by bit
  bool aligned = true;  // else tensors begin one element behind a multiple of 16 bytes: for the general class of arguments
  bool plant = false;   // a byte in front of a tensor is written, which must be found
};

// Compiles `program` and runs it on the data, which holds the last results. Tensors and the workspace lie between guard regions,
// so that a write outside is found within one allocation too. Internal: two runs gave different bits. DataLoss: bytes of a guard
// region have changed. ResourceExhausted: shared memory or registers. The device stays open until the process ends.
absl::Status RunOnDevice(const Program& program, const DeviceRunOptions& options, CallData* call);

}  // namespace tilert
