#include "program_sim.h"

#include "ir/status_util.h"
#include "lowering/target.h"

namespace tilert {
namespace {

int64_t Elements(const BoundTensor& tensor) {
  int64_t last = 0;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] == 0) return 0;
    last += (tensor.shape[d] - 1) * tensor.strides[d];
  }
  return last + 1;
}

}  // namespace

absl::StatusOr<std::vector<kir::Kernel>> PlanAll(const Program& program, const ArgClass& arg_class, std::string_view arch,
                                                 const LowerOptions& options) {
  TILERT_ASSIGN_OR_RETURN(const Target target, FindTarget(arch));
  std::vector<kir::Kernel> kernels;
  for (size_t launch = 0; launch < program.launches.size(); ++launch) {
    TILERT_ASSIGN_OR_RETURN(kir::Kernel kernel, Plan(program, launch, arg_class, target, options));
    if (const std::string fault = kir::VerifyKernel(kernel); !fault.empty()) return Internal(fault);
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

absl::Status SimulateAll(const Program& program, const std::vector<kir::Kernel>& kernels, absl::Span<const TensorArg> tensors,
                         absl::Span<const ScalarArg> scalars, const SimOptions& options) {
  BoundArgs bound;
  TILERT_RETURN_IF_ERROR(BindArgs(program, tensors, scalars, &bound));
  SimArgs args;
  args.dims = bound.dims;
  for (int64_t& dim : args.dims) dim = dim == BoundArgs::kUnbound ? 0 : dim;
  args.scalars = bound.scalars;
  args.tensors.resize(program.buffers.size());
  size_t next = 0;
  for (const Param& param : program.params) {
    if (param.kind != Param::Kind::kTensor) continue;
    const BoundTensor& tensor = bound.tensors[next++];
    const auto bytes = static_cast<size_t>(Elements(tensor) * DTypeBytes(program.buffers[param.index].dtype));
    args.tensors[param.index] = absl::MakeSpan(static_cast<uint8_t*>(tensor.data), bytes);
  }
  std::vector<std::vector<uint8_t>> workspaces;
  for (const Workspace& workspace : program.workspaces) {
    BoundTensor shape;
    TILERT_RETURN_IF_ERROR(BindShape(program, program.buffers[workspace.buffer], bound, &shape));
    const auto bytes = static_cast<size_t>(Elements(shape) * DTypeBytes(program.buffers[workspace.buffer].dtype));
    workspaces.emplace_back(bytes, workspace.zeroed ? 0 : 0xff);
    args.tensors[workspace.buffer] = absl::MakeSpan(workspaces.back());
  }
  for (const kir::Kernel& kernel : kernels) {
    const absl::StatusOr<SimReport> report = Simulate(kernel, args, options);
    if (!report.ok()) return report.status();
  }
  return absl::OkStatus();
}

bool Fits(const Program& program, const ArgClass& arg_class, absl::Span<const TensorArg> tensors) {
  size_t next = 0, global = 0;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.scope != Scope::kGlobal) continue;
    const auto alignment = static_cast<int64_t>(arg_class.alignment[global++]);
    if (next >= tensors.size()) break;  // workspaces
    int64_t stride = DTypeBytes(buffer.dtype);
    const TensorArg& tensor = tensors[next++];
    for (size_t d = tensor.shape.size(); d-- > 1;) {
      stride *= tensor.shape[d];
      if (stride % alignment != 0) return false;
    }
  }
  return true;
}

}  // namespace tilert
