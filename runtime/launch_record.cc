#include "runtime/launch_record.h"

#include "ir/status_util.h"

namespace tilert {
namespace {

constexpr size_t kMaxKernelArgs = 256;  // well below the 4 KiB of parameters that a kernel may have

absl::Status CheckKernel(const Program& program, const KernelRecord& kernel) {
  for (const KernelArg& arg : kernel.args) {
    const size_t limit = arg.kind == KernelArg::Kind::kTensor ? program.buffers.size()
                         : arg.kind == KernelArg::Kind::kDim  ? program.dims.size()
                                                              : program.scalars.size();
    const bool is_known = arg.kind <= KernelArg::Kind::kScalar && arg.index < limit && arg.bytes >= 1 && arg.bytes <= 8;
    if (!is_known || (arg.kind == KernelArg::Kind::kTensor && program.buffers[arg.index].scope != Scope::kGlobal)) {
      return absl::DataLossError("a launch record refers to what the program does not have");
    }
  }
  if (kernel.args.size() > kMaxKernelArgs) {
    return InvalidArgument("'", program.name, "' needs ", kernel.args.size(), " kernel arguments; at most ", kMaxKernelArgs,
                           " are possible");
  }
  if (kernel.symbol.empty() || kernel.threads == 0 || kernel.threads > 1024 || kernel.grid.empty() || kernel.grid.size() > 3) {
    return absl::DataLossError("a launch record has an impossible kernel");
  }
  return absl::OkStatus();
}

absl::StatusOr<KernelRecord> DecodeKernel(const Program& program, ByteReader& in) {
  KernelRecord kernel;
  kernel.symbol = in.Text();
  kernel.args.resize(in.Count(24));
  for (KernelArg& arg : kernel.args) {
    const uint64_t kind = in.U64(), index = in.U64(), bytes = in.U64();
    if (kind > 2 || index > UINT32_MAX || bytes > 8) return absl::DataLossError("a launch record has an impossible argument");
    arg = {static_cast<KernelArg::Kind>(kind), static_cast<uint32_t>(index), static_cast<uint32_t>(bytes)};
  }
  const uint64_t grid = in.Count(8);
  for (uint64_t i = 0; i < grid; ++i) {
    TILERT_ASSIGN_OR_RETURN(DimExpr extent, DimExpr::Decode(in, program.dims.size(), program.scalars.size()));
    kernel.grid.push_back(std::move(extent));
  }
  const uint64_t threads = in.U64(), shared = in.U64(), cooperative = in.U64();
  if (!in.ok() || threads > 1024 || shared > UINT32_MAX || cooperative > 1)
    return absl::DataLossError("a launch record ends early");
  kernel.threads = static_cast<uint32_t>(threads);
  kernel.shared_bytes = static_cast<uint32_t>(shared);
  kernel.cooperative = cooperative == 1;
  TILERT_RETURN_IF_ERROR(CheckKernel(program, kernel));
  return kernel;
}

}  // namespace

absl::StatusOr<LaunchRecord> MakeLaunchRecord(const Program& program, const Lowered& lowered) {
  LaunchRecord record;
  for (const LoweredKernel& from : lowered.kernels) {
    KernelRecord kernel;
    kernel.symbol = from.symbol;
    kernel.args = from.args;
    for (const Expr extent : from.grid) {
      TILERT_ASSIGN_OR_RETURN(DimExpr compiled, DimExpr::Compile(program, extent));
      kernel.grid.push_back(std::move(compiled));
    }
    kernel.threads = from.threads;
    if (from.shared_bytes > UINT32_MAX)
      return Internal("kernel ", from.symbol, " asks for ", from.shared_bytes, " bytes of shared memory");
    kernel.shared_bytes = static_cast<uint32_t>(from.shared_bytes);
    kernel.cooperative = from.cooperative;
    TILERT_RETURN_IF_ERROR(CheckKernel(program, kernel));
    record.kernels.push_back(std::move(kernel));
  }
  return record;
}

std::string EncodeLaunchRecord(const LaunchRecord& record) {
  ByteWriter out;
  out.U64(kLaunchAbi);
  out.U64(record.kernels.size());
  for (const KernelRecord& kernel : record.kernels) {
    out.Text(kernel.symbol);
    out.U64(kernel.args.size());
    for (const KernelArg& arg : kernel.args) {
      out.U64(static_cast<uint64_t>(arg.kind));
      out.U64(arg.index);
      out.U64(arg.bytes);
    }
    out.U64(kernel.grid.size());
    for (const DimExpr& extent : kernel.grid) extent.Encode(out);
    out.U64(kernel.threads);
    out.U64(kernel.shared_bytes);
    out.U64(kernel.cooperative ? 1 : 0);
  }
  return out.Take();
}

absl::StatusOr<LaunchRecord> DecodeLaunchRecord(const Program& program, std::string_view bytes) {
  ByteReader in(bytes);
  if (in.U64() != kLaunchAbi) return absl::DataLossError("a launch record of another version");
  LaunchRecord record;
  const uint64_t kernels = in.Count(8);
  for (uint64_t i = 0; i < kernels; ++i) {
    TILERT_ASSIGN_OR_RETURN(KernelRecord kernel, DecodeKernel(program, in));
    record.kernels.push_back(std::move(kernel));
  }
  if (!in.ok() || !in.AtEnd()) return absl::DataLossError("a launch record of the wrong length");
  return record;
}

}  // namespace tilert
