// Kernel, third part: the launch. No lock, no allocation, no compile and no load once the kernel is prepared.
#include <algorithm>

#include "ir/executor.h"
#include "ir/status_util.h"
#include "runtime/kernel.h"

namespace tilert {
namespace {

constexpr size_t kMaxKernelArgs = 256;  // launch_record.cc refuses more
constexpr int64_t kMaxBlocks = 0x7fffffff;

// The bytes of a scalar argument, in the low bytes of the result.
uint64_t EncodeScalar(DType dtype, Value value) {
  return IsFloat(dtype) ? EncodeFloat(dtype, value.f) : static_cast<uint64_t>(value.i);
}

// Product of the grid's extents: 0 if any is zero or negative, −1 if it is beyond what a launch can have.
int64_t CountBlocks(const std::vector<DimExpr>& grid, const DimValues& values) {
  int64_t extents[3] = {1, 1, 1};
  for (size_t i = 0; i < grid.size() && i < 3; ++i) {
    extents[i] = grid[i].Eval(values);
    if (extents[i] <= 0) return 0;
  }
  int64_t blocks = 0;
  if (__builtin_mul_overflow(extents[0], extents[1], &blocks) || __builtin_mul_overflow(blocks, extents[2], &blocks)) return -1;
  return blocks <= kMaxBlocks ? blocks : -1;
}

}  // namespace

absl::StatusOr<const Kernel::Ready*> Kernel::Choose(const LaunchValues& values, cuda::Stream stream) {
  const auto fits = [&](const auto& variant) {
    return !variant->is_refused.load(std::memory_order_relaxed) && ArgPlan::Satisfies(variant->guard, values);
  };
  const auto it = std::find_if(variants_.begin(), variants_.end(), fits);
  if (it == variants_.end()) return Internal("'", program_.name, "' has no variant for these arguments");
  if (const Ready* ready = (*it)->ready.load(std::memory_order_acquire)) return ready;
  int capture = cuda::kCaptureStatusNone;
  TILERT_RETURN_IF_ERROR(runtime_->driver().StreamIsCapturing(stream, &capture));
  if (capture != cuda::kCaptureStatusNone) {
    return absl::FailedPreconditionError(
        Cat("'", program_.name, "' is not prepared and its stream is capturing a graph; call Prepare before the capture begins"));
  }
  TILERT_RETURN_IF_ERROR(Prepare());
  return (*it)->ready.load(std::memory_order_acquire);
}

absl::Status Kernel::LaunchOne(const KernelRecord& record, const ReadyKernel& kernel, const LaunchValues& values,
                               cuda::Stream stream) const {
  const int64_t blocks = CountBlocks(record.grid, values.values());
  if (blocks == 0) return absl::OkStatus();
  if (blocks < 0)
    return InvalidArgument("'", program_.name, "': these dims ask for more than ", kMaxBlocks, " blocks in one launch");
  uint64_t slots[kMaxKernelArgs];
  void* params[kMaxKernelArgs];
  for (size_t i = 0; i < kernel.args.size(); ++i) {
    const ArgSource& source = kernel.args[i];
    switch (source.kind) {
      case KernelArg::Kind::kTensor: slots[i] = reinterpret_cast<uintptr_t>(values.tensors[source.index].data); break;
      // The low four bytes are the value too where the kernel wants an int: its class bounds the dims.
      case KernelArg::Kind::kDim: slots[i] = static_cast<uint64_t>(values.dims[source.index]); break;
      case KernelArg::Kind::kScalar: slots[i] = EncodeScalar(source.dtype, values.scalars[source.index]); break;
    }
    params[i] = &slots[i];
  }
  const cuda::DriverTable& driver = runtime_->driver().raw();
  const auto grid = static_cast<unsigned>(blocks);
  cuda::Result result;
  const char* call;
  if (record.cooperative) {
    call = "cuLaunchCooperativeKernel";
    result =
        driver.LaunchCooperativeKernel(kernel.function, grid, 1, 1, record.threads, 1, 1, record.shared_bytes, stream, params);
  } else {
    call = "cuLaunchKernel";
    result = driver.LaunchKernel(kernel.function, grid, 1, 1, record.threads, 1, 1, record.shared_bytes, stream, params, nullptr);
  }
  if (result == cuda::kSuccess) return absl::OkStatus();
  const absl::Status status = runtime_->driver().StatusOf(call, result);
  return absl::Status(status.code(), Cat("launch of ", record.symbol, " (", grid, " blocks of ", record.threads, " threads, ",
                                         record.shared_bytes, " bytes of shared memory): ", std::string(status.message())));
}

absl::Status Kernel::Enqueue(const LaunchRequest& request, LaunchValues& values) {
  TILERT_RETURN_IF_ERROR(plan_.Bind(request.tensors, request.scalars, request.workspace, request.workspace_bytes, values));
  TILERT_ASSIGN_OR_RETURN(const Ready* const ready, Choose(values, request.stream));
  for (const uint32_t index : plan_.zeroed_workspaces()) {
    const LaunchValues::Tensor& tensor = values.tensors[index];
    const auto bytes = static_cast<size_t>(tensor.bytes);
    if (bytes == 0) continue;
    TILERT_RETURN_IF_ERROR(runtime_->driver().MemsetD8Async(reinterpret_cast<cuda::DevicePtr>(tensor.data),
                                                            static_cast<unsigned char>(0), bytes, request.stream));
  }
  for (size_t i = 0; i < ready->kernels.size(); ++i) {
    TILERT_RETURN_IF_ERROR(LaunchOne(ready->record.kernels[i], ready->kernels[i], values, request.stream));
  }
  return absl::OkStatus();
}

absl::Status Kernel::Launch(const LaunchRequest& request) {
  LaunchValues values(plan_);
  const RuntimeOptions& options = runtime_->options();
  if (runtime_->is_cpu()) {
    TILERT_RETURN_IF_ERROR(plan_.BindWithoutWorkspace(request.tensors, request.scalars, values));
    ExecOptions exec;
    exec.threads = options.cpu_threads;
    return Execute(program_, request.tensors, request.scalars, exec);
  }
  TILERT_RETURN_IF_ERROR(runtime_->CheckContext());
  if (request.workspace != nullptr || program_.workspaces.empty() || !options.hooks.allocate) return Enqueue(request, values);
  LaunchRequest with_workspace = request;
  TILERT_ASSIGN_OR_RETURN(with_workspace.workspace_bytes, plan_.WorkspaceBytes(request.tensors, request.scalars));
  if (with_workspace.workspace_bytes == 0) return Enqueue(request, values);
  with_workspace.workspace = options.hooks.allocate(with_workspace.workspace_bytes, request.stream);
  if (with_workspace.workspace == nullptr) {
    return absl::ResourceExhaustedError(
        Cat("the host has no workspace of ", with_workspace.workspace_bytes, " bytes for '", program_.name, "'"));
  }
  const absl::Status status = Enqueue(with_workspace, values);
  if (options.hooks.release) options.hooks.release(with_workspace.workspace, with_workspace.workspace_bytes, request.stream);
  return status;
}

}  // namespace tilert
