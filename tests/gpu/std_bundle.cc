#include "tests/gpu/std_bundle.h"

#include <cstdlib>
#include <filesystem>

#include "ir/status_util.h"
#include "tools/random_array.h"

namespace tilert::gpu {
namespace {

// The extent that `e` (over dims) has.
absl::StatusOr<int64_t> Extent(const Program& program, Expr e, const std::map<std::string, int64_t>& dims) {
  ExprArena arena = program.exprs;
  const Expr value = Fold(arena, Rewrite(arena, e, arena, [&](Expr, const ExprNode& node) -> Expr {
                            if (node.op != ExprOp::kDim) return {};
                            const auto it = dims.find(program.dims[node.i].name);
                            return it == dims.end() ? Expr{} : arena.Int(it->second);
                          }));
  int64_t extent = 0;
  if (!arena.AsInt(value, &extent)) return InvalidArgument("a dim of '", program.name, "' has no value");
  return extent;
}

}  // namespace

absl::StatusOr<std::string> StdPath() {
  namespace fs = std::filesystem;
  if (const char* path = std::getenv("TILERT_STD")) return path;
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& candidate : {folder / "std.tilert", folder.parent_path() / "std.tilert"}) {
    if (fs::exists(candidate)) return candidate.string();
  }
  return absl::NotFoundError(Cat("std.tilert is neither in ", folder.string(), " nor above it; set TILERT_STD"));
}

absl::StatusOr<std::unique_ptr<tool::BundleFile>> OpenStd() {
  TILERT_ASSIGN_OR_RETURN(const std::string path, StdPath());
  return tool::OpenBundle(path);
}

absl::StatusOr<Program> FindProgram(const tool::BundleFile& file, const std::string& entry) {
  for (const Program& program : file.bundle.programs) {
    if (program.name != entry) continue;
    TILERT_ASSIGN_OR_RETURN(VerifiedProgram verified, Verify(program));
    return *verified;
  }
  return absl::NotFoundError(Cat(file.path, " has no program '", entry, "'"));
}

absl::StatusOr<tool::CallArguments> MakeArguments(const Program& program, const std::map<std::string, int64_t>& dims,
                                                  uint64_t seed) {
  tool::CallArguments call;
  for (const Param& param : program.params) {
    if (param.kind == Param::Kind::kScalar) {
      const ScalarParam& scalar = program.scalars[param.index];
      if (scalar.dim != kNoId) return InvalidArgument("'", program.name, "' takes a dim as a scalar");
      const double value = 0.75 + 0.625 * param.index;
      call.scalars.push_back(IsFloat(scalar.dtype) ? ScalarArg::Float(value, scalar.dtype)
                                                   : ScalarArg::Int(static_cast<int64_t>(param.index) + 1, scalar.dtype));
      continue;
    }
    const Buffer& buffer = program.buffers[param.index];
    std::vector<int64_t> shape;
    for (Expr e : buffer.shape) {
      TILERT_ASSIGN_OR_RETURN(shape.emplace_back(), Extent(program, e, dims));
    }
    TILERT_ASSIGN_OR_RETURN(tool::Array array, tool::MakeArray(buffer.dtype, shape));
    if (param.access == Access::kOut) {
      tool::FillPoison(&array);
    } else {
      tool::FillRandom(seed * 131 + param.index, &array);
      if (array.dtype == DType::kInt8) {
        for (uint8_t& byte : array.bytes) byte = static_cast<uint8_t>(byte * 17);  // 0 … 15 → −128 … 127
      }
    }
    call.names.push_back(buffer.name);
    call.access.push_back(param.access);
    call.arrays.push_back(std::move(array));
  }
  return call;
}

}  // namespace tilert::gpu
