// ArgPlan, second half: workspaces, aliasing, and the way to an error message.
#include <algorithm>

#include "ir/int_eval.h"
#include "ir/status_util.h"
#include "runtime/arg_plan.h"

namespace tilert {
namespace {

// Workspaces without memory (yet) overlap nothing.
bool Overlap(const LaunchValues::Tensor& a, const LaunchValues::Tensor& b) {
  if (a.first == nullptr || b.first == nullptr) return false;
  const auto a_first = reinterpret_cast<uintptr_t>(a.first), b_first = reinterpret_cast<uintptr_t>(b.first);
  return a_first < b_first + static_cast<uintptr_t>(b.bytes) && b_first < a_first + static_cast<uintptr_t>(a.bytes) &&
         a.bytes != 0 && b.bytes != 0;
}

}  // namespace

// Lays the workspaces out; false when `workspace` cannot hold them. `needed` is set either way.
bool ArgPlan::PlaceWorkspaces(char* workspace, uint64_t workspace_bytes, LaunchValues& out, uint64_t& needed) const {
  needed = 0;
  for (size_t t = parameter_tensors_; t < rules_.size(); ++t) {
    LaunchValues::Tensor& tensor = out.tensors[t];
    const auto bytes = static_cast<uint64_t>(tensor.bytes);
    tensor.data = workspace == nullptr ? nullptr : workspace + needed;
    tensor.first = tensor.data;
    tensor.align_bits |= reinterpret_cast<uintptr_t>(tensor.data);
    needed += UpToAlignment(bytes);
  }
  if (needed == 0) return true;
  return workspace != nullptr && workspace_bytes >= needed && reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAlignment == 0;
}

absl::Status ArgPlan::BindChecked(absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars,
                                  LaunchValues& out) const {
  if (BindFast(tensors, scalars, out)) return absl::OkStatus();
  TILERT_RETURN_IF_ERROR(Explain(tensors, scalars));
  // Legal but unusual: scalars of another integer type. Bring them to the declared types and bind again.
  std::vector<ScalarArg> converted(scalars.begin(), scalars.end());
  for (size_t k = 0; k < converted.size(); ++k) {
    const DType type = program_->scalars[k].dtype;
    converted[k] = {type, ConvertValue(converted[k].value, converted[k].dtype, type)};
  }
  if (BindFast(tensors, converted, out)) return absl::OkStatus();
  return Internal("the arguments of '", program_->name, "' were refused without a reason");
}

absl::Status ArgPlan::Bind(absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars, void* workspace,
                           uint64_t workspace_bytes, LaunchValues& out) const {
  TILERT_RETURN_IF_ERROR(BindChecked(tensors, scalars, out));
  uint64_t needed = 0;
  if (!PlaceWorkspaces(static_cast<char*>(workspace), workspace_bytes, out, needed)) {
    return InvalidArgument("'", program_->name, "' needs a workspace of ", needed, " bytes, ", kWorkspaceAlignment,
                           "-byte aligned; got ", workspace == nullptr ? 0 : workspace_bytes, " bytes at 0x",
                           absl::Hex(reinterpret_cast<uintptr_t>(workspace)));
  }
  return CheckAliasing(out);
}

absl::Status ArgPlan::BindWithoutWorkspace(absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars,
                                           LaunchValues& out) const {
  TILERT_RETURN_IF_ERROR(BindChecked(tensors, scalars, out));
  uint64_t needed = 0;
  PlaceWorkspaces(nullptr, 0, out, needed);
  return CheckAliasing(out);
}

absl::StatusOr<uint64_t> ArgPlan::WorkspaceBytes(absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars) const {
  if (program_->workspaces.empty()) return 0;
  LaunchValues values(*this);
  return BindShapes(tensors, scalars, values);
}

uint64_t ArgPlan::WorkspaceBytes(const LaunchValues& values) const {
  uint64_t bytes = 0;
  for (size_t t = parameter_tensors_; t < rules_.size(); ++t)
    bytes += UpToAlignment(static_cast<uint64_t>(values.tensors[t].bytes));
  return bytes;
}

absl::StatusOr<uint64_t> ArgPlan::BindShapes(absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars,
                                             LaunchValues& values) const {
  // Pointers do not matter here: stand in with one that every check accepts.
  std::vector<TensorArg> stand_ins(tensors.begin(), tensors.end());
  for (TensorArg& tensor : stand_ins) tensor.data = reinterpret_cast<void*>(kWorkspaceAlignment);
  TILERT_RETURN_IF_ERROR(BindChecked(stand_ins, scalars, values));
  uint64_t needed = 0;
  PlaceWorkspaces(nullptr, 0, values, needed);
  return needed;
}

// OK when BindArgs finds nothing wrong with the arguments either.
absl::Status ArgPlan::Explain(absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars) const {
  BoundArgs bound;
  TILERT_RETURN_IF_ERROR(BindArgs(*program_, tensors, scalars, &bound));
  int64_t workspace_bytes = 0;
  for (const Workspace& workspace : program_->workspaces) {
    BoundTensor shape;
    const Buffer& buffer = program_->buffers[workspace.buffer];
    TILERT_RETURN_IF_ERROR(BindShape(*program_, buffer, bound, &shape));
    int64_t bytes = std::max(DTypeBytes(buffer.dtype), 1);
    for (const int64_t extent : shape.shape) bytes = MulIndex(bytes, extent);
    workspace_bytes = AddIndex(workspace_bytes, bytes);
  }
  if (workspace_bytes > kMaxWorkspaceBytes)
    return InvalidArgument("'", program_->name, "' needs workspaces of more bytes than there are addresses");
  for (size_t d = 0; d < fixed_dims_.size(); ++d) {
    if (fixed_dims_[d] == BoundArgs::kUnbound || bound.dims[d] == BoundArgs::kUnbound || bound.dims[d] == fixed_dims_[d])
      continue;
    return InvalidArgument("dim '", program_->dims[d].name, "' was fixed to ", fixed_dims_[d], " for this kernel; got ",
                           bound.dims[d]);
  }
  return absl::OkStatus();
}

// A kernel may read a tensor through a read-only path and in any order, so what it writes must not be read under
// another name.
absl::Status ArgPlan::CheckAliasing(const LaunchValues& values) const {
  for (size_t w = 0; w < rules_.size(); ++w) {
    if (!rules_[w].is_written) continue;
    for (size_t t = 0; t < rules_.size(); ++t) {
      if (t == w || (t < w && rules_[t].is_written) || !Overlap(values.tensors[w], values.tensors[t])) continue;
      const std::string& written = program_->buffers[rules_[w].buffer].name;
      const std::string& other = program_->buffers[rules_[t].buffer].name;
      return InvalidArgument("'", program_->name, "': the memory of '", written, "', which is written, overlaps that of '", other,
                             "'; pass separate memory");
    }
  }
  return absl::OkStatus();
}

}  // namespace tilert
