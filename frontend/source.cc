#include "frontend/source.h"

#include <algorithm>
#include <utility>

namespace tilert::frontend {

SourceRange Join(SourceRange a, SourceRange b) { return {std::min(a.begin, b.begin), std::max(a.end, b.end)}; }

SourceFile::SourceFile(std::string name, std::string text) : text_(std::move(text)) {
  parts_.push_back({std::move(name), ""});
  FindLines();
}

SourceFile::SourceFile(const std::vector<SourcePart>& parts) {
  for (const SourcePart& part : parts) {
    if (!text_.empty()) text_ += '\n';
    parts_.push_back({part.name, part.module, static_cast<uint32_t>(text_.size())});
    text_ += part.text;
  }
  FindLines();
  for (Part& part : parts_) {
    const auto line = std::upper_bound(line_starts_.begin(), line_starts_.end(), part.begin);
    part.first_line = static_cast<int>(line - line_starts_.begin()) - 1;
  }
}

size_t SourceFile::PartOf(uint32_t offset) const {
  size_t part = parts_.size() - 1;
  while (part > 0 && parts_[part].begin > offset) --part;
  return part;
}

void SourceFile::FindLines() {
  line_starts_.push_back(0);
  for (uint32_t i = 0; i < text_.size(); ++i) {
    const bool lone_cr = text_[i] == '\r' && (i + 1 == text_.size() || text_[i + 1] != '\n');
    if (text_[i] == '\n' || lone_cr) line_starts_.push_back(i + 1);
  }
}

std::string_view SourceFile::Text(SourceRange range) const {
  return std::string_view(text_).substr(range.begin, range.end - range.begin);
}

uint32_t SourceFile::LineStart(uint32_t offset) const {
  return *std::prev(std::upper_bound(line_starts_.begin(), line_starts_.end(), offset));
}

Position SourceFile::PositionOf(uint32_t offset) const {
  offset = std::min<uint32_t>(offset, static_cast<uint32_t>(text_.size()));
  const auto line = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  int column = 1;
  for (uint32_t i = *std::prev(line); i < offset; ++i) {
    // Continuation bytes of UTF-8 do not start a column.
    if ((static_cast<unsigned char>(text_[i]) & 0xC0) != 0x80) ++column;
  }
  return {static_cast<int>(line - line_starts_.begin()) - parts_[PartOf(offset)].first_line, column};
}

std::optional<uint32_t> SourceFile::OffsetOf(std::string_view name, Position position) const {
  for (const Part& part : parts_) {
    const auto line = static_cast<size_t>(part.first_line + position.line - 1);
    if (part.name != name || position.line < 1 || line >= line_starts_.size()) continue;
    const size_t end = line + 1 < line_starts_.size() ? line_starts_[line + 1] : text_.size();
    uint32_t offset = line_starts_[line];
    for (int column = 1; offset < end; ++offset) {
      const bool is_continuation = (static_cast<unsigned char>(text_[offset]) & 0xC0) == 0x80;
      if (!is_continuation && column++ == position.column) break;
    }
    return offset;
  }
  return std::nullopt;
}

std::string_view SourceFile::LineAt(uint32_t offset) const {
  const uint32_t start = LineStart(offset);
  const size_t end = text_.find_first_of("\r\n", start);
  return std::string_view(text_).substr(start, (end == std::string::npos ? text_.size() : end) - start);
}

}  // namespace tilert::frontend
