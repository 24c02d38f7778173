#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "frontend/value.h"

namespace tilert::frontend {

// Names and their values in a function call or a comprehension. Lookup goes on in the parent, then in the module.
//
// While a block that runs at launch (a loop, an `if`) is open, a journal remembers what its assignments replaced: the other
// branch must see the old values, and code after the block none at all.
class NameScope {
 public:
  explicit NameScope(NameScope* parent) : parent_(parent) {}

  NameScope* parent() const { return parent_; }
  // The value here or further out; null if the name must be sought in the module.
  const Value* Find(const std::string& name) const;
  const Value* FindHere(const std::string& name) const;
  // Assigns here, or further out if the name was declared nonlocal.
  void Set(const std::string& name, Value value);
  void Erase(const std::string& name) { names_.erase(name); }
  void DeclareNonlocal(const std::string& name) { nonlocal_.push_back(name); }

  using Journal = std::vector<std::pair<std::string, std::optional<Value>>>;
  void OpenJournal() { journals_.emplace_back(); }
  // Takes back every assignment since OpenJournal and returns the names that were assigned.
  std::vector<std::string> RollBack();

 private:
  NameScope* parent_;
  absl::flat_hash_map<std::string, Value> names_;
  std::vector<std::string> nonlocal_;
  std::vector<Journal> journals_;
};

}  // namespace tilert::frontend
