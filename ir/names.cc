#include "ir/names.h"

#include <algorithm>
#include <iterator>

#include "ir/status_util.h"

namespace tilert {
namespace {

constexpr std::string_view kReserved[] = {"False", "None",  "T",        "True",  "and",    "as",   "assert", "async",  "await",
                                          "break", "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",
                                          "for",   "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal",
                                          "not",   "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsReserved(std::string_view name) { return std::binary_search(std::begin(kReserved), std::end(kReserved), name); }

}  // namespace

bool IsIdentifier(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameLength || !IsLetter(name[0]) || IsReserved(name)) return false;
  return std::all_of(name.begin(), name.end(), [](char c) { return IsLetter(c) || IsDigit(c); });
}

std::string Sanitize(std::string_view name) {
  std::string result(name.substr(0, kMaxNameLength));
  for (char& c : result) {
    if (!IsLetter(c) && !IsDigit(c)) c = '_';
  }
  if (result.empty() || IsDigit(result[0]) || IsReserved(result)) result.insert(0, "_");
  result.resize(std::min(result.size(), kMaxNameLength));
  return result;
}

void NameScopes::Pop() {
  for (const std::string& name : scopes_.back()) taken_.erase(name);
  scopes_.pop_back();
}

const std::string& NameScopes::Declare(NameKind kind, uint32_t id, std::string_view wanted) {
  const std::string base = Sanitize(wanted);
  std::string name = base;
  for (int i = 1; taken_.contains(name); ++i) {
    const std::string suffix = Cat("_", i);
    name = base.substr(0, kMaxNameLength - suffix.size()) + suffix;
  }
  taken_.insert(name);
  scopes_.back().push_back(name);
  return names_[{kind, id}] = std::move(name);
}

const std::string* NameScopes::Find(NameKind kind, uint32_t id) const {
  const auto it = names_.find({kind, id});
  return it == names_.end() ? nullptr : &it->second;
}

}  // namespace tilert
