#include "comparison.h"

#include <algorithm>
#include <cmath>

#include "compile_source.h"
#include "kernel_mutation.h"
#include "program_sim.h"

namespace tilert {
namespace {

std::vector<DType> TensorTypes(const Program& program) {
  std::vector<DType> types;
  for (const Param& param : program.params) {
    if (param.kind == Param::Kind::kTensor) types.push_back(program.buffers[param.index].dtype);
  }
  return types;
}

// What the executor makes of the outputs.
std::vector<Array> Reference(const Program& program, Args args) {
  const std::vector<DType> types = TensorTypes(program);
  const size_t first = args.arrays.size() - args.outputs;
  for (size_t i = first; i < args.arrays.size(); ++i) args.arrays[i] = Array(types[i], args.arrays[i].shape());
  ExecOptions options;
  options.threads = 2;
  const absl::Status status = Execute(program, args.tensors(), args.scalars, options);
  EXPECT_TRUE(status.ok()) << program.name << ": " << status;
  return {args.arrays.begin() + static_cast<std::ptrdiff_t>(first), args.arrays.end()};
}

Args Absolute(Args args) {
  for (size_t i = 0; i + args.outputs < args.arrays.size(); ++i) {
    for (int64_t e = 0; e < args.arrays[i].size(); ++e) args.arrays[i].Set(e, std::fabs(args.arrays[i][e]));
  }
  return args;
}

testing::AssertionResult Near(const Array& got, const Array& expected, const Array* magnitude, const Bound& bound) {
  const std::vector<double> left = got.Values(), right = expected.Values();
  for (size_t e = 0; e < right.size(); ++e) {
    const double a = left[e], b = right[e];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double sizes = magnitude != nullptr ? bound.of_magnitude * (*magnitude)[static_cast<int64_t>(e)] : 0;
    const double allowed = bound.relative * std::fabs(b) + sizes + bound.absolute;
    if (!(std::fabs(a - b) <= allowed)) {
      return testing::AssertionFailure() << "element " << e << " of " << expected.size() << ": simulated " << a << ", executed "
                                         << b << ", allowed " << allowed;
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace

std::vector<TensorArg> Args::tensors() {
  std::vector<TensorArg> result;
  for (Array& array : arrays) result.push_back(array.arg());
  strides.assign(parts.size(), {});
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].empty()) continue;
    strides[i].assign(parts[i].size(), 1);
    for (size_t d = parts[i].size() - 1; d-- > 0;) strides[i][d] = strides[i][d + 1] * arrays[i].shape()[d + 1];
    result[i].shape = parts[i], result[i].strides = strides[i];
  }
  return result;
}

Args MakeArgs(const std::vector<std::pair<DType, std::vector<int64_t>>>& tensors, double scale, std::vector<ScalarArg> scalars,
              size_t outputs) {
  Args args;
  args.scalars = std::move(scalars);
  args.outputs = outputs;
  for (const auto& [type, shape] : tensors) args.arrays.emplace_back(type, shape);
  for (size_t i = 0; i + outputs < args.arrays.size(); ++i) args.arrays[i].Random(i + 1, -scale, scale);
  return args;
}

Comparison::Comparison(Program program, Program reference) : program_(std::move(program)), reference_(std::move(reference)) {
  for (const ArgClass& arg_class : {GeneralArgClass(program_), FastArgClass(program_)}) {
    std::string text;  // of the kernels for sm_80
    for (const char* arch : {"sm_80", "sm_90a"}) {
      const std::string what = program_.name + " for " + arch + ", " + arg_class.ToString();
      absl::StatusOr<std::vector<kir::Kernel>> kernels = PlanAll(program_, arg_class, arch);
      EXPECT_TRUE(kernels.ok()) << what << ": " << kernels.status();
      if (!kernels.ok()) continue;
      std::string same;
      for (const kir::Kernel& kernel : *kernels) same += kir::ToText(kernel);
      if (same == text) continue;
      text = same;
      planned_.push_back({what, arg_class, *std::move(kernels), arch});
    }
  }
}

void Comparison::ExpectAgrees(const Args& args, const Bound& bound, const std::string& what) {
  const std::vector<Array> expected = Reference(reference_, args);
  const bool sized = bound.of_magnitude != 0;
  const std::vector<Array> magnitude = sized ? Reference(reference_, Absolute(args)) : expected;
  for (const auto& [target, arg_class, kernels, arch] : planned_) {
    Args run = args;
    if (!Fits(program_, arg_class, run.tensors())) continue;
    ++compared_;
    const SimOptions options{.seed = ++seed_, .interleavings = 2};
    const absl::Status status = SimulateAll(program_, kernels, run.tensors(), run.scalars, options);
    ASSERT_TRUE(status.ok()) << target << " " << what << ": " << status << "\n" << kir::ToText(kernels.front());
    for (size_t i = 0; i < args.outputs; ++i) {
      const Array& got = run.arrays[run.arrays.size() - args.outputs + i];
      ASSERT_TRUE(Near(got, expected[i], sized ? &magnitude[i] : nullptr, bound)) << target << " " << what << " output " << i;
    }
  }
}

void Comparison::ExpectAllSynchronisationNeeded(const std::vector<Args>& shapes, const std::string& only) {
  for (const auto& [target, arg_class, split, arch] : planned_) {
    // A part of a split loop may run once at most, whatever the shapes: what orders its iterations is then never needed. The
    // parts are planned as the whole is.
    LowerOptions options;
    options.without = "split-loops";
    const absl::StatusOr<std::vector<kir::Kernel>> whole = PlanAll(program_, arg_class, arch, options);
    ASSERT_TRUE(whole.ok()) << target << ": " << whole.status();
    const std::vector<kir::Kernel>& kernels = *whole;
    const auto simulate = [&, &arg_class = arg_class](const std::vector<kir::Kernel>& changed, const Args& args) {
      Args run = args;
      if (!Fits(program_, arg_class, run.tensors())) return absl::OkStatus();
      // One block: it meets all tiles, and itself again in every slot.
      return SimulateAll(program_, changed, run.tensors(), run.scalars, {.seed = ++seed_, .interleavings = 1, .blocks = 1});
    };
    for (const Args& args : shapes) {
      const absl::Status sound = simulate(kernels, args);
      ASSERT_TRUE(sound.ok()) << target << ": " << sound;
    }
    for (size_t k = 0; k < kernels.size(); ++k) {
      for (const Mutant& mutant : SynchronisationMutants(kernels[k])) {
        if (mutant.what.find(only) == std::string::npos) continue;
        std::vector<kir::Kernel> mutated = kernels;
        mutated[k] = mutant.kernel;
        const bool found = std::any_of(shapes.begin(), shapes.end(), [&](const Args& args) {
          return simulate(mutated, args).code() == absl::StatusCode::kInternal;
        });
        EXPECT_TRUE(found) << target << ": nothing is wrong " << mutant.what << ": it is not needed\n" << kir::ToText(kernels[k]);
      }
    }
  }
}

void ExpectLowers(const Program& program) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    for (const ArgClass& args : {FastArgClass(program), GeneralArgClass(program)}) {
      const absl::StatusOr<Lowered> lowered = Lower(program, args, *FindTarget(arch, "auto"), {});
      EXPECT_TRUE(lowered.ok()) << lowered.status();
    }
  }
}

void ExpectProgramAgrees(const std::string& file, const std::string& entry, const std::vector<Tensors>& calls,
                         const Bound& bound) {
  const Program program = CompileSource(file, entry);
  ASSERT_FALSE(program.launches.empty());
  ExpectLowers(program);
  Comparison comparison(program);
  for (const Tensors& call : calls) comparison.ExpectAgrees(MakeArgs(call, 9), bound, entry);
  EXPECT_GT(comparison.compared(), 0);
}

}  // namespace tilert
