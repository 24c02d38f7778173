// What commands read: bundles, or TileLang sources compiled on the way.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "frontend/frontend.h"
#include "frontend/settings.h"
#include "ir/bundle.h"
#include "ir/verifier.h"
#include "runtime/opened_bundle.h"
#include "tools/command.h"

namespace tilert::tool {

// A bundle and the bytes it came from, which cubins point into.
struct BundleFile {
  std::string path;
  std::string bytes;
  Bundle bundle;
};

// Reads a *.tilert file. Programs are not verified yet. (By pointer: the bytes must stay where they are.)
absl::StatusOr<std::unique_ptr<BundleFile>> OpenBundle(const std::string& path);

// NotFound: it has no program of this name; with those that it has.
absl::Status NoProgram(const BundleFile& file, const std::string& wanted);

// Larger sources are not read.
inline constexpr uint64_t kMaxSourceBytes = uint64_t{16} << 20;

// The name of the file at `path`.
std::string BaseName(const std::string& path);

// True for names that end in ".py".
bool IsSource(const std::string& path);

// Reads the modules that a source at `path` imports from files beside it.
frontend::ModuleReader ReaderBeside(const std::string& path);

// Options that choose one program: --entry NAME, --set NAME=VALUE.
inline constexpr Option kEntryOption = {"--entry", "NAME", "which program; needed when there are several"};
inline constexpr Option kSetOption = {"--set", "NAME=VALUE", "fix a constant (of a source: any parameter; also dyn, [64,128])",
                                      true};
inline constexpr Option kVariantOption = {"--variant", "NAME", "with the constants of this variant of the bundle"};
inline constexpr Option kDimOption = {"--dim", "NAME=N", "fix an extent", true};

// The settings of every --set. UsageError when one cannot be read.
absl::StatusOr<frontend::Settings> ParseSettings(const Args& args);

// The entry of a source to compile: `wanted`, or the only one there is.
absl::StatusOr<Program> CompileEntry(const std::string& path, const std::string& text, const std::string& wanted,
                                     const frontend::Settings& settings);

// The program that the first argument (a bundle or a source) and --entry choose; verified. What --variant and --set fixed of a
// bundle's constants is in `constants`; those of a source are in the program already.
struct ChosenProgram {
  VerifiedProgram program;
  std::map<std::string, int64_t> constants;
  std::shared_ptr<const OpenedBundle> bundle;  // that it comes from; null for a source
};
absl::StatusOr<ChosenProgram> ChooseProgram(const Args& args);

// The same, specialised to its constants and to every --dim.
absl::StatusOr<Program> ChooseSpecialized(const Args& args);

}  // namespace tilert::tool
