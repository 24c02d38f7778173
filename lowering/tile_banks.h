// Bank conflicts that element loops would have.
#pragma once

#include "absl/types/span.h"
#include "lowering/tile_state.h"

namespace tilert {

// True when the element loops that access `buffer` have fewer bank conflicts with `layout` folded (lowering/layout.h) than as it is. Counted over
// one warp's first accesses; accesses at indices that are no affine functions of the loop, and loops without a layout, do not count.
bool FoldingPays(const TileState& state, absl::Span<const Parallel* const> loops, BufferId buffer, const SharedLayout& layout);

}  // namespace tilert
