// tilert verify: what a host does before it trusts a bundle.
#include <cstdio>

#include "ir/lint.h"
#include "ir/status_util.h"
#include "ir/verifier.h"
#include "tools/command.h"
#include "tools/input.h"

namespace tilert::tool {
namespace {

absl::Status PrintWarnings(const Bundle& bundle) {
  for (const Program& program : bundle.programs) {
    TILERT_ASSIGN_OR_RETURN(const VerifiedProgram verified, Verify(program));
    for (const LintWarning& warning : Lint(verified))
      std::printf("program '%s': %s\n", program.name.c_str(), warning.ToString().c_str());
  }
  return absl::OkStatus();
}

absl::Status RunVerify(const Args& args) {
  TILERT_ASSIGN_OR_RETURN(const auto file, OpenBundle(args.positional()[0]));
  const Bundle& bundle = file->bundle;
  std::string errors;
  size_t count = 0;
  for (const Program& program : bundle.programs) {
    for (const VerifyError& error : FindErrors(program)) {
      errors += Cat(count++ > 0 ? "\n" : "", file->path, ": program '", program.name, "': ", error.ToString());
    }
  }
  for (size_t i = 0; i < bundle.cubins.size(); ++i) {
    if (CodeMatchesHash(bundle.cubins[i])) continue;
    errors += Cat(count++ > 0 ? "\n" : "", file->path, ": cubins[", i, "]: the code is not what its hash says");
  }
  if (count > 0) return absl::InvalidArgumentError(errors);
  if (args.Has("--lint")) TILERT_RETURN_IF_ERROR(PrintWarnings(bundle));
  std::printf("%s: ok, %zu program%s, %zu cubin%s\n", file->path.c_str(), bundle.programs.size(),
              bundle.programs.size() == 1 ? "" : "s", bundle.cubins.size(), bundle.cubins.size() == 1 ? "" : "s");
  return absl::OkStatus();
}

constexpr Option kVerifyOptions[] = {
    {"--lint", "", "also warn of what is valid and hardly meant: outputs written in part, tiles read before they are written, …"},
};

}  // namespace

const Command kVerifyCommand = {
    "verify",
    "BUNDLE",
    "check a bundle: structure, then the meaning of every program",
    "Warnings do not change the exit status.",
    kVerifyOptions,
    "  tilert verify std.tilert\n"
    "  tilert verify --lint std.tilert\n",
    1,
    1,
    RunVerify,
};

}  // namespace tilert::tool
