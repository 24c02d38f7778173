// Inside of layout_picture: what both layouts have in common when they are drawn.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilert {

struct Color {
  int red = 0, green = 0, blue = 0;
};
// `hue` in turns, the others from 0 to 1.
Color FromHsl(double hue, double saturation, double lightness);

struct LayoutGrid {
  struct Cell {
    int64_t group = 0;   // neighbours of one group share a box
    int64_t number = 0;  // of the element within its group
    Color color;
  };
  struct Swatch {
    Color color;
    std::string label;
  };
  std::vector<std::string> notes;  // lines above the grid
  std::vector<std::string> row_labels;
  int64_t columns = 0;
  std::vector<Cell> cells;  // row by row
  std::vector<Swatch> legend;
  bool show_group = false;                  // labels are "group:number", else "number"
  std::string group_prefix, number_prefix;  // in boxes: "t5 r0-1"

  const Cell& at(int64_t row, int64_t column) const { return cells[static_cast<size_t>(row * columns + column)]; }
  int64_t rows() const { return static_cast<int64_t>(row_labels.size()); }
};

std::string GridText(const LayoutGrid& grid);
std::string GridSvg(const LayoutGrid& grid);

}  // namespace tilert
