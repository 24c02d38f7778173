// tilert build: cubins for given architectures into a bundle. Needs NVRTC, no GPU.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "ir/flat_writer.h"
#include "ir/status_util.h"
#include "runtime/compile_lowered.h"
#include "runtime/launch_record.h"
#include "runtime/nvrtc.h"
#include "runtime/schedules.h"
#include "tools/command.h"
#include "tools/file.h"
#include "tools/input.h"
#include "tools/lowering_options.h"
#include "tools/progress.h"

namespace tilert::tool {
namespace {

std::vector<std::string> SplitList(const std::string& text) {
  std::vector<std::string> items(1);
  for (char c : text) {
    if (c == ',') {
      items.emplace_back();
    } else {
      items.back() += c;
    }
  }
  return items;
}

std::vector<CubinKernel> CubinKernels(const Lowered& lowered) {
  std::vector<CubinKernel> kernels;
  for (const LoweredKernel& from : lowered.kernels) {
    CubinKernel kernel{from.symbol, {}, from.threads, from.shared_bytes, from.cooperative, from.persistent, 1, {}};
    if (from.persistent) kernel.blocks_per_sm = from.blocks_per_sm;
    kernel.cluster = from.cluster;
    for (const LoweredTensorMap& map : from.maps) kernel.maps.push_back({map.buffer, map.dtype, map.box, map.swizzle});
    for (const KernelArg& arg : from.args) {
      const auto kind = static_cast<CubinKernel::Arg::Kind>(static_cast<int>(arg.kind) + 1);
      kernel.args.push_back({kind, arg.index, arg.bytes});
    }
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

// One schedule of a program for one target and class of arguments.
struct Job {
  const Program* program;
  const Target* target;
  Schedule schedule;
  bool general;
};

struct Built {
  PrebuiltCubin cubin;
  std::string code;
};

absl::StatusOr<Built> BuildOne(const Nvrtc& nvrtc, const Job& job, const std::map<std::string, int64_t>& dims) {
  const Program& specialised = job.schedule.program;
  const ArgClass arg_class = job.general ? GeneralArgClass(specialised) : FastArgClass(specialised);
  TILERT_ASSIGN_OR_RETURN(const Lowered lowered, Lower(specialised, arg_class, *job.target));
  const CompileOptions options = OptionsFor(specialised, arg_class, *job.target, nvrtc.version());
  TILERT_ASSIGN_OR_RETURN(CompiledCode code, CompileLowered(nvrtc, specialised, lowered, options));
  Built built;
  PrebuiltCubin& cubin = built.cubin;
  cubin.program_digest = ProgramDigest(*job.program);
  cubin.constants = job.schedule.constants;
  cubin.dims = dims;
  cubin.alignment = arg_class.alignment;
  cubin.dim_divisor = arg_class.dim_divisor;
  cubin.index32 = arg_class.index32;
  cubin.target = job.target->arch;
  cubin.launch_abi = static_cast<uint32_t>(kLaunchAbi);
  cubin.kernels = CubinKernels(lowered);
  built.code = std::move(code.code);
  return built;
}

// Runs `work(i)` for every i below `count` on all processors; stops early once one returns false.
void ForEachInParallel(size_t count, const std::function<bool(size_t)>& work) {
  std::atomic<size_t> next{0};
  std::atomic<bool> stop{false};
  const auto worker = [&] {
    for (size_t i = next++; i < count && !stop; i = next++) {
      if (!work(i)) stop = true;
    }
  };
  std::vector<std::thread> threads;
  const size_t workers = std::min<size_t>(count, std::max(1u, std::thread::hardware_concurrency()));
  for (size_t i = 1; i < workers; ++i) threads.emplace_back(worker);
  worker();
  for (std::thread& thread : threads) thread.join();
}

bool SamePlace(const PrebuiltCubin& a, const PrebuiltCubin& b) {
  return a.program_digest == b.program_digest && a.constants == b.constants && a.dims == b.dims && a.alignment == b.alignment &&
         a.dim_divisor == b.dim_divisor && a.index32 == b.index32 && a.target == b.target && a.launch_abi == b.launch_abi;
}

absl::StatusOr<std::vector<Target>> Targets(const Args& args) {
  if (!args.Has("--arch")) return UsageError("tilert build needs --arch");
  std::vector<Target> targets;
  for (const std::string& arch : SplitList(args.Get("--arch"))) {
    absl::StatusOr<Target> target = FindTarget(arch, args.Get("--family", "auto"));
    if (!target.ok()) return UsageError(ToStd(target.status().message()));
    targets.push_back(*std::move(target));
  }
  return targets;
}

absl::Status RunBuild(const Args& args) {
  const std::string &path = args.positional()[0], wanted = args.Get("--entry");
  TILERT_ASSIGN_OR_RETURN(const auto targets, Targets(args));
  TILERT_ASSIGN_OR_RETURN(const auto constants, IntAssignments(args, "--set"));
  TILERT_ASSIGN_OR_RETURN(const auto dims, IntAssignments(args, "--dim"));
  TILERT_ASSIGN_OR_RETURN(const auto file, OpenBundle(path));
  Bundle& bundle = file->bundle;
  if (!wanted.empty() && bundle.Find(wanted) == nullptr) return NoProgram(*file, wanted);
  TILERT_ASSIGN_OR_RETURN(const auto nvrtc, Nvrtc::Load());
  std::vector<Job> jobs;
  for (const Program& program : bundle.programs) {
    if (!wanted.empty() && program.name != wanted) continue;
    TILERT_ASSIGN_OR_RETURN(const VerifiedProgram verified, Verify(program));
    for (const Target& target : targets) {
      TILERT_ASSIGN_OR_RETURN(Schedules schedules, FindSchedules(&bundle, verified, {&target, "", constants, dims}));
      for (Schedule& schedule : schedules.fast) jobs.push_back({&program, &target, std::move(schedule), false});
      jobs.push_back({&program, &target, std::move(schedules.general), true});
    }
  }
  std::vector<absl::StatusOr<Built>> results(jobs.size(), absl::CancelledError(""));
  {
    Progress progress;
    std::mutex mutex;
    size_t done = 0;
    ForEachInParallel(jobs.size(), [&](size_t i) {
      results[i] = BuildOne(*nvrtc, jobs[i], dims);
      const std::lock_guard<std::mutex> lock(mutex);
      progress.Show(Cat(++done, " of ", jobs.size(), ": ", jobs[i].program->name, " for ", jobs[i].target->arch));
      return results[i].ok();
    });
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    const absl::Status& status = results[i].status();
    if (status.ok() || absl::IsCancelled(status)) continue;
    return absl::Status(status.code(),
                        Cat(path, ": ", jobs[i].program->name, " for ", jobs[i].target->arch, ": ", status.message()));
  }
  size_t bytes = 0;
  for (absl::StatusOr<Built>& result : results) {
    std::erase_if(bundle.cubins, [&](const PrebuiltCubin& old) { return SamePlace(old, result->cubin); });
    bytes += result->code.size();
    result->cubin.code = bundle.Own(std::move(result->code));
    bundle.cubins.push_back(std::move(result->cubin));
  }
  TILERT_ASSIGN_OR_RETURN(const std::string output, WriteBundle(bundle));
  TILERT_RETURN_IF_ERROR(WriteFile(args.Get("-o", path), output));
  std::printf("%s: %zu cubins, %zu bytes of code\n", args.Get("-o", path).c_str(), results.size(), bytes);
  return absl::OkStatus();
}

constexpr Option kBuildOptions[] = {
    {"--arch", "LIST", "architectures, e.g. sm_80,sm_90a"},
    kFamilyOption,
    {"--entry", "NAME", "this program only; default: all"},
    {"--set", "NAME=N", "fix a constant; default: its first candidate", true},
    kDimOption,
    {"-o", "FILE", "the bundle to write; default: in place"},
};

}  // namespace

const Command kBuildCommand = {
    "build",
    "BUNDLE",
    "compile programs to cubins and store them in the bundle",
    "Needs NVRTC (CUDA 12 or 13), no GPU. Each program is built for any arguments, and for aligned ones with every variant of "
    "the\n"
    "architecture. Hosts use prebuilt cubins only of bundles that they trust; all others compile at load time.",
    kBuildOptions,
    "  tilert build std.tilert --arch sm_80,sm_90a -o std-cubins.tilert\n",
    1,
    1,
    RunBuild,
};

}  // namespace tilert::tool
