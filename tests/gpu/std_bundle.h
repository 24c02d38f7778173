// The standard kernels, as a GPU test or bench finds them: $TILERT_STD, std.tilert beside the executable, or in the folder above.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/arguments.h"
#include "tools/input.h"

namespace tilert::gpu {

absl::StatusOr<std::string> StdPath();
absl::StatusOr<std::unique_ptr<tool::BundleFile>> OpenStd();

// The program `entry` of `file`, verified.
absl::StatusOr<Program> FindProgram(const tool::BundleFile& file, const std::string& entry);

// Arguments for `program` with the dims given (by name): random inputs, poisoned outputs, scalars that are small numbers.
absl::StatusOr<tool::CallArguments> MakeArguments(const Program& program, const std::map<std::string, int64_t>& dims,
                                                  uint64_t seed);

}  // namespace tilert::gpu
