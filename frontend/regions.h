#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "frontend/context.h"

// Extents of region operands.
namespace tilert::frontend {

// The extent of one dimension if it is a number; a single subscript counts 1.
std::optional<int64_t> KnownExtent(Context& context, const BufferRegion& region, size_t dim);
// "(128, N)", for messages.
std::string ShapeText(Context& context, const BufferRegion& region);
// start + offset, without a needless + 0.
Val Shifted(Context& context, Val start, Val offset);
// Gives an operand that is written as a start alone (A[i, j]) the extents of the other one, aligned at the last dimension.
// Reports, and returns false, if extents that are known differ.
bool MatchExtents(Context& context, BufferRegion* a, BufferRegion* b, SourceRange range, std::string_view what);

}  // namespace tilert::frontend
