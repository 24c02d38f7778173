#include "runtime/schedules.h"

#include <algorithm>

#include "ir/bind_args.h"
#include "ir/specialize.h"
#include "ir/status_util.h"
#include "ir/stmt.h"

namespace tilert {
namespace {

using Values = std::map<std::string, int64_t>;

bool Holds(const DimGuard& guard, int64_t value) {
  return value >= guard.min && value <= guard.max && (guard.divisor <= 1 || value % guard.divisor == 0);
}

// Whether guards hold for the fixed dims; a dim that is not fixed counts as `dynamic`.
bool HoldAll(const std::vector<DimGuard>& guards, const Program& program, const Values& dims, bool dynamic) {
  return std::all_of(guards.begin(), guards.end(), [&](const DimGuard& guard) {
    if (guard.dim >= program.dims.size()) return false;
    const auto it = dims.find(program.dims[guard.dim].name);
    return it == dims.end() ? dynamic : Holds(guard, it->second);
  });
}

bool Agree(const Values& a, const Values& b) {
  return std::all_of(a.begin(), a.end(), [&](const auto& entry) {
    const auto it = b.find(entry.first);
    return it == b.end() || it->second == entry.second;
  });
}

std::vector<const Variant*> Fitting(const Bundle& bundle, const Program& program, const ScheduleRequest& request) {
  std::vector<const Variant*> fitting;
  for (const Variant& variant : bundle.variants) {
    if (variant.program < bundle.programs.size() && bundle.programs[variant.program].name == program.name &&
        SuitsTarget(variant.target, *request.target) && HoldAll(variant.guards, program, request.dims, true) &&
        Agree(variant.constants, request.constants)) {
      fitting.push_back(&variant);
    }
  }
  return fitting;
}

// The fastest that was measured on this GPU for the fixed dims.
const Variant* Tuned(const Bundle& bundle, const Program& program, const ScheduleRequest& request,
                     const std::vector<const Variant*>& fitting) {
  const TuningRecord* best = nullptr;
  for (const TuningRecord& record : bundle.tuning) {
    if (record.sku != request.sku || record.variant >= bundle.variants.size()) continue;
    const Variant* const variant = &bundle.variants[record.variant];
    if (std::find(fitting.begin(), fitting.end(), variant) == fitting.end()) continue;
    if (!HoldAll(variant->guards, program, request.dims, false) || !HoldAll(record.bucket, program, request.dims, false))
      continue;
    if (best == nullptr || record.microseconds < best->microseconds) best = &record;
  }
  return best == nullptr ? nullptr : &bundle.variants[best->variant];
}

// Whether all blocks share the iterations of the program's tiles.
bool SharesTiles(const Program& program) {
  bool shares = false;
  for (const Launch& launch : program.launches) {
    ForEachStmt(launch.body, [&](const Stmt& stmt) {
      auto* loop = std::get_if<For>(&stmt.op);
      shares |= loop != nullptr && loop->split && program.exprs.IsInt(loop->split, 0);
    });
  }
  return shares;
}

// `variant` null: the defaults.
absl::StatusOr<Schedule> Make(const VerifiedProgram& program, const ScheduleRequest& request, const Variant* variant) {
  Values constants = request.constants;
  if (variant != nullptr) constants.insert(variant->constants.begin(), variant->constants.end());
  TILERT_ASSIGN_OR_RETURN(Program specialised, Specialize(*program, constants, request.dims));
  Values chosen;
  for (const Constant& constant : specialised.constants) {
    if (!constant.candidates.empty()) chosen[constant.name] = constant.candidates[0];
  }
  const bool shares_tiles = SharesTiles(specialised);
  Schedule schedule{"", std::move(chosen), std::move(specialised), {}, false, {}, shares_tiles};
  if (variant != nullptr) schedule.name = variant->name, schedule.guards = variant->guards;
  return schedule;
}

// What is never chosen need not be compiled: with all dims fixed one schedule stays; with one dim open, those that are chosen for
// some size of it (sizes grow by a sixteenth); with more, all.
void KeepChosen(const Program& program, const Values& dims, std::vector<Schedule>& schedules) {
  constexpr int64_t kLargest = 1 << 18;
  std::vector<int64_t> values(program.dims.size(), 0);
  int64_t* open = nullptr;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto it = dims.find(program.dims[i].name);
    if (it == dims.end() && open != nullptr) return;
    if (it == dims.end()) open = &values[i];
    if (it != dims.end()) values[i] = it->second;
  }
  std::vector<bool> is_chosen(schedules.size(), false);
  for (int64_t size = 1; size <= kLargest; size += std::max<int64_t>(size / 16, 1)) {
    if (open != nullptr) *open = size;
    // Those that share tiles are for launches that bring workspace.
    for (const bool may_share : {true, false}) {
      const int best = CheapestSchedule(
          schedules.size(), values, [&](size_t i) { return schedules[i].shares_tiles && !may_share ? nullptr : &schedules[i]; });
      if (best >= 0) is_chosen[static_cast<size_t>(best)] = true;
    }
    if (open == nullptr) break;
  }
  // Sizes that were not tried must find one, too.
  const auto serves_all = [&](size_t i) { return schedules[i].guards.empty(); };
  bool has_one = open == nullptr;
  for (size_t i = 0; i < schedules.size(); ++i) has_one |= is_chosen[i] && serves_all(i);
  std::vector<Schedule> kept;
  for (size_t i = 0; i < schedules.size(); ++i) {
    if (is_chosen[i] || (!has_one && serves_all(i))) kept.push_back(std::move(schedules[i]));
  }
  schedules = std::move(kept);
}

}  // namespace

bool SuitsTarget(const std::string& variant_target, const Target& target) {
  if (variant_target.empty()) return true;
  const absl::StatusOr<Target> meant = FindTarget(variant_target);
  if (!meant.ok() || meant->family != target.family) return false;
  const bool holds_as_much = target.sm >= meant->sm && target.max_shared_bytes >= meant->max_shared_bytes;
  return variant_target == target.arch || (target.family == Family::kAmpere && holds_as_much);
}

bool Schedule::Serves(absl::Span<const int64_t> dims) const {
  return std::all_of(guards.begin(), guards.end(), [&](const DimGuard& guard) { return Holds(guard, dims[guard.dim]); });
}

absl::StatusOr<Schedules> FindSchedules(const Bundle* bundle, const VerifiedProgram& program, const ScheduleRequest& request) {
  std::vector<const Variant*> fitting;
  const Variant* tuned = nullptr;
  if (bundle != nullptr) {
    fitting = Fitting(*bundle, *program, request);
    tuned = Tuned(*bundle, *program, request, fitting);
  }
  if (tuned != nullptr) fitting = {tuned};
  TILERT_ASSIGN_OR_RETURN(Schedule general, Make(program, request, tuned));
  Schedules result{{}, std::move(general)};
  if (request.general_only) return result;
  for (const Variant* const variant : fitting) {
    TILERT_ASSIGN_OR_RETURN(Schedule schedule, Make(program, request, variant));
    result.fast.push_back(std::move(schedule));
  }
  const bool all_covered = std::any_of(fitting.begin(), fitting.end(), [&](const Variant* variant) {
    return HoldAll(variant->guards, *program, request.dims, false);
  });
  if (!all_covered) {
    result.fast.push_back(result.general);
    result.fast.back().is_fallback = true;
  }
  for (Schedule& schedule : result.fast) schedule.cost = CostModel(schedule.program, *request.target);
  KeepChosen(*program, request.dims, result.fast);
  return result;
}

}  // namespace tilert
