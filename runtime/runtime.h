// What one device context needs to run bundles: the driver, the compiler, the target, the cache. See include/tilert/tilert.h
// for the same objects behind the C ABI.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "lowering/target.h"
#include "runtime/cubin_cache.h"
#include "runtime/driver.h"
#include "runtime/nvrtc.h"

namespace tilert {

enum class LogLevel { kInfo, kWarning, kError };

// Things that the host may do for us. All may be called from any thread and must not throw.
struct Hooks {
  std::function<void(LogLevel level, const char* file, int line, const std::string& message)> log;
  // Runs a task some time soon on another thread. Without it, compiles use short-lived threads of our own.
  std::function<void(std::function<void()> task)> submit;
  // Workspaces for launches that bring none: device memory aligned to kWorkspaceAlignment, or null. Released in stream order.
  std::function<void*(uint64_t bytes, cuda::Stream stream)> allocate;
  std::function<void(void* memory, uint64_t bytes, cuda::Stream stream)> release;
};

enum class DeviceKind { kCuda, kCpu };

struct RuntimeOptions {
  DeviceKind device = DeviceKind::kCuda;
  std::string family = "auto";                 // of the lowering: "auto", "ampere", "hopper"
  std::optional<std::string> cache_directory;  // none: DefaultCacheDirectory(); empty: no cache
  uint64_t cache_bytes = uint64_t{1} << 30;
  std::chrono::milliseconds compile_deadline{10000};
  int cpu_threads = 0;                 // kCpu: workers that run blocks; 0: one a processor
  bool allow_prebuilt_cubins = false;  // run code that a bundle brings: only for bundles that the host trusts
  Hooks hooks;
};

struct DeviceInfo {
  std::string name = "CPU";  // as the driver gives it: the SKU of tuning records
  int sm = 0;                // major · 10 + minor; 0: CPU
  int sm_count = 0;
  int max_shared_bytes = 0;  // a block may opt into
};

// Thread safe. Belongs to the context that was current when it was created, makes none, and outlives none.
class Runtime {
 public:
  // FailedPrecondition: no current context. NotFound, Unavailable: no driver. InvalidArgument: the device cannot run the
  // family. Without NVRTC a runtime still runs the prebuilt code of bundles.
  static absl::StatusOr<std::shared_ptr<Runtime>> Create(RuntimeOptions options);

  const RuntimeOptions& options() const { return options_; }
  bool is_cpu() const { return options_.device == DeviceKind::kCpu; }
  const DeviceInfo& device() const { return device_; }
  const Target& target() const { return target_; }
  CubinCache& cache() { return *cache_; }

  // REQUIRES: !is_cpu().
  const cuda::Driver& driver() const { return *driver_; }
  const std::shared_ptr<const cuda::Driver>& shared_driver() const { return driver_; }
  // NVRTC, or why there is none.
  const absl::StatusOr<std::shared_ptr<const Nvrtc>>& nvrtc() const { return nvrtc_; }

  cuda::Context context() const { return context_; }
  // FailedPrecondition unless the calling thread's current context is the runtime's.
  absl::Status CheckContext() const;

  void Log(LogLevel level, const char* file, int line, const std::string& message) const;
  // Runs all tasks, the last one on this thread, and returns when they are done. Tasks must not throw.
  void RunAll(std::vector<std::function<void()>> tasks) const;

 private:
  Runtime() = default;
  absl::Status InitCuda();

  RuntimeOptions options_;
  DeviceInfo device_;
  Target target_;
  std::shared_ptr<const cuda::Driver> driver_;
  absl::StatusOr<std::shared_ptr<const Nvrtc>> nvrtc_ = absl::UnavailableError("the CPU needs no NVRTC");
  cuda::Context context_ = nullptr;
  std::unique_ptr<CubinCache> cache_;
};

}  // namespace tilert
