#include "tools/bundle_spec.h"

#include <set>

#include "ir/status_util.h"

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

}  // namespace

absl::StatusOr<std::vector<SpecEntry>> ParseBundleSpec(const std::string& path, const std::string& text) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  std::vector<SpecEntry> entries;
  std::set<std::string> names;
  int number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    line = Trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    SpecEntry entry;
    entry.line = number;
    absl::Status status = ParseLine(line, folder, &entry);
    if (status.ok() && !names.insert(entry.name).second) status = InvalidArgument("'", entry.name, "' is listed twice");
    if (!status.ok()) return InvalidArgument(path, ":", number, ": ", status.message());
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace tilert::tool
