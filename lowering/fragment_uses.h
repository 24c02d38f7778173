// How an element loop touches fragments, and which layouts of loop and fragment go together.
#pragma once

#include <optional>
#include <vector>

#include "lowering/tile_state.h"

namespace tilert {

// One fragment that a Parallel loop reads or writes.
struct FragmentUse {
  BufferId buffer = kNoId;
  bool read = false;
  bool write = false;
  // Every subscript of every access is an immediate, a loop variable of its own (the same one everywhere), or several that are its digits: i·N + j with j < N.
  bool plain = true;
  std::vector<std::vector<int>> follows;  // plain: one a fragment dim, the loop dims it follows, the fastest first; none: immediate
};
std::vector<FragmentUse> FragmentUses(const TileState& state, const Parallel& loop);

// The part of `layout` that moves with the loop: its dims in loop order (loop dims that the fragment lacks are dropped), each with the loop's
// extent. None when a dim that does not follow the loop is spread over threads, or the loop runs beyond the fragment.
std::optional<FragmentLayout> FollowedLayout(const FragmentLayout& layout, const FragmentUse& use, const std::vector<int64_t>& loop_extents);

// The loop dims that `use` follows, ascending: those of FollowedLayout.
std::vector<int> FollowedDims(const FragmentUse& use);

// True when a loop in layout `loop` may access a fragment in `layout` directly, each thread its own registers.
bool DirectUse(const FragmentLayout& layout, const FragmentUse& use, const FragmentLayout& loop);

// The layout that `use` would want of a fragment of `shape` under a loop in layout `loop`; none when it can't be told (partial or not plain).
std::optional<FragmentLayout> WantedLayout(const FragmentUse& use, const std::vector<int64_t>& shape, const FragmentLayout& loop);

// The layout for `loop`: of the fragment it uses in full rank that lets most elements be accessed directly (fragments it writes first);
// none when no such fragment has a layout yet.
std::optional<FragmentLayout> LoopLayout(const TileState& state, const Parallel& loop);

// Extents other than 1, and which dims they are.
std::vector<int> MovingDims(const std::vector<int64_t>& extents);

}  // namespace tilert
