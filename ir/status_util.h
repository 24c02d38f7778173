// The one place where std::string_view meets abseil's (Debian builds abseil with its own string_view type).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tilert {

inline absl::string_view ToAbsl(std::string_view s) { return absl::string_view(s.data(), s.size()); }
inline std::string_view ToStd(absl::string_view s) { return std::string_view(s.data(), s.size()); }

namespace status_internal {
template <typename T>
decltype(auto) Piece(const T& value) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    return ToAbsl(value);
  } else {
    return (value);
  }
}
}  // namespace status_internal

// absl::StrCat that also takes std::string_view.
template <typename... Parts>
std::string Cat(const Parts&... parts) {
  return absl::StrCat(status_internal::Piece(parts)...);
}

template <typename... Parts>
absl::Status InvalidArgument(const Parts&... parts) {
  return absl::InvalidArgumentError(Cat(parts...));
}
template <typename... Parts>
absl::Status Internal(const Parts&... parts) {
  return absl::InternalError(Cat(parts...));
}

}  // namespace tilert

// Returns from the enclosing function when `expr` (absl::Status) is an error.
#define TILERT_RETURN_IF_ERROR(expr)                       \
  do {                                                     \
    if (absl::Status tilert_status_ = (expr); !tilert_status_.ok()) return tilert_status_; \
  } while (false)

// `lhs` = value of `expr` (absl::StatusOr), or returns its error.
#define TILERT_STATUS_CAT2(a, b) a##b
#define TILERT_STATUS_CAT(a, b) TILERT_STATUS_CAT2(a, b)
#define TILERT_ASSIGN_OR_RETURN(lhs, expr) TILERT_ASSIGN_IMPL(TILERT_STATUS_CAT(tilert_or_, __LINE__), lhs, expr)
#define TILERT_ASSIGN_IMPL(tmp, lhs, expr)  \
  auto tmp = (expr);                        \
  if (!tmp.ok()) return std::move(tmp).status(); \
  lhs = *std::move(tmp)
