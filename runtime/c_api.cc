#include "runtime/c_api.h"

#include <cstdlib>

namespace tilert::c_api {
namespace {

// Constant-initialised and without a destructor: valid at any time, also while the process ends.
constinit tilert_status out_of_memory = {TILERT_RESOURCE_EXHAUSTED, "out of memory"};

tilert_code ToCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return TILERT_OK;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return TILERT_INVALID_ARGUMENT;
    case absl::StatusCode::kNotFound:
      return TILERT_NOT_FOUND;
    case absl::StatusCode::kFailedPrecondition:
      return TILERT_FAILED_PRECONDITION;
    case absl::StatusCode::kResourceExhausted:
      return TILERT_RESOURCE_EXHAUSTED;
    case absl::StatusCode::kUnavailable:
      return TILERT_UNAVAILABLE;
    case absl::StatusCode::kUnimplemented:
      return TILERT_UNIMPLEMENTED;
    case absl::StatusCode::kDeadlineExceeded:
      return TILERT_DEADLINE_EXCEEDED;
    case absl::StatusCode::kAborted:
      return TILERT_ABORTED;
    case absl::StatusCode::kPermissionDenied:
      return TILERT_PERMISSION_DENIED;
    case absl::StatusCode::kDataLoss:
      return TILERT_DATA_LOSS;
    default:
      return TILERT_INTERNAL;
  }
}

tilert_code StatusGetCode(const tilert_status* status) { return status == nullptr ? TILERT_OK : status->code; }

const char* StatusMessage(const tilert_status* status) { return status == nullptr ? "" : status->message; }

void StatusRelease(tilert_status* status) {
  if (status == nullptr || status == &out_of_memory) return;
  std::free(const_cast<char*>(status->message));
  std::free(status);
}

constexpr tilert_api kApi = {
    sizeof(tilert_api),
    TILERT_API_VERSION,
    0,
    "0.1.0",
    StatusGetCode,
    StatusMessage,
    StatusRelease,
    RuntimeCreate,
    RuntimeRelease,
    RuntimeGetInfo,
    BundleOpenMemory,
    BundleOpenFile,
    BundleRelease,
    BundleEntryCount,
    BundleEntryName,
    BundleParamCount,
    BundleGetParam,
    KernelCreate,
    KernelRelease,
    KernelQuery,
    KernelPrepare,
    KernelWorkspaceSize,
    KernelLaunch,
};

}  // namespace

tilert_status* OutOfMemory() noexcept { return &out_of_memory; }

tilert_status* ToStatus(const absl::Status& status) noexcept {
  if (status.ok()) return nullptr;
  const absl::string_view text = status.message();
  auto* const result = static_cast<tilert_status*>(std::malloc(sizeof(tilert_status)));
  auto* const message = static_cast<char*>(std::malloc(text.size() + 1));
  if (result == nullptr || message == nullptr) {
    std::free(result);
    std::free(message);
    return &out_of_memory;
  }
  std::memcpy(message, text.data(), text.size());
  message[text.size()] = '\0';
  *result = {ToCode(status.code()), message};
  return result;
}

}  // namespace tilert::c_api

extern "C" TILERT_EXPORT const tilert_api* tilert_get_api(uint32_t version) {
  return version >= 1 && version <= TILERT_API_VERSION ? &tilert::c_api::kApi : nullptr;
}
