// tilert bench: how long a program takes.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "ir/executor.h"
#include "ir/specialize.h"
#include "ir/status_util.h"
#include "tools/arguments.h"
#include "tools/command.h"
#include "tools/device.h"
#include "tools/gpu_timer.h"
#include "tools/input.h"
#include "tools/lowering_options.h"
#include "tools/progress.h"

namespace tilert::tool {
namespace {

using Clock = std::chrono::steady_clock;

absl::StatusOr<std::vector<double>> TimeOnCpu(const Program& program, CallArguments& call, int64_t repeats, Progress& progress) {
  std::vector<double> microseconds;
  for (int64_t i = 0; i < repeats; ++i) {
    progress.Show(Cat("run ", i + 1, " of ", repeats));
    const auto start = Clock::now();
    TILERT_RETURN_IF_ERROR(tilert::Execute(program, call.Tensors(), call.scalars));
    microseconds.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  return microseconds;
}

absl::StatusOr<std::vector<double>> TimeOnDevice(const Args& args, const ChosenProgram& chosen, CallArguments& call,
                                                 int64_t repeats, Progress& progress) {
  RuntimeOptions options;
  options.family = args.Get("--family", "auto");
  TILERT_ASSIGN_OR_RETURN(const auto device, Device::Open(std::move(options)));
  TILERT_ASSIGN_OR_RETURN(const auto run, DeviceCall::Make(*device, chosen, call));
  TILERT_ASSIGN_OR_RETURN(const auto timer, GpuTimer::Make(device->driver()));
  for (int i = 0; i < 3; ++i) TILERT_RETURN_IF_ERROR(run->Launch());
  std::vector<double> microseconds;
  for (int64_t i = 0; i < repeats; ++i) {
    progress.Show(Cat("run ", i + 1, " of ", repeats));
    if (!args.Has("--warm")) TILERT_RETURN_IF_ERROR(timer->Flush());
    TILERT_RETURN_IF_ERROR(timer->Begin());
    TILERT_RETURN_IF_ERROR(run->Launch());
    TILERT_ASSIGN_OR_RETURN(const double time, timer->EndMicroseconds());
    microseconds.push_back(time);
  }
  TILERT_ASSIGN_OR_RETURN(const std::string choice, run->ChoiceText());
  std::printf("%s: %s\n", chosen.program->name.c_str(), choice.c_str());
  const PrepareStats stats = run->kernel().prepare_stats();
  std::printf("%s: prepared with %d compiles (lowering %.1f ms, NVRTC %.1f ms) and %d cache hits\n",
              device->runtime()->device().name.c_str(), stats.compiles, stats.lower_ms, stats.compile_ms, stats.cache_hits);
  return microseconds;
}

absl::Status RunBench(const Args& args) {
  const std::string device = args.Get("--device", "cuda");
  if (device != "cpu" && device != "cuda") return UsageError(Cat("--device is cpu or cuda, not '", device, "'"));
  TILERT_ASSIGN_OR_RETURN(const int64_t repeats, args.Int("--repeat", device == "cpu" ? 5 : 50, 1, 100000));
  TILERT_ASSIGN_OR_RETURN(const ChosenProgram chosen, ChooseProgram(args));
  TILERT_ASSIGN_OR_RETURN(const Program program, Specialize(*chosen.program, chosen.constants));
  TILERT_ASSIGN_OR_RETURN(CallArguments call, ReadArguments(program, args, args.Has("--random")));
  std::vector<double> microseconds;
  {
    Progress progress;
    if (device == "cpu") {
      TILERT_ASSIGN_OR_RETURN(microseconds, TimeOnCpu(program, call, repeats, progress));
    } else {
      TILERT_ASSIGN_OR_RETURN(microseconds, TimeOnDevice(args, chosen, call, repeats, progress));
    }
  }
  size_t bytes = 0;
  for (const Array& array : call.arrays) bytes += array.bytes.size();
  const auto [least, most] = std::minmax_element(microseconds.begin(), microseconds.end());
  const double median = Median(microseconds);
  std::printf("%s on %s: median %.1f us of %lld (least %.1f, most %.1f); %.1f GB/s if each argument moves once\n",
              program.name.c_str(), device.c_str(), median, static_cast<long long>(repeats), *least, *most,
              static_cast<double>(bytes) / median / 1000);
  return absl::OkStatus();
}

constexpr Option kBenchOptions[] = {
    kEntryOption,
    kSetOption,
    kVariantOption,
    kInOption,
    kScalarOption,
    kRandomOption,
    kSeedOption,
    {"--dim", "NAME=N", "an extent that no input tells", true},
    {"--device", "cpu|cuda", "default cuda"},
    {"--repeat", "N", "measure so often; default 50, on cpu 5"},
    {"--warm", "", "cuda: do not flush the L2 cache between runs"},
    kFamilyOption,
};

}  // namespace

const Command kBenchCommand = {
    "bench",
    "BUNDLE|SOURCE",
    "measure how long a program takes",
    "On a GPU: median of event times, each after a flush of the L2 cache.",
    kBenchOptions,
    "  tilert bench std.tilert --entry gemm_nt_f16 --random --dim M=4096 --dim N=4096 --dim K=4096\n",
    1,
    1,
    RunBench,
};

}  // namespace tilert::tool
