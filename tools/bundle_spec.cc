#include "tools/bundle_spec.h"

#include <algorithm>
#include <set>

#include "absl/strings/numbers.h"
#include "ir/specialize.h"
#include "ir/status_util.h"
#include "lowering/target.h"

namespace tilert::tool {
namespace {

constexpr std::string_view kSpaces = " \t\r";

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

// The next word of `text`, which loses it.
std::string_view TakeWord(std::string_view* text) {
  *text = Trimmed(*text);
  const size_t end = std::min(text->find_first_of(kSpaces), text->size());
  const std::string_view word = text->substr(0, end);
  text->remove_prefix(end);
  return word;
}

absl::Status ParseLine(std::string_view line, const std::string& folder, SpecEntry* entry) {
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos) return InvalidArgument("expected `name = source.py:entry setting=value …`");
  entry->name = Trimmed(line.substr(0, equals));
  std::string_view rest = line.substr(equals + 1);
  const std::string_view target = TakeWord(&rest);
  const size_t colon = target.rfind(':');
  const bool ok = !entry->name.empty() && entry->name.find_first_of(kSpaces) == std::string::npos &&
                  colon != std::string_view::npos && colon > 0 && colon + 1 < target.size();
  if (!ok) return InvalidArgument("expected `name = source.py:entry setting=value …`");
  entry->source = (target[0] == '/' ? "" : folder) + std::string(target.substr(0, colon));
  entry->entry = target.substr(colon + 1);
  for (std::string_view word = TakeWord(&rest); !word.empty(); word = TakeWord(&rest)) {
    TILERT_RETURN_IF_ERROR(frontend::AddSetting(std::string(word), &entry->settings));
  }
  return absl::OkStatus();
}

// "M<=64", "M>=65", "M==1", "K%64==0"; false when `word` is none of them.
bool ParseGuard(std::string_view word, SpecGuard* out) {
  const size_t at = word.find_first_of("<>=%");
  if (at == 0 || at == std::string_view::npos) return false;
  out->dim = word.substr(0, at);
  const char op = word[at];
  std::string_view rest = word.substr(at + 1);
  constexpr std::string_view kIsZero = "==0";
  if (op == '%') {
    if (rest.size() <= kIsZero.size() || rest.substr(rest.size() - kIsZero.size()) != kIsZero) return false;
    rest.remove_suffix(kIsZero.size());
  } else {
    if (rest.empty() || rest[0] != '=') return false;
    rest.remove_prefix(1);
  }
  int64_t value = 0;
  if (!absl::SimpleAtoi(absl::string_view(rest.data(), rest.size()), &value) || value < 0) return false;
  if (op == '%') out->guard.divisor = value;
  if (op == '<' || op == '=') out->guard.max = value;
  if (op == '>' || op == '=') out->guard.min = value;
  return op != '%' || value > 0;
}

bool IsGuard(std::string_view word) {
  return word.find("<") != word.npos || word.find(">") != word.npos || word.find("==") != word.npos;
}

absl::Status ParseVariantWord(std::string_view word, SpecVariant* variant) {
  if (IsGuard(word)) {
    SpecGuard guard;
    if (!ParseGuard(word, &guard))
      return InvalidArgument("'", word, "' is no condition on a dim; write M<=64, M>=65, M==1 or K%64==0");
    variant->guards.push_back(std::move(guard));
    return absl::OkStatus();
  }
  frontend::Settings one;
  TILERT_RETURN_IF_ERROR(frontend::AddSetting(std::string(word), &one));
  const auto& [name, value] = *one.begin();
  if (name == "target") {
    const std::string* const target = std::get_if<std::string>(&value);
    if (target == nullptr || !variant->target.empty()) return InvalidArgument("'", word, "': one target, such as target=sm_90a");
    TILERT_RETURN_IF_ERROR(FindTarget(*target).status());
    variant->target = *target;
    return absl::OkStatus();
  }
  const int64_t* const number = std::get_if<int64_t>(&value);
  if (number == nullptr) return InvalidArgument("'", word, "': a variant gives whole numbers");
  if (!variant->constants.emplace(name, *number).second) return InvalidArgument(name, " is set twice");
  return absl::OkStatus();
}

absl::Status ParseVariant(std::string_view line, const std::string& place, SpecEntry* entry) {
  SpecVariant variant;
  variant.place = place;
  if (TakeWord(&line) != "variant") return InvalidArgument("an indented line declares a variant: `variant NAME setting=value …`");
  variant.name = TakeWord(&line);
  if (variant.name.empty() || variant.name.find_first_of("=<>%") != std::string::npos)
    return InvalidArgument("the variant has no name: `variant NAME setting=value …`");
  for (const SpecVariant& other : entry->variants) {
    if (other.name == variant.name) return InvalidArgument("'", entry->name, "' has a variant '", variant.name, "' already");
  }
  for (std::string_view word = TakeWord(&line); !word.empty(); word = TakeWord(&line)) {
    TILERT_RETURN_IF_ERROR(ParseVariantWord(word, &variant));
  }
  entry->variants.push_back(std::move(variant));
  return absl::OkStatus();
}

// The candidates of a setting that variants give, as far as the program's line or the function says: its default first.
absl::StatusOr<std::vector<int64_t>> DefaultOf(const std::string& name, const SpecEntry& entry,
                                               const std::vector<frontend::EntryParam>& params) {
  frontend::Setting setting;
  if (const auto it = entry.settings.find(name); it != entry.settings.end()) {
    setting = it->second;
  } else {
    const auto param = std::find_if(params.begin(), params.end(), [&](const auto& p) { return p.name == name && !p.is_tensor; });
    if (param == params.end()) return InvalidArgument(entry.entry, " has no parameter '", name, "'");
    if (param->default_text.empty())
      return InvalidArgument(name, " has no default in ", entry.entry, "; give one in the line of the program");
    TILERT_ASSIGN_OR_RETURN(setting, frontend::ParseSetting(param->default_text));
  }
  if (const auto* number = std::get_if<int64_t>(&setting)) return std::vector<int64_t>{*number};
  if (const auto* list = std::get_if<frontend::Candidates>(&setting)) return list->values;
  return InvalidArgument(name, " is ", frontend::SettingText(setting), " by default: a variant may give whole numbers only");
}

}  // namespace

