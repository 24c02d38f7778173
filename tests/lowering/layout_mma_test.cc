// Fragments against the tables of the PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type", written out.
#include "gtest/gtest.h"
#include "lowering/layout.h"
#include "random_layout.h"

namespace tilert {
namespace {

struct Atom {
  int64_t row, col;
};

// a_i: row = groupID for (0 <= i < 2) or (4 <= i < 6), else groupID + 8; col = threadID_in_group * 2 + (i & 1), + 8 for i >= 4.
Atom AElement(int lane, int i) {
  const int group = lane >> 2, in_group = lane % 4;
  return {(i < 2 || (i >= 4 && i < 6)) ? group : group + 8, in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
}
// b_i: row (k) = threadID_in_group * 2 + (i & 1), + 8 for i >= 2; col (n) = groupID.
Atom BElement(int lane, int i) { return {lane % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0), lane >> 2}; }
// c_i: row = groupID, + 8 for i >= 2; col = threadID_in_group * 2 + (i & 1).
Atom CElement(int lane, int i) { return {(lane >> 2) + (i >= 2 ? 8 : 0), lane % 4 * 2 + (i & 1)}; }

class MmaLayoutTest : public testing::TestWithParam<std::tuple<int64_t, int64_t, WarpGrid>> {};

TEST_P(MmaLayoutTest, AccumulatorFollowsTheTable) {
  const auto [m, n, grid] = GetParam();
  const FragmentLayout layout = MmaAccumulatorLayout(m, n, grid);
  ASSERT_TRUE(IsWellFormed(layout));
  const int64_t m_atoms = (m + 16 * grid.m - 1) / (16 * grid.m), n_atoms = (n + 8 * grid.n - 1) / (8 * grid.n);
  ASSERT_EQ(layout.regs(), m_atoms * n_atoms * 4);
  ForEachPlace(layout, [&](const Place& p) {
    const int64_t wm = p.warp % grid.m, wn = p.warp / grid.m;
    const int64_t atom_m = p.reg / 4 / n_atoms, atom_n = p.reg / 4 % n_atoms;
    const Atom e = CElement(p.lane, static_cast<int>(p.reg % 4));
    ASSERT_EQ(layout.Coords(p),
              (std::vector<int64_t>{(wm * m_atoms + atom_m) * 16 + e.row, (wn * n_atoms + atom_n) * 8 + e.col}));
  });
}

TEST_P(MmaLayoutTest, OperandAFollowsTheTable) {
  const auto [m, k, grid] = GetParam();
  const FragmentLayout layout = MmaOperandALayout(m, k, grid);
  ASSERT_TRUE(IsWellFormed(layout));
  const int64_t m_atoms = (m + 16 * grid.m - 1) / (16 * grid.m), k_atoms = (k + 15) / 16;
  ASSERT_EQ(layout.regs(), m_atoms * k_atoms * 8);
  ForEachPlace(layout, [&](const Place& p) {
    const int64_t atom_m = p.reg / 8 / k_atoms, atom_k = p.reg / 8 % k_atoms;
    const Atom e = AElement(p.lane, static_cast<int>(p.reg % 8));
    ASSERT_EQ(layout.Coords(p), (std::vector<int64_t>{(p.warp % grid.m * m_atoms + atom_m) * 16 + e.row, atom_k * 16 + e.col}));
  });
}

TEST_P(MmaLayoutTest, OperandBFollowsTheTable) {
  const auto [n, k, grid] = GetParam();
  const FragmentLayout layout = MmaOperandBLayout(n, k, grid);
  ASSERT_TRUE(IsWellFormed(layout));
  const int64_t n_atoms = (n + 8 * grid.n - 1) / (8 * grid.n), k_atoms = (k + 15) / 16;
  ASSERT_EQ(layout.regs(), n_atoms * k_atoms * 4);
  ForEachPlace(layout, [&](const Place& p) {
    const int64_t atom_n = p.reg / 4 / k_atoms, atom_k = p.reg / 4 % k_atoms;
    const Atom e = BElement(p.lane, static_cast<int>(p.reg % 4));
    ASSERT_EQ(layout.Coords(p), (std::vector<int64_t>{(p.warp / grid.m * n_atoms + atom_n) * 8 + e.col, atom_k * 16 + e.row}));
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, MmaLayoutTest,
                         testing::Combine(testing::Values<int64_t>(1, 16, 33, 64, 128), testing::Values<int64_t>(8, 16, 40, 128),
                                          testing::Values(WarpGrid{1, 1}, WarpGrid{4, 1}, WarpGrid{2, 2}, WarpGrid{1, 4},
                                                          WarpGrid{3, 2})));

// The probabilities of attention: an accumulator tile is, register for register, the A operand of the next product.
TEST(MmaChainTest, AccumulatorHoldsWhatOperandANeeds) {
  const FragmentLayout acc = MmaAccumulatorLayout(64, 128, {4, 1}), a = MmaOperandALayout(64, 128, {4, 1});
  EXPECT_TRUE(CanWrite(acc, a));
  EXPECT_TRUE(CanWrite(a, acc));
  EXPECT_FALSE(CanRead(MmaAccumulatorLayout(64, 128, {2, 2}), MmaOperandALayout(64, 128, {2, 2})));
}

}  // namespace
}  // namespace tilert
