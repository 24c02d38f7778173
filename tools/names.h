#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilert::tool {

// For messages: "'a', 'b' and 7 more", at most eight of `names`, those like `wanted` first; "nothing" if there are none.
std::string SomeNames(std::vector<std::string> names, std::string_view wanted = {});

// The same of the names of things.
template <typename Range>
std::string SomeNamesOf(const Range& things, std::string_view wanted = {}) {
  std::vector<std::string> names;
  for (const auto& thing : things) names.push_back(thing.name);
  return SomeNames(std::move(names), wanted);
}

}  // namespace tilert::tool
