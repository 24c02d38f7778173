// Arrays by the notation of --in and --out.
#include "ir/status_util.h"
#include "tools/arguments.h"
#include "tools/file.h"
#include "tools/npy.h"
#include "tools/safetensors.h"

namespace tilert::tool {
namespace {

constexpr std::string_view kSafetensors = ".safetensors";

struct Place {
  std::string file;
  std::string tensor;  // empty: a .npy file
};

absl::StatusOr<Place> ParsePlace(const std::string& spec) {
  if (const size_t at = spec.find(Cat(kSafetensors, ":")); at != std::string::npos) {
    const size_t end = at + kSafetensors.size();
    if (end + 1 < spec.size()) return Place{spec.substr(0, end), spec.substr(end + 1)};
  }
  const bool npy = spec.size() > 4 && spec.compare(spec.size() - 4, 4, ".npy") == 0;
  if (!npy) return UsageError(Cat("'", spec, "' is neither FILE.npy nor FILE.safetensors:TENSOR"));
  return Place{spec, ""};
}

}  // namespace

absl::Status CheckPlaces(const std::vector<std::string>& specs) {
  std::map<std::string, std::vector<std::string>> tensors;
  for (const std::string& spec : specs) {
    TILERT_ASSIGN_OR_RETURN(const Place place, ParsePlace(spec));
    if (!place.tensor.empty()) tensors[place.file].push_back(place.tensor);
  }
  for (const auto& [file, names] : tensors) {
    if (!IsSameFile(file, file)) continue;  // there is none yet, or it is a device
    TILERT_ASSIGN_OR_RETURN(const std::string others, OtherSafetensors(file, names));
    if (!others.empty()) return InvalidArgument(file, " also holds ", others, ", which would be lost: write to another file");
  }
  return absl::OkStatus();
}

absl::StatusOr<Array> LoadArray(const std::string& spec) {
  TILERT_ASSIGN_OR_RETURN(const Place place, ParsePlace(spec));
  return place.tensor.empty() ? ReadNpy(place.file) : ReadSafetensor(place.file, place.tensor);
}

absl::Status StoreArrays(const std::map<std::string, const Array*>& by_spec) {
  std::map<std::string, std::string> files;
  std::map<std::string, std::map<std::string, Array>> safetensors;
  for (const auto& [spec, array] : by_spec) {
    TILERT_ASSIGN_OR_RETURN(const Place place, ParsePlace(spec));
    if (place.tensor.empty()) {
      files[place.file] = NpyBytes(*array);
    } else {
      safetensors[place.file][place.tensor] = *array;
    }
  }
  for (const auto& [file, tensors] : safetensors) files[file] = SafetensorsBytes(tensors);
  for (const auto& [file, bytes] : files) TILERT_RETURN_IF_ERROR(WriteFile(file, bytes));
  return absl::OkStatus();
}

}  // namespace tilert::tool
