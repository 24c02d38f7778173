// Which iterations of which tiles are whose (kir::SharesOf): each is one block's, in parts that follow each other; and the walk
// that kernels make of it (prelude/shares.cuh) is the same.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lowering/kernel_ir.h"

// The prelude's file as it is, its asm statements nothing.
#define DEV inline
#define UNROLL
using u8 = unsigned char;
using u32 = unsigned;
using i64 = long long;
using u64 = unsigned long long;
namespace {
template <typename T>
T min(T a, T b) {
  return b < a ? b : a;
}
[[maybe_unused]] void __syncwarp() {}
template <typename T>
T __shfl_sync(unsigned, T x, int) {
  return x;
}
#define asm
#define volatile(...)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include "lowering/prelude/shares.cuh"
#pragma GCC diagnostic pop
#undef asm
#undef volatile
}  // namespace

namespace tilert {
namespace {

std::vector<kir::Share> Walk(int64_t tiles, int64_t trips, int64_t workers, int64_t worker) {
  std::vector<kir::Share> shares;
  for (Shares s(static_cast<u32>(worker), static_cast<u32>(workers), static_cast<u32>(tiles), static_cast<int>(trips)); s.next();)
    shares.push_back({s.tile, s.begin, s.end});
  return shares;
}

bool Same(const kir::Share& a, const kir::Share& b) { return a.tile == b.tile && a.begin == b.begin && a.end == b.end; }

template <typename Check>
void ForManyCases(const Check& check) {
  for (int64_t tiles : {0, 1, 2, 3, 5, 8, 13, 16, 33, 45, 64, 116, 133, 512}) {
    for (int64_t trips : {0, 1, 2, 3, 7, 16, 65}) {
      for (int64_t workers : {1, 2, 3, 4, 7, 16, 66, 132}) {
        SCOPED_TRACE(testing::Message() << tiles << " tiles, " << trips << " trips, " << workers << " workers");
        check(tiles, trips, workers);
      }
    }
  }
}

TEST(Shares, EachIterationIsOneBlocks) {
  ForManyCases([](int64_t tiles, int64_t trips, int64_t workers) {
    std::vector<std::vector<int>> done(static_cast<size_t>(tiles), std::vector<int>(static_cast<size_t>(trips)));
    std::vector<int> ended(static_cast<size_t>(tiles));
    for (int64_t worker = 0; worker < workers; ++worker) {
      bool waited = false;
      int given = 0;
      for (const kir::Share& share : kir::SharesOf(tiles, trips, workers, worker)) {
        ASSERT_TRUE(share.begin >= 0 && share.end <= trips && (share.begin < share.end || trips == 0));
        for (int64_t i = share.begin; i < share.end; ++i) ++done[static_cast<size_t>(share.tile)][static_cast<size_t>(i)];
        ended[static_cast<size_t>(share.tile)] += share.end == trips;
        given += share.end < trips;
        EXPECT_FALSE(share.end < trips && waited) << "worker " << worker << " waits before it gives";
        waited |= share.begin > 0 && share.end == trips;
      }
      EXPECT_LE(given, 1) << "worker " << worker;
    }
    for (const auto& tile : done) EXPECT_THAT(tile, testing::Each(1));
    EXPECT_THAT(ended, testing::Each(1));
  });
}

// No worker has more than a wave and an eighth more than its even part.
TEST(Shares, AreEven) {
  ForManyCases([](int64_t tiles, int64_t trips, int64_t workers) {
    int64_t most = 0;
    for (int64_t worker = 0; worker < workers; ++worker) {
      int64_t all = 0;
      for (const kir::Share& share : kir::SharesOf(tiles, trips, workers, worker)) all += share.end - share.begin;
      most = std::max(most, all);
    }
    const int64_t whole = tiles / workers * trips, left = tiles % workers * trips;
    EXPECT_LE(most, whole + (left * 8 + workers * 7 - 1) / (workers * 7) + 1);
  });
}

TEST(Shares, KernelsWalkTheSame) {
  ForManyCases([](int64_t tiles, int64_t trips, int64_t workers) {
    for (int64_t worker = 0; worker < workers; ++worker) {
      const std::vector<kir::Share> expected = kir::SharesOf(tiles, trips, workers, worker),
                                    walked = Walk(tiles, trips, workers, worker);
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), walked.begin(), walked.end(), Same)) << "worker " << worker;
    }
  });
}

// Those that a block waits for are the ones that have iterations of its tile before its own, from the nearest on.
TEST(Shares, KernelsWaitForThoseBefore) {
  ForManyCases([](int64_t tiles, int64_t trips, int64_t workers) {
    for (int64_t worker = 0; worker < workers; ++worker) {
      for (Shares s(static_cast<u32>(worker), static_cast<u32>(workers), static_cast<u32>(tiles), static_cast<int>(trips));
           s.next();) {
        std::vector<u32> expected, waits;
        for (int64_t w = worker; w-- > 0;) {
          for (const kir::Share& share : kir::SharesOf(tiles, trips, workers, w)) {
            if (share.tile == s.tile) expected.push_back(static_cast<u32>(w));
          }
        }
        for (u32 other = s.worker; s.helped_by(other);) waits.push_back(other);
        ASSERT_EQ(waits, expected) << "worker " << worker << ", tile " << s.tile;
      }
    }
  });
}

}  // namespace
}  // namespace tilert
