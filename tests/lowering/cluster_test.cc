// Thread block clusters in KernelIr: what blocks of a cluster tell each other, and what they may not do without.
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernel_maker.h"
#include "kernel_mutation.h"
#include "lowering/simulator.h"

namespace tilert {
namespace {

using testing::HasSubstr;

// Each block adds one to its 64 elements of `in` in `mid`, then takes its neighbour's in the cluster to `out`.
struct Neighbours {
  Neighbours(int64_t blocks, std::vector<int> cluster) : m(2, blocks), elements(64 * blocks) {
    in = m.Global("in", DType::kFloat32, {m.Int(elements)});
    mid = m.Global("mid", DType::kFloat32, {m.Int(elements)}, true);
    out = m.Global("out", DType::kFloat32, {m.Int(elements)}, true);
    i = m.Var("i");
    m.k.cluster = std::move(cluster);
    m.k.cluster_rank = m.Var("rank");
    m.k.has_block = m.Var("has_block");
    from.resize(static_cast<size_t>(elements)), between.resize(from.size()), to.resize(from.size());
    for (size_t e = 0; e < from.size(); ++e) from[e] = static_cast<float>(e) / 8;
  }
  Expr At(Expr block) { return m.Sum(m.Op(ExprOp::kMul, block, m.Int(64)), m.V(i)); }
  void Write() {
    const kir::If inside{m.Op(ExprOp::kEq, m.V(m.k.has_block), m.Int(1)), {}, {}};
    m.With(inside, [&] {
      m.Points(BlockedLayout({64}, 2, 1), {i},
               [&] { m.Store(mid, {At(m.bx())}, m.Op(ExprOp::kAdd, m.Load(in, {At(m.bx())}), m.Real(1))); });
    });
  }
  // From the block of the other rank; from its own if the grid has no other.
  void Read() {
    const Expr other =
        m.Op(ExprOp::kMin,
             m.Sum(m.Op(ExprOp::kSub, m.bx(), m.V(m.k.cluster_rank)), m.Op(ExprOp::kSub, m.Int(1), m.V(m.k.cluster_rank))),
             m.Int(elements / 64 - 1));
    const kir::If inside{m.Op(ExprOp::kEq, m.V(m.k.has_block), m.Int(1)), {}, {}};
    m.With(inside,
           [&] { m.Points(BlockedLayout({64}, 2, 1), {i}, [&] { m.Store(out, {At(m.bx())}, m.Load(mid, {At(other)})); }); });
  }
  absl::Status Simulated(const kir::Kernel& kernel) {
    EXPECT_EQ(kir::VerifyKernel(kernel), "");
    const auto bytes = [](std::vector<float>& v) { return absl::MakeSpan(reinterpret_cast<uint8_t*>(v.data()), v.size() * 4); };
    return Simulate(kernel, {{}, {}, {bytes(from), bytes(between), bytes(to)}}, {}).status();
  }

  KernelMaker m;
  int64_t elements;
  BufferId in, mid, out;
  VarId i;
  std::vector<float> from, between, to;
};

TEST(Cluster, BlocksSeeWhatWasWrittenBeforeTheirBarrier) {
  for (int64_t blocks : {1, 2, 3, 8}) {
    Neighbours n(blocks, {2, 1});
    n.Write();
    n.m.Add(kir::ClusterSync{});
    n.Read();
    ASSERT_TRUE(n.Simulated(n.m.k).ok()) << n.Simulated(n.m.k);
    for (int64_t e = 0; e < n.elements; ++e) {
      const int64_t block = std::min(e / 64 ^ 1, blocks - 1);
      EXPECT_EQ(n.to[static_cast<size_t>(e)], n.from[static_cast<size_t>(block * 64 + e % 64)] + 1) << e;
    }
  }
}

TEST(Cluster, WithoutTheirBarrierTheyRace) {
  Neighbours n(4, {2, 1});
  n.Write();
  n.m.Add(kir::BarSync{});
  n.Read();
  EXPECT_THAT(std::string(n.Simulated(n.m.k).message()), HasSubstr("not ordered before it"));
}

TEST(Cluster, EverybodyMustComeToTheBarrier) {
  Neighbours n(3, {2, 1});
  n.Write();
  const kir::If inside{n.m.Op(ExprOp::kEq, n.m.V(n.m.k.has_block), n.m.Int(1)), {}, {}};
  n.m.With(inside, [&] { n.m.Add(kir::ClusterSync{}); });
  EXPECT_THAT(std::string(n.Simulated(n.m.k).message()), HasSubstr("waits for the other warps of its cluster"));
}

// In a role the blocks that share one wait for each other; the others, and other roles, go their way.
TEST(Cluster, SyncInARoleIsOfBlocksThatShareOne) {
  for (const bool synced : {true, false}) {
    Neighbours n(2, {1, 2});
    KernelMaker& m = n.m;
    m.k.warps = 3;
    // Rank 0 writes the block's elements, rank 1 reads them.
    kir::Role work{.name = "work", .warps = 2}, rest{.name = "rest", .warps = 1};
    work.body = m.BlockOf([&] {
      const auto only = [&](int64_t rank, auto body) {
        m.With(kir::If{m.Op(ExprOp::kEq, m.V(m.k.cluster_rank), m.Int(rank)), {}, {}}, body);
      };
      m.With(kir::ForTiles{}, [&] {
        only(0, [&] {
          m.Points(BlockedLayout({64}, 2, 1), {n.i}, [&] { m.Store(n.mid, {n.At(m.bx())}, m.Load(n.in, {n.At(m.bx())})); });
        });
        if (synced) m.Add(kir::ClusterSync{});
        only(1, [&] {
          m.Points(BlockedLayout({64}, 2, 1), {n.i}, [&] { m.Store(n.out, {n.At(m.bx())}, m.Load(n.mid, {n.At(m.bx())})); });
        });
      });
    });
    m.Add(kir::Roles{{work, rest}});
    m.k.cluster_barrier = 0;
    m.k.shared_bytes = 8;
    const absl::Status status = n.Simulated(m.k);
    EXPECT_EQ(status.ok(), synced) << status;
    if (synced) {
      EXPECT_EQ(n.to, n.from);
    }
  }
}

TEST(Cluster, VerifierKnowsTheLimits) {
  const auto error = [](std::vector<int> cluster) {
    Neighbours n(4, std::move(cluster));
    return kir::VerifyKernel(n.m.k);
  };
  EXPECT_EQ(error({2, 1}), "");
  EXPECT_THAT(error({2}), HasSubstr("one for each and one more"));
  EXPECT_THAT(error({8, 2}), HasSubstr("at most 8"));
  Neighbours none(4, {});
  none.m.Add(kir::ClusterSync{});
  EXPECT_THAT(kir::VerifyKernel(none.m.k), HasSubstr("there are no clusters"));
}

}  // namespace
}  // namespace tilert
