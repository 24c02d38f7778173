// The C ABI of include/tilert/tilert.h over the C++ runtime: handles, statuses, and the wall that no exception passes.
#pragma once

#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/kernel.h"
#include "tilert/tilert.h"

// A status owns its text, unless it is the static one that stands for exhausted memory.
struct tilert_status {
  tilert_code code;
  const char* message;
};

struct tilert_runtime {
  std::shared_ptr<tilert::Runtime> runtime;
  std::string nvrtc_error, cache_error;
};
struct tilert_bundle {
  std::shared_ptr<const tilert::OpenedBundle> bundle;
};
struct tilert_kernel {
  std::shared_ptr<tilert::Kernel> kernel;
};

namespace tilert::c_api {

// NULL for OK. Never fails: without memory it gives the static status.
tilert_status* ToStatus(const absl::Status& status) noexcept;
// RESOURCE_EXHAUSTED, static.
tilert_status* OutOfMemory() noexcept;

// Runs `body`, which returns absl::Status; what it throws becomes a status.
template <typename Body>
tilert_status* Guard(Body&& body) noexcept {
  try {
    return ToStatus(body());
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  } catch (...) {
    return ToStatus(absl::InternalError("an exception reached the C interface"));
  }
}

// Copies a struct that opens with struct_size from a host that may be older (the rest is zero) or newer (what we do not
// know must be zero). InvalidArgument otherwise.
template <typename T>
absl::Status ReadStruct(const T* from, T* to, const char* name) {
  std::memset(static_cast<void*>(to), 0, sizeof(T));
  if (from == nullptr) return absl::InvalidArgumentError(std::string(name) + " is NULL");
  const size_t size = from->struct_size;
  if (size < sizeof(size_t) || size > 65536) return absl::InvalidArgumentError(std::string(name) + ".struct_size is not set");
  const auto* bytes = reinterpret_cast<const unsigned char*>(from);
  for (size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] != 0)
      return absl::InvalidArgumentError(std::string(name) + " uses fields that this version of tilert does not have");
  }
  std::memcpy(static_cast<void*>(to), from, size < sizeof(T) ? size : sizeof(T));
  return absl::OkStatus();
}

// Writes as much of `from` as the host's struct holds.
template <typename T>
absl::Status WriteStruct(T from, T* to, const char* name) {
  if (to == nullptr) return absl::InvalidArgumentError(std::string(name) + " is NULL");
  const size_t size = to->struct_size;
  if (size < sizeof(size_t)) return absl::InvalidArgumentError(std::string(name) + ".struct_size is not set");
  from.struct_size = size;
  std::memcpy(static_cast<void*>(to), &from, size < sizeof(T) ? size : sizeof(T));
  return absl::OkStatus();
}

// Entries of tilert_api, by file: c_api_runtime.cc, c_api_bundle.cc, c_api_kernel.cc.
tilert_status* RuntimeCreate(const tilert_runtime_options* options, tilert_runtime** runtime);
void RuntimeRelease(tilert_runtime* runtime);
tilert_status* RuntimeGetInfo(tilert_runtime* runtime, tilert_runtime_info* info);
tilert_status* BundleOpenMemory(const void* data, size_t size, int copy, tilert_bundle** bundle);
tilert_status* BundleOpenFile(const char* path, tilert_bundle** bundle);
void BundleRelease(tilert_bundle* bundle);
size_t BundleEntryCount(const tilert_bundle* bundle);
const char* BundleEntryName(const tilert_bundle* bundle, size_t index);
tilert_status* BundleParamCount(const tilert_bundle* bundle, const char* entry, size_t* count);
tilert_status* BundleGetParam(const tilert_bundle* bundle, const char* entry, size_t index, tilert_param_info* info);
tilert_status* KernelCreate(tilert_runtime* runtime, tilert_bundle* bundle, const tilert_kernel_spec* spec,
                            tilert_kernel** kernel);
void KernelRelease(tilert_kernel* kernel);
tilert_status* KernelQuery(tilert_kernel* kernel, tilert_readiness* readiness, char* reason, size_t reason_size);
tilert_status* KernelPrepare(tilert_kernel* kernel, tilert_prepare_mode mode);
tilert_status* KernelWorkspaceSize(tilert_kernel* kernel, const tilert_arg* args, size_t arg_count, uint64_t* bytes);
tilert_status* KernelLaunch(tilert_kernel* kernel, const tilert_launch* launch);

}  // namespace tilert::c_api
