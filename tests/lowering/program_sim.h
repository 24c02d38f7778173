// A whole program through the lowering and the simulator, for comparison with the executor.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/bind_args.h"
#include "ir/program.h"
#include "lowering/lowered.h"
#include "lowering/simulator.h"

namespace tilert {

// The kernels of all launches of `program` for an architecture, verified.
absl::StatusOr<std::vector<kir::Kernel>> PlanAll(const Program& program, const ArgClass& arg_class,
                                                 std::string_view arch = "sm_80", const LowerOptions& options = {});

// Simulates `kernels`, the launches of `program`, in order; arguments as for Execute.
absl::Status SimulateAll(const Program& program, const std::vector<kir::Kernel>& kernels, absl::Span<const TensorArg> tensors,
                         absl::Span<const ScalarArg> scalars, const SimOptions& options);

// Whether the arguments may be passed to a kernel made for `arg_class` (the pointers aside).
bool Fits(const Program& program, const ArgClass& arg_class, absl::Span<const TensorArg> tensors);

}  // namespace tilert
