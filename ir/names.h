// Identifiers for the things of a Program: kept where possible, sanitised and made unique among those visible at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace tilert {

// True for [A-Za-z_][A-Za-z0-9_]* of at most kMaxNameLength characters that is no Python keyword and not "T".
bool IsIdentifier(std::string_view name);
inline constexpr size_t kMaxNameLength = 64;

// The nearest identifier: other characters become _, reserved words and leading digits get one in front.
std::string Sanitize(std::string_view name);

enum class NameKind : uint8_t { kDim, kConstant, kScalar, kBuffer, kVar };

// Nested scopes of names. A name is free again when the scope that declared it ends.
class NameScopes {
 public:
  NameScopes() { Push(); }
  void Push() { scopes_.emplace_back(); }
  void Pop();
  // Gives `wanted`, or the nearest free identifier, to (kind, id) and returns it.
  const std::string& Declare(NameKind kind, uint32_t id, std::string_view wanted);
  // The name last declared for (kind, id); nullptr when there is none.
  const std::string* Find(NameKind kind, uint32_t id) const;

 private:
  std::vector<std::vector<std::string>> scopes_;
  absl::flat_hash_set<std::string> taken_;
  absl::flat_hash_map<std::pair<NameKind, uint32_t>, std::string> names_;
};

}  // namespace tilert
