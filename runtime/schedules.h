// The ways to run one program: the choices of constants that a bundle offers for a GPU, each with what it is expected to cost.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/bundle.h"
#include "ir/verifier.h"
#include "lowering/target.h"
#include "runtime/cost_model.h"

namespace tilert {

struct Schedule {
  std::string name;                          // of the bundle's variant; empty: the program's defaults
  std::map<std::string, int64_t> constants;  // every constant of the program
  Program program;                           // specialised
  std::vector<DimGuard> guards;              // dims that it is meant for
  bool is_fallback = false;                  // only where no other's guards hold
  CostModel cost;                            // of the fast ones
  bool shares_tiles = false;                 // may want workspace of its own: launches without it get another

  bool Serves(absl::Span<const int64_t> dims) const;
};

struct ScheduleRequest {
  const Target* target = nullptr;
  std::string sku;                           // the GPU's name, for tuning records
  std::map<std::string, int64_t> constants;  // those that are fixed
  std::map<std::string, int64_t> dims;       // those that are fixed
  bool general_only = false;
};

struct Schedules {
  std::vector<Schedule> fast;  // never empty, unless only the general one was asked for; a fallback is the last
  Schedule general;            // for arguments of any kind: one serves them all
};

// The schedules of the program for the request. A variant counts if it is for the target, its guards can hold and it contradicts
// no constant of the request; if none counts, the program's defaults do. The fastest tuning record of this GPU that holds for the
// fixed dims decides alone, for both classes. Otherwise general arguments get the defaults; of the fast ones stays what may be
// chosen, with workspace and without: one or two when all dims are fixed, and when one dim is open, those that are the cheapest
// for some size of it.
//
// `bundle` may be null. `program` must be the bundle's, verified. InvalidArgument: Specialize's.
absl::StatusOr<Schedules> FindSchedules(const Bundle* bundle, const VerifiedProgram& program, const ScheduleRequest& request);

// Whether a variant for the architecture `variant_target` (empty: any) is one for `target`: the lowering family is that
// architecture's own, and what is meant for a chip of the Ampere family also suits later chips with as much shared memory that
// are lowered for by that family.
bool SuitsTarget(const std::string& variant_target, const Target& target);

// The index of the cheapest of `count` schedules for these dims (one an entry of Program::dims); −1: none serves them.
// `schedule(i)`: a Schedule*, or null for one that is not to be chosen.
template <typename ScheduleAt>
int CheapestSchedule(size_t count, absl::Span<const int64_t> dims, ScheduleAt schedule) {
  int best = -1;
  double least = 0;
  for (size_t i = 0; i < count; ++i) {
    const Schedule* const candidate = schedule(i);
    if (candidate == nullptr || !candidate->Serves(dims) || (candidate->is_fallback && best >= 0)) continue;
    const double cycles = candidate->cost.Cycles(dims);
    if (best < 0 || cycles < least) best = static_cast<int>(i), least = cycles;
  }
  return best;
}

}  // namespace tilert
