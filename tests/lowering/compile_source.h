// Programs from source files of the repository.
#pragma once

#include <string>

#include "frontend/frontend.h"
#include "ir/program.h"

namespace tilert {

// The function `entry` of `path` (from the repository's root), compiled with `settings` and specialised; a failure is a test
// failure and gives an empty program.
Program CompileSource(const std::string& path, const std::string& entry, const frontend::Settings& settings = {});
// "block_M=64 dtype=int8"
frontend::Settings ParseSettings(const std::string& words);

}  // namespace tilert
