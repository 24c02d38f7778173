#include "lowering/target.h"

#include <charconv>

#include "ir/status_util.h"

namespace tilert {
namespace {

constexpr int64_t kKib = 1024;

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
struct Chip {
  std::string_view arch;
  int sm;
  int64_t max_shared_bytes, shared_bytes_per_sm;
  int max_threads_per_sm;
  bool hopper;
};
constexpr Chip kChips[] = {
    {"sm_80", 80, 163 * kKib, 164 * kKib, 2048, false}, {"sm_86", 86, 99 * kKib, 100 * kKib, 1536, false},
    {"sm_87", 87, 163 * kKib, 164 * kKib, 1536, false}, {"sm_89", 89, 99 * kKib, 100 * kKib, 1536, false},
    {"sm_90", 90, 227 * kKib, 228 * kKib, 2048, false}, {"sm_90a", 90, 227 * kKib, 228 * kKib, 2048, true},
};
constexpr int kOldest = 80, kNewestKnown = 90;

// The number of "sm_NN", "sm_NNa", "sm_NNf" or "compute_NN…"; 0 when `arch` is nothing of the kind.
int ParseSm(std::string_view arch) {
  for (std::string_view prefix : {"sm_", "compute_"}) {
    if (arch.substr(0, prefix.size()) != prefix) continue;
    std::string_view digits = arch.substr(prefix.size());
    if (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) digits.remove_suffix(1);
    int sm = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), sm);
    if (error == std::errc() && end == digits.data() + digits.size() && sm < 1000) return sm;
  }
  return 0;
}

Target FromChip(const Chip& chip) {
  Target target;
  target.arch = std::string(chip.arch);
  target.sm = chip.sm;
  target.family = chip.hopper ? Family::kHopper : Family::kAmpere;
  target.max_shared_bytes = chip.max_shared_bytes;
  target.shared_bytes_per_sm = chip.shared_bytes_per_sm;
  target.max_threads_per_sm = chip.max_threads_per_sm;
  return target;
}

// A chip newer than this table, or a request for PTX: what every chip from the newest known one before it on offers.
Target ThroughPtx(int sm) {
  const Chip* base = &kChips[0];
  for (const Chip& chip : kChips) {
    if (chip.sm <= sm && !chip.hopper) base = &chip;
  }
  Target target = FromChip(*base);
  target.arch = Cat("compute_", sm);
  target.sm = sm;
  // Consumer chips of a new generation have had 99 KiB; nothing more is sure.
  if (sm > kNewestKnown) {
    target.max_shared_bytes = 99 * kKib;
    target.shared_bytes_per_sm = 100 * kKib;
    target.max_threads_per_sm = 1536;
  }
  return target;
}

}  // namespace

absl::StatusOr<Target> FindTarget(std::string_view arch, std::string_view family) {
  if (family != "auto" && family != "ampere" && family != "hopper") {
    return InvalidArgument("unknown lowering family '", family, "': use auto, ampere or hopper");
  }
  Target target;
  for (const Chip& chip : kChips) {
    if (chip.arch == arch) target = FromChip(chip);
  }
  if (target.sm == 0) {
    const int sm = ParseSm(arch);
    std::string known;
    for (const std::string& name : KnownArchs()) known += (known.empty() ? "" : ", ") + name;
    if (sm == 0)
      return InvalidArgument("unknown architecture '", arch, "': known are ", known, ", and anything newer through PTX");
    if (sm < kOldest) return InvalidArgument("architecture '", arch, "' is too old: ", known, " and newer can be compiled for");
    target = ThroughPtx(sm);
  }
  if (family == "ampere") target.family = Family::kAmpere;
  if (family == "hopper") {
    if (target.family != Family::kHopper) return InvalidArgument("the hopper family needs sm_90a, not '", arch, "'");
  }
  return target;
}

std::vector<std::string> KnownArchs() {
  std::vector<std::string> names;
  for (const Chip& chip : kChips) names.emplace_back(chip.arch);
  return names;
}

}  // namespace tilert
