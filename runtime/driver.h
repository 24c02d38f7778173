// libcuda, opened at run time. Every entry of driver_symbols.def becomes a pointer in DriverTable and a method of
// Driver that returns a Status:
//
//   TILERT_RETURN_IF_ERROR(driver.StreamSynchronize(stream));
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/driver_api.h"

namespace tilert::cuda {

// The raw functions. Optional ones may be null.
struct DriverTable {
#define TILERT_DRIVER_SYMBOL(method, symbol, presence, ...) Result (*method)(__VA_ARGS__) = nullptr;
#include "runtime/driver_symbols.def"
#undef TILERT_DRIVER_SYMBOL
};

// Immutable after Load, thread safe. Needs no context of its own and creates none.
class Driver {
 public:
  // Opens libcuda.so.1 (or $TILERT_LIBCUDA), resolves the symbols and calls cuInit.
  // Errors: NotFound (no library; paths listed), FailedPrecondition (driver too old: names the symbol),
  // Unavailable (no device, or the driver does not start).
  static absl::StatusOr<std::shared_ptr<const Driver>> Load();

  // The raw table, for the launch path.
  const DriverTable& raw() const { return table_; }

  // 1000 · major + 10 · minor of the newest CUDA version the driver supports.
  int version() const { return version_; }
  const std::string& path() const { return path_; }

  // Status of a driver call: OK for kSuccess, else the mapped code with "<call>: <NAME> (<number>): <text>".
  absl::Status StatusOf(const char* call, Result result) const;

#define TILERT_DRIVER_SYMBOL(method, symbol, presence, ...)              \
  template <typename... Args>                                            \
  absl::Status method(Args&&... args) const {                            \
    if (table_.method == nullptr) return Missing(symbol);                \
    return StatusOf(symbol, table_.method(std::forward<Args>(args)...)); \
  }
#include "runtime/driver_symbols.def"
#undef TILERT_DRIVER_SYMBOL

 private:
  absl::Status Missing(const char* symbol) const;

  DriverTable table_;
  int version_ = 0;
  std::string path_;
};

// The Status code that stands for a CUresult.
absl::StatusCode StatusCodeOf(Result result);

}  // namespace tilert::cuda
