#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "gtest/gtest.h"
#include "lowering/layout.h"
#include "random_layout.h"

namespace tilert {
namespace {

std::vector<SharedLayout> SomeLayouts() {
  std::vector<SharedLayout> layouts;
  for (const std::vector<int64_t>& extents :
       std::vector<std::vector<int64_t>>{{}, {1}, {37}, {64, 64}, {16, 32}, {9, 80}, {3, 5, 16}, {128, 192}, {7, 3}, {16, 8}}) {
    for (int bytes : {1, 2, 4, 8}) {
      for (int64_t pad : {0, 16, 3 * bytes}) layouts.push_back(RowMajorShared(extents, bytes, pad));
      layouts.push_back(SwizzledShared(extents, bytes));
      if (layouts.back().panel != 128 || !layouts.back().swizzled) continue;
      layouts.push_back(layouts.back());
      layouts.back().folded = true;
    }
  }
  return layouts;
}

FragmentLayout Box(const std::vector<int64_t>& extents) { return BlockedLayout(extents, 1, 1); }

TEST(SharedLayoutTest, ElementsDoNotOverlapAndStayInside) {
  for (const SharedLayout& layout : SomeLayouts()) {
    ASSERT_EQ(layout.bytes() % 16, 0);
    std::set<int64_t> used;
    ForEachCoord(Box(layout.extents), false, [&](const std::vector<int64_t>& coords) {
      const int64_t offset = layout.ByteOffset(coords);
      ASSERT_EQ(offset % layout.element_bytes, 0) << ToString(layout);
      for (int64_t b = offset; b < offset + layout.element_bytes; ++b) {
        ASSERT_TRUE(b >= 0 && b < layout.bytes()) << ToString(layout) << " at " << b;
        ASSERT_TRUE(used.insert(b).second) << ToString(layout) << " byte " << b << " twice";
      }
    });
  }
}

TEST(SharedLayoutTest, SwizzleKeepsChunksWhole) {
  for (const SharedLayout& layout : SomeLayouts()) {
    if (!layout.swizzled) continue;
    const int64_t per_chunk = 16 / layout.element_bytes;
    ForEachCoord(Box(layout.extents), false, [&](std::vector<int64_t> coords) {
      const int64_t offset = layout.ByteOffset(coords), in_chunk = coords.back() % per_chunk;
      coords.back() -= in_chunk;
      ASSERT_EQ(offset, layout.ByteOffset(coords) + in_chunk * layout.element_bytes);
      ASSERT_EQ(layout.ByteOffset(coords) % 16, 0);
    });
  }
}

TEST(SharedLayoutTest, WidestPanelThatDivides) {
  EXPECT_EQ(SwizzledShared({64, 64}, 2).panel, 128);
  EXPECT_EQ(SwizzledShared({64, 192}, 2).panel, 128);
  EXPECT_EQ(SwizzledShared({64, 32}, 2).panel, 64);
  EXPECT_EQ(SwizzledShared({64, 80}, 2).panel, 32);
  EXPECT_FALSE(SwizzledShared({64, 72}, 2).swizzled);
  EXPECT_EQ(SwizzledShared({64, 128}, 2).ByteOffset({0, 64}), 64 * 128);  // the second panel begins after all rows of the first
}

// Banks by definition: address / 4 mod 32. Lanes that are served together must touch each bank with one word only.
bool ConflictFree(const std::vector<int64_t>& addresses, int bytes) {
  const size_t together = static_cast<size_t>(128 / bytes);
  for (size_t begin = 0; begin < addresses.size(); begin += together) {
    std::array<std::set<int64_t>, 32> words;
    for (size_t i = begin; i < std::min(addresses.size(), begin + together); ++i) {
      for (int64_t a = addresses[i]; a < addresses[i] + bytes; ++a) words[static_cast<size_t>(a / 4 % 32)].insert(a / 4);
    }
    for (const auto& w : words) {
      if (w.size() > 1) return false;
    }
  }
  return true;
}

TEST(SharedLayoutTest, SwizzledTilesAreConflictFree) {
  for (const std::vector<int64_t>& extents :
       std::vector<std::vector<int64_t>>{{64, 64}, {128, 32}, {64, 16}, {64, 128}, {32, 80}}) {
    const SharedLayout layout = SwizzledShared(extents, 2);
    // ldmatrix: eight rows of 16 bytes a matrix, at any chunk column; rows are consecutive and begin at a multiple of 8.
    for (int64_t row = 0; row + 8 <= extents[0]; row += 8) {
      for (int64_t col = 0; col < extents[1]; col += 8) {
        std::vector<int64_t> addresses;
        for (int64_t r = 0; r < 8; ++r) addresses.push_back(layout.ByteOffset({row + r, col}));
        EXPECT_TRUE(ConflictFree(addresses, 16)) << ToString(layout) << " row " << row << " column " << col;
        EXPECT_EQ(BankConflictWays(addresses, 16), 1);
      }
    }
    // 16-byte stores by consecutive threads along the rows of the tile.
    std::vector<int64_t> addresses;
    const int64_t chunks = layout.panel / 16;
    for (int64_t i = 0; i < 32; ++i) addresses.push_back(layout.ByteOffset({i / chunks, i % chunks * 8}));
    EXPECT_TRUE(ConflictFree(addresses, 16)) << ToString(layout);
  }
  // Without the swizzle the eight rows of a matrix share their banks.
  const SharedLayout plain = RowMajorShared({64, 64}, 2);
  std::vector<int64_t> column;
  for (int64_t r = 0; r < 8; ++r) column.push_back(plain.ByteOffset({r, 0}));
  EXPECT_EQ(BankConflictWays(column, 16), 8);
}

TEST(BankConflictTest, AgreesWithACount) {
  std::mt19937 rng(7);
  for (int round = 0; round < 500; ++round) {
    const int bytes = 1 << (round % 5);
    std::vector<int64_t> addresses(32);
    const int64_t spread = round % 3 == 0 ? 8 : 256;
    for (int64_t& a : addresses) a = std::uniform_int_distribution<int64_t>(-1, spread)(rng) * bytes;
    for (int64_t& a : addresses) a = a < 0 ? -1 : a;
    // Waves of a phase: the most distinct words any bank must deliver.
    const size_t together = bytes <= 4 ? 32 : static_cast<size_t>(128 / bytes);
    int total = 0, phases = 0;
    for (size_t begin = 0; begin < 32; begin += together) {
      std::array<std::set<int64_t>, 32> words;
      for (size_t i = begin; i < begin + together; ++i) {
        for (int64_t b = 0; addresses[i] >= 0 && b < bytes; ++b)
          words[static_cast<size_t>((addresses[i] + b) / 4 % 32)].insert((addresses[i] + b) / 4);
      }
      size_t most = 0;
      for (const auto& w : words) most = std::max(most, w.size());
      total += static_cast<int>(most);
      phases += most > 0;
    }
    const int expected = phases == 0 ? 1 : (total + phases - 1) / phases;
    ASSERT_EQ(BankConflictWays(addresses, bytes), expected);
  }
}

TEST(BankConflictTest, KnownPatterns) {
  std::vector<int64_t> stride4, stride8, stride128, same(32, 64), none(32, -1);
  for (int64_t i = 0; i < 32; ++i) {
    stride4.push_back(4 * i);
    stride8.push_back(8 * i);
    stride128.push_back(128 * i);
  }
  EXPECT_EQ(BankConflictWays(stride4, 4), 1);
  EXPECT_EQ(BankConflictWays(stride8, 4), 2);
  EXPECT_EQ(BankConflictWays(stride8, 8), 1);
  EXPECT_EQ(BankConflictWays(stride128, 4), 32);
  EXPECT_EQ(BankConflictWays(stride128, 16), 8);
  EXPECT_EQ(BankConflictWays(same, 4), 1);
  EXPECT_EQ(BankConflictWays(none, 4), 1);
}

}  // namespace
}  // namespace tilert
