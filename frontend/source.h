#pragma once

#include <cstdint>
#include <optional>
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

// One of the texts that make up a source.
struct SourcePart {
  std::string name;    // of its file
  std::string module;  // what imports call it
  std::string text;
};

// A named source text with a line table, or several one after the other, which have names and line numbers of their own.
// Immutable after construction; offsets into it stay valid for its life.
class SourceFile {
 public:
  SourceFile(std::string name, std::string text);
  // REQUIRES: at least one part; the last is the one that the source is called after.
  explicit SourceFile(const std::vector<SourcePart>& parts);

  const std::string& name() const { return parts_.back().name; }
  const std::string& NameAt(uint32_t offset) const { return parts_[PartOf(offset)].name; }
  size_t parts() const { return parts_.size(); }
  size_t PartOf(uint32_t offset) const;
  const std::string& ModuleOf(size_t part) const { return parts_[part].module; }
  std::string_view text() const { return text_; }
  std::string_view Text(SourceRange range) const;
  Position PositionOf(uint32_t offset) const;
  // The offset of a position in the part of this name; nothing if it has no such line.
  std::optional<uint32_t> OffsetOf(std::string_view name, Position position) const;
  // The line that holds `offset`, without its line break.
  std::string_view LineAt(uint32_t offset) const;
  uint32_t LineStart(uint32_t offset) const;

 private:
  struct Part {
    std::string name, module;
    uint32_t begin = 0;
    int first_line = 0;  // lines in front of it
  };
  void FindLines();

  std::vector<Part> parts_;
  std::string text_;
  std::vector<uint32_t> line_starts_;
};

}  // namespace tilert::frontend
