// CUDA C++ → cubin (or PTX) in process, by NVRTC. Needs no GPU and no toolkit headers.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/nvrtc.h"

namespace tilert {

struct CompileOptions {
  std::string arch;  // "sm_80", "sm_89", "sm_90a", … → cubin; "compute_120" → PTX, for GPUs newer than NVRTC knows
  std::vector<std::string> name_expressions;  // kernels whose lowered names are wanted; extern "C" kernels need none
  std::vector<std::string> extra_flags;       // appended as they are; part of cache keys
  bool quick = false;    // a quarter less compile time for slower code (NVRTC 13 or newer); never for code with wgmma
  bool no_cache = false;                      // do not use NVRTC's own disk cache: for timing
  // Asks NVRTC to stop after this long. NVRTC reacts only between its phases, so it is a bound on intent, not on time.
  std::chrono::milliseconds deadline{0};  // 0: none
};

struct CompiledCode {
  std::string code;  // an ELF image, or PTX text with its terminating NUL
  bool is_ptx = false;
  std::string log;                            // NVRTC's and ptxas' remarks; empty when there are none
  std::vector<std::string> codegen_warnings;  // lines of the log with a ptxas C75xx code: the schedule was not kept
  std::vector<std::string> lowered_names;     // one per name expression
  double compile_ms = 0;
};

// The flags that Compile passes for `options`, without those that cannot change the code: what a cache key contains.
std::vector<std::string> CompileFlags(const CompileOptions& options);

// Compiles `source`; `name` is what messages call it. Thread safe; several compiles may run at once.
// Errors: InvalidArgument (the source does not compile: the log), Unimplemented (NVRTC does not know the
// architecture), NotFound (the builtins library is missing), DeadlineExceeded, ResourceExhausted, Internal (an empty
// cubin and whatever else).
absl::StatusOr<CompiledCode> Compile(const Nvrtc& nvrtc, const std::string& name, const std::string& source,
                                     const CompileOptions& options);

}  // namespace tilert
