// Kernel, third part: the launch. No lock, no allocation, no compile and no load once the kernel is prepared.
#include <algorithm>

#include "ir/executor.h"
#include "ir/status_util.h"
#include "runtime/kernel.h"

namespace tilert {

// Of the executor: hours of work. What needs more does not end, and nobody could stop it.
constexpr uint64_t kMostCpuSteps = uint64_t{1} << 36;

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
size_t Kernel::PickFast(absl::Span<const int64_t> dims, bool may_give) const {
  const size_t general = variants_.size() - 1;
  const auto schedule = [&](size_t i) -> const Schedule* {
    const ReadyCode* const ready = variants_[i]->ready.load(std::memory_order_acquire);
    const bool is_out =
        variants_[i]->is_refused.load(std::memory_order_relaxed) || (!may_give && ready != nullptr && ready->gives());
    return is_out ? nullptr : variants_[i]->schedule;
  };
  if (general == 1 && variants_[0]->schedule->guards.empty()) return schedule(0) == nullptr ? 1 : 0;
  DimMemo& picked = picked_[may_give ? 1 : 0];
  if (const int known = picked.Find(dims); known >= 0) return static_cast<size_t>(known);
  const int cheapest = CheapestSchedule(general, dims, schedule);
  const size_t best = cheapest < 0 ? general : static_cast<size_t>(cheapest);
  if (is_prepared()) picked.Put(dims, static_cast<int>(best));
  return best;
}

// The code that a launch of `values` would choose if it takes workspace of its own, and is ready; else null.
const ReadyCode* Kernel::Giving(const LaunchValues& values) const {
  const ReadyCode* const ready = variants_[Pick(values, true)]->ready.load(std::memory_order_acquire);
  return ready != nullptr && ready->gives() ? ready : nullptr;
}

bool Kernel::MayGive() const {
  return std::any_of(variants_.begin(), variants_.end(), [](const auto& variant) {
    const ReadyCode* const ready = variant->ready.load(std::memory_order_acquire);
    return ready != nullptr && ready->gives();
  });
}

// True when no fast variant serves them.
bool Kernel::TakesAnyArguments(const LaunchValues& values) const {
  return variants_.size() == 1 || !ArgPlan::Satisfies(variants_[0]->guard, values);
}

size_t Kernel::Pick(const LaunchValues& values, bool may_give) const {
  return TakesAnyArguments(values) ? variants_.size() - 1 : PickFast(values.dims, may_give);
}

// Code that takes workspace of its own is for launches that bring it, behind the program's.
absl::StatusOr<const ReadyCode*> Kernel::Choose(const LaunchRequest& request, const LaunchValues& values, LaunchMaps& maps) {
  size_t index = Pick(values, true);
  if (!variants_[index]->is_settled()) {
    TILERT_RETURN_IF_ERROR(PrepareForLaunch(request.stream));
    index = Pick(values, true);  // now it is known what cannot be compiled
  }
  const ReadyCode* ready = variants_[index]->ready.load(std::memory_order_acquire);
  if (ready != nullptr && ready->gives()) {
    const bool has_room = request.workspace != nullptr &&
                          reinterpret_cast<uintptr_t>(request.workspace) % kWorkspaceAlignment == 0 &&
                          request.workspace_bytes >= plan_.WorkspaceBytes(values) + ready->GivenBytes(values);
    if (!has_room) ready = variants_[Pick(values, false)]->ready.load(std::memory_order_acquire);
  }
  if (ready != nullptr && ready->MakeMaps(values, maps)) return ready;
  const Variant& general = *variants_.back();
  if (!general.is_settled()) TILERT_RETURN_IF_ERROR(PrepareForLaunch(request.stream));
  ready = general.ready.load(std::memory_order_acquire);
  if (ready != nullptr && ready->MakeMaps(values, maps)) return ready;
  return Internal("'", program().name, "' has no variant for these arguments");
}

absl::StatusOr<KernelChoice> Kernel::Choice(absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars) const {
  LaunchValues values(plan_);
  TILERT_RETURN_IF_ERROR(plan_.BindWithoutWorkspace(tensors, scalars, values));
  if (variants_.empty()) return KernelChoice{};  // the CPU
  const size_t index = Pick(values, true);
  const Schedule* schedule = variants_[index]->schedule;
  const bool is_restrided = restriding_ != nullptr && TakesAnyArguments(values) && restriding_->Choose(values).is_worth_it;
  if (is_restrided) schedule = &restriding_->schedule();
  const bool is_general = !is_restrided && index + 1 == variants_.size();
  return KernelChoice{schedule->name, schedule->constants, is_general, is_restrided, schedule->cost.Cycles(values.dims)};
}

absl::StatusOr<const ReadyCode*> Kernel::Resolve(const LaunchRequest& request, LaunchValues& values, LaunchMaps& maps) const {
  TILERT_RETURN_IF_ERROR(plan_.Bind(request.tensors, request.scalars, request.workspace, request.workspace_bytes, values));
  const Variant& only = *variants_.back();
  const ReadyCode* const ready = only.ready.load(std::memory_order_acquire);
  return ready != nullptr && !ready->gives() && ArgPlan::Satisfies(only.guard, values) && ready->MakeMaps(values, maps) ? ready
                                                                                                                        : nullptr;
}

absl::Status Kernel::Queue(const ReadyCode& code, const LaunchValues& values, LaunchMaps& maps, char* given,
                           cuda::Stream stream) const {
  for (const uint32_t index : plan_.zeroed_workspaces()) {
    const LaunchValues::Tensor& tensor = values.tensors[index];
    const auto bytes = static_cast<size_t>(tensor.bytes);
    if (bytes == 0) continue;
    TILERT_RETURN_IF_ERROR(runtime_->driver().MemsetD8Async(reinterpret_cast<cuda::DevicePtr>(tensor.data),
                                                            static_cast<unsigned char>(0), bytes, stream));
  }
  return code.Launch(values, maps, given, stream);
}

// False, and nothing is queued: the code for any arguments is to run. The copies lie in the workspace behind the program's own,
// or, when the launch brings none, in memory of the host's; without either there are none.
absl::StatusOr<bool> Kernel::LaunchRestrided(const LaunchRequest& request, const LaunchValues& values) {
  const Restriding::Copies copies = restriding_->Choose(values);
  if (!copies.is_worth_it) return false;
  const uint64_t own = plan_.WorkspaceBytes(values);
  if (copies.bytes == 0 || (request.workspace != nullptr && request.workspace_bytes >= own + copies.bytes &&
                            reinterpret_cast<uintptr_t>(request.workspace) % kWorkspaceAlignment == 0)) {
    return restriding_->Launch(request, values, copies, static_cast<char*>(request.workspace) + own);
  }
  const Hooks& hooks = runtime_->options().hooks;
  if (request.workspace != nullptr || own != 0 || !hooks.allocate) return false;
  void* const memory = hooks.allocate(copies.bytes, request.stream);
  if (memory == nullptr) return false;
  absl::StatusOr<bool> launched = restriding_->Launch(request, values, copies, static_cast<char*>(memory));
  if (hooks.release) hooks.release(memory, copies.bytes, request.stream);
  return launched;
}

// Where workspaces depend on the schedule, it is chosen before they are placed. One that wants more than there is, or whose
// workspaces are not of its class, leaves the launch to the code for any arguments.
absl::Status Kernel::EnqueueByPlan(const LaunchRequest& request, LaunchValues& values) {
  TILERT_RETURN_IF_ERROR(plan_.BindWithoutWorkspace(request.tensors, request.scalars, values));
  if (!is_prepared()) TILERT_RETURN_IF_ERROR(PrepareForLaunch(request.stream));
  const size_t general = variants_.size() - 1;
  for (size_t index = Pick(values, false);; index = general) {
    const Variant& variant = *variants_[index];
    const absl::Status bound =
        variant.plan.Bind(request.tensors, request.scalars, request.workspace, request.workspace_bytes, values);
    const ReadyCode* const ready = variant.ready.load(std::memory_order_acquire);
    LaunchMaps maps;
    if (bound.ok() && ready != nullptr && ArgPlan::Satisfies(variant.guard, values) && ready->MakeMaps(values, maps))
      return Queue(*ready, values, maps, nullptr, request.stream);
    if (index == general) return !bound.ok() ? bound : Internal("'", program().name, "' has no variant for these arguments");
  }
}

absl::Status Kernel::Enqueue(const LaunchRequest& request, LaunchValues& values) {
  if (has_own_plans_) return EnqueueByPlan(request, values);
  TILERT_RETURN_IF_ERROR(plan_.Bind(request.tensors, request.scalars, request.workspace, request.workspace_bytes, values));
  if (restriding_ != nullptr && TakesAnyArguments(values)) {
    TILERT_ASSIGN_OR_RETURN(const bool is_done, LaunchRestrided(request, values));
    if (is_done) return absl::OkStatus();
  }
  LaunchMaps maps;
  TILERT_ASSIGN_OR_RETURN(const ReadyCode* const ready, Choose(request, values, maps));
  char* const given = ready->gives() ? static_cast<char*>(request.workspace) + plan_.WorkspaceBytes(values) : nullptr;
  return Queue(*ready, values, maps, given, request.stream);
}

absl::Status Kernel::Launch(const LaunchRequest& request) {
  LaunchValues values(plan_);
  const RuntimeOptions& options = runtime_->options();
  if (runtime_->is_cpu()) {
    TILERT_RETURN_IF_ERROR(plan_.BindWithoutWorkspace(request.tensors, request.scalars, values));
    ExecOptions exec;
    exec.threads = options.cpu_threads;
    exec.max_steps = kMostCpuSteps;
    return Execute(program(), request.tensors, request.scalars, exec);
  }
  TILERT_RETURN_IF_ERROR(runtime_->CheckContext());
  if (request.workspace != nullptr || !options.hooks.allocate || (program().workspaces.empty() && !MayGive())) {
    return Enqueue(request, values);
  }
  LaunchRequest with_workspace = request;
  TILERT_ASSIGN_OR_RETURN(with_workspace.workspace_bytes, WorkspaceBytes(request.tensors, request.scalars));
  if (with_workspace.workspace_bytes == 0) return Enqueue(request, values);
  with_workspace.workspace = options.hooks.allocate(with_workspace.workspace_bytes, request.stream);
  if (with_workspace.workspace == nullptr) {  // what makes it quick may have been too much
    const uint64_t wanted = with_workspace.workspace_bytes;
    TILERT_ASSIGN_OR_RETURN(with_workspace.workspace_bytes, plan_.WorkspaceBytes(request.tensors, request.scalars));
    if (with_workspace.workspace_bytes == 0) return Enqueue(request, values);
    if (with_workspace.workspace_bytes < wanted) {
      with_workspace.workspace = options.hooks.allocate(with_workspace.workspace_bytes, request.stream);
    }
  }
  if (with_workspace.workspace == nullptr) {
    return absl::ResourceExhaustedError(
        Cat("the host has no workspace of ", with_workspace.workspace_bytes, " bytes for '", program().name, "'"));
  }
  const absl::Status status = Enqueue(with_workspace, values);
  if (options.hooks.release) options.hooks.release(with_workspace.workspace, with_workspace.workspace_bytes, request.stream);
  return status;
}

}  // namespace tilert
