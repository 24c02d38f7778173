// tilert print: bundle → source.
#include "ir/printer.h"
#include "ir/status_util.h"
#include "tools/command.h"
#include "tools/file.h"
#include "tools/input.h"

namespace tilert::tool {
namespace {

absl::Status RunPrint(const Args& args) {
  TILERT_ASSIGN_OR_RETURN(const auto file, OpenBundle(args.positional()[0]));
  const std::string wanted = args.Get("--entry");
  std::string text;
  for (const Program& program : file->bundle.programs) {
    if (!wanted.empty() && program.name != wanted) continue;
    TILERT_ASSIGN_OR_RETURN(const VerifiedProgram verified, Verify(program));
    text += (text.empty() ? "" : "\n\n") + PrintProgram(*verified);
  }
  if (text.empty()) return absl::NotFoundError(Cat(file->path, ": no program", wanted.empty() ? "" : " '" + wanted + "'"));
  return WriteFile(args.Get("-o", "-"), text);
}

constexpr Option kPrintOptions[] = {
    {"--entry", "NAME", "this program only"},
    {"-o", "FILE", "write there instead of standard output"},
};

}  // namespace

const Command kPrintCommand = {
    "print", "BUNDLE", "print the programs of a bundle as TileLang-syntax source",
    "",      kPrintOptions, "  tilert print std.tilert --entry gemm_nt_f16\n",
    1,       1,        RunPrint,
};

}  // namespace tilert::tool
