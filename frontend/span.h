#pragma once

#include "ir/builder.h"

namespace tilert::frontend {

// upper − lower, simplified: the extent of the slice lower:upper. Both are expanded to sums of products, so that
// (k + 1)·b − k·b is b whatever b is. Falls back on a plain subtraction where the expansion gets long.
Val SpanOf(ProgramBuilder& builder, Val lower, Val upper);

}  // namespace tilert::frontend
