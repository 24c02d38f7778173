#pragma once

#include <string>
#include <vector>

#include "frontend/settings.h"

namespace tilert::frontend {

// One section of a case file: a line `=== name: entry setting=value …`, then a source up to the next such line.
struct Case {
  std::string name;
  std::string entry;
  Settings settings;
  std::string source;
};

// The sections of a file of the source tree; fails the current test if it is malformed.
std::vector<Case> ReadCases(const std::string& path);

// Puts the two import lines of a TileLang source in front.
std::string WithImports(const std::string& source);

}  // namespace tilert::frontend
