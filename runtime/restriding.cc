#include "runtime/restriding.h"

#include <algorithm>

#include "absl/container/fixed_array.h"
#include "ir/int_eval.h"
#include "ir/specialize.h"
#include "ir/status_util.h"
#include "lowering/restride.h"
#include "runtime/cost_model.h"
#include "runtime/kernel.h"

namespace tilert {
namespace {

constexpr size_t kMostInputs = 8, kMostDims = 8;
constexpr int64_t kTypicalExtent = 4096;  // for what the one schedule is chosen

// What a copy costs: reading and writing at 2.3 TB/s and 1.8 GHz, beside a launch. Copies of unaligned rows on an H200.
constexpr double kCopiedBytesPerCycle = 1300;

// The schedule that is the quickest for large extents, of those for any dims.
const Schedule* ChooseSchedule(const Schedules& schedules, const ArgPlan& plan) {
  std::vector<int64_t> dims = plan.fixed_dims();
  for (int64_t& dim : dims) dim = dim == BoundArgs::kUnbound ? kTypicalExtent : dim;
  const int best = CheapestSchedule(schedules.fast.size(), dims,
                                    [&](size_t i) { return schedules.fast[i].guards.empty() ? &schedules.fast[i] : nullptr; });
  return best < 0 ? nullptr : &schedules.fast[static_cast<size_t>(best)];
}

}  // namespace

absl::StatusOr<std::unique_ptr<Restriding>> Restriding::Make(const Home& home, const Program& original, const KernelSpec& spec,
                                                             const Schedules& schedules, const ArgPlan& plan) {
  const Schedule* const schedule = ChooseSchedule(schedules, plan);
  if (schedule == nullptr || !MayHaveSlowRows(schedule->program)) return nullptr;
  TILERT_ASSIGN_OR_RETURN(const ArgPlan asked, ArgPlan::Make(schedule->program, plan.fixed_dims()));
  if (!asked.AsksTheSame(plan) || !asked.HasTheSameWorkspaces(plan)) return nullptr;
  const std::vector<BufferId> inputs = SharedInputs(schedule->program);
  if (inputs.empty() || inputs.size() > kMostInputs) return nullptr;
  const Program specialised = WithPaddedRows(schedule->program, inputs);
  const Target& target = home.runtime->target();
  std::unique_ptr<Restriding> result(
      new Restriding(*schedule, plan, CostModel(specialised, target), CostModel(schedules.general.program, target, true)));
  TILERT_ASSIGN_OR_RETURN(const VerifiedProgram padded, Verify(WithPaddedRows(original, inputs)));
  KernelSpec main = {padded->name, schedule->constants, spec.dims};
  main.only_class = PaddedArgClass(*padded, inputs);
  TILERT_ASSIGN_OR_RETURN(result->kernels_.emplace_back(), Kernel::Create(home.runtime, home.bundle, padded, main));
  for (const BufferId input : inputs) TILERT_RETURN_IF_ERROR(result->AddInput(home, schedule->program, input));
  return result;
}

absl::Status Restriding::AddInput(const Home& home, Program padded, BufferId id) {
  const bool strided = !padded.buffers[id].strides.empty();
  padded.buffers[id].strides.clear();
  padded = WithPaddedRows(padded, {&id, 1});
  const Buffer& buffer = padded.buffers[id];
  Input input{static_cast<uint32_t>(plan_.TensorIndex(id)), DTypeBytes(buffer.dtype), {}, {}, strided, 0};
  for (size_t d = 0; d < buffer.shape.size(); ++d) {
    TILERT_ASSIGN_OR_RETURN(input.shape.emplace_back(), DimExpr::Compile(padded, buffer.shape[d]));
    TILERT_ASSIGN_OR_RETURN(input.strides.emplace_back(), DimExpr::Compile(padded, buffer.strides[d]));
  }
  TILERT_ASSIGN_OR_RETURN(const VerifiedProgram program, RestrideProgram(buffer.dtype, buffer.shape.size(), strided));
  const auto same =
      std::find_if(kernels_.begin() + 1, kernels_.end(), [&](const auto& k) { return k->program().name == program->name; });
  input.copier = static_cast<size_t>(same - kernels_.begin());
  inputs_.push_back(std::move(input));
  if (same != kernels_.end()) return absl::OkStatus();
  KernelSpec spec;
  spec.entry = program->name;
  spec.only_class = PaddedArgClass(*program, std::vector<BufferId>{program->params[1].index});
  TILERT_ASSIGN_OR_RETURN(kernels_.emplace_back(), Kernel::Create(home.runtime, home.bundle, program, spec));
  return absl::OkStatus();
}

Restriding::Copies Restriding::Choose(const LaunchValues& values) const {
  Copies copies;
  if (state() != State::kReady) return copies;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    const LaunchValues::Tensor& tensor = values.tensors[input.tensor];
    if (tensor.bytes == 0) return {};  // nothing to compute with
    if (tensor.align_bits % kFastPitchBytes == 0) continue;
    const DimValues dims = values.values();
    const int64_t bytes = MulIndex(MulIndex(input.shape[0].Eval(dims), input.strides[0].Eval(dims)), input.element_bytes);
    if (bytes >= int64_t{1} << 40) return {};
    copies.which |= 1u << i;
    copies.bytes += UpToAlignment(static_cast<uint64_t>(bytes));
  }
  copies.is_worth_it = IsWorthIt(values, copies);
  return copies;
}

