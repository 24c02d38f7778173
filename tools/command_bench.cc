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
#include "tools/input.h"
#include "tools/lowering_options.h"
#include "tools/progress.h"

namespace tilert::tool {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t kFlushBytes = uint64_t{256} << 20;  // more than any L2

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

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

// Empties the L2 cache of dirty and of useful lines: overwrites one buffer, then reads another.
class CacheFlush {
 public:
  static absl::StatusOr<CacheFlush> Make(const cuda::Driver& driver) {
    CacheFlush flush(driver);
    for (DeviceMemory* memory : {&flush.written_, &flush.read_}) {
      TILERT_ASSIGN_OR_RETURN(*memory, DeviceMemory::Allocate(driver, kFlushBytes));
    }
    TILERT_ASSIGN_OR_RETURN(flush.small_, DeviceMemory::Allocate(driver, kRow));
    return flush;
  }
  absl::Status Run() const {
    TILERT_RETURN_IF_ERROR(driver_->MemsetD8Async(written_.address(), 0, kFlushBytes, nullptr));
    // Reads without leaving dirty lines behind: every copy goes to the same small place.
    for (uint64_t at = 0; at < kFlushBytes; at += kRow) {
      TILERT_RETURN_IF_ERROR(driver_->MemcpyDtoDAsync(small_.address(), read_.address() + at, kRow, nullptr));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr uint64_t kRow = uint64_t{8} << 20;
  explicit CacheFlush(const cuda::Driver& driver) : driver_(&driver) {}
  const cuda::Driver* driver_;
  DeviceMemory written_, read_, small_;
};

class EventPair {
 public:
  explicit EventPair(const cuda::Driver& driver) : driver_(driver) {}
  ~EventPair() {
    for (cuda::Event event : {begin_, end_}) {
      if (event != nullptr) driver_.EventDestroy(event).IgnoreError();
    }
  }
  EventPair(const EventPair&) = delete;
  absl::Status Init() {
    TILERT_RETURN_IF_ERROR(driver_.EventCreate(&begin_, 0u));
    return driver_.EventCreate(&end_, 0u);
  }
  absl::Status Begin() const { return driver_.EventRecord(begin_, nullptr); }
  absl::StatusOr<double> EndMicroseconds() const {
    float milliseconds = 0;
    TILERT_RETURN_IF_ERROR(driver_.EventRecord(end_, nullptr));
    TILERT_RETURN_IF_ERROR(driver_.EventSynchronize(end_));
    TILERT_RETURN_IF_ERROR(driver_.EventElapsedTime(&milliseconds, begin_, end_));
    return double{milliseconds} * 1000;
  }

 private:
  const cuda::Driver& driver_;
  cuda::Event begin_ = nullptr, end_ = nullptr;
};

absl::StatusOr<std::vector<double>> TimeOnDevice(const Args& args, const ChosenProgram& chosen, CallArguments& call,
                                                 int64_t repeats, Progress& progress) {
  RuntimeOptions options;
  options.family = args.Get("--family", "auto");
  TILERT_ASSIGN_OR_RETURN(const auto device, Device::Open(std::move(options)));
  const cuda::Driver& driver = device->driver();
  TILERT_ASSIGN_OR_RETURN(const auto run, DeviceCall::Make(*device, *chosen.program, chosen.constants, call));
  TILERT_ASSIGN_OR_RETURN(const CacheFlush flush, CacheFlush::Make(driver));
  EventPair events(driver);
  TILERT_RETURN_IF_ERROR(events.Init());
  for (int i = 0; i < 3; ++i) TILERT_RETURN_IF_ERROR(run->Launch());
  std::vector<double> microseconds;
  for (int64_t i = 0; i < repeats; ++i) {
    progress.Show(Cat("run ", i + 1, " of ", repeats));
    if (!args.Has("--warm")) TILERT_RETURN_IF_ERROR(flush.Run());
    TILERT_RETURN_IF_ERROR(events.Begin());
    TILERT_RETURN_IF_ERROR(run->Launch());
    TILERT_ASSIGN_OR_RETURN(const double time, events.EndMicroseconds());
    microseconds.push_back(time);
  }
  const PrepareStats stats = run->kernel().prepare_stats();
  std::printf("%s: prepared with %d compiles (lowering %.1f ms, NVRTC %.1f ms) and %d cache hits\n",
              device->runtime()->device().name.c_str(), stats.compiles, stats.lower_ms, stats.compile_ms, stats.cache_hits);
  return microseconds;
}

absl::Status Run(const Args& args) {
  const std::string device = args.Get("--device", "cuda");
  if (device != "cpu" && device != "cuda") return UsageError(Cat("--device is cpu or cuda, not '", device, "'"));
  TILERT_ASSIGN_OR_RETURN(const int64_t repeats, args.Int("--repeat", device == "cpu" ? 5 : 50, 1, 100000));
  TILERT_ASSIGN_OR_RETURN(const ChosenProgram chosen, ChooseProgram(args));
  TILERT_ASSIGN_OR_RETURN(const Program program, Specialize(*chosen.program, chosen.constants));
  TILERT_ASSIGN_OR_RETURN(CallArguments call, ReadArguments(program, args));
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

constexpr Option kOptions[] = {
    kEntryOption,
    kSetOption,
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
    kOptions,
    "  tilert bench std.tilert --entry gemm_nt_f16 --random --dim M=4096 --dim N=4096 --dim K=4096\n",
    1,
    1,
    Run,
};

}  // namespace tilert::tool
