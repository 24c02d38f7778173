#include "runtime/arg_plan.h"

#include <algorithm>

#include "ir/int_eval.h"
#include "ir/limits.h"
#include "ir/status_util.h"

namespace tilert {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 62;  // as BindArgs
constexpr int64_t kMaxReach = kMaxElements / 8;

}  // namespace

LaunchValues::LaunchValues(const ArgPlan& plan)
    : dims(plan.program().dims.size()), scalars(plan.program().scalars.size()), tensors(plan.tensor_count()) {}

absl::StatusOr<ArgPlan> ArgPlan::Make(const Program& program, std::vector<int64_t> fixed_dims) {
  ArgPlan plan;
  plan.program_ = &program;
  plan.fixed_dims_ = std::move(fixed_dims);
  plan.fixed_dims_.resize(program.dims.size(), BoundArgs::kUnbound);
  for (const Param& param : program.params) {
    if (param.kind != Param::Kind::kTensor) continue;
    TILERT_RETURN_IF_ERROR(plan.AddTensor(param.index, false, param.access != Access::kIn));
  }
  plan.parameter_tensors_ = plan.rules_.size();
  for (const Workspace& workspace : program.workspaces) {
    if (workspace.zeroed) plan.zeroed_.push_back(static_cast<uint32_t>(plan.rules_.size()));
    TILERT_RETURN_IF_ERROR(plan.AddTensor(workspace.buffer, true, true));
  }
  for (const Expr assumption : program.assumptions) {
    TILERT_ASSIGN_OR_RETURN(DimExpr compiled, DimExpr::Compile(program, assumption));
    plan.assumptions_.push_back(std::move(compiled));
  }
  for (uint32_t t = 0; t < plan.parameter_tensors_; ++t) plan.AddBindings(t);
  return plan;
}

absl::Status ArgPlan::AddTensor(BufferId id, bool is_workspace, bool is_written) {
  const Buffer& buffer = program_->buffers[id];
  TensorRule rule;
  rule.buffer = id;
  rule.dtype = buffer.dtype;
  rule.element_bytes = std::max(DTypeBytes(buffer.dtype), 1);
  rule.is_workspace = is_workspace;
  rule.is_written = is_written;
  rule.has_strides = !buffer.strides.empty();
  for (const Expr extent : buffer.shape) {
    TILERT_ASSIGN_OR_RETURN(DimExpr compiled, DimExpr::Compile(*program_, extent));
    rule.shape.push_back(std::move(compiled));
  }
  for (const Expr stride : buffer.strides) {
    TILERT_ASSIGN_OR_RETURN(DimExpr compiled, DimExpr::Compile(*program_, stride));
    rule.strides.push_back(std::move(compiled));
  }
  rules_.push_back(std::move(rule));
  return absl::OkStatus();
}

// The order is BindArgs': scalars, then of each tensor its shape and its strides; the first bare occurrence binds.
void ArgPlan::AddBindings(uint32_t tensor) {
  const auto is_bound = [this](int64_t dim) {
    for (const ScalarParam& scalar : program_->scalars) {
      if (scalar.dim == static_cast<uint32_t>(dim)) return true;
    }
    if (fixed_dims_[static_cast<size_t>(dim)] != BoundArgs::kUnbound) return true;
    return std::any_of(bindings_.begin(), bindings_.end(), [dim](const DimBinding& b) { return b.dim == dim; });
  };
  const auto add = [&](const std::vector<DimExpr>& exprs, bool from_stride) {
    for (uint32_t axis = 0; axis < exprs.size(); ++axis) {
      const int64_t dim = exprs[axis].BareDim();
      if (dim >= 0 && !is_bound(dim)) bindings_.push_back({static_cast<uint32_t>(dim), tensor, axis, from_stride});
    }
  };
  add(rules_[tensor].shape, false);
  add(rules_[tensor].strides, true);
}

