// libnvrtc, opened at run time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tilert {

using NvrtcProgram = struct NvrtcProgramHandle*;  // nvrtcProgram

// nvrtcResult values that tilert tells apart.
inline constexpr int kNvrtcSuccess = 0;
inline constexpr int kNvrtcOutOfMemory = 1;
inline constexpr int kNvrtcInvalidOption = 5;
inline constexpr int kNvrtcCompilation = 6;
inline constexpr int kNvrtcBuiltinOperationFailure = 7;
inline constexpr int kNvrtcCancelled = 16;

// The raw functions. Optional ones may be null.
struct NvrtcTable {
#define TILERT_NVRTC_SYMBOL(name, result, symbol, presence, ...) result (*name)(__VA_ARGS__) = nullptr;
#include "runtime/nvrtc_symbols.def"
#undef TILERT_NVRTC_SYMBOL
};

// Immutable after Load, thread safe.
class Nvrtc {
 public:
  // Opens libnvrtc.so.13 or .12 (or $TILERT_LIBNVRTC). Errors: NotFound (paths listed), FailedPrecondition (too old).
  static absl::StatusOr<std::shared_ptr<const Nvrtc>> Load();

  const NvrtcTable& raw() const { return table_; }
  // 1000 · major + 10 · minor, e.g. 13000.
  int version() const { return version_; }
  // "13.0": what cache keys contain.
  std::string version_text() const;
  const std::string& path() const { return path_; }
  // Architectures it compiles for, ascending, e.g. {75, 80, …, 120}.
  const std::vector<int>& architectures() const { return architectures_; }

 private:
  NvrtcTable table_;
  int version_ = 0;
  std::string path_;
  std::vector<int> architectures_;
};

}  // namespace tilert
