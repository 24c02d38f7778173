// Bytes → Bundle (docs/bundle_format.md). The input is untrusted: any bytes give a Bundle or an error, within time and memory
// proportional to the size of the input.
//
// Checks structure: sizes, offsets, enum values, ids, nesting, depth. Every id of a Program that was read is in range and every
// operand of an expression is an earlier one; meaning is Verify's business (ir/verifier.h).
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "ir/bundle.h"

namespace tilert {

struct ReadOptions {
  // Off, a bundle whose content hash is wrong is read all the same (fuzzing, rescue). Nothing else relies on the hash.
  bool check_hash = true;
};

// `bytes`: a whole bundle at any alignment; may be part of a mapped file. PrebuiltCubin::code points into it and so needs it to
// stay; all else is copied. InvalidArgument names the table and index; versions and features beyond this library: Unimplemented.
absl::StatusOr<Bundle> ReadBundle(std::string_view bytes, const ReadOptions& options = {});

}  // namespace tilert