bool ArgPlan::AsksTheSame(const ArgPlan& other) const {
  const auto parameters = static_cast<ptrdiff_t>(parameter_tensors_);
  return std::equal(rules_.begin(), rules_.begin() + parameters, other.rules_.begin()) && assumptions_ == other.assumptions_;
}

bool ArgPlan::HasTheSameWorkspaces(const ArgPlan& other) const {
  const auto parameters = static_cast<ptrdiff_t>(parameter_tensors_);
  return std::equal(rules_.begin() + parameters, rules_.end(), other.rules_.begin() + parameters, other.rules_.end());
}

int ArgPlan::TensorIndex(BufferId buffer) const {
  const auto it = std::find_if(rules_.begin(), rules_.end(), [buffer](const TensorRule& rule) { return rule.buffer == buffer; });
  return it == rules_.end() ? -1 : static_cast<int>(it - rules_.begin());
}

void ArgPlan::MapGeometry(uint32_t tensor, const LaunchValues& values, uint64_t* extents, uint64_t* strides) const {
  const TensorRule& rule = rules_[tensor];
  const size_t rank = rule.shape.size();
  const DimValues dims = values.values();
  uint64_t stride = static_cast<uint64_t>(rule.element_bytes);
  for (size_t d = 0; d < rank; ++d) {
    const size_t axis = rank - 1 - d;
    extents[d] = static_cast<uint64_t>(rule.shape[axis].Eval(dims));
    if (rule.has_strides) stride = static_cast<uint64_t>(MulIndex(rule.strides[axis].Eval(dims), rule.element_bytes));
    if (d > 0) strides[d - 1] = stride;
    stride *= extents[d];
  }
}

bool ArgPlan::BindScalars(absl::Span<const ScalarArg> scalars, LaunchValues& out) const {
  if (scalars.size() != program_->scalars.size()) return false;
  for (size_t k = 0; k < scalars.size(); ++k) {
    const ScalarParam& param = program_->scalars[k];
    const ScalarArg& arg = scalars[k];
    if (arg.dtype != param.dtype) return false;  // allowed in part: BindArgs decides
    out.scalars[k] = ConvertValue(arg.value, arg.dtype, param.dtype);
    if (!IsFloat(param.dtype) && param.dtype != DType::kBool && out.scalars[k].i != arg.value.i) return false;
    if (param.dim == kNoId) continue;
    int64_t& dim = out.dims[param.dim];
    if (out.scalars[k].i < 0 || (dim != BoundArgs::kUnbound && dim != out.scalars[k].i)) return false;
    dim = out.scalars[k].i;
  }
  return true;
}

bool ArgPlan::BindDims(absl::Span<const TensorArg> tensors, LaunchValues& out) const {
  for (size_t t = 0; t < tensors.size(); ++t) {
    const TensorRule& rule = rules_[t];
    const TensorArg& arg = tensors[t];
    if (arg.dtype != rule.dtype || arg.shape.size() != rule.shape.size()) return false;
    if (!arg.strides.empty() && arg.strides.size() != arg.shape.size()) return false;
  }
  for (const DimBinding& binding : bindings_) {
    const TensorArg& arg = tensors[binding.tensor];
    int64_t value = 1;
    if (!binding.from_stride) {
      value = arg.shape[binding.axis];
    } else if (!arg.strides.empty()) {
      value = arg.strides[binding.axis];
    } else {
      for (size_t d = binding.axis + 1; d < arg.shape.size(); ++d) value = MulIndex(value, std::max<int64_t>(arg.shape[d], 1));
    }
    if (value < 0) return false;
    out.dims[binding.dim] = value;
  }
  return true;
}

