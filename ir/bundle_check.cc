#include "ir/bundle_check.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/limits.h"
#include "ir/status_util.h"
#include "ir/structure.h"

namespace tilert {
namespace {

absl::Status CheckGuards(const std::vector<DimGuard>& guards, const Program& program, const std::string& path) {
  if (guards.size() > kMaxTableEntries) return InvalidArgument(path, ": ", guards.size(), " guards");
  for (size_t i = 0; i < guards.size(); ++i) {
    const DimGuard& g = guards[i];
    const std::string at = Cat(path, ".guards[", i, "]");
    if (g.dim >= program.dims.size())
      return InvalidArgument(at, ": dim ", g.dim, " does not exist; ", program.name, " has ", program.dims.size());
    if (g.min < 0 || g.max < g.min || g.divisor < 1) {
      return InvalidArgument(at, ": range ", g.min, "..", g.max, " by ", g.divisor, " is not one of a dim");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckConstants(const std::map<std::string, int64_t>& values, const Program& program, const std::string& path) {
  for (const auto& [name, value] : values) {
    const auto it = std::find_if(program.constants.begin(), program.constants.end(),
                                 [&name = name](const Constant& c) { return c.name == name; });
    if (it == program.constants.end()) return InvalidArgument(path, ": ", program.name, " has no constant ", name);
    if (std::find(it->candidates.begin(), it->candidates.end(), value) == it->candidates.end()) {
      return InvalidArgument(path, ": ", value, " is no candidate of constant ", name);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPrograms(const Bundle& bundle) {
  if (bundle.programs.size() > kMaxPrograms)
    return InvalidArgument("bundle: ", bundle.programs.size(), " programs; at most ", kMaxPrograms);
  std::set<std::string_view> names;
  for (size_t i = 0; i < bundle.programs.size(); ++i) {
    const Program& program = bundle.programs[i];
    if (!names.insert(program.name).second) return InvalidArgument("programs[", i, "]: a second program is named ", program.name);
    const std::vector<VerifyError> errors = FindStructureErrors(program);
    if (!errors.empty()) return InvalidArgument("programs[", i, "] (", program.name, "): ", errors[0].ToString());
  }
  return absl::OkStatus();
}

absl::Status CheckVariants(const Bundle& bundle) {
  for (size_t i = 0; i < bundle.variants.size(); ++i) {
    const Variant& v = bundle.variants[i];
    const std::string path = Cat("variants[", i, "]");
    if (v.program >= bundle.programs.size()) return InvalidArgument(path, ": program ", v.program, " does not exist");
    const Program& program = bundle.programs[v.program];
    TILERT_RETURN_IF_ERROR(CheckConstants(v.constants, program, path));
    TILERT_RETURN_IF_ERROR(CheckGuards(v.guards, program, path));
  }
  for (size_t i = 0; i < bundle.tuning.size(); ++i) {
    const TuningRecord& t = bundle.tuning[i];
    const std::string path = Cat("tuning[", i, "]");
    if (t.variant >= bundle.variants.size()) return InvalidArgument(path, ": variant ", t.variant, " does not exist");
    if (!(t.microseconds >= 0) || std::isinf(t.microseconds)) return InvalidArgument(path, ": ", t.microseconds, " is no time");
    TILERT_RETURN_IF_ERROR(CheckGuards(t.bucket, bundle.programs[bundle.variants[t.variant].program], path));
  }
  return absl::OkStatus();
}

absl::Status CheckArg(const CubinKernel& kernel, const CubinKernel::Arg& arg, const std::string& path) {
  if (arg.kind == CubinKernel::Arg::Kind::kInvalid || arg.kind > CubinKernel::Arg::Kind::kGiven)
    return InvalidArgument(path, ": unknown kind of argument");
  const bool is_map = arg.kind == CubinKernel::Arg::Kind::kTensorMap;
  if (is_map && arg.index >= kernel.maps.size()) return InvalidArgument(path, ": tensor map ", arg.index, " does not exist");
  if (is_map ? arg.bytes != 128 : arg.bytes == 0 || arg.bytes > 8 || (arg.bytes & (arg.bytes - 1)) != 0)
    return InvalidArgument(path, ": an argument of ", arg.bytes, " bytes");
  return absl::OkStatus();
}

absl::Status CheckCubins(const Bundle& bundle) {
  for (size_t i = 0; i < bundle.cubins.size(); ++i) {
    const PrebuiltCubin& cubin = bundle.cubins[i];
    for (size_t k = 0; k < cubin.kernels.size(); ++k) {
      const CubinKernel& kernel = cubin.kernels[k];
      const std::string path = Cat("cubins[", i, "].kernels[", k, "]");
      if (kernel.threads == 0 || kernel.threads > 1024) return InvalidArgument(path, ": ", kernel.threads, " threads");
      if (kernel.blocks_per_sm == 0) return InvalidArgument(path, ": no block on an SM");
      for (const CubinKernel::Map& map : kernel.maps) {
        if (map.dtype == DType::kInvalid || !IsValidDType(static_cast<uint32_t>(map.dtype)) || map.box.empty() ||
            map.box.size() > 5)
          return InvalidArgument(path, ": an impossible tensor map");
      }
      for (const CubinKernel::Arg& arg : kernel.args) TILERT_RETURN_IF_ERROR(CheckArg(kernel, arg, path));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckBundle(const Bundle& bundle) {
  TILERT_RETURN_IF_ERROR(CheckPrograms(bundle));
  TILERT_RETURN_IF_ERROR(CheckVariants(bundle));
  return CheckCubins(bundle);
}

}  // namespace tilert
