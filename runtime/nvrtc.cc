#include "runtime/nvrtc.h"

#include <algorithm>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "runtime/dynamic_library.h"

namespace tilert {
namespace {

enum class Presence { kRequired, kOptional };

absl::Status ResolveAll(const DynamicLibrary& library, NvrtcTable& table) {
  using enum Presence;
  std::string missing;
  const auto resolve = [&](const char* symbol, Presence presence, auto& slot) {
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(library.Find(symbol));
    if (slot == nullptr && presence == kRequired) absl::StrAppend(&missing, missing.empty() ? "" : ", ", symbol);
  };
#define TILERT_NVRTC_SYMBOL(name, result, symbol, presence, ...) resolve(symbol, presence, table.name);
#include "runtime/nvrtc_symbols.def"
#undef TILERT_NVRTC_SYMBOL
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(library.path(), " lacks ", missing, ": tilert needs NVRTC 12 or later"));
}

std::vector<std::string> Candidates() {
  std::vector<std::string> names = {"libnvrtc.so.13", "libnvrtc.so.12"};
  // Toolkits that are installed without an ld.so entry.
  for (const char* folder : {"/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"}) {
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12"}) names.push_back(absl::StrCat(folder, name));
  }
  return names;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Nvrtc>> Nvrtc::Load() {
  absl::StatusOr<DynamicLibrary> library = DynamicLibrary::Open("the NVRTC compiler library", "TILERT_LIBNVRTC", Candidates());
  if (!library.ok()) return library.status();
  auto nvrtc = std::make_shared<Nvrtc>();
  nvrtc->path_ = library->path();
  NvrtcTable& table = nvrtc->table_;
  if (absl::Status status = ResolveAll(*library, table); !status.ok()) return status;
  int major = 0, minor = 0, count = 0;
  if (table.Version(&major, &minor) != kNvrtcSuccess || table.GetNumSupportedArchs(&count) != kNvrtcSuccess || count <= 0) {
    return absl::UnavailableError(absl::StrCat(library->path(), " does not answer nvrtcVersion"));
  }
  nvrtc->version_ = 1000 * major + 10 * minor;
  nvrtc->architectures_.resize(count);
  if (table.GetSupportedArchs(nvrtc->architectures_.data()) != kNvrtcSuccess) {
    return absl::UnavailableError(absl::StrCat(library->path(), " does not answer nvrtcGetSupportedArchs"));
  }
  std::sort(nvrtc->architectures_.begin(), nvrtc->architectures_.end());
  return nvrtc;
}

std::string Nvrtc::version_text() const { return absl::StrCat(version_ / 1000, ".", version_ % 1000 / 10); }

}  // namespace tilert
