#include "tools/lowering_options.h"

#include "ir/status_util.h"

namespace tilert::tool {

absl::StatusOr<Target> ChooseTarget(const Args& args) {
  absl::StatusOr<Target> target = FindTarget(args.Get("--arch", "sm_80"), args.Get("--family", "auto"));
  if (!target.ok()) return UsageError(ToStd(target.status().message()));
  return target;
}

ArgClass ChooseArgClass(const Program& program, const Args& args) {
  return args.Has("--general") ? GeneralArgClass(program) : FastArgClass(program);
}

}  // namespace tilert::tool
