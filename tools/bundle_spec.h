// A list of the programs of a bundle, for bundles of many (kernels/std.spec):
//
//     # name = source.py:entry setting=value …
//     gemm_nt_f16 = gemm.py:gemm dtype=float16 transpose_B=true
//
// One program a line; sources are relative to the list's folder; settings as for --set.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "frontend/settings.h"

namespace tilert::tool {

struct SpecEntry {
  std::string name;    // of the program in the bundle
  std::string source;  // path
  std::string entry;   // function
  frontend::Settings settings;
  int line = 0;
};

// InvalidArgument with file and line for what is malformed or named twice.
absl::StatusOr<std::vector<SpecEntry>> ParseBundleSpec(const std::string& path, const std::string& text);

}  // namespace tilert::tool
