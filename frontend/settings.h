#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace tilert::frontend {

struct DynamicDim {  // name=dyn: an extent that is known only at launch
  bool operator==(const DynamicDim&) const = default;
};
struct Candidates {  // name=[64,128]: fixed at specialisation; the first is the default
  std::vector<int64_t> values;
  bool operator==(const Candidates&) const = default;
};
struct TupleSetting {  // name=(4, 8): a tuple; its items as ParseSetting reads them
  std::vector<std::string> items;
  bool operator==(const TupleSetting&) const = default;
};
using Setting = std::variant<int64_t, double, bool, std::string, DynamicDim, Candidates, TupleSetting>;

// By parameter name, or by the name of a module-level constant, of a T.const or of a T.dynamic.
using Settings = std::map<std::string, Setting>;

// Reads the value of `name=value`: an integer, a float, true/false, dyn, [list of integers], a tuple in parentheses, or else a
// string (quotes may be left out). InvalidArgument if a list or tuple is malformed, or a list empty.
absl::StatusOr<Setting> ParseSetting(const std::string& text);
// Reads `name=value` into `settings`. InvalidArgument for a missing name or a name given twice.
absl::Status AddSetting(const std::string& text, Settings* settings);
// The inverse of ParseSetting.
std::string SettingText(const Setting& setting);

}  // namespace tilert::frontend
