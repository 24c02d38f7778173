// Fragments against the tables of the PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type", written out.
#include "lowering/layout_mma.h"

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
  const auto& [m, n, given] = GetParam();
  const WarpGrid grid = given;
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
  const auto& [m, k, given] = GetParam();
  const WarpGrid grid = given;
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
  const auto& [n, k, given] = GetParam();
  const WarpGrid grid = given;
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

// "Matrix Fragments for mma.m16n8k32": a_i: row = groupID for (0 <= i < 4) or (8 <= i < 12), else groupID + 8; col =
// threadID_in_group
// * 4 + (i & 3), + 16 for i >= 8. b_i: row = threadID_in_group * 4 + (i & 3), + 16 for i >= 4; col = groupID.
// "Matrix Fragments for mma.m16n8k8" with .tf32: a0, a2: row = groupID, a1, a3: groupID + 8; col = threadID_in_group, + 4 for a2,
// a3. b0: row = threadID_in_group, b1: + 4; col = groupID.
TEST(MmaOfOtherTypes, FollowTheTables) {
  const auto check = [](int bytes, int regs_a, int regs_b, auto a_element, auto b_element) {
    const int64_t depth = MmaDepth(bytes);
    for (const WarpGrid grid : {WarpGrid{1, 1}, WarpGrid{2, 2}, WarpGrid{4, 1}}) {
      for (const int64_t k : {depth, 3 * depth, depth + 1}) {
        const FragmentLayout a = MmaOperandALayout(64, k, grid, bytes), b = MmaOperandBLayout(40, k, grid, bytes);
        ASSERT_TRUE(IsWellFormed(a) && IsWellFormed(b));
        const int64_t k_atoms = (k + depth - 1) / depth, m_atoms = 4 / grid.m, n_atoms = (40 + 8 * grid.n - 1) / (8 * grid.n);
        ASSERT_EQ(a.regs(), m_atoms * k_atoms * regs_a);
        ASSERT_EQ(b.regs(), n_atoms * k_atoms * regs_b);
        ForEachPlace(a, [&](const Place& p) {
          const int64_t atom = p.reg / regs_a;
          const Atom e = a_element(p.lane >> 2, p.lane % 4, static_cast<int>(p.reg % regs_a));
          ASSERT_EQ(a.Coords(p), (std::vector<int64_t>{(p.warp % grid.m * m_atoms + atom / k_atoms) * 16 + e.row,
                                                       atom % k_atoms * depth + e.col}));
        });
        ForEachPlace(b, [&](const Place& p) {
          const int64_t atom = p.reg / regs_b;
          const Atom e = b_element(p.lane >> 2, p.lane % 4, static_cast<int>(p.reg % regs_b));
          ASSERT_EQ(b.Coords(p), (std::vector<int64_t>{(p.warp / grid.m * n_atoms + atom / k_atoms) * 8 + e.col,
                                                       atom % k_atoms * depth + e.row}));
        });
      }
    }
  };
  check(
      1, 16, 8,
      [](int group, int in_group, int i) {
        return Atom{i < 4 || (i >= 8 && i < 12) ? group : group + 8, in_group * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
      },
      [](int group, int in_group, int i) {
        return Atom{in_group * 4 + (i & 3) + (i >= 4 ? 16 : 0), group};
      });
  check(
      4, 4, 2,
      [](int group, int in_group, int i) {
        return Atom{i % 2 == 0 ? group : group + 8, in_group + (i >= 2 ? 4 : 0)};
      },
      [](int group, int in_group, int i) {
        return Atom{in_group + (i == 1 ? 4 : 0), group};
      });
}

// The probabilities of attention: an accumulator tile is, register for register, the A operand of the next product.
TEST(MmaChainTest, AccumulatorHoldsWhatOperandANeeds) {
  const FragmentLayout acc = MmaAccumulatorLayout(64, 128, {4, 1}), a = MmaOperandALayout(64, 128, {4, 1});
  EXPECT_TRUE(CanWrite(acc, a));
  EXPECT_TRUE(CanWrite(a, acc));
  EXPECT_FALSE(CanRead(MmaAccumulatorLayout(64, 128, {2, 2}), MmaOperandALayout(64, 128, {2, 2})));
}

}  // namespace
}  // namespace tilert