bool Restriding::IsWorthIt(const LaunchValues& values, const Copies& copies) const {
  absl::FixedArray<int64_t, 16> key(values.dims.size() + 1);
  std::copy(values.dims.begin(), values.dims.end(), key.begin());
  key.back() = copies.which;
  if (const int known = known_.Find(key); known >= 0) return known != 0;
  double cycles = cost_.Cycles(values.dims) + 2 * static_cast<double>(copies.bytes) / kCopiedBytesPerCycle;
  for (size_t i = 0; i < inputs_.size(); ++i) cycles += (copies.which >> i & 1) != 0 ? kLaunchCycles : 0;
  const bool is_worth_it = cycles < otherwise_.Cycles(values.dims);
  known_.Put(key, is_worth_it ? 1 : 0);
  return is_worth_it;
}

absl::StatusOr<bool> Restriding::Launch(const LaunchRequest& request, const LaunchValues& given, const Copies& copies,
                                        char* memory) const {
  absl::FixedArray<TensorArg, 24> tensors(request.tensors.begin(), request.tensors.end());
  absl::InlinedVector<int64_t, kMostDims> strides[kMostInputs];
  LaunchRequest main = request;
  main.tensors = tensors;
  const Kernel& kernel = *kernels_[0];
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    for (const DimExpr& stride : input.strides) strides[i].push_back(stride.Eval(given.values()));
    TensorArg& tensor = tensors[input.tensor];
    const bool is_copied = (copies.which >> i & 1) != 0;
    if (is_copied || !input.has_strides) tensor.strides = strides[i];
    if (!is_copied) continue;
    tensor.data = memory;
    memory += UpToAlignment(static_cast<uint64_t>(tensor.shape[0] * strides[i][0] * input.element_bytes));
  }
  LaunchValues values(kernel.plan());
  LaunchMaps maps;
  TILERT_ASSIGN_OR_RETURN(const ReadyCode* const ready, kernel.Resolve(main, values, maps));
  if (ready == nullptr) return false;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if ((copies.which >> i & 1) == 0) continue;
    const TensorArg both[] = {request.tensors[inputs_[i].tensor], tensors[inputs_[i].tensor]};
    LaunchRequest copy;
    copy.stream = request.stream;
    copy.tensors = both;
    TILERT_RETURN_IF_ERROR(kernels_[inputs_[i].copier]->Launch(copy));
  }
  TILERT_RETURN_IF_ERROR(kernel.Queue(*ready, values, maps, nullptr, request.stream));
  return true;
}

}  // namespace tilert
