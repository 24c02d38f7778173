// tilert compile: source → bundle.
#include <cstdio>

#include "frontend/frontend.h"
#include "ir/flat_writer.h"
#include "ir/lint.h"
#include "ir/status_util.h"
#include "ir/verifier.h"
#include "tools/bundle_spec.h"
#include "tools/command.h"
#include "tools/file.h"
#include "tools/input.h"
#include "tools/progress.h"

namespace tilert::tool {
namespace {

absl::Status ListEntries(const std::vector<std::string>& sources) {
  for (const std::string& path : sources) {
    TILERT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxSourceBytes));
    TILERT_ASSIGN_OR_RETURN(const auto entries, frontend::ListEntries(text, BaseName(path)));
    for (const frontend::Entry& entry : entries) {
      std::string params;
      for (const frontend::EntryParam& param : entry.params) {
        params += Cat(params.empty() ? "" : ", ", param.name, param.default_text.empty() ? "" : "=", param.default_text);
      }
      std::printf("%s:%d: %s(%s)\n", path.c_str(), entry.line, entry.name.c_str(), params.c_str());
    }
  }
  return absl::OkStatus();
}

// What to compile: every entry of the sources, those of --entry, or those of a list.
absl::StatusOr<std::vector<SpecEntry>> Plan(const Args& args) {
  if (args.Has("--spec")) {
    if (!args.positional().empty() || args.Has("--entry") || args.Has("--set"))
      return UsageError("--spec stands alone: it names sources, entries and settings");
    TILERT_ASSIGN_OR_RETURN(const std::string text, ReadFile(args.Get("--spec"), kMaxSourceBytes));
    return ParseBundleSpec(args.Get("--spec"), text);
  }
  if (args.positional().empty()) return UsageError("tilert compile needs SOURCE or --spec FILE");
  TILERT_ASSIGN_OR_RETURN(const frontend::Settings settings, ParseSettings(args));
  std::vector<SpecEntry> plan;
  if (args.Has("--entry")) {
    if (args.positional().size() > 1) return UsageError("--entry chooses from one source");
    for (const std::string& text : args.All("--entry")) {
      const size_t equals = text.find('=');
      const std::string entry = equals == std::string::npos ? text : text.substr(equals + 1);
      plan.push_back(
          {equals == std::string::npos ? text : text.substr(0, equals), args.positional()[0], entry, settings, "", {}});
    }
    return plan;
  }
  for (const std::string& path : args.positional()) {
    TILERT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxSourceBytes));
    TILERT_ASSIGN_OR_RETURN(const auto entries, frontend::ListEntries(text, BaseName(path)));
    if (entries.empty()) return InvalidArgument(path, ": no kernel in it (a function under @T.prim_func or @tilelang.jit)");
    for (const frontend::Entry& entry : entries) plan.push_back({entry.name, path, entry.name, settings, "", {}});
  }
  return plan;
}

// The parameters of the function that the entry names.
absl::StatusOr<std::vector<frontend::EntryParam>> ParamsOf(const SpecEntry& entry, const std::string& text) {
  TILERT_ASSIGN_OR_RETURN(const auto entries, frontend::ListEntries(text, BaseName(entry.source)));
  for (const frontend::Entry& one : entries) {
    if (one.name == entry.entry) return one.params;
  }
  return InvalidArgument(entry.place, ": ", entry.source, " has no kernel '", entry.entry, "'");
}

// The errors of the verifier and the warnings of the lint, which go to standard error, are shown in the source.
absl::StatusOr<VerifiedProgram> VerifyAndLint(const SpecEntry& entry, const std::string& text, Program program) {
  const auto quoted = [&](const std::string& message) {
    return frontend::Quote(text, BaseName(entry.source), message, ReaderBeside(entry.source));
  };
  std::string errors;
  for (const VerifyError& error : FindErrors(program)) {
    const std::string place = error.loc.empty() ? error.path : error.loc + ": error";
    errors += Cat(errors.empty() ? "" : "\n", place, place.empty() ? "" : ": ", error.message);
  }
  if (!errors.empty()) return InvalidArgument(program.name, " is not a valid program:\n", quoted(errors));
  absl::StatusOr<VerifiedProgram> verified = Verify(std::move(program));
  if (!verified.ok()) return verified;
  for (const LintWarning& warning : Lint(*verified)) std::fputs(quoted(warning.ToString()).c_str(), stderr);
  return verified;
}

