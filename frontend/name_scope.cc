#include "frontend/name_scope.h"

#include <algorithm>

namespace tilert::frontend {

const Value* NameScope::Find(const std::string& name) const {
  for (const NameScope* scope = this; scope != nullptr; scope = scope->parent_) {
    if (const Value* value = scope->FindHere(name)) return value;
  }
  return nullptr;
}

const Value* NameScope::FindHere(const std::string& name) const {
  const auto it = names_.find(name);
  return it == names_.end() ? nullptr : &it->second;
}

void NameScope::Set(const std::string& name, Value value) {
  if (parent_ != nullptr && std::find(nonlocal_.begin(), nonlocal_.end(), name) != nonlocal_.end()) {
    NameScope* owner = parent_;
    while (owner->parent_ != nullptr && owner->FindHere(name) == nullptr) owner = owner->parent_;
    return owner->Set(name, std::move(value));
  }
  if (!journals_.empty()) {
    const Value* old = FindHere(name);
    journals_.back().emplace_back(name, old ? std::optional<Value>(*old) : std::nullopt);
  }
  names_[name] = std::move(value);
}

std::vector<std::string> NameScope::RollBack() {
  Journal journal = std::move(journals_.back());
  journals_.pop_back();
  std::vector<std::string> assigned;
  for (auto entry = journal.rbegin(); entry != journal.rend(); ++entry) {
    if (entry->second) {
      names_[entry->first] = std::move(*entry->second);
    } else {
      names_.erase(entry->first);
    }
    assigned.push_back(entry->first);
  }
  std::sort(assigned.begin(), assigned.end());
  assigned.erase(std::unique(assigned.begin(), assigned.end()), assigned.end());
  return assigned;
}

}  // namespace tilert::frontend
