// tilert build: cubins for given architectures into a bundle. Needs NVRTC, no GPU.
#include <cstdio>
#include <memory>
#include <set>

#include "ir/flat_writer.h"
#include "ir/specialize.h"
#include "ir/status_util.h"
#include "runtime/launch_record.h"
#include "runtime/nvrtc.h"
#include "runtime/nvrtc_compile.h"
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
    CubinKernel kernel{from.symbol, {}, from.threads, from.shared_bytes, from.cooperative};
    for (const KernelArg& arg : from.args) {
      const auto kind = static_cast<CubinKernel::Arg::Kind>(static_cast<int>(arg.kind) + 1);
      kernel.args.push_back({kind, arg.index, arg.bytes});
    }
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

absl::StatusOr<PrebuiltCubin> BuildOne(const Nvrtc& nvrtc, const Program& program,
                                       const std::map<std::string, int64_t>& constants,
                                       const std::map<std::string, int64_t>& dims, bool general, const Target& target,
                                       Bundle* bundle) {
  TILERT_ASSIGN_OR_RETURN(const Program specialised, Specialize(program, constants, dims));
  const ArgClass arg_class = general ? GeneralArgClass(specialised) : FastArgClass(specialised);
  TILERT_ASSIGN_OR_RETURN(const Lowered lowered, Lower(specialised, arg_class, target));
  CompileOptions options;
  options.arch = target.arch;
  absl::StatusOr<CompiledCode> code = Compile(nvrtc, program.name + ".cu", lowered.source, options);
  if (!code.ok()) {
    const bool ours = absl::IsInvalidArgument(code.status());
    return absl::Status(ours ? absl::StatusCode::kInternal : code.status().code(), code.status().message());
  }
  PrebuiltCubin cubin;
  cubin.program_digest = ProgramDigest(program);
  for (const Constant& constant : specialised.constants) cubin.constants[constant.name] = constant.candidates[0];
  cubin.dims = dims;
  cubin.alignment = arg_class.alignment;
  cubin.dim_divisor = arg_class.dim_divisor;
  cubin.index32 = arg_class.index32;
  cubin.target = target.arch;
  cubin.launch_abi = static_cast<uint32_t>(kLaunchAbi);
  cubin.kernels = CubinKernels(lowered);
  cubin.code = bundle->Own(std::move(code->code));
  return cubin;
}

bool SamePlace(const PrebuiltCubin& a, const PrebuiltCubin& b) {
  return a.program_digest == b.program_digest && a.constants == b.constants && a.dims == b.dims && a.alignment == b.alignment &&
         a.dim_divisor == b.dim_divisor && a.index32 == b.index32 && a.target == b.target && a.launch_abi == b.launch_abi;
}

absl::Status Run(const Args& args) {
  if (!args.Has("--arch")) return UsageError("tilert build needs --arch");
  const std::string& path = args.positional()[0];
  std::vector<Target> targets;
  for (const std::string& arch : SplitList(args.Get("--arch"))) {
    absl::StatusOr<Target> target = FindTarget(arch, args.Get("--family", "auto"));
    if (!target.ok()) return UsageError(ToStd(target.status().message()));
    targets.push_back(*std::move(target));
  }
  TILERT_ASSIGN_OR_RETURN(const auto constants, IntAssignments(args, "--set"));
  TILERT_ASSIGN_OR_RETURN(const auto dims, IntAssignments(args, "--dim"));
  TILERT_ASSIGN_OR_RETURN(const auto file, OpenBundle(path));
  Bundle& bundle = file->bundle;
  const std::string wanted = args.Get("--entry");
  if (!wanted.empty() && bundle.Find(wanted) == nullptr) return absl::NotFoundError(Cat(path, ": no program '", wanted, "'"));
  TILERT_ASSIGN_OR_RETURN(const auto nvrtc, Nvrtc::Load());
  Progress progress;
  size_t built = 0, bytes = 0;
  for (const Target& target : targets) {
    for (size_t i = 0; i < bundle.programs.size(); ++i) {
      if (!wanted.empty() && bundle.programs[i].name != wanted) continue;
      TILERT_ASSIGN_OR_RETURN(const VerifiedProgram program, Verify(bundle.programs[i]));
      for (bool general : {false, true}) {
        progress.Show(Cat("building ", program->name, " for ", target.arch, general ? ", any arguments" : ", aligned arguments",
                          " (", built, " done)"));
        absl::StatusOr<PrebuiltCubin> cubin = BuildOne(*nvrtc, *program, constants, dims, general, target, &bundle);
        if (!cubin.ok())
          return absl::Status(cubin.status().code(),
                              Cat(path, ": ", program->name, " for ", target.arch, ": ", cubin.status().message()));
        std::erase_if(bundle.cubins, [&](const PrebuiltCubin& old) { return SamePlace(old, *cubin); });
        ++built;
        bytes += cubin->code.size();
        bundle.cubins.push_back(*std::move(cubin));
      }
    }
  }
  TILERT_ASSIGN_OR_RETURN(const std::string output, WriteBundle(bundle));
  TILERT_RETURN_IF_ERROR(WriteFile(args.Get("-o", path), output));
  std::printf("%s: %zu cubins, %zu bytes of code\n", args.Get("-o", path).c_str(), built, bytes);
  return absl::OkStatus();
}

constexpr Option kOptions[] = {
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
    "Needs NVRTC (CUDA 12 or 13), no GPU. Each program is built twice: for aligned and for any arguments. Hosts use\n"
    "prebuilt cubins only of bundles that they trust; all others compile at load time.",
    kOptions,
    "  tilert build std.tilert --arch sm_80,sm_90a -o std-cubins.tilert\n",
    1,
    1,
    Run,
};

}  // namespace tilert::tool
