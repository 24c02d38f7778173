// A bundle file that a host has opened.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ir/bundle.h"

namespace tilert {

// Immutable after opening, thread safe.
class OpenedBundle {
 public:
  // `bytes` may lie at any alignment inside a larger mapping. With `copy` they need not outlive the call; without, they
  // must stay as long as the bundle and its kernels. Errors: ReadBundle's.
  static absl::StatusOr<std::shared_ptr<const OpenedBundle>> FromMemory(std::string_view bytes, bool copy);
  // NotFound, PermissionDenied, … with the path; then as FromMemory.
  static absl::StatusOr<std::shared_ptr<const OpenedBundle>> FromFile(const std::string& path);

  const Bundle& bundle() const { return bundle_; }
  // NotFound lists what the bundle has.
  absl::StatusOr<const Program*> Entry(std::string_view name) const;

 private:
  std::string owned_;  // what bundle_ points into, when copied
  Bundle bundle_;
};

}  // namespace tilert
