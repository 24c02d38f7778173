#include "lowering/layout_picture.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"

namespace tilert {
namespace {

using testing::HasSubstr;
using testing::Not;

size_t Count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(LayoutPictureTest, Goldens) {
  const std::string text = LayoutText(MmaAccumulatorLayout(16, 8, {1, 1}), {"acc"}) + "\n" +
                           LayoutText(SwizzledShared({16, 64}, 2), {"A_shared", 8, 16}) + "\n" +
                           LayoutText(Project(MmaAccumulatorLayout(40, 8, {1, 1}), {0}), {"row sums"}) + "\n" +
                           LayoutText(BlockedLayout({2, 2, 4}, 1, 2), {"three dimensions"});
  ExpectGolden("layout_picture.txt", text);
  ExpectGolden("layout_picture.svg", LayoutSvg(MmaAccumulatorLayout(16, 8, {1, 1}), {"acc <float32> & more"}));
}

TEST(LayoutPictureTest, EveryElementIsDrawnOnce) {
  const std::string svg = LayoutSvg(BlockedLayout({32, 64}, 4, 8), {"", 64, 64});
  // One box for each vector of eight, and the background and four swatches.
  EXPECT_EQ(Count(svg, "<rect"), 32 * 64 / 8 + 5u);
  EXPECT_EQ(Count(svg, ">t0 r0-7<"), 1u);
  EXPECT_EQ(Count(svg, ">t127 r8-15<"), 1u);
}

TEST(LayoutPictureTest, WhatIsLeftOutIsSaid) {
  EXPECT_THAT(LayoutText(BlockedLayout({128, 128}, 4, 1)), HasSubstr("shown: 64 of 128 rows, 64 of 128 columns"));
  EXPECT_THAT(LayoutText(BlockedLayout({16, 16}, 4, 1)), Not(HasSubstr("shown:")));
}

TEST(LayoutPictureTest, ConflictsAreSaid) {
  EXPECT_THAT(LayoutText(SwizzledShared({64, 64}, 2)), HasSubstr("(ldmatrix): free of conflicts"));
  EXPECT_THAT(LayoutText(RowMajorShared({64, 64}, 2)), HasSubstr("(ldmatrix): 8-way conflicts"));
  EXPECT_THAT(LayoutText(RowMajorShared({64, 64}, 2, 16)), HasSubstr("(ldmatrix): free of conflicts"));
}

TEST(LayoutPictureTest, OddShapes) {
  for (const std::vector<int64_t>& extents : std::vector<std::vector<int64_t>>{{}, {0}, {1}, {0, 4}, {33}, {3, 0, 2}, {7, 5}}) {
    EXPECT_THAT(LayoutSvg(BlockedLayout(extents, 2, 1)), HasSubstr("</svg>"));
    EXPECT_THAT(LayoutSvg(RowMajorShared(extents, 4)), HasSubstr("</svg>"));
    EXPECT_FALSE(LayoutText(BlockedLayout(extents, 2, 1)).empty());
    EXPECT_FALSE(LayoutText(RowMajorShared(extents, 4)).empty());
  }
}

}  // namespace
}  // namespace tilert
