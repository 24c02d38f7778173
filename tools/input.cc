#include "tools/input.h"

#include <algorithm>
#include <cctype>
#include <memory>

#include "frontend/frontend.h"
#include "ir/flat_reader.h"
#include "ir/limits.h"
#include "ir/specialize.h"
#include "ir/status_util.h"
#include "tools/file.h"
#include "tools/names.h"

namespace tilert::tool {
namespace {

bool IsModuleName(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

absl::StatusOr<Program> FromBundle(const BundleFile& file, const std::string& wanted) {
  const std::string& path = file.path;
  const std::vector<Program>& programs = file.bundle.programs;
  if (programs.empty()) return InvalidArgument(path, ": holds no program");
  if (wanted.empty()) {
    if (programs.size() > 1) {
      return UsageError(Cat(path, " holds several programs; choose one by --entry: ", SomeNamesOf(programs)));
    }
    return programs[0];
  }
  const Program* found = file.bundle.Find(wanted);
  if (found == nullptr) return NoProgram(file, wanted);
  return *found;
}

// Adds the constants of --variant to those of --set.
absl::Status AddVariant(const Bundle& bundle, const Program& program, const std::string& name,
                        std::map<std::string, int64_t>* constants) {
  std::vector<Variant> own;
  for (const Variant& variant : bundle.variants) {
    if (bundle.programs[variant.program].name == program.name) own.push_back(variant);
  }
  const auto it = std::find_if(own.begin(), own.end(), [&](const Variant& variant) { return variant.name == name; });
  if (it == own.end()) {
    return absl::NotFoundError(Cat("'", program.name, "' has no variant '", name, "'; there are ", SomeNamesOf(own, name)));
  }
  for (const auto& [constant, value] : it->constants) {
    if (constants->emplace(constant, value).first->second != value)
      return UsageError(Cat("--set ", constant, " contradicts --variant ", name, ", which has ", value));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status NoProgram(const BundleFile& file, const std::string& wanted) {
  return absl::NotFoundError(
      Cat(file.path, ": no program '", wanted, "'; there are ", SomeNamesOf(file.bundle.programs, wanted)));
}

frontend::ModuleReader ReaderBeside(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  return [folder](const std::string& module) -> std::optional<std::string> {
    if (!IsModuleName(module)) return std::nullopt;
    absl::StatusOr<std::string> text = ReadFile(Cat(folder, module, ".py"), kMaxSourceBytes);
    return text.ok() ? std::optional(*std::move(text)) : std::nullopt;
  };
}

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool IsSource(const std::string& path) { return path.size() > 3 && path.compare(path.size() - 3, 3, ".py") == 0; }

absl::StatusOr<std::unique_ptr<BundleFile>> OpenBundle(const std::string& path) {
  if (IsSource(path)) return UsageError(Cat(path, " is a source; make a bundle of it with `tilert compile`"));
  auto file = std::make_unique<BundleFile>();
  file->path = path;
  TILERT_ASSIGN_OR_RETURN(file->bytes, ReadFile(path, kMaxBundleBytes));
  absl::StatusOr<Bundle> bundle = ReadBundle(file->bytes);
  if (!bundle.ok()) return absl::Status(bundle.status().code(), Cat(path, ": ", bundle.status().message()));
  file->bundle = *std::move(bundle);
  return file;
}

absl::StatusOr<frontend::Settings> ParseSettings(const Args& args) {
  frontend::Settings settings;
  for (const std::string& text : args.All("--set")) {
    if (const absl::Status status = frontend::AddSetting(text, &settings); !status.ok())
      return UsageError(Cat("--set: ", status.message()));
  }
  return settings;
}

absl::StatusOr<Program> CompileEntry(const std::string& path, const std::string& text, const std::string& wanted,
                                     const frontend::Settings& settings) {
  std::string entry = wanted;
  if (entry.empty()) {
    TILERT_ASSIGN_OR_RETURN(const auto entries, frontend::ListEntries(text, BaseName(path)));
    if (entries.empty()) return InvalidArgument(path, ": no kernel in it (a function under @T.prim_func or @tilelang.jit)");
    if (entries.size() > 1) {
      return UsageError(Cat(path, " has several entries; choose one by --entry: ", SomeNamesOf(entries)));
    }
    entry = entries[0].name;
  }
  return frontend::Compile(text, BaseName(path), entry, settings, nullptr, ReaderBeside(path));
}

absl::StatusOr<ChosenProgram> ChooseProgram(const Args& args) {
  const std::string &path = args.positional()[0], wanted = args.Get("--entry");
  if (IsSource(path)) {
    if (args.Has("--variant")) return UsageError(Cat("--variant: bundles have variants; ", path, " is a source"));
    TILERT_ASSIGN_OR_RETURN(const frontend::Settings settings, ParseSettings(args));
    TILERT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxSourceBytes));
    TILERT_ASSIGN_OR_RETURN(Program program, CompileEntry(path, text, wanted, settings));
    TILERT_ASSIGN_OR_RETURN(VerifiedProgram verified, Verify(std::move(program)));
    return ChosenProgram{std::move(verified), {}, nullptr};
  }
  TILERT_ASSIGN_OR_RETURN(auto constants, IntAssignments(args, "--set"));
  TILERT_ASSIGN_OR_RETURN(const auto file, OpenBundle(path));
  TILERT_ASSIGN_OR_RETURN(Program program, FromBundle(*file, wanted));
  TILERT_ASSIGN_OR_RETURN(VerifiedProgram verified, Verify(std::move(program)));
  if (args.Has("--variant")) TILERT_RETURN_IF_ERROR(AddVariant(file->bundle, *verified, args.Get("--variant"), &constants));
  TILERT_ASSIGN_OR_RETURN(auto bundle, OpenedBundle::FromMemory(file->bytes, true));
  return ChosenProgram{std::move(verified), std::move(constants), std::move(bundle)};
}

absl::StatusOr<Program> ChooseSpecialized(const Args& args) {
  TILERT_ASSIGN_OR_RETURN(const auto dims, IntAssignments(args, "--dim"));
  TILERT_ASSIGN_OR_RETURN(const ChosenProgram chosen, ChooseProgram(args));
  return Specialize(*chosen.program, chosen.constants, dims);
}

}  // namespace tilert::tool
