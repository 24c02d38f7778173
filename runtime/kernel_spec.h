// What goes into a kernel and what it answers: requests and results of runtime/kernel.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "ir/bind_args.h"
#include "lowering/lowered.h"
#include "runtime/driver_api.h"

namespace tilert {

struct KernelSpec {
  std::string entry;
  std::map<std::string, int64_t> constants;  // missing ones: by the bundle's variants (runtime/schedules.h)
  std::map<std::string, int64_t> dims;       // dims to fix; the rest stay dynamic
  bool general_only = false;                 // no fast variants: the least compile time, slower code
  // Compiles for this class alone. The caller sees to it that arguments belong to it (Kernel::Resolve asks).
  std::optional<ArgClass> only_class = {};
};

enum class PrepareMode {
  kBlocking,   // compile what is missing, load everything
  kCachedOnly  // NotFound when something would have to be compiled
};

enum class Readiness { kReady, kCached, kNeedsCompile, kUnsupported };
struct QueryResult {
  Readiness readiness = Readiness::kUnsupported;
  std::string reason;  // why it is unsupported
};

struct LaunchRequest {
  cuda::Stream stream = nullptr;  // the caller's; null: the default stream
  absl::Span<const TensorArg> tensors;
  absl::Span<const ScalarArg> scalars;
  void* workspace = nullptr;  // kWorkspaceAlignment-aligned device memory
  uint64_t workspace_bytes = 0;
};

// What a launch runs.
struct KernelChoice {
  std::string schedule;  // of the bundle's variant; empty: the program's defaults
  std::map<std::string, int64_t> constants;
  bool is_general = false;    // the code for any arguments
  bool is_restrided = false;  // inputs are copied to aligned rows first; with the workspace that WorkspaceBytes asks for
  double cycles = 0;          // as the model of costs expects
};

// Where the time of the last Prepare went.
struct PrepareStats {
  int cache_hits = 0, compiles = 0;
  double lower_ms = 0, compile_ms = 0, load_ms = 0;
};

}  // namespace tilert
