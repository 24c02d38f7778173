#include "runtime/ready_code.h"

#include <algorithm>

#include "ir/status_util.h"

namespace tilert {
namespace {

constexpr int64_t kMaxBlocks = 0x7fffffff;

// The bytes of a scalar argument, in the low bytes of the result.
uint64_t EncodeScalar(DType dtype, Value value) {
  return IsFloat(dtype) ? EncodeFloat(dtype, value.f) : static_cast<uint64_t>(value.i);
}

// Product of the grid's extents, each up to whole clusters, times the blocks of a cluster that share one of the grid's: 0 if any
// is zero or negative, −1 if it is beyond what a launch can have, or what 64 bits hold.
int64_t CountBlocks(const KernelRecord& record, const DimValues& values) {
  int64_t extents[3] = {1, 1, 1};
  for (size_t i = 0; i < record.grid.size() && i < 3; ++i) {
    extents[i] = record.grid[i].EvalExact(values);
    if (extents[i] == DimExpr::kTooLarge) return -1;
    if (extents[i] <= 0) return 0;
    if (!record.cluster.empty() && extents[i] <= kMaxBlocks)
      extents[i] = (extents[i] + record.cluster[i] - 1) / record.cluster[i] * record.cluster[i];
  }
  int64_t blocks = record.cluster.empty() ? 1 : record.cluster.back();
  for (const int64_t extent : extents) {
    if (__builtin_mul_overflow(extent, blocks, &blocks)) return -1;
  }
  return blocks <= kMaxBlocks ? blocks : -1;
}

cuda::LaunchConfig ConfigOf(const KernelRecord& record, unsigned blocks, cuda::Stream stream, cuda::LaunchAttribute* cluster) {
  cuda::LaunchConfig config;
  config.grid[0] = blocks;
  config.block[0] = record.threads;
  config.shared_bytes = record.shared_bytes;
  config.stream = stream;
  cluster->id = cuda::kLaunchClusterDimension;
  cluster->cluster[0] = record.ClusterSize();
  cluster->cluster[1] = cluster->cluster[2] = 1;
  config.attributes = cluster;
  config.attribute_count = 1;
  return config;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReadyCode>> ReadyCode::Load(const Runtime& runtime, const ArgPlan& plan, const CacheEntry& entry) {
  std::unique_ptr<ReadyCode> code(new ReadyCode(runtime, plan));
  TILERT_ASSIGN_OR_RETURN(LaunchRecord record, DecodeLaunchRecord(plan.program(), entry.record));
  std::vector<FunctionRequest> requests;
  for (const KernelRecord& kernel : record.kernels) {
    if (kernel.shared_bytes > static_cast<uint64_t>(runtime.target().max_shared_bytes)) {
      return absl::ResourceExhaustedError(Cat("kernel ", kernel.symbol, " needs ", kernel.shared_bytes,
                                              " bytes of shared memory; ", runtime.device().name, " has ",
                                              runtime.target().max_shared_bytes, " a block"));
    }
    requests.push_back({kernel.symbol, kernel.shared_bytes});
  }
  // Before anything is loaded: whether the driver knows tensor maps.
  for (const KernelRecord& kernel : record.kernels) {
    for (const LoweredTensorMap& map : kernel.maps) {
      TILERT_ASSIGN_OR_RETURN(code->encoders_.emplace_back(), TensorMapEncoder::Make(runtime.driver(), plan, map));
    }
  }
  TILERT_ASSIGN_OR_RETURN(code->module_, LoadedModule::Load(runtime.shared_driver(), entry.code, requests));
  uint32_t first_map = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto maps = static_cast<uint32_t>(record.kernels[i].maps.size());
    TILERT_RETURN_IF_ERROR(code->AddKernel(std::move(record.kernels[i]), code->module_->functions()[i], first_map));
    first_map += maps;
  }
  return code;
}

absl::Status ReadyCode::AddKernel(KernelRecord record, cuda::Function function, uint32_t first_map) {
  Kernel kernel;
  kernel.function = function;
  kernel.most_blocks = record.persistent ? int64_t{runtime_.device().sm_count} * record.blocks_per_sm : kMaxBlocks;
  if (!record.cluster.empty()) TILERT_RETURN_IF_ERROR(FitClusters(record, function, &kernel.most_blocks));
  for (const KernelArg& arg : record.args) {
    ArgSource source{arg.kind, arg.index, DType::kIndex};
    if (arg.kind == KernelArg::Kind::kTensor) {
      const int index = plan_.TensorIndex(arg.index);
      if (index < 0) return Internal("kernel ", record.symbol, " wants a buffer that is no argument");
      source.index = static_cast<uint32_t>(index);
    }
    if (arg.kind == KernelArg::Kind::kScalar) source.dtype = plan_.program().scalars[arg.index].dtype;
    if (arg.kind == KernelArg::Kind::kTensorMap) source.index += first_map;
    kernel.args.push_back(source);
  }
  gives_ |= record.GivenBytes() > 0;
  kernel.record = std::move(record);
  kernels_.push_back(std::move(kernel));
  return absl::OkStatus();
}

// A cluster lies within one GPC, so that fewer of its blocks may fit on the GPU at once than SMs would hold.
absl::Status ReadyCode::FitClusters(const KernelRecord& record, cuda::Function function, int64_t* most_blocks) const {
  const cuda::Driver& driver = runtime_.driver();
  if (driver.raw().LaunchKernelEx == nullptr || driver.raw().OccupancyMaxActiveClusters == nullptr)
    return absl::UnimplementedError(
        Cat("kernel ", record.symbol, " is launched in clusters, which this driver does not know; update it"));
  const auto size = static_cast<int>(record.ClusterSize());
  cuda::LaunchAttribute cluster;
  const cuda::LaunchConfig config = ConfigOf(record, static_cast<unsigned>(size), nullptr, &cluster);
  int clusters = 0;
  TILERT_RETURN_IF_ERROR(driver.OccupancyMaxActiveClusters(&clusters, function, &config));
  if (clusters < 1)
    return absl::ResourceExhaustedError(Cat("no cluster of ", size, " blocks of kernel ", record.symbol, " fits on this GPU"));
  *most_blocks = (record.persistent ? std::min<int64_t>(clusters, *most_blocks / size) : *most_blocks / size) * size;
  return absl::OkStatus();
}

bool ReadyCode::EncodeMaps(const LaunchValues& values, LaunchMaps& maps) const {
  for (size_t i = 0; i < encoders_.size(); ++i) {
    if (!encoders_[i]->Fill(plan_, values, maps.maps[i])) return false;
  }
  return true;
}

// Of a launch: as CountBlocks, but no more than fit. Where blocks share tiles, more than there are tiles.
int64_t ReadyCode::Blocks(const Kernel& kernel, const LaunchValues& values) {
  const int64_t blocks = CountBlocks(kernel.record, values.values());
  return std::min(kernel.record.GivenBytes() > 0 ? blocks * kir::kMostShares : blocks, kernel.most_blocks);
}

uint64_t ReadyCode::GivenBytes(const LaunchValues& values) const {
  uint64_t most = 0;  // kernels run one after the other
  for (const Kernel& kernel : kernels_) {
    const uint64_t each = kernel.record.GivenBytes();
    if (each > 0) most = std::max(most, each * static_cast<uint64_t>(std::max<int64_t>(Blocks(kernel, values), 0)));
  }
  return most;
}

absl::Status ReadyCode::LaunchOne(const Kernel& kernel, const LaunchValues& values, LaunchMaps& maps, char* given,
                                  cuda::Stream stream) const {
  const KernelRecord& record = kernel.record;
  const int64_t blocks = Blocks(kernel, values);
  if (blocks == 0) return absl::OkStatus();
  if (blocks < 0) {
    return InvalidArgument("'", plan_.program().name, "': these dims ask for more than ", kMaxBlocks, " blocks in one launch");
  }
  uint64_t slots[kMaxKernelArgs];
  void* params[kMaxKernelArgs];
  for (size_t i = 0; i < kernel.args.size(); ++i) {
    const ArgSource& source = kernel.args[i];
    params[i] = &slots[i];
    switch (source.kind) {
      case KernelArg::Kind::kTensor: slots[i] = reinterpret_cast<uintptr_t>(values.tensors[source.index].data); break;
      // The low four bytes are the value too where the kernel wants an int: its class bounds the dims.
      case KernelArg::Kind::kDim: slots[i] = static_cast<uint64_t>(values.dims[source.index]); break;
      case KernelArg::Kind::kScalar: slots[i] = EncodeScalar(source.dtype, values.scalars[source.index]); break;
      case KernelArg::Kind::kTensorMap: params[i] = &maps.maps[source.index]; break;
      case KernelArg::Kind::kGiven: slots[i] = reinterpret_cast<uintptr_t>(given); break;
    }
  }
  const cuda::DriverTable& driver = runtime_.driver().raw();
  const auto grid = static_cast<unsigned>(blocks);
  cuda::Result result;
  const char* call;
  if (!record.cluster.empty()) {
    call = "cuLaunchKernelEx";
    cuda::LaunchAttribute cluster;
    const cuda::LaunchConfig config = ConfigOf(record, grid, stream, &cluster);
    result = driver.LaunchKernelEx(&config, kernel.function, params, nullptr);
  } else if (record.cooperative) {
    call = "cuLaunchCooperativeKernel";
    result =
        driver.LaunchCooperativeKernel(kernel.function, grid, 1, 1, record.threads, 1, 1, record.shared_bytes, stream, params);
  } else {
    call = "cuLaunchKernel";
    result = driver.LaunchKernel(kernel.function, grid, 1, 1, record.threads, 1, 1, record.shared_bytes, stream, params, nullptr);
  }
  if (result == cuda::kSuccess) return absl::OkStatus();
  const absl::Status status = runtime_.driver().StatusOf(call, result);
  return absl::Status(status.code(), Cat("launch of ", record.symbol, " (", grid, " blocks of ", record.threads, " threads, ",
                                         record.shared_bytes, " bytes of shared memory): ", std::string(status.message())));
}

absl::Status ReadyCode::Launch(const LaunchValues& values, LaunchMaps& maps, char* given, cuda::Stream stream) const {
  for (const Kernel& kernel : kernels_) TILERT_RETURN_IF_ERROR(LaunchOne(kernel, values, maps, given, stream));
  return absl::OkStatus();
}

}  // namespace tilert
