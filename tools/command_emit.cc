// tilert emit: what the lowering makes of a program.
#include "ir/status_util.h"
#include "tools/command.h"
#include "tools/file.h"
#include "tools/input.h"
#include "tools/lowering_options.h"

namespace tilert::tool {
namespace {

absl::Status Run(const Args& args) {
  TILERT_ASSIGN_OR_RETURN(const Target target, ChooseTarget(args));
  TILERT_ASSIGN_OR_RETURN(const Program program, ChooseSpecialized(args));
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

constexpr Option kOptions[] = {
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
};

}  // namespace

const Command kEmitCommand = {
    "emit",
    "BUNDLE|SOURCE",
    "show the CUDA C++ that a program becomes",
    "Needs no GPU and no toolkit. The same program, options and version of tilert give the same bytes.",
    kOptions,
    "  tilert emit gemm.tilert --arch sm_90a\n"
    "  tilert emit std.tilert --entry gemm_nt_f16 --arch sm_80 --set block_M=64 --dim K=4096 -o gemm.cu\n"
    "  tilert emit gemm.tilert --kernel-ir\n"
    "  tilert emit gemm.tilert --print-after all\n",
    1,
    1,
    Run,
};

}  // namespace tilert::tool
