#include "runtime/launch_record.h"

#include <algorithm>

#include "ir/limits.h"
#include "ir/status_util.h"
#include "runtime/arg_plan.h"
#include "runtime/tensor_map.h"

namespace tilert {
namespace {

constexpr uint64_t kMaxParameterBytes = 4096;  // of a kernel, on every GPU and driver
constexpr uint32_t kMaxBlocksPerSm = 64;       // more than any GPU holds
constexpr uint32_t kMaxGivenBytes = 1 << 20;   // more than the registers of an SM

bool IsPossible(const Program& program, const KernelRecord& kernel, const KernelArg& arg) {
  switch (arg.kind) {
    case KernelArg::Kind::kTensor:
      return arg.index < program.buffers.size() && program.buffers[arg.index].scope == Scope::kGlobal && arg.bytes == 8;
    case KernelArg::Kind::kDim: return arg.index < program.dims.size() && arg.bytes >= 1 && arg.bytes <= 8;
    case KernelArg::Kind::kScalar: return arg.index < program.scalars.size() && arg.bytes >= 1 && arg.bytes <= 8;
    case KernelArg::Kind::kTensorMap: return arg.index < kernel.maps.size() && arg.bytes == sizeof(cuda::TensorMap);
    case KernelArg::Kind::kGiven:
      return arg.index > 0 && arg.index <= kMaxGivenBytes && arg.index % kWorkspaceAlignment == 0 && arg.bytes == 8 &&
             kernel.persistent;
  }
  return false;
}

absl::Status CheckKernel(const Program& program, const KernelRecord& kernel) {
  uint64_t bytes = 0;
  for (const LoweredTensorMap& map : kernel.maps) TILERT_RETURN_IF_ERROR(CheckTensorMap(program, map));
  for (const KernelArg& arg : kernel.args) {
    const bool is_misplaced = arg.kind == KernelArg::Kind::kGiven && &arg != &kernel.args.back();
    if (is_misplaced || !IsPossible(program, kernel, arg)) {
      return absl::DataLossError("a launch record refers to what the program does not have");
    }
    const uint64_t alignment = arg.kind == KernelArg::Kind::kTensorMap ? alignof(cuda::TensorMap) : 8;
    bytes = (bytes + alignment - 1) / alignment * alignment + arg.bytes;
  }
  if (kernel.args.size() > kMaxKernelArgs || kernel.maps.size() > kMaxTensorMaps || bytes > kMaxParameterBytes) {
    return InvalidArgument("'", program.name, "' needs ", kernel.args.size(), " kernel arguments of ", bytes, " bytes, ",
                           kernel.maps.size(), " of them tensor maps; at most ", kMaxKernelArgs, " of ", kMaxParameterBytes,
                           " bytes with ", kMaxTensorMaps, " maps are possible");
  }
  if (kernel.symbol.empty() || kernel.threads == 0 || kernel.threads > 1024 || kernel.grid.empty() || kernel.grid.size() > 3 ||
      kernel.blocks_per_sm == 0 || kernel.blocks_per_sm > kMaxBlocksPerSm) {
    return absl::DataLossError("a launch record has an impossible kernel");
  }
  return absl::OkStatus();
}

absl::Status CheckCluster(const KernelRecord& kernel) {
  if (kernel.cluster.empty()) return absl::OkStatus();
  uint64_t blocks = 1;
  for (const uint32_t extent : kernel.cluster) blocks *= std::min<uint32_t>(extent, kMaxClusterBlocks + 1);
  if (kernel.cluster.size() == kernel.grid.size() + 1 && blocks >= 1 && blocks <= kMaxClusterBlocks && !kernel.cooperative)
    return absl::OkStatus();
  return absl::DataLossError("a launch record has an impossible cluster");
}

absl::Status CheckRecord(const Program& program, const LaunchRecord& record) {
  size_t maps = 0;
  for (const KernelRecord& kernel : record.kernels) {
    TILERT_RETURN_IF_ERROR(CheckKernel(program, kernel));
    TILERT_RETURN_IF_ERROR(CheckCluster(kernel));
    maps += kernel.maps.size();
  }
  if (maps <= kMaxTensorMaps) return absl::OkStatus();
  return InvalidArgument("the kernels of '", program.name, "' need ", maps, " tensor maps; at most ", kMaxTensorMaps,
                         " are possible");
}

LoweredTensorMap DecodeMap(ByteReader& in) {
  LoweredTensorMap map;
  const uint64_t buffer = in.U64(), dtype = in.U64(), swizzle = in.U64();
  map.buffer = buffer < kNoId ? static_cast<uint32_t>(buffer) : kNoId;
  map.dtype = dtype <= UINT8_MAX && IsValidDType(static_cast<uint32_t>(dtype)) ? static_cast<DType>(dtype) : DType::kInvalid;
  map.swizzle = swizzle <= 128 ? static_cast<int>(swizzle) : -1;
  map.box.resize(in.Count(8));
  for (int64_t& extent : map.box) extent = in.I64();
  return map;
}

absl::StatusOr<KernelRecord> DecodeKernel(const Program& program, ByteReader& in) {
  KernelRecord kernel;
  kernel.symbol = in.Text();
  kernel.args.resize(in.Count(24));
  for (KernelArg& arg : kernel.args) {
    const uint64_t kind = in.U64(), index = in.U64(), bytes = in.U64();
    if (kind > 4 || index > UINT32_MAX || bytes > sizeof(cuda::TensorMap))
      return absl::DataLossError("a launch record has an impossible argument");
    arg = {static_cast<KernelArg::Kind>(kind), static_cast<uint32_t>(index), static_cast<uint32_t>(bytes)};
  }
  const uint64_t grid = in.Count(8);
  for (uint64_t i = 0; i < grid; ++i) {
    TILERT_ASSIGN_OR_RETURN(DimExpr extent, DimExpr::Decode(in, program.dims.size(), program.scalars.size()));
    kernel.grid.push_back(std::move(extent));
  }
  const uint64_t threads = in.U64(), shared = in.U64(), cooperative = in.U64(), persistent = in.U64(), per_sm = in.U64();
  if (!in.ok() || threads > 1024 || shared > UINT32_MAX || cooperative > 1 || persistent > 1 || per_sm > kMaxBlocksPerSm)
    return absl::DataLossError("a launch record ends early");
  kernel.threads = static_cast<uint32_t>(threads);
  kernel.shared_bytes = static_cast<uint32_t>(shared);
  kernel.cooperative = cooperative == 1;
  kernel.persistent = persistent == 1;
  kernel.blocks_per_sm = static_cast<uint32_t>(per_sm);
  kernel.cluster.resize(in.Count(8));
  for (uint32_t& extent : kernel.cluster) extent = static_cast<uint32_t>(std::min<uint64_t>(in.U64(), UINT32_MAX));
  kernel.maps.resize(in.Count(32));
  for (LoweredTensorMap& map : kernel.maps) map = DecodeMap(in);
  return kernel;
}

}  // namespace

uint32_t KernelRecord::GivenBytes() const {
  return args.empty() || args.back().kind != KernelArg::Kind::kGiven ? 0 : args.back().index;
}

uint32_t KernelRecord::ClusterSize() const {
  uint32_t size = 1;
  for (const uint32_t extent : cluster) size *= extent;
  return size;
}

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
    kernel.persistent = from.persistent;
    if (from.persistent) kernel.blocks_per_sm = from.blocks_per_sm;
    kernel.cluster = from.cluster;
    kernel.maps = from.maps;
    record.kernels.push_back(std::move(kernel));
  }
  TILERT_RETURN_IF_ERROR(CheckRecord(program, record));
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
    out.U64(kernel.persistent ? 1 : 0);
    out.U64(kernel.blocks_per_sm);
    out.U64(kernel.cluster.size());
    for (const uint32_t extent : kernel.cluster) out.U64(extent);
    out.U64(kernel.maps.size());
    for (const LoweredTensorMap& map : kernel.maps) {
      out.U64(map.buffer);
      out.U64(static_cast<uint64_t>(map.dtype));
      out.U64(static_cast<uint64_t>(map.swizzle));
      out.U64(map.box.size());
      for (const int64_t extent : map.box) out.I64(extent);
    }
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
  TILERT_RETURN_IF_ERROR(CheckRecord(program, record));
  return record;
}

}  // namespace tilert
