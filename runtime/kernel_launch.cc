// Kernel, third part: the launch. No lock, no allocation, no compile and no load once the kernel is prepared.
#include "ir/executor.h"
#include "ir/status_util.h"
#include "runtime/kernel.h"

namespace tilert {

absl::Status Kernel::PrepareForLaunch(cuda::Stream stream) {
  int capture = cuda::kCaptureStatusNone;
  TILERT_RETURN_IF_ERROR(runtime_->driver().StreamIsCapturing(stream, &capture));
  if (capture != cuda::kCaptureStatusNone) {
    return absl::FailedPreconditionError(
        Cat("'", program_.name, "' is not prepared and its stream is capturing a graph; call Prepare before the capture begins"));
  }
  return Prepare();
}

absl::StatusOr<const ReadyCode*> Kernel::Choose(const LaunchValues& values, LaunchMaps& maps, cuda::Stream stream) {
  for (const auto& variant : variants_) {
    if (!ArgPlan::Satisfies(variant->guard, values)) continue;
    const ReadyCode* ready = variant->ready.load(std::memory_order_acquire);
    if (ready == nullptr && !variant->is_refused.load(std::memory_order_relaxed)) {
      TILERT_RETURN_IF_ERROR(PrepareForLaunch(stream));
      ready = variant->ready.load(std::memory_order_acquire);
    }
    if (ready != nullptr && ready->MakeMaps(values, maps)) return ready;
  }
  return Internal("'", program_.name, "' has no variant for these arguments");
}

absl::Status Kernel::Enqueue(const LaunchRequest& request, LaunchValues& values) {
  TILERT_RETURN_IF_ERROR(plan_.Bind(request.tensors, request.scalars, request.workspace, request.workspace_bytes, values));
  LaunchMaps maps;
  TILERT_ASSIGN_OR_RETURN(const ReadyCode* const ready, Choose(values, maps, request.stream));
  for (const uint32_t index : plan_.zeroed_workspaces()) {
    const LaunchValues::Tensor& tensor = values.tensors[index];
    const auto bytes = static_cast<size_t>(tensor.bytes);
    if (bytes == 0) continue;
    TILERT_RETURN_IF_ERROR(runtime_->driver().MemsetD8Async(reinterpret_cast<cuda::DevicePtr>(tensor.data),
                                                            static_cast<unsigned char>(0), bytes, request.stream));
  }
  return ready->Launch(values, maps, request.stream);
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