absl::StatusOr<frontend::Settings> SettingsWithCandidates(const SpecEntry& entry,
                                                          const std::vector<frontend::EntryParam>& params) {
  frontend::Settings settings = entry.settings;
  std::map<std::string, std::vector<int64_t>> candidates;
  for (const SpecVariant& variant : entry.variants) {
    for (const auto& [name, value] : variant.constants) {
      std::vector<int64_t>& values = candidates[name];
      if (values.empty()) {
        absl::StatusOr<std::vector<int64_t>> first = DefaultOf(name, entry, params);
        if (!first.ok()) return InvalidArgument(variant.place, ": ", first.status().message());
        values = *std::move(first);
      }
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    }
  }
  for (auto& [name, values] : candidates) settings[name] = frontend::Candidates{std::move(values)};
  return settings;
}

absl::StatusOr<std::vector<Variant>> MakeVariants(const SpecEntry& entry, const VerifiedProgram& program, uint32_t index) {
  std::vector<Variant> variants;
  for (const SpecVariant& from : entry.variants) {
    Variant variant{from.name, index, from.constants, from.target, {}};
    for (const SpecGuard& spec : from.guards) {
      const auto& dims = (*program).dims;
      const auto it = std::find_if(dims.begin(), dims.end(), [&](const Dim& dim) { return dim.name == spec.dim; });
      if (it == dims.end()) return InvalidArgument(from.place, ": '", entry.name, "' has no dim ", spec.dim);
      variant.guards.push_back(spec.guard);
      variant.guards.back().dim = static_cast<uint32_t>(it - dims.begin());
    }
    if (const auto specialised = Specialize(*program, variant.constants); !specialised.ok())
      return InvalidArgument(from.place, ": variant ", from.name, ": ", specialised.status().message());
    variants.push_back(std::move(variant));
  }
  return variants;
}

absl::StatusOr<std::vector<SpecEntry>> ParseBundleSpec(const std::string& path, const std::string& text) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  std::vector<SpecEntry> entries;
  std::set<std::string> names;
  size_t group = 0;  // the first of the programs that a variant belongs to
  bool after_program = false;
  int number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    const std::string place = Cat(path, ":", ++number);
    line = line.substr(0, line.find('#'));
    const bool is_variant = line.find_first_of(kSpaces) == 0;
    line = Trimmed(line);
    const bool is_program = !line.empty() && !is_variant;
    if (is_program && !after_program) group = entries.size();
    after_program = is_program;
    if (line.empty()) continue;
    absl::Status status;
    if (is_program) {
      SpecEntry& entry = entries.emplace_back();
      entry.place = place;
      status = ParseLine(line, folder, &entry);
      if (status.ok() && !names.insert(entry.name).second) status = InvalidArgument("'", entry.name, "' is listed twice");
    } else if (entries.empty()) {
      status = InvalidArgument("a variant belongs to a program, and there is none above it");
    }
    for (size_t i = group; is_variant && status.ok() && i < entries.size(); ++i) status = ParseVariant(line, place, &entries[i]);
    if (!status.ok()) return InvalidArgument(place, ": ", status.message());
  }
  return entries;
}

}  // namespace tilert::tool
