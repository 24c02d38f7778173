#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilert::frontend {

// The candidate most like `name` (few edits, ignoring case), or "" if none is close.
std::string Similar(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace tilert::frontend
