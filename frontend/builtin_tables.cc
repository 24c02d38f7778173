#include "frontend/builtin_tables.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace tilert::frontend {
namespace {

const std::map<std::string_view, const Builtin*>& Table() {
  static const auto* table = [] {
    auto* all = new std::map<std::string_view, const Builtin*>;
    for (const auto& part :
         {PythonBuiltins(), ModuleBuiltins(), LaunchIntrinsics(), AllocIntrinsics(), CopyIntrinsics(), TileIntrinsics(),
          ConvolutionIntrinsics(), LoopIntrinsics(), MathIntrinsics(), ThreadIntrinsics(), SimtIntrinsics(),
          RandomIntrinsics()}) {
      for (const Builtin& builtin : part) all->emplace(builtin.path, &builtin);
    }
    return all;
  }();
  return *table;
}

struct Unsupported {
  std::string_view path, advice;
};

// Parts of TileLang that exist there and not yet here.
constexpr Unsupported kUnsupported[] = {
    {"T.gemm_sp", "use T.gemm on a dense operand"},
    // An address that a launch reads from memory may lie outside everything it was given: no bound of it can be checked.
    {"T.ptr", "pass one tensor that holds all groups, and offsets into it: an address from memory may be outside every tensor"},
    {"T.make_tensor", "pass one tensor that holds all groups, and offsets into it: what an address points to has no bounds"},
    {"T.handle", "describe the parameter as T.Tensor(shape, dtype)"},
    {"T.match_buffer", "describe the parameter as T.Tensor(shape, dtype)"},
    {"T.Buffer", "write T.Tensor(shape, dtype)"},
    {"T.alloc_tmem", "use T.alloc_fragment"},
    {"T.tcgen05_gemm", "use T.gemm"},
    {"T.call_extern", "use the functions of T"},
    {"T.import_source", "use the functions of T"},
    {"T.float8_e8m0fnu", "store the exponent in a uint8"},
    {"T.launch_thread", "use T.Kernel"},
    {"T.If", "open it with `with T.If(condition):`, holding `with T.Then():` and `with T.Else():`"},
    {"T.Then", "put it directly into `with T.If(condition):`"},
    {"T.Else", "put it directly into `with T.If(condition):`, after `with T.Then():`"},
    {"T.PersistentTileScheduler", "use T.Kernel over all tiles: persistence is chosen by the lowering"},
};

}  // namespace

const Builtin* FindBuiltin(std::string_view path) {
  const auto it = Table().find(path);
  return it == Table().end() ? nullptr : it->second;
}

std::vector<std::string_view> BuiltinsUnder(std::string_view prefix) {
  std::vector<std::string_view> paths;
  for (const auto& [path, builtin] : Table()) {
    if (path.substr(0, prefix.size()) == prefix) paths.push_back(path);
  }
  return paths;
}

std::optional<std::string_view> KnownButUnsupported(std::string_view path) {
  for (const Unsupported& entry : kUnsupported) {
    if (entry.path == path) return entry.advice;
  }
  return std::nullopt;
}

}  // namespace tilert::frontend
