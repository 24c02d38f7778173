// tilert run: a program on data.
#include <cstdio>

#include "ir/specialize.h"
#include "ir/status_util.h"
#include "tools/arguments.h"
#include "tools/command.h"
#include "tools/compare.h"
#include "tools/cpu.h"
#include "tools/device.h"
#include "tools/input.h"
#include "tools/lowering_options.h"
#include "tools/progress.h"
#include "tools/simulate.h"

namespace tilert::tool {
namespace {

absl::Status RunOnDevice(const Args& args, const ChosenProgram& chosen, CallArguments& call) {
  RuntimeOptions options;
  options.family = args.Get("--family", "auto");
  if (args.Has("--no-cache")) options.cache_directory = "";
  TILERT_ASSIGN_OR_RETURN(const auto device, Device::Open(std::move(options)));
  TILERT_ASSIGN_OR_RETURN(const auto run, DeviceCall::Make(*device, chosen, call));
  TILERT_ASSIGN_OR_RETURN(const std::string choice, run->ChoiceText());
  std::printf("%s: %s\n", chosen.program->name.c_str(), choice.c_str());
  TILERT_RETURN_IF_ERROR(run->Launch());
  return run->Finish(call);
}

// Below zero: the default of each type.
absl::StatusOr<double> Tolerance(const Args& args) {
  if (!args.Has("--tolerance")) return -1.0;
  char* end = nullptr;
  const std::string text = args.Get("--tolerance");
  const double tolerance = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !(tolerance >= 0))
    return UsageError(Cat("--tolerance needs a number of at least 0, not '", text, "'"));
  return tolerance;
}

absl::StatusOr<std::map<std::string, const Array*>> Outputs(const Args& args, const CallArguments& call) {
  std::map<std::string, const Array*> outputs;
  std::vector<std::string> places;
  for (const std::string& text : args.All("--out")) {
    TILERT_ASSIGN_OR_RETURN(const auto assignment, SplitAssignment("--out", text));
    const auto found = std::find(call.names.begin(), call.names.end(), assignment.first);
    if (found == call.names.end()) return UsageError(Cat("--out: the program has no tensor '", assignment.first, "'"));
    const size_t i = static_cast<size_t>(found - call.names.begin());
    if (call.access[i] == Access::kIn) return UsageError(Cat("--out: '", assignment.first, "' is an input"));
    if (!outputs.emplace(assignment.second, &call.arrays[i]).second)
      return UsageError(Cat("--out writes ", assignment.second, " twice"));
    places.push_back(assignment.second);
  }
  TILERT_RETURN_IF_ERROR(CheckPlaces(places));
  return outputs;
}

absl::Status RunProgram(const Args& args) {
  const std::string device = args.Get("--device", "cpu");
  if (device != "cpu" && device != "cuda" && device != "sim")
    return UsageError(Cat("--device is cpu, cuda or sim, not '", device, "'"));
  TILERT_ASSIGN_OR_RETURN(const Target target, ChooseTarget(args));
  TILERT_ASSIGN_OR_RETURN(const ChosenProgram chosen, ChooseProgram(args));
  TILERT_ASSIGN_OR_RETURN(const Program program, Specialize(*chosen.program, chosen.constants));
  TILERT_ASSIGN_OR_RETURN(CallArguments call, ReadArguments(program, args, args.Has("--random")));
  TILERT_ASSIGN_OR_RETURN(const auto outputs, Outputs(args, call));
  TILERT_ASSIGN_OR_RETURN(const double tolerance, Tolerance(args));
  const std::vector<Array> before = args.Has("--check") ? call.arrays : std::vector<Array>();
  {
    Progress progress;
    progress.Show(Cat("running ", program.name));
    if (device == "cpu") {
      TILERT_RETURN_IF_ERROR(ExecuteOnCpu(program, args.Has("--check"), call, call.arrays));
    } else if (device == "cuda") {
      TILERT_RETURN_IF_ERROR(RunOnDevice(args, chosen, call));
    } else {
      std::string report;
      TILERT_RETURN_IF_ERROR(RunSimulated(program, target, args.Has("--general"), call, {}, &report));
      std::fputs(report.c_str(), stdout);
    }
  }
  if (args.Has("--check") && device != "cpu") TILERT_RETURN_IF_ERROR(CheckAgainstExecutor(tolerance, program, call, before));
  for (size_t i = 0; i < call.arrays.size(); ++i) {
    if (call.access[i] == Access::kIn) continue;
    std::printf("%s: %s, %s\n", call.names[i].c_str(), Describe(call.arrays[i]).c_str(), Statistics(call.arrays[i]).c_str());
  }
  return StoreArrays(outputs);
}

constexpr Option kRunOptions[] = {
    kEntryOption,
    kSetOption,
    kVariantOption,
    kInOption,
    kScalarOption,
    {"--out", "NAME=FILE", "write an output: y.npy, or file.safetensors:tensor", true},
    kRandomOption,
    kSeedOption,
    {"--dim", "NAME=N", "an extent that no input tells", true},
    {"--device", "cpu|cuda|sim", "the executor (default), a GPU, or the lowered kernels in the simulator"},
    {"--check", "", "compare with the executor; on cpu: report data races and unwritten reads"},
    {"--tolerance", "X", "for --check: |d| <= X (|expected| + rms); default: of the types that values are rounded to"},
    kArchOption,
    kFamilyOption,
    kGeneralOption,
    {"--no-cache", "", "cuda: compile anew and keep nothing"},
};

}  // namespace

const Command kRunCommand = {
    "run",
    "BUNDLE|SOURCE",
    "run a program on data from files or random numbers",
    "Outputs are filled with NaN before; a .npy file of float32 or float64 serves for bfloat16 and float8 inputs, and outputs of "
    "these\n"
    "types become float32 in .npy files. --arch and --general concern --device sim.",
    kRunOptions,
    "  tilert run gemm.tilert --in A=a.npy --in B=b.npy --out C=c.npy\n"
    "  tilert run std.tilert --entry layer_norm_f32 --in X=x.npy --in W=model.safetensors:norm.weight \\\n"
    "      --in B=model.safetensors:norm.bias --out Y=y.npy\n"
    "  tilert run kernels/gemm.py --random --dim M=128 --dim N=128 --dim K=256 --device cuda --check\n",
    1,
    1,
    RunProgram,
};

}  // namespace tilert::tool
