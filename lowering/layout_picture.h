// Layouts drawn: which thread and register hold each element of a fragment, which bank each element of a shared tile is in.
// What `tilert layout` shows. Pure functions; the same layout gives the same bytes.
#pragma once

#include <string>

#include "lowering/layout.h"

namespace tilert {

struct PictureOptions {
  std::string title;      // a line above the layout's own description; may be empty
  int64_t max_rows = 64;  // what is beyond is left out, and a note says so
  int64_t max_columns = 64;
};

// A grid of text, one element a cell: "thread:register" for fragments (thread = 32·warp + lane, of replica 0), the bank for
// shared memory, with the conflicts of the usual accesses. Leading dimensions are rows; a vector is wrapped.
std::string LayoutText(const FragmentLayout& layout, const PictureOptions& options = {});
std::string LayoutText(const SharedLayout& layout, const PictureOptions& options = {});

// The same as an SVG document: neighbours of one thread (of one 16-byte chunk) share a box; colours are warps, shades are lanes
// (shared memory: colours are groups of four banks, so a column without two equal colours in eight rows is free of conflicts for
// ldmatrix).
std::string LayoutSvg(const FragmentLayout& layout, const PictureOptions& options = {});
std::string LayoutSvg(const SharedLayout& layout, const PictureOptions& options = {});

}  // namespace tilert
