// A list of the programs of a bundle, for bundles of many (kernels/std.spec):
//
//     # name = source.py:entry setting=value …
//     gemm_nt_f16 = gemm.py:gemm dtype=float16 transpose_B=true
//       variant wide target=sm_90a block_M=128 block_N=256 threads=256
//       variant few_rows target=sm_90a block_M=16 M<=16 K%64==0
//
// One program a line; sources are relative to the list's folder; settings as for --set. An indented line declares a variant of
// each program in the lines directly above: what to compile, too, for a target (none: every one) and for the dims that its
// conditions name (none: all). What a variant gives becomes a constant of the program, whose candidates are the program's own
// value, which stays the default, and those of its variants.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "frontend/frontend.h"
#include "frontend/settings.h"
#include "ir/bundle.h"
#include "ir/verifier.h"

namespace tilert::tool {

// dim <= bound, dim >= bound, dim == bound, or dim % divisor == 0.
struct SpecGuard {
  std::string dim;
  DimGuard guard;  // its `dim` is not known yet
};

struct SpecVariant {
  std::string name, target;
  std::map<std::string, int64_t> constants;
  std::vector<SpecGuard> guards;
  std::string place;  // "file:line"
};

struct SpecEntry {
  std::string name;    // of the program in the bundle
  std::string source;  // path
  std::string entry;   // function
  frontend::Settings settings;
  std::string place;  // "file:line"; empty when no list names it
  std::vector<SpecVariant> variants;
};

// InvalidArgument with file and line for what is malformed or named twice.
absl::StatusOr<std::vector<SpecEntry>> ParseBundleSpec(const std::string& path, const std::string& text);

// The settings to compile the entry with: its own, and those that its variants give with their candidates. `params`: of the
// function. InvalidArgument: a setting that the function does not have, or one whose default is no whole number.
absl::StatusOr<frontend::Settings> SettingsWithCandidates(const SpecEntry& entry,
                                                          const std::vector<frontend::EntryParam>& params);

// The variants of `entry`, which became `program`, number `index` of its bundle. InvalidArgument: a dim that it does not have,
// values with which it means nothing.
absl::StatusOr<std::vector<Variant>> MakeVariants(const SpecEntry& entry, const VerifiedProgram& program, uint32_t index);

}  // namespace tilert::tool
