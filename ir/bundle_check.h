// Consistency of a Bundle beyond its programs; what the writer refuses to write and the reader to read.
#pragma once

#include "absl/status/status.h"
#include "ir/bundle.h"

namespace tilert {

// InvalidArgument naming the first table entry that is wrong. Programs: their structure, unique names; variants, tuning records:
// existing programs, constants, candidates, dims; cubins: sane launch records.
absl::Status CheckBundle(const Bundle& bundle);

}  // namespace tilert
