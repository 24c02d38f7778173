// Options of the commands that lower programs.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "ir/program.h"
#include "lowering/lowered.h"
#include "lowering/target.h"
#include "tools/command.h"

namespace tilert::tool {

inline constexpr Option kArchOption = {"--arch", "ARCH",
                                       "GPU architecture: sm_80, sm_86, sm_87, sm_89, sm_90, sm_90a or newer; default sm_80"};
inline constexpr Option kFamilyOption = {"--family", "NAME", "of the lowering: auto, ampere, hopper; default auto"};
inline constexpr Option kGeneralOption = {"--general", "",
                                          "rely on nothing about the arguments (default: 16-byte alignment, 32-bit indices)"};

absl::StatusOr<Target> ChooseTarget(const Args& args);
// What --general asks for.
ArgClass ChooseArgClass(const Program& program, const Args& args);

}  // namespace tilert::tool
