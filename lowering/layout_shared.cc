// Shared-memory layouts and bank conflicts.
#include <algorithm>
#include <array>
#include <string>

#include "lowering/layout.h"

namespace tilert {
namespace {

constexpr int kBanks = 32;
constexpr int kBankBytes = 4;
constexpr int64_t kChunkBytes = 16;

int64_t RowBytes(const SharedLayout& layout) {
  return layout.extents.empty() ? layout.element_bytes : layout.extents.back() * layout.element_bytes;
}

// What the chunk index of row `row` is XORed with.
int64_t SwizzleOf(const SharedLayout& layout, int64_t row) {
  if (layout.panel == 128) return (layout.folded ? row ^ (row >> 3) : row) & 7;
  if (layout.panel == 64) return (row >> 1) & 3;
  return (row >> 2) & 1;
}

}  // namespace

int64_t SharedLayout::rows() const {
  int64_t product = 1;
  for (size_t d = 0; d + 1 < extents.size(); ++d) product *= extents[d];
  return product;
}

int64_t SharedLayout::bytes() const {
  const int64_t panels = (RowBytes(*this) + panel - 1) / panel;
  return (panels * rows() * pitch + kChunkBytes - 1) / kChunkBytes * kChunkBytes;
}

int64_t SharedLayout::version_bytes() const {
  // Each version begins on a whole pattern of the swizzle, which TMA and wgmma derive from addresses.
  const int64_t unit = swizzled ? std::max<int64_t>(pitch * kSwizzleRows, 128) : 128;
  return (bytes() + unit - 1) / unit * unit;
}

int64_t SharedLayout::ByteOffset(const std::vector<int64_t>& coords) const {
  int64_t row = 0;
  for (size_t d = 0; d + 1 < extents.size(); ++d) row = row * extents[d] + coords[d];
  const int64_t column = extents.empty() ? 0 : coords.back() * element_bytes;
  int64_t within = column % panel;
  if (swizzled) within = ((within / kChunkBytes) ^ SwizzleOf(*this, row)) * kChunkBytes + within % kChunkBytes;
  return (column / panel * rows() + row) * pitch + within;
}

SharedLayout RowMajorShared(const std::vector<int64_t>& extents, int element_bytes, int64_t pad_bytes) {
  SharedLayout layout;
  layout.extents = extents;
  layout.element_bytes = element_bytes;
  layout.panel = std::max<int64_t>(RowBytes(layout), 1);
  layout.pitch = layout.panel + pad_bytes;
  return layout;
}

SharedLayout SwizzledShared(const std::vector<int64_t>& extents, int element_bytes) {
  SharedLayout layout = RowMajorShared(extents, element_bytes);
  for (int64_t panel : {128, 64, 32}) {
    if (extents.empty() || RowBytes(layout) == 0 || RowBytes(layout) % panel != 0) continue;
    layout.panel = layout.pitch = panel;
    layout.swizzled = true;
    break;
  }
  return layout;
}

int BankConflictWays(const std::vector<int64_t>& byte_addresses, int bytes) {
  // The hardware serves a 16-byte access a quarter of a warp at a time, an 8-byte one half a warp at a time: 128 bytes at most.
  const size_t lanes_a_phase = static_cast<size_t>(bytes <= kBankBytes ? kLanes : kBanks * kBankBytes / bytes);
  int waves = 0, phases = 0;
  for (size_t begin = 0; begin < byte_addresses.size(); begin += lanes_a_phase) {
    std::vector<int64_t> words;
    for (size_t i = begin; i < std::min(begin + lanes_a_phase, byte_addresses.size()); ++i) {
      if (byte_addresses[i] < 0) continue;
      for (int64_t w = byte_addresses[i] / kBankBytes; w <= (byte_addresses[i] + bytes - 1) / kBankBytes; ++w) words.push_back(w);
    }
    if (words.empty()) continue;
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());  // one word serves all its readers
    std::array<int, kBanks> uses{};
    for (int64_t w : words) ++uses[static_cast<size_t>(w % kBanks)];
    waves += *std::max_element(uses.begin(), uses.end());
    ++phases;
  }
  return phases == 0 ? 1 : (waves + phases - 1) / phases;
}

std::string ToString(const SharedLayout& layout) {
  std::string text = "shared";
  for (int64_t e : layout.extents) text += " x " + std::to_string(e);
  if (!layout.extents.empty()) text.replace(6, 3, " ");
  text += ", " + std::to_string(layout.element_bytes) + (layout.element_bytes == 1 ? " byte, " : " bytes, ");
  if (layout.swizzled) return text + "panels of " + std::to_string(layout.panel) + " bytes, swizzled" + (layout.folded ? " and folded" : "");
  text += "row-major, pitch " + std::to_string(layout.pitch);
  return text;
}

}  // namespace tilert
