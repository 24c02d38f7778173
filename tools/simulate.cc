#include "tools/simulate.h"

#include "ir/status_util.h"
#include "lowering/lowered.h"
#include "runtime/arg_plan.h"

namespace tilert::tool {
namespace {

// The fast class where the arguments allow it, as a launch would choose.
absl::StatusOr<ArgClass> ClassOf(const Program& program, CallArguments& arguments) {
  TILERT_ASSIGN_OR_RETURN(const ArgPlan plan, ArgPlan::Make(program));
  LaunchValues values(plan);
  TILERT_RETURN_IF_ERROR(plan.BindWithoutWorkspace(arguments.Tensors(), arguments.scalars, values));
  const ArgClass fast = FastArgClass(program);
  return ArgPlan::Satisfies(plan.MakeGuard(fast), values) ? fast : GeneralArgClass(program);
}

}  // namespace

absl::Status RunSimulated(const Program& program, const Target& target, bool general, CallArguments& arguments,
                          const SimOptions& options, std::string* report) {
  BoundArgs bound;
  TILERT_RETURN_IF_ERROR(BindArgs(program, arguments.Tensors(), arguments.scalars, &bound));
  ArgClass arg_class = GeneralArgClass(program);
  if (!general) {
    TILERT_ASSIGN_OR_RETURN(arg_class, ClassOf(program, arguments));
  }
  TILERT_ASSIGN_OR_RETURN(const Lowered lowered, Lower(program, arg_class, target));
  SimArgs sim;
  sim.dims = bound.dims;
  sim.scalars = bound.scalars;
  sim.tensors.resize(program.buffers.size());
  size_t next = 0;
  for (const Param& param : program.params) {
    if (param.kind == Param::Kind::kTensor) sim.tensors[param.index] = absl::MakeSpan(arguments.arrays[next++].bytes);
  }
  std::vector<Array> workspaces;
  workspaces.reserve(program.workspaces.size());
  for (const Workspace& workspace : program.workspaces) {
    const Buffer& buffer = program.buffers[workspace.buffer];
    BoundTensor shape;
    TILERT_RETURN_IF_ERROR(BindShape(program, buffer, bound, &shape));
    TILERT_ASSIGN_OR_RETURN(Array array, MakeArray(buffer.dtype, {shape.shape.begin(), shape.shape.end()}));
    workspaces.push_back(std::move(array));
    sim.tensors[workspace.buffer] = absl::MakeSpan(workspaces.back().bytes);
  }
  for (const kir::Kernel& kernel : lowered.kernel_ir) {
    TILERT_ASSIGN_OR_RETURN(const SimReport done, Simulate(kernel, sim, options));
    if (report != nullptr) *report += Cat(kernel.name, " (", arg_class.ToString(), "): ", done.ToString(), "\n");
  }
  return absl::OkStatus();
}

}  // namespace tilert::tool
