#include "frontend/settings.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ir/stmt.h"

namespace tilert::frontend {
namespace {

absl::StatusOr<Setting> ParseList(const std::string& text) {
  if (text.back() != ']') return absl::InvalidArgumentError(absl::StrCat("'", text, "' does not end in ']'; write [64,128]"));
  Candidates list;
  for (absl::string_view item : absl::StrSplit(text.substr(1, text.size() - 2), ',')) {
    int64_t value = 0;
    if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(item), &value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", item, "' in '", text, "' is not an integer; candidates are written [64,128]"));
    }
    list.values.push_back(value);
  }
  return Setting(std::move(list));
}

// (a, b, c): items between commas that stand in no inner parentheses; a comma may follow the last.
absl::StatusOr<Setting> ParseTuple(const std::string& text) {
  TupleSetting tuple;
  std::string item;
  int depth = 0;
  for (size_t i = 1; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    const bool ends = depth < 0;
    if (ends && i + 1 != text.size()) break;
    if (!ends && (depth > 0 || text[i] != ',')) {
      item += text[i];
      continue;
    }
    if (!ends || !absl::StripAsciiWhitespace(item).empty()) {
      if (absl::StatusOr<Setting> value = ParseSetting(item); !value.ok()) return value.status();
      tuple.items.emplace_back(absl::StripAsciiWhitespace(item));
    }
    item.clear();
    if (ends) return Setting(std::move(tuple));
  }
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no tuple; write (64, 128)"));
}

bool LooksNumeric(const std::string& text) {
  return text.find_first_not_of("+-.0123456789eE") == std::string::npos && text.find_first_of("0123456789") != std::string::npos;
}

}  // namespace

absl::StatusOr<Setting> ParseSetting(const std::string& raw) {
  const std::string text(absl::StripAsciiWhitespace(raw));
  if (text.empty()) return absl::InvalidArgumentError("the value is empty; write name=128, name=dyn or name=[64,128]");
  if (text[0] == '[') return ParseList(text);
  if (text[0] == '(') return ParseTuple(text);
  if (text == "dyn") return Setting(DynamicDim{});
  if (text == "true" || text == "True") return Setting(true);
  if (text == "false" || text == "False") return Setting(false);
  int64_t integer = 0;
  if (absl::SimpleAtoi(text, &integer)) return Setting(integer);
  const bool has_sign = text[0] == '-' || text[0] == '+';
  if (text.size() > has_sign && text.find_first_not_of("0123456789", has_sign) == std::string::npos)
    return absl::InvalidArgumentError(absl::StrCat(text, " does not fit 64 bits"));
  double number = 0;
  if (LooksNumeric(text) && absl::SimpleAtod(text, &number)) return Setting(number);
  const bool quoted = text.size() >= 2 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0];
  return Setting(quoted ? text.substr(1, text.size() - 2) : text);
}

absl::Status AddSetting(const std::string& text, Settings* settings) {
  const size_t equals = text.find('=');
  const std::string name(absl::StripAsciiWhitespace(text.substr(0, equals)));
  if (equals == std::string::npos || name.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no setting; write name=128, name=dyn or name=[64,128]"));
  }
  absl::StatusOr<Setting> value = ParseSetting(text.substr(equals + 1));
  if (!value.ok()) return absl::InvalidArgumentError(absl::StrCat(name, ": ", value.status().message()));
  if (!settings->emplace(name, *std::move(value)).second) return absl::InvalidArgumentError(absl::StrCat(name, " is set twice"));
  return absl::OkStatus();
}

std::string SettingText(const Setting& setting) {
  return std::visit(Overloaded{
                        [](int64_t value) { return absl::StrCat(value); },
                        [](double value) {
                          std::string text = absl::StrCat(value);
                          return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
                        },
                        [](bool value) -> std::string { return value ? "true" : "false"; },
                        [](const std::string& value) { return value; },
                        [](DynamicDim) -> std::string { return "dyn"; },
                        [](const Candidates& list) { return absl::StrCat("[", absl::StrJoin(list.values, ","), "]"); },
                        [](const TupleSetting& tuple) { return absl::StrCat("(", absl::StrJoin(tuple.items, ", "), ")"); },
                    },
                    setting);
}

}  // namespace tilert::frontend
