// Kernel, third part: the launch. No lock, no allocation, no compile and no load once the kernel is prepared.
#include "ir/executor.h"
#include "ir/status_util.h"
#include "runtime/kernel.h"

namespace tilert {

absl::Status Kernel::PrepareForLaunch(cuda::Stream stream) {
  int capture = cuda::kCaptureStatusNone;
  TILERT_RETURN_IF_ERROR(runtime_->driver().StreamIsCapturing(stream, &capture));
  if (capture != cuda::kCaptureStatusNone) {
    return absl::FailedPreconditionError(Cat(
        "'", program().name, "' is not prepared and its stream is capturing a graph; call Prepare before the capture begins"));
  }
  return Prepare();
}

// Index into variants_: the fast one that is expected to be the quickest, else the general one.
size_t Kernel::PickFast(absl::Span<const int64_t> dims) const {
  const size_t general = variants_.size() - 1;
  if (general == 1 && variants_[0]->schedule->guards.empty()) return variants_[0]->is_refused.load(std::memory_order_relaxed);
  if (const int known = picked_.Find(dims); known >= 0) return static_cast<size_t>(known);
  const int cheapest = CheapestSchedule(general, dims, [this](size_t i) {
    return variants_[i]->is_refused.load(std::memory_order_relaxed) ? nullptr : variants_[i]->schedule;
  });
  const size_t best = cheapest < 0 ? general : static_cast<size_t>(cheapest);
  if (is_prepared()) picked_.Put(dims, static_cast<int>(best));
  return best;
}

size_t Kernel::Pick(const LaunchValues& values) const {
  const size_t general = variants_.size() - 1;
  if (general == 0 || !ArgPlan::Satisfies(variants_[0]->guard, values)) return general;
  return PickFast(values.dims);
}

absl::StatusOr<const ReadyCode*> Kernel::Choose(const LaunchValues& values, LaunchMaps& maps, cuda::Stream stream) {
  size_t index = Pick(values);
  if (!variants_[index]->is_settled()) {
    TILERT_RETURN_IF_ERROR(PrepareForLaunch(stream));
    index = Pick(values);  // now it is known what cannot be compiled
  }
  const ReadyCode* ready = variants_[index]->ready.load(std::memory_order_acquire);
  if (ready != nullptr && ready->MakeMaps(values, maps)) return ready;
  const Variant& general = *variants_.back();
  if (!general.is_settled()) TILERT_RETURN_IF_ERROR(PrepareForLaunch(stream));
  ready = general.ready.load(std::memory_order_acquire);
  if (ready != nullptr && ready->MakeMaps(values, maps)) return ready;
  return Internal("'", program().name, "' has no variant for these arguments");
}

absl::StatusOr<KernelChoice> Kernel::Choice(absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars) const {
  LaunchValues values(plan_);
  TILERT_RETURN_IF_ERROR(plan_.BindWithoutWorkspace(tensors, scalars, values));
  if (variants_.empty()) return KernelChoice{};  // the CPU
  const size_t index = Pick(values);
  const Schedule& schedule = *variants_[index]->schedule;
  return KernelChoice{schedule.name, schedule.constants, index + 1 == variants_.size(), schedule.cost.Cycles(values.dims)};
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
    return Execute(program(), request.tensors, request.scalars, exec);
  }
  TILERT_RETURN_IF_ERROR(runtime_->CheckContext());
  if (request.workspace != nullptr || program().workspaces.empty() || !options.hooks.allocate) return Enqueue(request, values);
  LaunchRequest with_workspace = request;
  TILERT_ASSIGN_OR_RETURN(with_workspace.workspace_bytes, plan_.WorkspaceBytes(request.tensors, request.scalars));
  if (with_workspace.workspace_bytes == 0) return Enqueue(request, values);
  with_workspace.workspace = options.hooks.allocate(with_workspace.workspace_bytes, request.stream);
  if (with_workspace.workspace == nullptr) {
    return absl::ResourceExhaustedError(
        Cat("the host has no workspace of ", with_workspace.workspace_bytes, " bytes for '", program().name, "'"));
  }
  const absl::Status status = Enqueue(with_workspace, values);
  if (options.hooks.release) options.hooks.release(with_workspace.workspace, with_workspace.workspace_bytes, request.stream);
  return status;
}

}  // namespace tilert
