// Random tile programs through every check, in processes of their own.
//
//   program_generator --seed=1 --count=1000          print each fault, with its seed; exit status 1 if there is any
//   program_generator --seed=57 --shrink             a smaller program with the same fault
//   program_generator --hostile --count=500          programs whose subscripts lead out of every buffer
//   program_generator --seed=57 --print              the program, and what it is called with
//   program_generator --count=100 --device=auto,ampere --no-simulate    run each on the GPU that is there
//
// --runs=1: how often there (3). --in-process: in this process, for checkers that look at a process (a crash ends it). --plant:
// each run there writes outside a tensor, which must be found. --json=FILE: what was counted. --seconds=600: what is
// not done by then is left out.
// --compile=sm_80,sm_89,sm_90a: compile each by NVRTC too; --one-target: for one of these, each seed for another; --one-class:
// for one class of arguments.
// --no-simulate: leave the simulator out. --kind=TEXT: report faults whose kind holds TEXT only.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>

#include "absl/strings/str_split.h"
#include "ir/printer.h"
#include "ir/status_util.h"
#include "tests/generator/checks.h"
#include "tests/generator/shrink.h"
#include "tests/generator/tile_generator.h"
#include "tests/lowering/nvrtc_harness.h"

namespace tilert {
namespace {

struct Flags {
  uint64_t seed = 0, count = 1, seconds = 0;
  bool shrink = false, print = false, hostile = false, in_process = false;
  std::string kind, json;
  CheckOptions checks;
};

void PrintCase(const TileCase& tile_case) {
  std::printf("%s", PrintProgram(tile_case.program).c_str());
  for (size_t d = 0; d < tile_case.dims.size(); ++d)
    std::printf("# %s = %lld\n", tile_case.program.dims[d].name.c_str(), static_cast<long long>(tile_case.dims[d]));
}

TileCase CaseOf(const Flags& flags, uint64_t seed) { return flags.hostile ? RandomHostileCase(seed) : RandomTileCase(seed); }

// A fault of a shrunken case need not be the first that its checks come to, only the same.
void ShrinkAndPrint(const TileCase& tile_case, const Verdict& verdict, const CheckOptions& options) {
  const TileCase small = Shrink(tile_case, [&](const TileCase& candidate) {
    const Verdict again = CheckInProcess(candidate, options, 60);
    return again.result == Verdict::Result::kFault && again.kind == verdict.kind;
  });
  PrintCase(small);
  std::printf("%s\n", CheckInProcess(small, options).message.c_str());
}

using Kinds = std::map<std::string, std::pair<int, uint64_t>>;  // kind → how often, and the first seed

// For scripts/gpu_check: one object.
void WriteCounts(const Flags& flags, uint64_t programs, const Verdict& sum, const Kinds& faults, const Kinds& passed_over) {
  int differing = 0, outside = 0, failed = 0, over = 0;
  for (const auto& [kind, seen] : faults)
    (kind.find("differs") != std::string::npos   ? differing
     : kind.find("outside") != std::string::npos ? outside
                                                 : failed) += seen.first;
  for (const auto& [kind, seen] : passed_over) over += seen.first;
  std::FILE* const file = std::fopen(flags.json.c_str(), "w");
  if (file == nullptr) return;
  std::fprintf(file,
               "{\"programs\": %llu, \"runs\": %d, \"differing\": %d, \"outside\": %d, \"failed\": %d, \"passed_over\": %d, "
               "\"refused\": %d, \"unspecified\": %d, \"unjudged\": %d, \"compiled\": %d, \"spills\": %d}\n",
               static_cast<unsigned long long>(programs), sum.simulated, differing, outside, failed, over, sum.refused,
               sum.unspecified, sum.unjudged, sum.compiled, sum.spills);
  std::fclose(file);
}

// What came of all cases.
struct Tally {
  Kinds faults, invalid;
  Verdict sum;
  uint64_t programs = 0;