namespace {

// The pointer's share of a tensor's facts. `below` and `above`: reach in elements on either side of it.
bool SetMemory(int64_t element_bytes, void* data, bool is_empty, int64_t below, int64_t above, LaunchValues::Tensor& tensor) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  tensor.data = static_cast<char*>(data);
  tensor.align_bits |= address;
  tensor.first = reinterpret_cast<const char*>(address + static_cast<uintptr_t>(below * element_bytes));
  tensor.bytes = is_empty ? 0 : (above - below + 1) * element_bytes;
  // Element sizes are powers of two.
  return (address & static_cast<uintptr_t>(element_bytes - 1)) == 0 && (data != nullptr || is_empty);
}

}  // namespace

// A tensor that is contiguous by declaration and as given; `arg` is null for a workspace, whose memory comes later.
bool ArgPlan::CheckContiguous(const TensorRule& rule, const TensorArg* arg, LaunchValues& out,
                              LaunchValues::Tensor& tensor) const {
  const DimValues values = out.values();
  int64_t span = 1;  // elements, an empty dimension counting as one: the stride of the next axis
  int64_t stride_bits = 0;
  bool is_empty = false, is_bad = false;
  for (size_t axis = rule.shape.size(); axis-- > 0;) {
    const int64_t extent = rule.shape[axis].EvalExact(values);
    is_bad |= extent < 0 || (arg != nullptr && arg->shape[axis] != extent);
    is_empty |= extent == 0;
    is_bad |= __builtin_mul_overflow(span, std::max<int64_t>(extent, 1), &span);
    if (axis > 0) stride_bits |= span;
  }
  if (is_bad || span > kMaxReach) return false;
  out.max_index = std::max(out.max_index, span);
  tensor.align_bits = static_cast<uint64_t>(stride_bits) * static_cast<uint64_t>(rule.element_bytes);
  tensor.inner_is_dense = true;
  if (arg != nullptr) return SetMemory(rule.element_bytes, arg->data, is_empty, 0, span - 1, tensor);
  tensor.bytes = is_empty ? 0 : span * rule.element_bytes;
  return true;
}

// A tensor with strides, declared or given.
bool ArgPlan::CheckStrided(const TensorRule& rule, const TensorArg& arg, LaunchValues& out, LaunchValues::Tensor& tensor) const {
  const DimValues values = out.values();
  int64_t contiguous = 1;  // the stride that the axis has in a contiguous tensor
  int64_t above = 0, below = 0;
  uint64_t stride_bits = 0;
  bool is_empty = false;
  const size_t rank = rule.shape.size();
  tensor.inner_is_dense = true;
  for (size_t axis = rank; axis-- > 0;) {
    const int64_t extent = rule.shape[axis].EvalExact(values);
    if (extent < 0 || arg.shape[axis] != extent) return false;
    is_empty |= extent == 0;
    const int64_t stride = rule.has_strides ? rule.strides[axis].EvalExact(values) : contiguous;
    if (stride == DimExpr::kTooLarge) return false;
    // The extents behind this axis are the declared ones, so `contiguous` is what a caller without strides means.
    if (extent > 1 && (arg.strides.empty() ? contiguous : arg.strides[axis]) != stride) return false;
    contiguous = MulIndex(contiguous, std::max<int64_t>(extent, 1));
    if (extent > 1) (stride < 0 ? below : above) = AddIndex(stride < 0 ? below : above, MulIndex(extent - 1, stride));
    if (axis + 1 < rank) stride_bits |= static_cast<uint64_t>(stride) * static_cast<uint64_t>(rule.element_bytes);
    if (axis + 1 == rank) tensor.inner_is_dense = stride == 1;
  }
  if (contiguous >= kMaxElements && !is_empty) return false;
  if (above >= kMaxReach || below <= -kMaxReach || above - below >= kMaxReach) return false;
  out.max_index = std::max(out.max_index, above - below + 1);
  tensor.align_bits = stride_bits;
  return SetMemory(rule.element_bytes, arg.data, is_empty, below, above, tensor);
}

