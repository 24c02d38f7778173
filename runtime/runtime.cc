#include "runtime/runtime.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <thread>

#include "ir/status_util.h"
#include "runtime/cache_directory.h"

namespace tilert {
namespace {

absl::StatusOr<DeviceInfo> Describe(const cuda::Driver& driver) {
  DeviceInfo info;
  cuda::Device device = 0;
  TILERT_RETURN_IF_ERROR(driver.CtxGetDevice(&device));
  char name[256] = {};
  TILERT_RETURN_IF_ERROR(driver.DeviceGetName(name, static_cast<int>(sizeof name) - 1, device));
  info.name = name;
  int major = 0, minor = 0;
  TILERT_RETURN_IF_ERROR(driver.DeviceGetAttribute(&major, cuda::kDeviceComputeCapabilityMajor, device));
  TILERT_RETURN_IF_ERROR(driver.DeviceGetAttribute(&minor, cuda::kDeviceComputeCapabilityMinor, device));
  TILERT_RETURN_IF_ERROR(driver.DeviceGetAttribute(&info.sm_count, cuda::kDeviceMultiprocessorCount, device));
  TILERT_RETURN_IF_ERROR(driver.DeviceGetAttribute(&info.max_shared_bytes, cuda::kDeviceMaxSharedMemoryPerBlockOptin, device));
  info.sm = 10 * major + minor;
  return info;
}

// The architecture to ask for. Hopper's tensor core instructions exist only in its 'a' variant.
std::string ArchOf(int sm) { return sm == 90 ? "sm_90a" : Cat("sm_", sm); }

// A GPU newer than NVRTC runs PTX for the newest architecture that NVRTC knows.
void LimitToCompiler(const Nvrtc& nvrtc, Target& target) {
  const int newest = nvrtc.architectures().back();
  if (target.arch.rfind("compute_", 0) == 0 && target.sm > newest) target.arch = Cat("compute_", newest);
}

}  // namespace

absl::StatusOr<std::shared_ptr<Runtime>> Runtime::Create(RuntimeOptions options) {
  std::shared_ptr<Runtime> runtime(new Runtime);
  runtime->options_ = std::move(options);
  CacheOptions cache;
  cache.directory = runtime->options_.cache_directory.value_or(DefaultCacheDirectory());
  cache.max_bytes = runtime->options_.cache_bytes;
  cache.lock_wait = runtime->options_.compile_deadline;
  runtime->cache_ = std::make_unique<CubinCache>(std::move(cache));
  if (!runtime->is_cpu()) TILERT_RETURN_IF_ERROR(runtime->InitCuda());
  return runtime;
}

absl::Status Runtime::InitCuda() {
  TILERT_ASSIGN_OR_RETURN(driver_, cuda::Driver::Load());
  TILERT_RETURN_IF_ERROR(driver_->CtxGetCurrent(&context_));
  if (context_ == nullptr) {
    return absl::FailedPreconditionError(
        "no CUDA context is current in this thread: make one current (cudaSetDevice and any runtime call, or cuCtxSetCurrent) "
        "before "
        "creating a runtime");
  }
  TILERT_ASSIGN_OR_RETURN(device_, Describe(*driver_));
  TILERT_ASSIGN_OR_RETURN(target_, FindTarget(ArchOf(device_.sm), options_.family));
  // The device knows its own limits better than a table.
  target_.max_shared_bytes = std::min<int64_t>(target_.max_shared_bytes, device_.max_shared_bytes);
  target_.sm_count = device_.sm_count;
  // Now and not at the first compile: it takes tens of milliseconds, and its version is part of every cache key.
  nvrtc_ = Nvrtc::Load();
  if (nvrtc_.ok()) LimitToCompiler(**nvrtc_, target_);
  return absl::OkStatus();
}

absl::Status Runtime::CheckContext() const {
  cuda::Context current = nullptr;
  if (const cuda::Result result = driver_->raw().CtxGetCurrent(&current); result != cuda::kSuccess) {
    return driver_->StatusOf("cuCtxGetCurrent", result);
  }
  if (current == context_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      current == nullptr ? "no CUDA context is current in this thread; make the runtime's current (cuCtxSetCurrent)"
                         : "another CUDA context is current in this thread than the one the runtime was created in");
}

void Runtime::Log(LogLevel level, const char* file, int line, const std::string& message) const {
  if (options_.hooks.log) options_.hooks.log(level, file, line, message);
}

void Runtime::RunAll(std::vector<std::function<void()>> tasks) const {
  if (tasks.empty()) return;
  std::mutex mutex;
  std::condition_variable changed;
  size_t running = tasks.size() - 1;
  std::vector<std::thread> threads;
  threads.reserve(running);
  for (size_t i = 0; i + 1 < tasks.size(); ++i) {
    const auto task = [&, i]() noexcept {
      tasks[i]();
      // Notified under the lock: the waiter destroys both as soon as it can take it.
      const std::lock_guard<std::mutex> lock(mutex);
      --running;
      changed.notify_all();
    };
    try {
      if (options_.hooks.submit) {
        options_.hooks.submit(task);
      } else {
        threads.emplace_back(task);
      }
    } catch (const std::exception&) {
      task();  // no memory or no more threads: do it here
    }
  }
  tasks.back()();
  {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return running == 0; });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tilert
