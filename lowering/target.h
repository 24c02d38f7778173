// What a GPU offers, as plain data: the only place that knows numbers of architectures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tilert {

enum class Family : uint8_t { kInvalid, kAmpere, kHopper };

struct Target {
  std::string arch;           // what NVRTC is asked for, e.g. "sm_80", "sm_90a", "compute_90"
  int sm = 0;                 // major·10 + minor
  Family family = Family::kInvalid;  // of the lowering, not of the chip
  int64_t max_shared_bytes = 0;      // per block, opt-in
  int64_t shared_bytes_per_sm = 0;
  int registers_per_sm = 65536;
  int max_threads_per_sm = 2048;
  int sm_count = 0;           // 0: unknown (compiling without a GPU): a typical value is assumed by cost models
};

// "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a", …; an unknown newer architecture gets the Ampere family through PTX.
// `family`: "auto", "ampere" or "hopper". InvalidArgument lists what is known.
absl::StatusOr<Target> FindTarget(std::string_view arch, std::string_view family = "auto");
std::vector<std::string> KnownArchs();

}  // namespace tilert
