#include "tools/names.h"

#include <algorithm>

#include "ir/status_util.h"

namespace tilert::tool {

std::string SomeNames(std::vector<std::string> names, std::string_view wanted) {
  constexpr size_t kShown = 8;
  const auto likeness = [wanted](const std::string& name) {
    if (name.find(wanted) != std::string::npos) return wanted.size() + 1;
    const size_t shorter = std::min(name.size(), wanted.size());
    size_t same = 0;
    while (same < shorter && name[same] == wanted[same]) ++same;
    return same;
  };
  std::stable_sort(names.begin(), names.end(),
                   [&](const std::string& a, const std::string& b) { return likeness(a) > likeness(b); });
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) text += Cat(i == 0 ? "'" : ", '", names[i], "'");
  if (names.size() > kShown) text += Cat(" and ", names.size() - kShown, " more");
  return text.empty() ? "nothing" : text;
}

}  // namespace tilert::tool