  void Add(const Flags& flags, uint64_t seed, const Verdict& verdict) {
    ++programs;
    sum.refused += verdict.refused, sum.simulated += verdict.simulated, sum.unjudged += verdict.unjudged;
    sum.compiled += verdict.compiled, sum.spills += verdict.spills, sum.unspecified += verdict.unspecified;
    const bool passed_over = verdict.result == Verdict::Result::kInvalid || verdict.result == Verdict::Result::kNotLowered;
    if (passed_over) ++invalid.try_emplace(verdict.kind, 0, seed).first->second.first;
    if (verdict.result == Verdict::Result::kInvalid && flags.count == 1)
      std::printf("invalid: %s: %s\n", verdict.kind.c_str(), verdict.message.c_str());
    if (verdict.result != Verdict::Result::kFault || verdict.kind.find(flags.kind) == std::string::npos) return;
    const int times = ++faults.try_emplace(verdict.kind, 0, seed).first->second.first;
    if (times <= 3)
      std::printf("seed %llu: %s\n  %.600s\n", static_cast<unsigned long long>(seed), verdict.kind.c_str(),
                  verdict.message.c_str());
    std::fflush(stdout);
    if (flags.shrink) ShrinkAndPrint(CaseOf(flags, seed), verdict, flags.checks);
  }
};

int Run(const Flags& flags) {
  Tally tally;
  const auto make = [&](uint64_t seed) { return CaseOf(flags, seed); };
  const std::time_t until = flags.seconds == 0 ? 0 : std::time(nullptr) + static_cast<std::time_t>(flags.seconds);
  const auto add = [&](uint64_t seed, const Verdict& verdict) { tally.Add(flags, seed, verdict); };
  for (uint64_t seed = flags.seed; seed < flags.seed + flags.count; ++seed) {
    if (flags.print) PrintCase(make(seed));
    if (flags.in_process && (until == 0 || std::time(nullptr) < until)) add(seed, Check(make(seed), flags.checks));
  }
  if (!flags.in_process) CheckInProcesses(make, flags.seed, flags.count, flags.checks, add, 180, until);
  const auto& [faults, invalid, sum, programs] = tally;
  for (const auto& [kind, seen] : invalid)
    std::printf("passed over: %d x %s (seed %llu)\n", seen.first, kind.c_str(), static_cast<unsigned long long>(seen.second));
  if (!flags.json.empty()) WriteCounts(flags, programs, sum, faults, invalid);
  int total = 0;
  for (const auto& [kind, seen] : faults) {
    total += seen.first;
    std::printf("fault: %d x %s (seed %llu)\n", seen.first, kind.c_str(), static_cast<unsigned long long>(seen.second));
  }
  std::printf(
      "%llu programs from seed %llu: %d faults; %d simulations compared, %d unjudged, %d lowerings refused for resources, "
      "%d compiled, %d of them spill, %d programs of unspecified results\n",
      static_cast<unsigned long long>(programs), static_cast<unsigned long long>(flags.seed), total, sum.simulated,
      sum.unjudged, sum.refused, sum.compiled, sum.spills, sum.unspecified);
  return total > 0 ? 1 : 0;
}

// A hundred programs that nobody has seen: another hundred each day.
uint64_t SeedOfToday() { return static_cast<uint64_t>(std::time(nullptr)) / 86400 * 100; }

int Main(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i], value = arg.substr(std::min(arg.size(), arg.find('=') + 1));
    const auto is = [&](const char* name) { return arg.rfind(name, 0) == 0; };
    if (is("--seed="))
      flags.seed = value == "today" ? SeedOfToday() : std::strtoull(value.c_str(), nullptr, 10);
    else if (is("--count="))
      flags.count = std::strtoull(value.c_str(), nullptr, 10);
    else if (is("--seconds="))
      flags.seconds = std::strtoull(value.c_str(), nullptr, 10);
    else if (is("--compile="))
      flags.checks.compile = absl::StrSplit(value, ',');
    else if (is("--device="))
      flags.checks.devices = absl::StrSplit(value, ',');
    else if (is("--runs="))
      flags.checks.device_runs = std::atoi(value.c_str());
    else if (is("--json="))
      flags.json = value;
    else if (arg == "--one-target")
      flags.checks.one_target = true;
    else if (arg == "--one-class")
      flags.checks.one_class = true;
    else if (arg == "--in-process")
      flags.in_process = true;
    else if (arg == "--plant")
      flags.checks.plant = true;
    else if (is("--kind="))
      flags.kind = value;
    else if (arg == "--no-simulate")
      flags.checks.simulate = false;
    else if (arg == "--hostile")
      flags.hostile = true;
    else if (arg == "--shrink")
      flags.shrink = true;
    else if (arg == "--print")
      flags.print = true;
    else
      return std::fprintf(stderr, "program_generator: what is %s?\n", arg.c_str()), 2;
  }
  if (!flags.checks.compile.empty() && !HasNvrtc()) {
    std::printf("no NVRTC: nothing is compiled\n");
    flags.checks.compile.clear();
  }
  return Run(flags);
}

}  // namespace
}  // namespace tilert

int main(int argc, char** argv) { return tilert::Main(argc, argv); }