bool ArgPlan::BindFast(absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars, LaunchValues& out) const {
  if (tensors.size() != parameter_tensors_) return false;
  std::copy(fixed_dims_.begin(), fixed_dims_.end(), out.dims.begin());
  if (!BindScalars(scalars, out) || !BindDims(tensors, out)) return false;
  out.max_index = 0;
  for (const int64_t dim : out.dims) out.max_index = std::max(out.max_index, dim);
  if (out.max_index > kMaxDim) return false;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const bool is_plain = !rules_[t].has_strides && tensors[t].strides.empty();
    if (!(is_plain ? CheckContiguous(rules_[t], &tensors[t], out, out.tensors[t])
                   : CheckStrided(rules_[t], tensors[t], out, out.tensors[t]))) {
      return false;
    }
  }
  int64_t workspace_bytes = 0;
  for (size_t t = parameter_tensors_; t < rules_.size(); ++t) {
    if (!CheckContiguous(rules_[t], nullptr, out, out.tensors[t])) return false;
    workspace_bytes = AddIndex(workspace_bytes, out.tensors[t].bytes);
  }
  if (workspace_bytes > kMaxWorkspaceBytes) return false;
  for (const DimExpr& assumption : assumptions_) {
    const int64_t holds = assumption.EvalExact(out.values());
    if (holds == 0 || holds == DimExpr::kTooLarge) return false;
  }
  return true;
}

ClassGuard ArgPlan::MakeGuard(const ArgClass& arg_class) const {
  ClassGuard guard;
  if (arg_class.index32) guard.max_index = (int64_t{1} << 30) - 1;
  for (uint32_t d = 0; d < arg_class.dim_divisor.size(); ++d) {
    if (arg_class.dim_divisor[d] > 1) guard.divisible.push_back({d, arg_class.dim_divisor[d]});
  }
  size_t next = 0;  // ArgClass lists global buffers in the order of Program::buffers
  for (BufferId id = 0; id < program_->buffers.size() && next < arg_class.alignment.size(); ++id) {
    if (program_->buffers[id].scope != Scope::kGlobal) continue;
    const uint32_t alignment = arg_class.alignment[next++];
    const int index = TensorIndex(id);
    if (index < 0 || alignment <= static_cast<uint32_t>(rules_[static_cast<size_t>(index)].element_bytes)) continue;
    guard.aligned.push_back({static_cast<uint32_t>(index), alignment - 1});
  }
  return guard;
}

bool ArgPlan::MayEverSatisfy(const ArgClass& arg_class) const {
  const ClassGuard guard = MakeGuard(arg_class);
  for (const ClassGuard::Aligned& aligned : guard.aligned) {
    const TensorRule& rule = rules_[aligned.tensor];
    int64_t span = 1;  // of the axes behind, as far as they are fixed
    for (size_t axis = rule.shape.size(); axis-- > 0;) {
      const bool is_inner = axis + 1 == rule.shape.size();
      int64_t stride = span;
      if (rule.has_strides && !rule.strides[axis].IsConstant()) continue;
      if (rule.has_strides) stride = rule.strides[axis].Eval({});
      if (is_inner ? stride != 1
                   : (static_cast<uint64_t>(stride) * static_cast<uint64_t>(rule.element_bytes) & aligned.mask) != 0)
        return false;
      if (rule.has_strides) continue;
      if (!rule.shape[axis].IsConstant()) break;
      if (__builtin_mul_overflow(span, std::max<int64_t>(rule.shape[axis].Eval({}), 1), &span)) break;
    }
  }
  return true;
}

bool ArgPlan::Satisfies(const ClassGuard& guard, const LaunchValues& values) {
  if (values.max_index > guard.max_index) return false;
  for (const ClassGuard::Aligned& aligned : guard.aligned) {
    const LaunchValues::Tensor& tensor = values.tensors[aligned.tensor];
    if (!tensor.inner_is_dense || (tensor.align_bits & aligned.mask) != 0) return false;
  }
  for (const ClassGuard::Divisible& divisible : guard.divisible) {
    if (values.dims[divisible.dim] % divisible.divisor != 0) return false;
  }
  return true;
}

}  // namespace tilert
