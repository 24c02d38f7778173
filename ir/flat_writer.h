// Bundle → bytes (docs/bundle_format.md). Equal bundles give equal bytes, whatever made them.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "ir/bundle.h"

namespace tilert {

// The bytes of a *.tilert file. Cubin hashes are computed here. InvalidArgument when the bundle exceeds what a reader accepts
// (ir/limits.h) or refers to what it does not hold. Programs need not be verified.
absl::StatusOr<std::string> WriteBundle(const Bundle& bundle);

}  // namespace tilert
