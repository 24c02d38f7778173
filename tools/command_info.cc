// tilert info: what a bundle holds.
#include <cstdio>

#include "ir/printer.h"
#include "ir/sha256.h"
#include "ir/status_util.h"
#include "tools/command.h"
#include "tools/input.h"

namespace tilert::tool {
namespace {

std::string Exprs(const Program& program, const std::vector<Expr>& exprs) {
  std::string text;
  for (Expr e : exprs) text += (text.empty() ? "" : ", ") + PrintExpr(program, e);
  return "[" + text + "]";
}

std::string Candidates(const Constant& constant) {
  std::string text;
  for (int64_t value : constant.candidates) text += Cat(text.empty() ? "" : ", ", value);
  return constant.candidates.size() == 1 ? text : "[" + text + "]";
}

std::string Params(const Program& program) {
  static constexpr const char* kAccess[] = {"?", "in", "out", "inout"};
  std::string text;
  for (const Param& param : program.params) {
    if (param.kind == Param::Kind::kTensor) {
      const Buffer& buffer = program.buffers[param.index];
      text +=
          Cat("    ", kAccess[static_cast<int>(param.access)], " ", buffer.name, ": ", DTypeName(buffer.dtype), " ",
              Exprs(program, buffer.shape), buffer.strides.empty() ? "" : Cat(" strides ", Exprs(program, buffer.strides)), "\n");
    } else {
      const ScalarParam& scalar = program.scalars[param.index];
      text += Cat("    in ", scalar.name, ": ", DTypeName(scalar.dtype), "\n");
    }
  }
  return text;
}

std::string Describe(const Program& program) {
  std::string text = Cat("program ", program.name, "\n", Params(program));
  for (const Constant& constant : program.constants)
    text += Cat("    constant ", constant.name, " = ", Candidates(constant), "\n");
  for (Expr e : program.assumptions) text += Cat("    assumes ", PrintExpr(program, e), "\n");
  for (const Workspace& workspace : program.workspaces) {
    const Buffer& buffer = program.buffers[workspace.buffer];
    text += Cat("    workspace ", buffer.name, ": ", DTypeName(buffer.dtype), " ", Exprs(program, buffer.shape),
                workspace.zeroed ? " zeroed" : "", "\n");
  }
  for (const Launch& launch : program.launches) {
    text +=
        Cat("    launch ", launch.name, ": grid ", Exprs(program, launch.grid), ", threads ", PrintExpr(program, launch.threads),
            launch.cluster.empty() ? "" : Cat(", clusters of ", Exprs(program, launch.cluster)), "\n");
  }
  return Cat(text, "    digest ", Sha256Hex(ProgramDigest(program)).substr(0, 16), "\n");
}

std::string Describe(const Bundle& bundle, const Variant& variant) {
  const Program& program = bundle.programs[variant.program];
  std::string text =
      Cat("variant ", variant.name, " of ", program.name, variant.target.empty() ? "" : " for ", variant.target, ":");
  for (const auto& [constant, value] : variant.constants) text += Cat(" ", constant, "=", value);
  for (const DimGuard& guard : variant.guards) {
    const std::string& dim = program.dims[guard.dim].name;
    if (guard.min == guard.max) {
      text += Cat(" ", dim, "==", guard.min);
    } else {
      if (guard.min > 0) text += Cat(" ", dim, ">=", guard.min);
      if (guard.max != INT64_MAX) text += Cat(" ", dim, "<=", guard.max);
    }
    if (guard.divisor > 1) text += Cat(" ", dim, "%", guard.divisor, "==0");
  }
  return text + "\n";
}

std::string Describe(const Bundle& bundle, const PrebuiltCubin& cubin) {
  std::string name = "(of another bundle)";
  for (const Program& program : bundle.programs) {
    if (ProgramDigest(program) == cubin.program_digest) name = program.name;
  }
  std::string text = Cat("cubin ", name, " for ", cubin.target, ": ", cubin.code.size(), " bytes, ", cubin.kernels.size(),
                         " kernel", cubin.kernels.size() == 1 ? "" : "s", cubin.index32 ? ", 32-bit indices" : "");
  for (const auto& [constant, value] : cubin.constants) text += Cat(", ", constant, "=", value);
  for (const auto& [dim, value] : cubin.dims) text += Cat(", ", dim, "=", value);
  return text + "\n";
}

absl::Status RunInfo(const Args& args) {
  TILERT_ASSIGN_OR_RETURN(const auto file, OpenBundle(args.positional()[0]));
  const Bundle& bundle = file->bundle;
  std::string text =
      Cat(file->path, ": ", file->bytes.size(), " bytes, ", bundle.programs.size(), " programs, ", bundle.variants.size(),
          " variants, ", bundle.tuning.size(), " tuning records, ", bundle.cubins.size(), " cubins\n");
  for (const auto& [key, value] : bundle.metadata) text += Cat("metadata ", key, " = ", value, "\n");
  for (const Program& program : bundle.programs) {
    TILERT_ASSIGN_OR_RETURN(const VerifiedProgram verified, Verify(program));  // what is printed below relies on it
    text += Describe(*verified);
  }
  for (const Variant& variant : bundle.variants) text += Describe(bundle, variant);
  for (const PrebuiltCubin& cubin : bundle.cubins) text += Describe(bundle, cubin);
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

const Command kInfoCommand = {
    "info", "BUNDLE", "list what a bundle holds: programs with their parameters, variants, cubins",
    "",     {},       "  tilert info std.tilert\n",
    1,      1,        RunInfo,
};

}  // namespace tilert::tool
