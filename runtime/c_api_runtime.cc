#include "ir/status_util.h"
#include "runtime/c_api.h"

namespace tilert::c_api {
namespace {

Hooks FromC(const tilert_hooks& c) {
  Hooks hooks;
  if (c.log != nullptr) {
    hooks.log = [c](LogLevel level, const char* file, int line, const std::string& message) {
      c.log(c.user, static_cast<tilert_log_level>(level), file, line, message.c_str());
    };
  }
  if (c.submit != nullptr) {
    hooks.submit = [c](std::function<void()> task) {
      const auto run = [](void* argument) {
        const std::unique_ptr<std::function<void()>> owned(static_cast<std::function<void()>*>(argument));
        (*owned)();
      };
      c.submit(c.user, run, new std::function<void()>(std::move(task)));
    };
  }
  if (c.allocate != nullptr) {
    hooks.allocate = [c](uint64_t bytes, cuda::Stream stream) { return c.allocate(c.user, bytes, stream); };
  }
  if (c.release != nullptr) {
    hooks.release = [c](void* memory, uint64_t bytes, cuda::Stream stream) { c.release(c.user, memory, bytes, stream); };
  }
  return hooks;
}

absl::StatusOr<RuntimeOptions> FromC(const tilert_runtime_options* from) {
  RuntimeOptions options;
  if (from == nullptr) return options;
  tilert_runtime_options c;
  TILERT_RETURN_IF_ERROR(ReadStruct(from, &c, "options"));
  if (c.device != TILERT_DEVICE_CUDA && c.device != TILERT_DEVICE_CPU)
    return InvalidArgument("options.device is no tilert_device");
  options.device = c.device == TILERT_DEVICE_CPU ? DeviceKind::kCpu : DeviceKind::kCuda;
  if (c.family != nullptr) options.family = c.family;
  if (options.family != "auto" && options.family != "ampere" && options.family != "hopper")
    return InvalidArgument("options.family is '", options.family, "'; use auto, ampere or hopper");
  if (c.cpu_threads < 0) return InvalidArgument("options.cpu_threads is negative");
  if (c.cache_directory != nullptr) options.cache_directory = c.cache_directory;
  if (c.cache_bytes != 0) options.cache_bytes = c.cache_bytes;
  if (c.compile_deadline_ms != 0) options.compile_deadline = std::chrono::milliseconds(c.compile_deadline_ms);
  options.cpu_threads = c.cpu_threads;
  options.allow_prebuilt_cubins = c.allow_prebuilt != 0;
  options.hooks = FromC(c.hooks);
  return options;
}

const char* FamilyName(Family family) {
  switch (family) {
    case Family::kAmpere:
      return "ampere";
    case Family::kHopper:
      return "hopper";
    default:
      return "";
  }
}

}  // namespace

tilert_status* RuntimeCreate(const tilert_runtime_options* c_options, tilert_runtime** out) {
  if (out != nullptr) *out = nullptr;
  return Guard([&]() -> absl::Status {
    if (out == nullptr) return InvalidArgument("the place for the runtime is NULL");
    TILERT_ASSIGN_OR_RETURN(RuntimeOptions options, FromC(c_options));
    auto handle = std::make_unique<tilert_runtime>();
    TILERT_ASSIGN_OR_RETURN(handle->runtime, Runtime::Create(std::move(options)));
    const Runtime& runtime = *handle->runtime;
    if (!runtime.nvrtc().ok()) handle->nvrtc_error = std::string(runtime.nvrtc().status().message());
    if (const absl::Status cache = handle->runtime->cache().status(); !cache.ok())
      handle->cache_error = std::string(cache.message());
    *out = handle.release();
    return absl::OkStatus();
  });
}

void RuntimeRelease(tilert_runtime* runtime) { delete runtime; }

tilert_status* RuntimeGetInfo(tilert_runtime* handle, tilert_runtime_info* info) {
  return Guard([&]() -> absl::Status {
    if (handle == nullptr) return InvalidArgument("runtime is NULL");
    Runtime& runtime = *handle->runtime;
    tilert_runtime_info c = {};
    c.device_name = runtime.device().name.c_str();
    c.arch = runtime.target().arch.c_str();
    c.family = FamilyName(runtime.target().family);
    c.compute_capability = runtime.device().sm;
    c.sm_count = runtime.device().sm_count;
    c.driver_version = runtime.is_cpu() ? 0 : runtime.driver().version();
    c.nvrtc_version = runtime.nvrtc().ok() ? (*runtime.nvrtc())->version() : 0;
    c.nvrtc_error = handle->nvrtc_error.c_str();
    c.cache_directory = runtime.cache().directory().c_str();
    c.cache_error = handle->cache_error.c_str();
    return WriteStruct(c, info, "info");
  });
}

}  // namespace tilert::c_api
