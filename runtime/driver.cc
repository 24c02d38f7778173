#include "runtime/driver.h"

#include "absl/strings/str_cat.h"
#include "runtime/dynamic_library.h"

namespace tilert::cuda {
namespace {

enum class Presence { kRequired, kOptional };

// Resolves one symbol into its slot; false if it is required and missing.
bool Resolve(const DynamicLibrary& library, const char* name, Presence presence, auto& slot) {
  slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(library.Find(name));
  return slot != nullptr || presence == Presence::kOptional;
}

absl::Status ResolveAll(const DynamicLibrary& library, DriverTable& table) {
  using enum Presence;
  std::string missing;
#define TILERT_DRIVER_SYMBOL(method, symbol, presence, ...) \
  if (!Resolve(library, symbol, presence, table.method)) absl::StrAppend(&missing, missing.empty() ? "" : ", ", symbol);
#include "runtime/driver_symbols.def"
#undef TILERT_DRIVER_SYMBOL
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(library.path(), " lacks ", missing,
                                                    ": the NVIDIA driver is too old (tilert needs one for CUDA 11.4 or later)"));
}

}  // namespace

absl::StatusCode StatusCodeOf(Result result) {
  switch (result) {
    case kSuccess:
      return absl::StatusCode::kOk;
    case kOutOfMemory:
    case kLaunchOutOfResources:
      return absl::StatusCode::kResourceExhausted;
    case kNotInitialized:
    case kDeinitialized:
    case kStubLibrary:
    case kDeviceUnavailable:
    case kNoDevice:
    case kJitCompilerNotFound:
    case kNotReady:
    case kSystemNotReady:
    case kSystemDriverMismatch:
      return absl::StatusCode::kUnavailable;
    case kInvalidDevice:
    case kInvalidHandle:
      return absl::StatusCode::kInvalidArgument;
    case kInvalidContext:
    case kContextIsDestroyed:
      return absl::StatusCode::kFailedPrecondition;
    case kNotFound:
      return absl::StatusCode::kNotFound;
    case kCallRequiresNewerDriver:
    case kNoBinaryForGpu:
    case kUnsupportedPtxVersion:
    case kNotSupported:
      return absl::StatusCode::kUnimplemented;
    case kLaunchTimeout:
      return absl::StatusCode::kDeadlineExceeded;
    // Sticky faults of work that ran earlier: the context is lost, whoever caused it.
    case kEccUncorrectable:
    case kIllegalAddress:
    case kAssert:
    case kLaunchFailed:
      return absl::StatusCode::kAborted;
    default:
      break;
  }
  if (result >= kStreamCaptureUnsupported && result <= kStreamCaptureWrongThread) return absl::StatusCode::kFailedPrecondition;
  if (result >= kHardwareStackError && result <= kLaunchFailed) return absl::StatusCode::kAborted;
  return absl::StatusCode::kInternal;
}

absl::StatusOr<std::shared_ptr<const Driver>> Driver::Load() {
  absl::StatusOr<DynamicLibrary> library =
      DynamicLibrary::Open("the NVIDIA driver library", "TILERT_LIBCUDA", {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"});
  if (!library.ok()) return library.status();
  auto driver = std::make_shared<Driver>();
  driver->path_ = library->path();
  if (absl::Status status = ResolveAll(*library, driver->table_); !status.ok()) return status;
  if (absl::Status status = driver->Init(0u); !status.ok()) return status;
  if (absl::Status status = driver->DriverGetVersion(&driver->version_); !status.ok()) return status;
  return driver;
}

absl::Status Driver::StatusOf(const char* call, Result result) const {
  if (result == kSuccess) return absl::OkStatus();
  const char* name = nullptr;
  const char* text = nullptr;
  if (table_.GetErrorName == nullptr || table_.GetErrorName(result, &name) != kSuccess || name == nullptr) name = "unknown";
  if (table_.GetErrorString == nullptr || table_.GetErrorString(result, &text) != kSuccess || text == nullptr) text = "no text";
  return absl::Status(StatusCodeOf(result), absl::StrCat(call, ": ", name, " (", result, "): ", text));
}

absl::Status Driver::Missing(const char* symbol) const {
  return absl::UnavailableError(absl::StrCat(symbol, " is not in ", path_, ": this needs a newer NVIDIA driver"));
}

}  // namespace tilert::cuda
