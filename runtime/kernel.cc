#include "runtime/kernel.h"

#include <algorithm>

#include "ir/specialize.h"
#include "ir/status_util.h"
#include "ir/verifier.h"
#include "runtime/compile_lowered.h"

namespace tilert {
namespace {

bool Holds(const DimGuard& guard, const Program& program, const std::map<std::string, int64_t>& dims) {
  if (guard.dim >= program.dims.size()) return false;
  const auto it = dims.find(program.dims[guard.dim].name);
  if (it == dims.end()) return false;  // a dynamic dim may be anything
  return it->second >= guard.min && it->second <= guard.max && (guard.divisor <= 1 || it->second % guard.divisor == 0);
}

bool HoldAll(const std::vector<DimGuard>& guards, const Program& program, const std::map<std::string, int64_t>& dims) {
  return std::all_of(guards.begin(), guards.end(), [&](const DimGuard& guard) { return Holds(guard, program, dims); });
}

// The bundle's choice of constants for this GPU and these dims: the fastest that was measured here, else the first variant
// whose guards hold. Constants that the caller names win over both.
const Variant* ChooseVariant(const Bundle& bundle, const Program& program, const Runtime& runtime,
                             const std::map<std::string, int64_t>& dims) {
  const auto fits = [&](const Variant& variant) {
    return variant.program < bundle.programs.size() && &bundle.programs[variant.program] == &program &&
           (variant.target.empty() || variant.target == runtime.target().arch) && HoldAll(variant.guards, program, dims);
  };
  const Variant* best = nullptr;
  double best_us = 0;
  for (const TuningRecord& record : bundle.tuning) {
    if (record.sku != runtime.device().name || record.variant >= bundle.variants.size()) continue;
    const Variant& variant = bundle.variants[record.variant];
    if (!fits(variant) || !HoldAll(record.bucket, program, dims)) continue;
    if (best == nullptr || record.microseconds < best_us) best = &variant, best_us = record.microseconds;
  }
  if (best != nullptr) return best;
  const auto it = std::find_if(bundle.variants.begin(), bundle.variants.end(), fits);
  return it == bundle.variants.end() ? nullptr : &*it;
}

absl::StatusOr<std::vector<int64_t>> FixedDims(const Program& program, const std::map<std::string, int64_t>& dims) {
  std::vector<int64_t> fixed;
  for (const Dim& dim : program.dims) {
    const auto it = dims.find(dim.name);
    fixed.push_back(it == dims.end() ? BoundArgs::kUnbound : it->second);
  }
  return fixed;
}

// The value that each constant has in the specialised program.
std::map<std::string, int64_t> ChosenConstants(const Program& specialised) {
  std::map<std::string, int64_t> chosen;
  for (const Constant& constant : specialised.constants) {
    if (!constant.candidates.empty()) chosen[constant.name] = constant.candidates[0];
  }
  return chosen;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Kernel>> Kernel::Create(std::shared_ptr<Runtime> runtime,
                                                       std::shared_ptr<const OpenedBundle> bundle, const KernelSpec& spec) {
  TILERT_ASSIGN_OR_RETURN(const Program* const program, bundle->Entry(spec.entry));
  KernelSpec filled = spec;
  if (const tilert::Variant* choice = ChooseVariant(bundle->bundle(), *program, *runtime, spec.dims)) {
    filled.constants.insert(choice->constants.begin(), choice->constants.end());
  }
  TILERT_ASSIGN_OR_RETURN(std::shared_ptr<Kernel> kernel, Create(std::move(runtime), *program, filled));
  kernel->bundle_ = std::move(bundle);
  return kernel;
}

absl::StatusOr<std::shared_ptr<Kernel>> Kernel::Create(std::shared_ptr<Runtime> runtime, Program program,
                                                       const KernelSpec& spec) {
  TILERT_ASSIGN_OR_RETURN(const VerifiedProgram verified, Verify(std::move(program)));
  TILERT_ASSIGN_OR_RETURN(Program specialised, Specialize(*verified, spec.constants, spec.dims));
  TILERT_ASSIGN_OR_RETURN(std::vector<int64_t> fixed, FixedDims(specialised, spec.dims));
  std::shared_ptr<Kernel> kernel(new Kernel(std::move(runtime), std::move(specialised), std::move(fixed)));
  TILERT_RETURN_IF_ERROR(kernel->Init(*verified, spec));
  return kernel;
}

absl::Status Kernel::Init(const Program& original, const KernelSpec& spec) {
  TILERT_ASSIGN_OR_RETURN(plan_, ArgPlan::Make(program_, fixed_dims_));
  if (runtime_->is_cpu()) return absl::OkStatus();
  digest_ = ProgramDigest(original);
  constants_ = ChosenConstants(program_);
  dims_ = spec.dims;
  CacheKeyParts parts;
  parts.program_digest = digest_;
  parts.constants = constants_;
  parts.dims = dims_;
  parts.target = runtime_->target();
  parts.lowering_build_id = LoweringBuildId();
  parts.nvrtc_version = runtime_->nvrtc().ok() ? (*runtime_->nvrtc())->version_text() : "none";
  if (ArgClass fast = FastArgClass(program_); !spec.general_only && plan_.MayEverSatisfy(fast))
    AddVariant(std::move(fast), parts);
  AddVariant(GeneralArgClass(program_), parts);
  return absl::OkStatus();
}

void Kernel::AddVariant(ArgClass arg_class, CacheKeyParts& parts) {
  const int nvrtc_version = runtime_->nvrtc().ok() ? (*runtime_->nvrtc())->version() : 0;
  parts.flags = CompileFlags(OptionsFor(program_, arg_class, runtime_->target(), nvrtc_version));
  parts.arg_class = arg_class;
  auto variant = std::make_unique<Variant>();
  variant->arg_class = std::move(arg_class);
  variant->guard = plan_.MakeGuard(variant->arg_class);
  variant->key = CacheKeyText(parts);
  variants_.push_back(std::move(variant));
}

bool Kernel::is_prepared() const {
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
  return plan_.WorkspaceBytes(tensors, scalars);
}

PrepareStats Kernel::prepare_stats() const {
  const std::lock_guard<std::mutex> lock(prepare_mutex_);
  return stats_;
}

}  // namespace tilert
