#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tilert::frontend {

// A half-open range of byte offsets into one source text.
struct SourceRange {
  uint32_t begin = 0;
  uint32_t end = 0;

  bool operator==(const SourceRange&) const = default;
};

// The smallest range that covers both.
SourceRange Join(SourceRange a, SourceRange b);

// One-based line and column. Columns count code points, as editors do.
struct Position {
  int line = 1;
  int column = 1;
};

// A named source text with a line table. Immutable after construction; offsets into it stay valid for its life.
class SourceFile {
 public:
  SourceFile(std::string name, std::string text);

  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }
  std::string_view Text(SourceRange range) const;
  Position PositionOf(uint32_t offset) const;
  // The line that holds `offset`, without its line break.
  std::string_view LineAt(uint32_t offset) const;
  uint32_t LineStart(uint32_t offset) const;

 private:
  std::string name_;
  std::string text_;
  std::vector<uint32_t> line_starts_;
};

}  // namespace tilert::frontend
