#include "lowering/layout_picture.h"

#include <algorithm>
#include <set>

#include "lowering/layout_grid.h"

namespace tilert {
namespace {

constexpr int64_t kWrap = 32;  // elements of a vector in one row
constexpr double kGoldenTurn = 0.618033988749895;

// Rows and columns of a tile, and which element stands where.
class Frame {
 public:
  Frame(std::vector<int64_t> extents, const PictureOptions& options) : extents_(std::move(extents)) {
    wrapped_ = extents_.size() == 1;
    const int64_t last = extents_.empty() ? 1 : extents_.back();
    all_columns_ = wrapped_ ? std::min(last, kWrap) : last;
    all_rows_ = wrapped_ ? (last + kWrap - 1) / kWrap : 1;
    for (size_t d = 0; d + 1 < extents_.size(); ++d) all_rows_ *= extents_[d];
    rows_ = std::min(all_rows_, options.max_rows);
    columns_ = std::min(all_columns_, options.max_columns);
  }

  // Calls `cell(coords)` for each element that is shown, and fills in what does not depend on the layout.
  template <typename CellOf>
  void Fill(LayoutGrid* grid, CellOf cell) const {
    if (rows_ < all_rows_ || columns_ < all_columns_) {
      grid->notes.push_back("shown: " + std::to_string(rows_) + " of " + std::to_string(all_rows_) + " rows, " +
                            std::to_string(columns_) + " of " + std::to_string(all_columns_) + " columns");
    }
    grid->columns = columns_;
    for (int64_t row = 0; row < rows_; ++row) {
      std::vector<int64_t> coords = Leading(row);
      std::string label;
      for (size_t d = 0; d + 1 < extents_.size(); ++d) label += (d > 0 ? "," : "") + std::to_string(coords[d]);
      grid->row_labels.push_back(wrapped_ ? std::to_string(row * kWrap) : label);
      for (int64_t column = 0; column < columns_; ++column) {
        const int64_t last = wrapped_ ? row * kWrap + column : column;
        if (!coords.empty()) coords.back() = last;
        const bool outside = !extents_.empty() && last >= extents_.back();
        grid->cells.push_back(outside ? LayoutGrid::Cell{-1, -1, {255, 255, 255}} : cell(coords));
      }
    }
  }

 private:
  std::vector<int64_t> Leading(int64_t row) const {
    std::vector<int64_t> coords(extents_.size(), 0);
    for (size_t d = extents_.size(); d-- > 1 && !wrapped_;) {
      coords[d - 1] = row % extents_[d - 1];
      row /= extents_[d - 1];
    }
    return coords;
  }

  std::vector<int64_t> extents_;
  bool wrapped_ = false;
  int64_t all_rows_ = 0, all_columns_ = 0, rows_ = 0, columns_ = 0;
};

Color WarpColor(int warp, double shade) {
  const double hue = 0.58 + warp * kGoldenTurn;
  return FromHsl(hue - static_cast<int64_t>(hue), 0.62, 0.90 - 0.30 * shade);
}

LayoutGrid FragmentGrid(const FragmentLayout& layout, const PictureOptions& options) {
  LayoutGrid grid;
  if (!options.title.empty()) grid.notes.push_back(options.title);
  grid.notes.push_back(ToString(Canonical(layout)));
  int64_t replicas = 1;
  for (const Factor& f : layout.Replicas()) replicas *= f.size;
  grid.notes.push_back(
      "registers a thread: " + std::to_string(layout.regs()) + "; thread = 32*warp + lane" +
      (replicas > 1 ? "; each element is held by " + std::to_string(replicas) + " threads, the first is shown" : ""));
  grid.show_group = true;
  grid.group_prefix = "t";
  grid.number_prefix = " r";
  const std::vector<int64_t> extents = ExtentsOf(layout);
  std::set<int> warps;
  Frame(extents, options).Fill(&grid, [&](const std::vector<int64_t>& coords) {
    const Place p = layout.Locate(coords);
    warps.insert(p.warp);
    return LayoutGrid::Cell{int64_t{p.warp} * kLanes + p.lane, p.reg, WarpColor(p.warp, p.lane / double{kLanes - 1})};
  });
  for (int warp : warps) grid.legend.push_back({WarpColor(warp, 0.4), "warp " + std::to_string(warp)});
  return grid;
}

Color BankColor(int64_t bank) { return FromHsl(static_cast<double>(bank / 4) / 8, 0.60, 0.80); }

// Conflicts of what kernels usually do with a tile of rows: "8 rows x 16 bytes (ldmatrix): free of conflicts".
std::string BankUse(const SharedLayout& layout) {
  const int64_t per_chunk = std::max<int64_t>(16 / layout.element_bytes, 1);
  if (layout.extents.size() < 2 || layout.extents.back() % per_chunk != 0 || layout.rows() < 8) return "";
  const auto at = [&](int64_t row, int64_t column) {
    std::vector<int64_t> coords(layout.extents.size(), 0);
    coords.back() = column;
    for (size_t d = coords.size() - 1; d-- > 0; row /= layout.extents[d]) coords[d] = row % layout.extents[d];
    return layout.ByteOffset(coords);
  };
  const int64_t chunks = layout.extents.back() / per_chunk;
  std::vector<int64_t> column, along;
  for (int64_t row = 0; row < 8; ++row) column.push_back(at(row, 0));
  for (int64_t i = 0; i < std::min<int64_t>(kLanes, chunks * layout.rows()); ++i)
    along.push_back(at(i / chunks, i % chunks * per_chunk));
  const auto say = [](int ways) {
    return ways == 1 ? std::string("free of conflicts") : std::to_string(ways) + "-way conflicts";
  };
  return "8 rows x 16 bytes (ldmatrix): " + say(BankConflictWays(column, 16)) +
         "; a warp along the rows, 16 bytes a lane: " + say(BankConflictWays(along, 16));
}

LayoutGrid SharedGrid(const SharedLayout& layout, const PictureOptions& options) {
  LayoutGrid grid;
  if (!options.title.empty()) grid.notes.push_back(options.title);
  grid.notes.push_back(ToString(layout));
  grid.notes.push_back(std::to_string(layout.bytes()) + " bytes; numbers are banks");
  if (const std::string use = BankUse(layout); !use.empty()) grid.notes.push_back(use);
  Frame(layout.extents, options).Fill(&grid, [&](const std::vector<int64_t>& coords) {
    const int64_t offset = layout.ByteOffset(coords), bank = offset / 4 % 32;
    return LayoutGrid::Cell{offset / 16, bank, BankColor(bank)};
  });
  for (int64_t bank = 0; bank < 32; bank += 4)
    grid.legend.push_back({BankColor(bank), std::to_string(bank) + "-" + std::to_string(bank + 3)});
  return grid;
}

}  // namespace

std::string LayoutText(const FragmentLayout& layout, const PictureOptions& options) {
  return GridText(FragmentGrid(layout, options));
}
std::string LayoutText(const SharedLayout& layout, const PictureOptions& options) {
  return GridText(SharedGrid(layout, options));
}
std::string LayoutSvg(const FragmentLayout& layout, const PictureOptions& options) {
  return GridSvg(FragmentGrid(layout, options));
}
std::string LayoutSvg(const SharedLayout& layout, const PictureOptions& options) { return GridSvg(SharedGrid(layout, options)); }

}  // namespace tilert
