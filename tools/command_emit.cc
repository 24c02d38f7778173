// tilert emit: what the lowering makes of a program.
#include <cstdio>

#include "ir/status_util.h"
#include "tools/arguments.h"
#include "tools/command.h"
#include "tools/cpu.h"
#include "tools/file.h"
#include "tools/input.h"
#include "tools/lowering_options.h"
#include "tools/progress.h"
#include "tools/simulate.h"

namespace tilert::tool {
namespace {

constexpr Option kSimulateOptions[] = {
    {"--interleavings", "N", "--simulate: runs, each with warps and copies in another order; default 8"},
    {"--seed", "N", "--simulate: of the random inputs and of the orders; default 1"},
    kInOption,
    kScalarOption,
    {"--extent", "NAME=N", "--simulate: an extent that --dim does not fix and no input tells", true},
};

// What is wrong with the kernels, shown in the source where it is there to be shown.
absl::Status InSource(const Args& args, const absl::Status& failure) {
  const std::string place = SimulatedPlace(failure), &path = args.positional()[0];
  if (place.empty()) return failure;
  std::string message = Cat(place, ": error: ", ToStd(failure.message()));
  if (IsSource(path)) {
    TILERT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    message = frontend::Quote(text, path.substr(path.rfind('/') + 1), message, ReaderBeside(path));
  }
  return absl::Status(failure.code(), message);
}

// The kernels in the simulator, on inputs that are given or random; the results must be the executor's.
absl::Status Check(const Args& args, const Program& program, const Target& target) {
  for (const char* shown : {"--kernel-ir", "--print-after", "--report", "-o"}) {
    if (args.Has(shown)) return UsageError(Cat("--simulate shows no code: leave out ", shown));
  }
  SimOptions options;
  TILERT_ASSIGN_OR_RETURN(const int64_t seed, args.Int("--seed", 1, 0, INT64_MAX));
  TILERT_ASSIGN_OR_RETURN(const int64_t interleavings, args.Int("--interleavings", 8, 1, 100000));
  options.seed = static_cast<uint64_t>(seed);
  options.interleavings = static_cast<int>(interleavings);
  TILERT_ASSIGN_OR_RETURN(CallArguments call, ReadArguments(program, args, true));
  const std::vector<Array> before = call.arrays;
  std::string report;
  {
    Progress progress;
    progress.Show(Cat("simulating ", program.name));
    const absl::Status status = RunSimulated(program, target, args.Has("--general"), call, options, &report);
    if (!status.ok()) return InSource(args, status);
  }
  std::printf("%s%s for %s: %lld interleavings, no fault found\n", report.c_str(), program.name.c_str(), target.arch.c_str(),
              static_cast<long long>(interleavings));
  return CheckAgainstExecutor(-1, program, call, before);
}

absl::Status RunEmit(const Args& args) {
  TILERT_ASSIGN_OR_RETURN(const Target target, ChooseTarget(args));
  TILERT_ASSIGN_OR_RETURN(const Program program, ChooseSpecialized(args));
  if (args.Has("--simulate")) return Check(args, program, target);
  for (const Option& option : kSimulateOptions) {
    if (args.Has(option.name)) return UsageError(Cat(option.name, " belongs to --simulate"));
  }
  LowerOptions options;
  std::string printed;
  options.print_after = args.Get("--print-after");
  options.printed = &printed;
  const absl::StatusOr<Lowered> result = Lower(program, ChooseArgClass(program, args), target, options);
  if (!result.ok()) {  // what the passes before the failing one made says most about it
    if (!printed.empty()) TILERT_RETURN_IF_ERROR(WriteFile("-", printed));
    return result.status();
  }
  const Lowered& lowered = *result;
  std::string text = lowered.source;
  if (args.Has("--print-after")) {
    if (printed.empty())
      return UsageError(Cat("--print-after: no pass '", options.print_after, "' ran; 'all' shows every pass with its name"));
    text = printed;
  } else if (args.Has("--kernel-ir")) {
    text.clear();
    for (const kir::Kernel& kernel : lowered.kernel_ir) text += (text.empty() ? "" : "\n") + kir::ToText(kernel);
  } else if (args.Has("--report")) {
    text = lowered.report;
  }
  return WriteFile(args.Get("-o", "-"), text);
}

constexpr Option kEmitOptions[] = {
    kEntryOption,
    kSetOption,
    kVariantOption,
    kDimOption,
    kArchOption,
    kFamilyOption,
    kGeneralOption,
    {"--kernel-ir", "", "show the KernelIr that the source is emitted from"},
    {"--print-after", "PASS", "show the program after this pass, or after all"},
    {"--report", "", "show the decisions: layouts, schedule, conversions, resources"},
    {"-o", "FILE", "write there instead of standard output"},
    {"--simulate", "", "run the kernels in the simulator instead, on random inputs or those of --in"},
    kSimulateOptions[0],
    kSimulateOptions[1],
    kSimulateOptions[2],
    kSimulateOptions[3],
    kSimulateOptions[4],
};

}  // namespace

const Command kEmitCommand = {
    "emit",
    "BUNDLE|SOURCE",
    "show the CUDA C++ that a program becomes",
    "Needs no GPU and no toolkit. The same program, options and version of tilert give the same bytes.\n"
    "--simulate looks in the kernels for data races, barriers that not all reach, deadlocks, accesses outside of what is there\n"
    "and values that were never written, and compares the results with the executor's. What it finds it shows in the source,\n"
    "and the exit code is 1. It sees the interleavings, shapes and values that it is given: it checks, and does not prove.",
    kEmitOptions,
    "  tilert emit gemm.tilert --arch sm_90a\n"
    "  tilert emit std.tilert --entry gemm_nt_f16 --arch sm_80 --set block_M=64 --dim K=4096 -o gemm.cu\n"
    "  tilert emit gemm.tilert --kernel-ir\n"
    "  tilert emit gemm.tilert --print-after all\n"
    "  tilert emit kernels/gemm.py --arch sm_90a --set block_M=64 --simulate --extent M=100 --extent N=64 --extent K=96\n"
    "  tilert emit scan.py --simulate --in X=x.npy --interleavings 100 --seed 7\n",
    1,
    1,
    RunEmit,
};

}  // namespace tilert::tool
