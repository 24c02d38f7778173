#include "runtime/kernel.h"

#include <algorithm>

#include "ir/status_util.h"
#include "ir/verifier.h"
#include "runtime/compile_lowered.h"

namespace tilert {
namespace {

absl::StatusOr<std::vector<int64_t>> FixedDims(const Program& program, const std::map<std::string, int64_t>& dims) {
  std::vector<int64_t> fixed;
  for (const Dim& dim : program.dims) {
    const auto it = dims.find(dim.name);
    fixed.push_back(it == dims.end() ? BoundArgs::kUnbound : it->second);
  }
  return fixed;
}

}  // namespace

Kernel::Kernel(std::shared_ptr<Runtime> runtime, std::shared_ptr<const OpenedBundle> bundle, Schedules schedules)
    : runtime_(std::move(runtime)), bundle_(std::move(bundle)), schedules_(std::move(schedules)) {}

absl::StatusOr<std::shared_ptr<Kernel>> Kernel::Create(std::shared_ptr<Runtime> runtime,
                                                       std::shared_ptr<const OpenedBundle> bundle, const KernelSpec& spec) {
  TILERT_ASSIGN_OR_RETURN(const Program* const program, bundle->Entry(spec.entry));
  TILERT_ASSIGN_OR_RETURN(const VerifiedProgram verified, Verify(*program));
  return Create(std::move(runtime), std::move(bundle), verified, spec);
}

absl::StatusOr<std::shared_ptr<Kernel>> Kernel::Create(std::shared_ptr<Runtime> runtime, Program program,
                                                       const KernelSpec& spec) {
  TILERT_ASSIGN_OR_RETURN(const VerifiedProgram verified, Verify(std::move(program)));
  return Create(std::move(runtime), nullptr, verified, spec);
}

absl::StatusOr<std::shared_ptr<Kernel>> Kernel::Create(std::shared_ptr<Runtime> runtime,
                                                       std::shared_ptr<const OpenedBundle> bundle, const VerifiedProgram& program,
                                                       const KernelSpec& spec) {
  const bool general_only = spec.general_only || spec.only_class.has_value();
  const ScheduleRequest request{&runtime->target(), runtime->device().name, spec.constants, spec.dims, general_only};
  TILERT_ASSIGN_OR_RETURN(Schedules schedules, FindSchedules(bundle == nullptr ? nullptr : &bundle->bundle(), program, request));
  std::shared_ptr<Kernel> kernel(new Kernel(std::move(runtime), std::move(bundle), std::move(schedules)));
  TILERT_RETURN_IF_ERROR(kernel->Init(*program, spec));
  return kernel;
}

absl::Status Kernel::Init(const Program& original, const KernelSpec& spec) {
  TILERT_ASSIGN_OR_RETURN(std::vector<int64_t> fixed, FixedDims(program(), spec.dims));
  TILERT_ASSIGN_OR_RETURN(plan_, ArgPlan::Make(program(), std::move(fixed)));
  if (runtime_->is_cpu()) return absl::OkStatus();
  digest_ = ProgramDigest(original);
  dims_ = spec.dims;
  CacheKeyParts parts;
  parts.program_digest = digest_;
  parts.dims = dims_;
  parts.target = runtime_->target();
  parts.lowering_build_id = LoweringBuildId();
  parts.nvrtc_version = runtime_->nvrtc().ok() ? (*runtime_->nvrtc())->version_text() : "none";
  if (spec.only_class) return AddVariant(schedules_.general, *spec.only_class, parts);
  if (const ArgClass fast = FastArgClass(program()); !spec.general_only && plan_.MayEverSatisfy(fast)) {
    for (const Schedule& schedule : schedules_.fast) TILERT_RETURN_IF_ERROR(AddVariant(schedule, fast, parts));
  }
  TILERT_RETURN_IF_ERROR(AddVariant(schedules_.general, GeneralArgClass(program()), parts));
  if (spec.general_only || has_own_plans_) return absl::OkStatus();
  if (auto made = Restriding::Make({runtime_, bundle_}, original, spec, schedules_, plan_); made.ok()) {
    restriding_ = *std::move(made);
  } else {  // a way to be quick, nothing that a kernel needs
    runtime_->Log(LogLevel::kWarning, __FILE__, __LINE__, Cat("'", program().name, "': ", made.status().ToString()));
  }
  return absl::OkStatus();
}

absl::Status Kernel::AddVariant(const Schedule& schedule, ArgClass arg_class, CacheKeyParts& parts) {
  // All variants of a kernel are called with the same arguments.
  TILERT_ASSIGN_OR_RETURN(ArgPlan plan, ArgPlan::Make(schedule.program, plan_.fixed_dims()));
  if (!plan.AsksTheSame(plan_)) {
    runtime_->Log(
        LogLevel::kInfo, __FILE__, __LINE__,
        Cat("'", program().name, "': variant ", schedule.name, " wants other arguments than the defaults and is left out"));
    return absl::OkStatus();
  }
  const int nvrtc_version = runtime_->nvrtc().ok() ? (*runtime_->nvrtc())->version() : 0;
  parts.constants = schedule.constants;
  parts.flags = CompileFlags(OptionsFor(schedule.program, arg_class, runtime_->target(), nvrtc_version));
  parts.arg_class = arg_class;
  auto variant = std::make_unique<Variant>();
  variant->schedule = &schedule;
  variant->arg_class = std::move(arg_class);
  variant->guard = plan.MakeGuard(variant->arg_class);
  has_own_plans_ |= !plan.HasTheSameWorkspaces(plan_);
  variant->plan = std::move(plan);
  variant->key = CacheKeyText(parts);
  variants_.push_back(std::move(variant));
  return absl::OkStatus();
}

bool Kernel::is_prepared() const {
  if (restriding_ != nullptr && restriding_->state() == Restriding::State::kUnprepared) return false;
  return std::all_of(variants_.begin(), variants_.end(), [](const auto& variant) { return variant->is_settled(); });
}

QueryResult Kernel::Query() {
  if (is_prepared()) return {Readiness::kReady, ""};
  bool all_cached = true;
  for (const auto& variant : variants_) {
    all_cached = all_cached && (FindPrebuilt(*variant) != nullptr || runtime_->cache().Find(variant->key).has_value());
  }
  if (all_cached) return {Readiness::kCached, ""};
  if (!runtime_->nvrtc().ok()) return {Readiness::kUnsupported, std::string(runtime_->nvrtc().status().message())};
  return {Readiness::kNeedsCompile, ""};
}

absl::StatusOr<uint64_t> Kernel::WorkspaceBytes(absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars) const {
  if (runtime_->is_cpu()) return 0;
  if (program().workspaces.empty() && restriding_ == nullptr && !MayGive()) return 0;
  LaunchValues values(plan_);
  TILERT_ASSIGN_OR_RETURN(uint64_t bytes, plan_.BindShapes(tensors, scalars, values));
  if (has_own_plans_) {
    for (const auto& variant : variants_) {
      TILERT_ASSIGN_OR_RETURN(const uint64_t own, variant->plan.WorkspaceBytes(tensors, scalars));
      bytes = std::max(bytes, own);
    }
    return bytes;
  }
  if (restriding_ != nullptr && TakesAnyArguments(values)) {
    const Restriding::Copies copies = restriding_->Choose(values);
    if (copies.is_worth_it) bytes += copies.bytes;
  } else if (const ReadyCode* const giving = Giving(values)) {
    bytes += giving->GivenBytes(values);
  }
  return bytes;
}

PrepareStats Kernel::prepare_stats() const {
  const std::lock_guard<std::mutex> lock(prepare_mutex_);
  return stats_;
}

}  // namespace tilert
