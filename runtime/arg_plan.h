// The arguments of a launch → dims, pointers and what variants may rely on, in a few dozen compares and no allocation.
//
// BindArgs of ir/bind_args.h says what is allowed and words the errors; this plan is the same checks prepared once per
// kernel. When they do not all pass, Bind asks BindArgs for the message, so the two cannot disagree about an error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/bind_args.h"
#include "ir/program.h"
#include "lowering/lowered.h"
#include "runtime/dim_expr.h"
#include "runtime/launch_values.h"

namespace tilert {

// Dims that a tensor map can have.
inline constexpr size_t kMaxMapRank = 5;

class ArgPlan {
 public:
  // `program`: verified and specialised; must outlive the plan. `fixed_dims`: one an entry of Program::dims, the value it
  // was specialised to or BoundArgs::kUnbound; empty: none is fixed. InvalidArgument: a shape cannot be evaluated at launch.
  static absl::StatusOr<ArgPlan> Make(const Program& program, std::vector<int64_t> fixed_dims = {});

  // Checks the arguments and fills `out`. `workspace` must be 256-byte aligned and hold WorkspaceBytes.
  // InvalidArgument: what BindArgs says; aliasing of a written tensor with another; a missing or small workspace.
  absl::Status Bind(absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars, void* workspace,
                    uint64_t workspace_bytes, LaunchValues& out) const;

  // The same for a device that brings its own workspaces.
  absl::Status BindWithoutWorkspace(absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars,
                                    LaunchValues& out) const;

  // Bytes of workspace that these arguments need. Pointers in `tensors` are not looked at; `values` is as if they were aligned.
  absl::StatusOr<uint64_t> BindShapes(absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars,
                                      LaunchValues& values) const;
  absl::StatusOr<uint64_t> WorkspaceBytes(absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars) const;
  // Of arguments that are bound.
  uint64_t WorkspaceBytes(const LaunchValues& values) const;

  // What `arg_class` asks of arguments, prepared for Satisfies.
  ClassGuard MakeGuard(const ArgClass& arg_class) const;
  // False when extents that are fixed already rule `arg_class` out, e.g. by rows of an odd number of bytes.
  bool MayEverSatisfy(const ArgClass& arg_class) const;
  // True if both ask for the same arguments; the same workspaces. REQUIRES: plans of specialisations of one program.
  bool AsksTheSame(const ArgPlan& other) const;
  bool HasTheSameWorkspaces(const ArgPlan& other) const;
  // True when the arguments are what the guard's class relies on.
  static bool Satisfies(const ClassGuard& guard, const LaunchValues& values);

  // Index into LaunchValues::tensors of a global buffer; −1 for others.
  int TensorIndex(BufferId buffer) const;
  // What a tensor map says of a tensor, innermost dim first: its `rank` extents, and the strides in bytes of all dims but the
  // innermost. REQUIRES: `values` were bound by this plan; the tensor has a rank of 1 to kMaxMapRank.
  void MapGeometry(uint32_t tensor, const LaunchValues& values, uint64_t* extents, uint64_t* strides) const;

  // Workspaces that must read zero before the first launch: index into LaunchValues::tensors.
  const std::vector<uint32_t>& zeroed_workspaces() const { return zeroed_; }
  const Program& program() const { return *program_; }
  const std::vector<int64_t>& fixed_dims() const { return fixed_dims_; }
  size_t tensor_count() const { return rules_.size(); }

 private:
  struct TensorRule {
    BufferId buffer = kNoId;
    DType dtype = DType::kInvalid;
    int64_t element_bytes = 0;
    bool is_workspace = false, is_written = false, has_strides = false;
    std::vector<DimExpr> shape, strides;  // strides: as declared, else empty
    bool operator==(const TensorRule&) const = default;
  };
  // `dims[dim]` = extent (or stride) `axis` of a tensor.
  struct DimBinding {
    uint32_t dim, tensor, axis;
    bool from_stride;
  };

  absl::Status AddTensor(BufferId buffer, bool is_workspace, bool is_written);
  void AddBindings(uint32_t tensor);
  bool BindFast(absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars, LaunchValues& out) const;
  absl::Status BindChecked(absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars, LaunchValues& out) const;
  bool BindScalars(absl::Span<const ScalarArg> scalars, LaunchValues& out) const;
  bool BindDims(absl::Span<const TensorArg> tensors, LaunchValues& out) const;
  bool CheckContiguous(const TensorRule& rule, const TensorArg* arg, LaunchValues& out, LaunchValues::Tensor& tensor) const;
  bool CheckStrided(const TensorRule& rule, const TensorArg& arg, LaunchValues& out, LaunchValues::Tensor& tensor) const;
  bool PlaceWorkspaces(char* workspace, uint64_t workspace_bytes, LaunchValues& out, uint64_t& needed) const;
  absl::Status Explain(absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars) const;
  absl::Status CheckAliasing(const LaunchValues& values) const;

  const Program* program_ = nullptr;
  size_t parameter_tensors_ = 0;
  std::vector<TensorRule> rules_;  // tensor parameters, then workspaces
  std::vector<DimBinding> bindings_;
  std::vector<int64_t> fixed_dims_;
  std::vector<DimExpr> assumptions_;
  std::vector<uint32_t> zeroed_;
};

// Workspaces lie one behind the other, each at a multiple of this many bytes.
inline constexpr uint64_t kWorkspaceAlignment = 256;
inline constexpr int64_t kMaxWorkspaceBytes = int64_t{1} << 60;  // all together: their sum stays a number
inline constexpr uint64_t UpToAlignment(uint64_t bytes) {
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

}  // namespace tilert