// Compiles one entry, and its variants' constants, into the bundle.
absl::Status AddProgram(const SpecEntry& entry, Bundle* bundle) {
  TILERT_ASSIGN_OR_RETURN(const std::string text, ReadFile(entry.source, kMaxSourceBytes));
  frontend::Settings settings = entry.settings;
  if (!entry.variants.empty()) {
    TILERT_ASSIGN_OR_RETURN(const auto params, ParamsOf(entry, text));
    TILERT_ASSIGN_OR_RETURN(settings, SettingsWithCandidates(entry, params));
  }
  std::string warnings;
  absl::StatusOr<Program> program =
      frontend::Compile(text, BaseName(entry.source), entry.entry, settings, &warnings, ReaderBeside(entry.source));
  std::fputs(warnings.c_str(), stderr);
  if (!program.ok()) return std::move(program).status();
  program->name = entry.name;
  TILERT_ASSIGN_OR_RETURN(const VerifiedProgram verified, VerifyAndLint(entry, text, *std::move(program)));
  if (bundle->Find(entry.name) != nullptr)
    return InvalidArgument(entry.source, ": the name '", entry.name, "' is taken; use --entry NEW=", entry.entry);
  TILERT_ASSIGN_OR_RETURN(const auto variants, MakeVariants(entry, verified, static_cast<uint32_t>(bundle->programs.size())));
  bundle->variants.insert(bundle->variants.end(), variants.begin(), variants.end());
  bundle->programs.push_back(*verified);
  return absl::OkStatus();
}

absl::Status RunCompile(const Args& args) {
  if (args.Has("--list")) return ListEntries(args.positional());
  if (!args.Has("-o")) return UsageError("tilert compile needs -o FILE");
  TILERT_ASSIGN_OR_RETURN(const auto plan, Plan(args));
  Bundle bundle;
  for (const std::string& text : args.All("--meta")) {
    TILERT_ASSIGN_OR_RETURN(auto assignment, SplitAssignment("--meta", text));
    bundle.metadata.insert(std::move(assignment));
  }
  Progress progress;
  for (const SpecEntry& entry : plan) {
    progress.Show(Cat("compiling ", entry.name));
    TILERT_RETURN_IF_ERROR(AddProgram(entry, &bundle));
  }
  TILERT_ASSIGN_OR_RETURN(const std::string bytes, WriteBundle(bundle));
  return WriteFile(args.Get("-o"), bytes);
}

constexpr Option kCompileOptions[] = {
    {"-o", "FILE", "the bundle to write"},
    {"--entry", "[NEW=]NAME", "compile this function, under a new name if one is given; default: every entry", true},
    {"--set", "NAME=VALUE", "a parameter: 128, 0.5, true, text, dyn (known at launch), [64,128] (candidates)", true},
    {"--spec", "FILE", "compile what a list says: lines `name = source.py:entry setting=value …`, and variants"},
    {"--meta", "KEY=VALUE", "metadata for the bundle", true},
    {"--list", "", "list the entries of the sources and their parameters"},
};

}  // namespace

const Command kCompileCommand = {
    "compile",
    "SOURCE...",
    "compile TileLang-syntax sources to a kernel bundle",
    "Errors and warnings show file, line, column and a caret. Nothing is written unless every program compiles and verifies.",
    kCompileOptions,
    "  tilert compile kernels/gemm.py --list\n"
    "  tilert compile kernels/gemm.py -o gemm.tilert\n"
    "  tilert compile kernels/gemm.py --entry gemm_bf16=gemm --set dtype=bfloat16 --set M=dyn --set block_M=[64,128] "
    "-o gemm.tilert\n"
    "  tilert compile --spec kernels/std.spec -o std.tilert\n",
    0,
    1000,
    RunCompile,
};

}  // namespace tilert::tool
