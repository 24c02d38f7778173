#include "lowering/layout.h"

#include <map>
#include <set>

#include "gtest/gtest.h"
#include "random_layout.h"

namespace tilert {
namespace {

using Thread = std::pair<int, int>;                                                   // warp, lane
using Holders = std::map<std::vector<int64_t>, std::map<Thread, std::set<int64_t>>>;  // element → thread → its registers

// The function a layout is, tabulated from the inverse.
Holders Tabulate(const FragmentLayout& layout) {
  Holders holders;
  ForEachPlace(layout, [&](const Place& p) { holders[layout.Coords(p)][{p.warp, p.lane}].insert(p.reg); });
  return holders;
}

TEST(LayoutTest, InverseUndoesLocate) {
  std::mt19937 rng(1);
  for (int round = 0; round < 300; ++round) {
    const FragmentLayout layout = RandomLayout(rng, round % 4, 1 + round % 6);
    ASSERT_TRUE(IsWellFormed(layout)) << ToString(layout);
    std::set<std::tuple<int64_t, int, int>> taken;
    ForEachCoord(layout, true, [&](const std::vector<int64_t>& coords) {
      const Place p = layout.Locate(coords);
      ASSERT_LT(p.reg, layout.regs());
      ASSERT_LT(p.lane, kLanes);
      ASSERT_LT(p.warp, layout.warps);
      ASSERT_EQ(layout.Coords(p), coords) << ToString(layout);
      ASSERT_TRUE(layout.IsReplicaZero(p.lane, p.warp)) << ToString(layout);
      ASSERT_TRUE(taken.insert({p.reg, p.lane, p.warp}).second) << "two elements in one place: " << ToString(layout);
    });
  }
}

TEST(LayoutTest, ReplicasAreTheThreadsThatHoldAnElement) {
  std::mt19937 rng(2);
  for (int round = 0; round < 60; ++round) {
    const FragmentLayout layout = RandomLayout(rng, 1 + round % 3, 1 + round % 6, 24);
    size_t replicas = 1;
    for (const Factor& f : layout.Replicas()) replicas *= static_cast<size_t>(f.size);
    for (const auto& [coords, threads] : Tabulate(layout)) {
      ASSERT_EQ(threads.size(), replicas) << ToString(layout);
      int zeros = 0;
      for (const auto& [thread, regs] : threads) zeros += layout.IsReplicaZero(thread.second, thread.first);
      ASSERT_EQ(zeros, 1) << ToString(layout);
    }
  }
}

TEST(LayoutTest, IllFormedLayoutsAreFound) {
  FragmentLayout overlap;
  overlap.dims = {{32, {{16, Owner::kLane, 1}, {2, Owner::kLane, 8}}}};
  EXPECT_FALSE(IsWellFormed(overlap));
  FragmentLayout too_many;
  too_many.dims = {{64, {{64, Owner::kLane, 1}}}};
  EXPECT_FALSE(IsWellFormed(too_many));
  FragmentLayout beyond;
  beyond.dims = {{5, {{4, Owner::kReg, 1}}}};
  EXPECT_FALSE(IsWellFormed(beyond));
  FragmentLayout ragged;
  ragged.warps = 4;
  ragged.dims = {{3, {{3, Owner::kWarp, 1}}}};
  EXPECT_FALSE(IsWellFormed(ragged));
}

TEST(LayoutTest, CanonicalKeepsTheFunction) {
  std::mt19937 rng(3);
  int changed = 0;
  for (int round = 0; round < 200; ++round) {
    const FragmentLayout layout = RandomLayout(rng, 1 + round % 3, 4, 24), canonical = Canonical(layout);
    changed += !(layout == canonical);
    ASSERT_EQ(Tabulate(layout), Tabulate(canonical)) << ToString(layout);
    ASSERT_EQ(Canonical(canonical), canonical);
  }
  EXPECT_GT(changed, 50);
  FragmentLayout split, whole;
  split.dims = {{16, {{2, Owner::kLane, 1}, {1, Owner::kReg, 7}, {8, Owner::kLane, 2}}}};
  whole.dims = {{16, {{16, Owner::kLane, 1}}}};
  EXPECT_EQ(Canonical(split), whole);
}

TEST(LayoutTest, ProjectDropsDimensions) {
  std::mt19937 rng(4);
  for (int round = 0; round < 200; ++round) {
    const FragmentLayout layout = RandomLayout(rng, 3, 4, 16);
    const std::vector<int> keep = round % 2 == 0 ? std::vector<int>{0, 2} : std::vector<int>{1};
    const FragmentLayout projected = Project(layout, keep);
    ASSERT_TRUE(IsWellFormed(projected));
    // Registers are dense: as many as the product of the kept register factors.
    int64_t regs = 1;
    for (int d : keep) {
      for (const Factor& f : layout.dims[static_cast<size_t>(d)].factors) regs *= f.owner == Owner::kReg ? f.size : 1;
    }
    ASSERT_EQ(projected.regs(), regs);
    // A thread holds a kept coordinate exactly if it held some element with that coordinate.
    const Holders all = Tabulate(layout);
    std::map<std::vector<int64_t>, std::set<Thread>> expected, actual;
    for (const auto& [coords, threads] : all) {
      std::vector<int64_t> kept;
      for (int d : keep) kept.push_back(coords[static_cast<size_t>(d)]);
      for (const auto& [thread, r] : threads) expected[kept].insert(thread);
    }
    for (const auto& [coords, threads] : Tabulate(projected)) {
      for (const auto& [thread, r] : threads) actual[coords].insert(thread);
    }
    ASSERT_EQ(actual, expected) << ToString(layout);
  }
  // The first kept dimension is the slowest.
  FragmentLayout two;
  two.dims = {{4, {{4, Owner::kReg, 1}}}, {2, {{2, Owner::kReg, 4}}}};
  EXPECT_EQ(Project(two, {0, 1}), two);  // nothing dropped, nothing renumbered
  EXPECT_EQ(Project(two, {1, 0}).Locate({1, 0}).reg, 4);
}

TEST(LayoutTest, DenseKeepsTheOrderOfRegisters) {
  FragmentLayout gaps;
  gaps.dims = {{4, {{2, Owner::kReg, 8}, {2, Owner::kLane, 1}}}, {6, {{3, Owner::kReg, 2}, {2, Owner::kReg, 32}}}};
  const FragmentLayout dense = Dense(gaps);
  EXPECT_EQ(dense.regs(), 12);
  EXPECT_EQ(dense.Locate({0, 1}).reg, 1);
  EXPECT_EQ(dense.Locate({1, 0}).reg, 3);
  EXPECT_EQ(dense.Locate({0, 3}).reg, 6);
  EXPECT_EQ(dense.Locate({2, 0}).lane, 1);
  EXPECT_EQ(Dense(dense), dense);
}

// Literal reading of the header: every thread that runs a valid point holds the element; and, to write, nobody else does.
void BruteForce(const FragmentLayout& data, const FragmentLayout& loop, bool* read, bool* write) {
  const Holders holders = Tabulate(data), runners = Tabulate(loop);
  *read = *write = true;
  ForEachCoord(loop, false, [&](const std::vector<int64_t>& p) {
    const auto held = holders.find(p);
    std::set<Thread> have, run;
    if (held != holders.end()) {
      for (const auto& [thread, regs] : held->second) have.insert(thread);
    }
    for (const auto& [thread, regs] : runners.at(p)) run.insert(thread);
    for (const Thread& t : run) *read = *read && have.count(t) > 0;
    *write = *write && have == run;
  });
  *write = *write && *read;
}

// A layout related to `loop`: some digits become replicas, some factors are split, registers are renumbered.
FragmentLayout Relative(std::mt19937& rng, FragmentLayout layout) {
  const auto chance = [&rng](int n) { return std::uniform_int_distribution<int>(0, n - 1)(rng) == 0; };
  for (LayoutDim& dim : layout.dims) {
    std::vector<Factor> factors;
    for (Factor f : dim.factors) {
      if (f.owner != Owner::kReg && chance(6)) f = {f.size, Owner::kReg, 0};  // held by all
      if (f.owner == Owner::kLane && chance(12)) f.stride = f.stride > 1 ? f.stride / 2 : 1;
      if (f.size == 4 && chance(2)) {
        factors.push_back({2, f.owner, f.stride});
        f = {2, f.owner, f.stride * 2};
      }
      factors.push_back(f);
    }
    dim.factors = factors;
  }
  int64_t stride = 1;
  for (LayoutDim& dim : layout.dims) {
    for (Factor& f : dim.factors) {
      if (f.owner != Owner::kReg) continue;
      f.stride = stride;
      stride *= f.size;
    }
  }
  return layout;
}

TEST(LayoutTest, CanReadAndCanWriteAgreeWithBruteForce) {
  std::mt19937 rng(5);
  int reads = 0, writes = 0, neither = 0;
  for (int round = 0; round < 1500; ++round) {
    const FragmentLayout loop = RandomLayout(rng, 1 + round % 3, 1 + round % 4, 16);
    const FragmentLayout data = round % 5 == 0 ? RandomLayout(rng, 1 + round % 3, loop.warps, 16) : Relative(rng, loop);
    if (!IsWellFormed(data)) continue;
    bool read, write;
    BruteForce(data, loop, &read, &write);
    ASSERT_EQ(CanRead(data, loop), read) << ToString(data) << "\nloop " << ToString(loop);
    ASSERT_EQ(CanWrite(data, loop), write) << ToString(data) << "\nloop " << ToString(loop);
    reads += read && !write;
    writes += write;
    neither += !read;
  }
  EXPECT_GT(reads, 50);
  EXPECT_GT(writes, 50);
  EXPECT_GT(neither, 50);
}

// An extent is a number in a program that anybody may have written: it costs nothing.
TEST(LayoutTest, ExtentsCostNoTime) {
  const int64_t huge = int64_t{1} << 40;
  for (const int64_t extent : {huge, huge - 1, huge / 3, huge + 12345}) {
    const FragmentLayout wide = BlockedLayout({extent}, 4, 4), narrow = BlockedLayout({extent}, 4, 1),
                         tall = BlockedLayout({extent, 8}, 4, 1);
    EXPECT_TRUE(CanRead(wide, wide));
    EXPECT_TRUE(CanWrite(tall, tall));
    EXPECT_FALSE(CanRead(wide, narrow));
    EXPECT_FALSE(CanRead(tall, BlockedLayout({extent, 8}, 4, 2)));
  }
}

TEST(LayoutTest, RowStatisticsOfAnAccumulatorCanBeReadInItsLoop) {
  const FragmentLayout acc = MmaAccumulatorLayout(128, 128, {4, 2});
  FragmentLayout row = Project(acc, {0});
  row.dims.push_back({128, {{128, Owner::kReg, row.regs()}}});  // the same value for every column
  EXPECT_TRUE(CanRead(row, acc));
  EXPECT_FALSE(CanWrite(row, acc));
  EXPECT_FALSE(CanRead(acc, row));
  EXPECT_FALSE(CanRead(acc, MmaAccumulatorLayout(128, 128, {2, 4})));
  EXPECT_TRUE(CanWrite(acc, acc));
}

TEST(LayoutTest, BlockedLayoutsOfAllExtents) {
  for (int warps : {1, 2, 3, 4, 5, 6, 8, 12, 16}) {
    for (const std::vector<int64_t>& extents : std::vector<std::vector<int64_t>>{{},
                                                                                 {1},
                                                                                 {0},
                                                                                 {7},
                                                                                 {64},
                                                                                 {1000},
                                                                                 {8192},
                                                                                 {1, 8192},
                                                                                 {64, 64},
                                                                                 {128, 32},
                                                                                 {17, 23},
                                                                                 {128, 96},
                                                                                 {3, 5, 7},
                                                                                 {16, 264},
                                                                                 {4, 1, 130}}) {
      for (int64_t vector : {1, 2, 4, 8}) {
        const FragmentLayout layout = BlockedLayout(extents, warps, vector);
        ASSERT_TRUE(IsWellFormed(layout)) << ToString(layout);
        ASSERT_EQ(layout.dims.size(), extents.size());
        ASSERT_EQ(ContiguousRegs(layout, vector), extents.empty() ? 1 : vector) << ToString(layout);
        int64_t work = 1, padded = 1, threads = warps * kLanes;
        for (size_t d = 0; d < extents.size(); ++d) {
          ASSERT_EQ(layout.dims[d].extent, extents[d]);
          work *= std::max<int64_t>(extents[d], 1);
          padded *= layout.dims[d].padded();
        }
        // No thread holds much more than its even share, whatever does not divide.
        const int64_t even = (work + threads - 1) / threads;
        ASSERT_LE(layout.regs(), 3 * even + 3 * vector) << ToString(layout);
        ASSERT_EQ(padded % layout.regs(), 0);
      }
    }
  }
}

TEST(LayoutTest, BlockedLayoutSpreadsAlongTheLastDimensionFirst) {
  // 64 columns in vectors of 8: 8 lanes; 4 lanes and 4 warps along the rows; the other rows in registers.
  FragmentLayout expected;
  expected.warps = 4;
  expected.dims = {{64, {{4, Owner::kLane, 8}, {4, Owner::kWarp, 1}, {4, Owner::kReg, 8}}},
                   {64, {{8, Owner::kReg, 1}, {8, Owner::kLane, 1}}}};
  EXPECT_EQ(BlockedLayout({64, 64}, 4, 8), expected);
  // Left-over threads are replicas.
  EXPECT_EQ(BlockedLayout({4}, 2, 1).Replicas(), (std::vector<Factor>{{8, Owner::kLane, 4}, {2, Owner::kWarp, 1}}));
}

TEST(LayoutTest, ContiguousRegisters) {
  EXPECT_EQ(ContiguousRegs(MmaAccumulatorLayout(64, 64, {2, 2}), 8), 2);
  EXPECT_EQ(ContiguousRegs(BlockedLayout({64, 64}, 4, 8), 4), 4);
  EXPECT_EQ(ContiguousRegs(BlockedLayout({}, 4, 8), 4), 1);
  FragmentLayout six, strided;
  six.dims = {{6, {{6, Owner::kReg, 1}}}};
  EXPECT_EQ(ContiguousRegs(six, 8), 2);
  strided.dims = {{2, {{2, Owner::kReg, 1}}}, {4, {{4, Owner::kReg, 2}}}};
  EXPECT_EQ(ContiguousRegs(strided, 8), 1);
}

TEST(LayoutTest, Text) {
  EXPECT_EQ(ToString(MmaAccumulatorLayout(13, 8, {1, 1})),
            "13 of 16 (lane 8@4, reg 2@2, reg 1@4, warp 1@1) x 8 (reg 2@1, lane 4@1, reg 1@4, warp 1@1), 1 warp");
  EXPECT_EQ(ToString(FragmentLayout{{}, 4}), "scalar, 4 warps");
  EXPECT_EQ(ToString(SwizzledShared({64, 64}, 2)), "shared 64 x 64, 2 bytes, panels of 128 bytes, swizzled");
  EXPECT_EQ(ToString(RowMajorShared({3, 5}, 1, 3)), "shared 3 x 5, 1 byte, row-major, pitch 8");
}

}  // namespace
}  // namespace tilert
