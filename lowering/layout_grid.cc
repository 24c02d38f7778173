#include "lowering/layout_grid.h"

#include <algorithm>
#include <cmath>

namespace tilert {
namespace {

std::string N(int64_t value) { return std::to_string(value); }

std::string Hex(Color c) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "#";
  for (int part : {c.red, c.green, c.blue}) {
    text += kDigits[part / 16];
    text += kDigits[part % 16];
  }
  return text;
}

std::string Escape(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return result;
}

std::string PadLeft(const std::string& text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string CellText(const LayoutGrid& grid, const LayoutGrid::Cell& cell) {
  if (cell.group < 0) return "";
  return grid.show_group ? N(cell.group) + ":" + N(cell.number) : N(cell.number);
}

// A box of the picture: cells of one row that belong together.
struct Box {
  int64_t row, begin, end;
  std::string label;
};

std::vector<Box> Boxes(const LayoutGrid& grid) {
  std::vector<Box> boxes;
  for (int64_t row = 0; row < grid.rows(); ++row) {
    for (int64_t begin = 0, end = 0; begin < grid.columns; begin = end) {
      const LayoutGrid::Cell& first = grid.at(row, begin);
      end = begin + 1;
      // Only runs of equal or ascending numbers: a label "r0-3" must be true.
      while (end < grid.columns && grid.at(row, end).group == first.group &&
             grid.at(row, end).number - grid.at(row, end - 1).number <= 1 &&
             grid.at(row, end).number >= grid.at(row, end - 1).number) {
        ++end;
      }
      if (first.group < 0) continue;
      const int64_t last = grid.at(row, end - 1).number;
      std::string label = grid.show_group ? grid.group_prefix + N(first.group) + grid.number_prefix : "";
      label += N(first.number) + (last != first.number ? "-" + N(last) : "");
      boxes.push_back({row, begin, end, std::move(label)});
    }
  }
  return boxes;
}

constexpr int64_t kHeight = 22, kMargin = 16, kGutter = 44, kNoteHeight = 18;
constexpr double kCharWidth = 6.2;

class SvgWriter {
 public:
  explicit SvgWriter(const LayoutGrid& grid) : grid_(grid), boxes_(Boxes(grid)) {
    double unit = 12;
    for (const Box& box : boxes_) {
      unit = std::max(unit, (static_cast<double>(box.label.size()) * kCharWidth + 8) / static_cast<double>(box.end - box.begin));
    }
    unit_ = static_cast<int64_t>(std::ceil(unit));
    size_t label = 0;
    for (const std::string& text : grid.row_labels) label = std::max(label, text.size());
    left_ = kMargin + std::max<int64_t>(kGutter, static_cast<int64_t>(static_cast<double>(label) * kCharWidth) + 14);
    top_ = kMargin + static_cast<int64_t>(grid.notes.size()) * kNoteHeight + 30;
  }

  std::string Run() {
    size_t widest = 0;
    for (const std::string& note : grid_.notes) widest = std::max(widest, note.size());
    const int64_t legend_width = static_cast<int64_t>(grid_.legend.size()) * kSwatch;
    const int64_t width = std::max({left_ + grid_.columns * unit_,
                                    kMargin + static_cast<int64_t>(static_cast<double>(widest) * 7.4), left_ + legend_width}) +
                          kMargin;
    const int64_t bottom = top_ + grid_.rows() * kHeight, height = bottom + (grid_.legend.empty() ? 0 : 36) + kMargin;
    text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + N(width) + "\" height=\"" + N(height) + "\" viewBox=\"0 0 " +
            N(width) + " " + N(height) +
            "\" font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"10\">\n<rect width=\"100%\" "
            "height=\"100%\" fill=\"#ffffff\"/>\n";
    for (size_t i = 0; i < grid_.notes.size(); ++i) {
      Text(kMargin, kMargin + 12 + static_cast<int64_t>(i) * kNoteHeight, grid_.notes[i],
           i == 0 ? "font-size=\"13\" font-weight=\"bold\" fill=\"#1f2933\"" : "font-size=\"12\" fill=\"#52606d\"");
    }
    Labels();
    for (const Box& box : boxes_) Draw(box);
    Legend(bottom + 16);
    return std::move(text_) + "</svg>\n";
  }

 private:
  static constexpr int64_t kSwatch = 74;

  void Text(int64_t x, int64_t y, const std::string& text, const std::string& attributes) {
    text_ += "<text x=\"" + N(x) + "\" y=\"" + N(y) + "\" " + attributes + ">" + Escape(text) + "</text>\n";
  }

  void Labels() {
    // As many column numbers as fit.
    int64_t step = 1;
    while (static_cast<double>(step * unit_) < 26) step *= 2;
    for (int64_t c = 0; c < grid_.columns; c += step) {
      Text(left_ + c * unit_ + (step == 1 ? unit_ / 2 : 3), top_ - 7, N(c),
           step == 1 ? "fill=\"#7b8794\" text-anchor=\"middle\"" : "fill=\"#7b8794\"");
    }
    for (int64_t r = 0; r < grid_.rows(); ++r) {
      Text(left_ - 7, top_ + r * kHeight + 15, grid_.row_labels[static_cast<size_t>(r)], "fill=\"#7b8794\" text-anchor=\"end\"");
    }
  }

  void Draw(const Box& box) {
    const int64_t x = left_ + box.begin * unit_, y = top_ + box.row * kHeight, width = (box.end - box.begin) * unit_;
    text_ += "<rect x=\"" + N(x) + "\" y=\"" + N(y) + "\" width=\"" + N(width) + "\" height=\"" + N(kHeight) + "\" fill=\"" +
             Hex(grid_.at(box.row, box.begin).color) + "\" stroke=\"#ffffff\"/>\n";
    Text(x + width / 2, y + 15, box.label, "fill=\"#1f2933\" text-anchor=\"middle\"");
  }

  void Legend(int64_t y) {
    for (size_t i = 0; i < grid_.legend.size(); ++i) {
      const int64_t x = left_ + static_cast<int64_t>(i) * kSwatch;
      text_ += "<rect x=\"" + N(x) + "\" y=\"" + N(y) + "\" width=\"14\" height=\"14\" rx=\"2\" fill=\"" +
               Hex(grid_.legend[i].color) + "\"/>\n";
      Text(x + 20, y + 11, grid_.legend[i].label, "fill=\"#52606d\"");
    }
  }

  const LayoutGrid& grid_;
  std::vector<Box> boxes_;
  int64_t unit_ = 0, left_ = 0, top_ = 0;
  std::string text_;
};

}  // namespace

Color FromHsl(double hue, double saturation, double lightness) {
  const double chroma = (1 - std::abs(2 * lightness - 1)) * saturation;
  const auto channel = [&](double shift) {
    const double k = std::fmod(shift + hue * 12, 12);
    const double value = lightness - chroma / 2 * std::max(-1.0, std::min({k - 3, 9 - k, 1.0}));
    return static_cast<int>(std::lround(std::clamp(value, 0.0, 1.0) * 255));
  };
  return {channel(0), channel(8), channel(4)};
}

std::string GridText(const LayoutGrid& grid) {
  std::string text;
  for (const std::string& note : grid.notes) text += note + "\n";
  size_t label = 1, cell = N(grid.columns).size();
  for (const std::string& row : grid.row_labels) label = std::max(label, row.size());
  for (const LayoutGrid::Cell& c : grid.cells) cell = std::max(cell, CellText(grid, c).size());
  std::string line = PadLeft("", label);
  for (int64_t c = 0; c < grid.columns; ++c) line += " " + PadLeft(N(c), cell);
  text += line + "\n";
  for (int64_t r = 0; r < grid.rows(); ++r) {
    line = PadLeft(grid.row_labels[static_cast<size_t>(r)], label);
    for (int64_t c = 0; c < grid.columns; ++c) line += " " + PadLeft(CellText(grid, grid.at(r, c)), cell);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string GridSvg(const LayoutGrid& grid) { return SvgWriter(grid).Run(); }

}  // namespace tilert
