// Programs that ask for thread block clusters: what blocks have in common is loaded once, results are the executor's, and nothing
// of the protocol between the blocks is superfluous.
#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "comparison.h"
#include "compile_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lowering/target.h"
#include "nvrtc_harness.h"
#include "program_sim.h"

namespace tilert {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
constexpr DType kF16 = DType::kFloat16;

Program Gemm(const std::string& settings) {
  return CompileSource("kernels/gemm.py", "gemm", ParseSettings("block_K=64 num_stages=3 " + settings));
}

Program Attention(const std::string& settings) {
  return CompileSource("kernels/attention.py", "attention", ParseSettings("head_dim=64 block_M=64 block_N=64 " + settings));
}

kir::Kernel HopperKernel(const Program& program) {
  const absl::StatusOr<std::vector<kir::Kernel>> kernels = PlanAll(program, FastArgClass(program), "sm_90a");
  EXPECT_TRUE(kernels.ok()) << kernels.status();
  return kernels.ok() ? kernels->front() : kir::Kernel();
}

// Of each load in the order of the text: the axes along which it is shared, and its box.
struct Load {
  kir::ClusterAxes axes;
  std::vector<int64_t> box;
  bool operator==(const Load&) const = default;
};
void Collect(const kir::Kernel& kernel, const kir::Block& block, std::vector<Load>* loads) {
  for (const kir::Stmt& stmt : block) {
    if (auto* load = std::get_if<kir::TmaLoad>(&stmt.op)) loads->push_back({load->multicast, kernel.tensor_maps[load->map].box});
    for (const kir::Block* child : kir::ChildBlocks(stmt)) Collect(kernel, *child, loads);
  }
}
std::vector<Load> LoadsOf(const kir::Kernel& kernel) {
  std::vector<Load> loads;
  Collect(kernel, kernel.body, &loads);
  return loads;
}

constexpr kir::ClusterAxes kX = 1, kY = 2;

TEST(ClusterLowering, LoadsWhatBlocksHaveInCommonOnce) {
  // Tiles of neighbouring rows: B in two halves, its panel's rows or, stored by columns, its two panels.
  kir::Kernel k = HopperKernel(Gemm("block_M=64 block_N=128 cluster_M=2 transpose_B=true"));
  EXPECT_THAT(k.cluster, ElementsAre(1, 2, 1));
  EXPECT_THAT(LoadsOf(k), ElementsAre(Load{0, {64, 64}}, Load{kY, {64, 64}}));
  EXPECT_EQ(k.rings[0].consumers, 8);
  k = HopperKernel(Gemm("block_M=64 block_N=128 cluster_M=2"));
  EXPECT_THAT(LoadsOf(k), ElementsAre(Load{0, {64, 64}}, Load{kY, {64, 64}}));
  // Three panels: half the rows of each.
  k = HopperKernel(Gemm("block_M=64 block_N=192 cluster_M=2"));
  EXPECT_THAT(LoadsOf(k), ElementsAre(Load{0, {64, 64}}, Load{kY, {32, 64}}));
  k = HopperKernel(Gemm("block_M=64 block_N=128 cluster_M=2 cluster_N=2 transpose_B=true"));
  EXPECT_THAT(k.cluster, ElementsAre(2, 2, 1));
  EXPECT_THAT(LoadsOf(k), ElementsAre(Load{kX, {32, 64}}, Load{kY, {64, 64}}));
  EXPECT_EQ(k.rings[0].consumers, 4 * 3);
}

TEST(ClusterLowering, WithoutAnythingInCommonThereIsNoCluster) {
  // Eleven groups of eight rows do not fall into halves; A moves with the tile.
  const kir::Kernel odd = HopperKernel(Gemm("block_M=64 block_N=88 cluster_M=2 transpose_B=true"));
  EXPECT_THAT(odd.cluster, IsEmpty());
  EXPECT_THAT(LoadsOf(odd), ElementsAre(Load{0, {64, 64}}, Load{0, {88, 64}}));
  EXPECT_THAT(HopperKernel(Gemm("block_M=64 block_N=128 transpose_B=true")).cluster, IsEmpty());
  // How many keys a block sees depends on the block: the others would wait for it.
  EXPECT_THAT(HopperKernel(Attention("causal=true cluster=2")).cluster, IsEmpty());
  const absl::StatusOr<std::vector<kir::Kernel>> ampere =
      PlanAll(Gemm("block_M=64 block_N=128 cluster_M=2"), FastArgClass(Gemm("cluster_M=2")), "sm_80");
  ASSERT_TRUE(ampere.ok()) << ampere.status();
  EXPECT_THAT(ampere->front().cluster, IsEmpty());
}

TEST(ClusterLowering, BlocksOfAHeadShareKeysAndValues) {
  const kir::Kernel k = HopperKernel(Attention("cluster=2"));
  EXPECT_THAT(k.cluster, ElementsAre(2, 1, 1, 1));
  const std::vector<Load> loads = LoadsOf(k);
  EXPECT_EQ(std::count(loads.begin(), loads.end(), Load{0, {1, 64, 1, 64}}), 1) << kir::ToText(k);  // Q
  EXPECT_EQ(std::count(loads.begin(), loads.end(), Load{kX, {1, 32, 1, 64}}), static_cast<std::ptrdiff_t>(loads.size()) - 1);
}

Args GemmArgs(bool transpose_b, int64_t m, int64_t n, int64_t k) {
  using Shape = std::vector<int64_t>;
  return MakeArgs({{kF16, {m, k}}, {kF16, transpose_b ? Shape{n, k} : Shape{k, n}}, {kF16, {m, n}}});
}

// Grids of one tile to more than the cluster has, with and without blocks outside the grid, and trip counts around the number of
// stages.
void CompareGemm(const std::string& settings, bool transpose_b) {
  Comparison comparison(Gemm(settings));
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 8, 8}, {65, 136, 72}, {72, 72, 0}, {136, 72, 64 * 4}}) {
    comparison.ExpectAgrees(GemmArgs(transpose_b, m, n, k), {0x1p-10, static_cast<double>(k + 2) * 0x1p-23, 0x1p-14},
                            absl::StrCat(settings, " ", m, "x", n, "x", k));
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(comparison.compared(), 4);
}

TEST(ClusterLowering, GemmAgrees) { CompareGemm("block_M=64 block_N=64 cluster_M=2 transpose_B=true", true); }
TEST(ClusterLowering, GemmSharingAAgrees) { CompareGemm("block_M=128 block_N=64 threads=256 cluster_N=2", false); }
TEST(ClusterLowering, GemmOfPanelsAgrees) { CompareGemm("block_M=64 block_N=128 cluster_M=4", false); }
TEST(ClusterLowering, GemmSharingBothAgrees) {
  CompareGemm("block_M=64 block_N=64 cluster_M=2 cluster_N=2 transpose_B=true", true);
}

// Clusters in which some blocks share the sum over K and others what they load.
TEST(ClusterLowering, GemmWithSplitSumsAgrees) {
  CompareGemm("block_M=64 block_N=64 cluster_M=2 split=2 transpose_B=true", true);
}

TEST(ClusterLowering, AttentionAgrees) {
  Comparison comparison(Attention("cluster=2"));
  for (const auto& [q, kv] : std::vector<std::array<int64_t, 2>>{{1, 1}, {65, 130}, {130, 0}}) {
    comparison.ExpectAgrees(
        MakeArgs({{kF16, {1, q, 2, 64}}, {kF16, {1, kv, 1, 64}}, {kF16, {1, kv, 1, 64}}, {kF16, {1, q, 2, 64}}}, 2),
        {.relative = 0x1p-9, .absolute = 0x1p-10}, absl::StrCat(q, " queries, ", kv, " keys"));
    if (HasFatalFailure()) return;
  }
}

// One cluster meets all tiles: with blocks outside the grid in between, and for each of two instances.
TEST(ClusterLowering, SynchronisationIsNeeded) {
  for (const int64_t n : {64, 128}) {
    Comparison(Gemm(absl::StrCat("block_M=64 block_N=", n, " cluster_M=2 transpose_B=true")))
        .ExpectAllSynchronisationNeeded({GemmArgs(true, 64, n, 64), GemmArgs(true, 64, n, 64 * 2), GemmArgs(true, 64, n, 64 * 3),
                                         GemmArgs(true, 64 * 5, n * 3, 64 * 4)});
  }
}

// Faults between blocks that no statement's removal gives.
class BetweenBlocks : public testing::Test {
 protected:
  absl::Status Simulated(const kir::Kernel& kernel) {
    Args args = GemmArgs(true, 200, 128, 64 * 7);
    return SimulateAll(program, {kernel}, args.tensors(), args.scalars, {.seed = 3, .interleavings = 2, .blocks = 2});
  }
  Program program = Gemm("block_M=64 block_N=64 cluster_M=2 transpose_B=true");
  kir::Kernel kernel = HopperKernel(program);
};

TEST_F(BetweenBlocks, Sound) { EXPECT_TRUE(Simulated(kernel).ok()) << Simulated(kernel); }

TEST_F(BetweenBlocks, SlotsMustBeReleasedToEverybody) {
  kernel.rings[0].multicasts.clear();
  EXPECT_THAT(kir::VerifyKernel(kernel), HasSubstr("is shared by blocks that ring"));
  EXPECT_THAT(std::string(Simulated(kernel).message()), HasSubstr("deadlock"));
  kernel.rings[0].consumers /= 2;
  EXPECT_THAT(std::string(Simulated(kernel).message()), HasSubstr("of block"));
}

TEST_F(BetweenBlocks, VerifierCountsArrivals) {
  EXPECT_EQ(kir::VerifyKernel(kernel), "");
  kernel.rings[0].consumers /= 2;
  EXPECT_THAT(kir::VerifyKernel(kernel), HasSubstr("counts 4 consumers, 8 warps release its slots"));
}

TEST_F(BetweenBlocks, NobodyMayEndWhileOthersSignalIt) {
  kernel.body.pop_back();
  EXPECT_THAT(std::string(Simulated(kernel).message()), HasSubstr("may have ended when"));
}

TEST_F(BetweenBlocks, HalfATileIsNotAll) {
  for (kir::TensorMap& map : kernel.tensor_maps) {
    if (map.box[0] == 32) map.box[0] = 16;
  }
  EXPECT_FALSE(Simulated(kernel).ok());
  EXPECT_NE(kir::VerifyKernel(kernel), "");
}

TEST(ClusterLowering, CompilesClean) {
  if (!HasNvrtc()) GTEST_SKIP() << "no NVRTC";
  for (const Program& program :
       {Gemm("block_M=128 block_N=256 threads=256 cluster_M=2 transpose_B=true"),
        Gemm("block_M=128 block_N=128 threads=128 cluster_M=2 cluster_N=2"),
        CompileSource("kernels/attention.py", "attention", ParseSettings("block_M=128 block_N=128 threads=256 cluster=2"))}) {
    const absl::StatusOr<Lowered> lowered = Lower(program, FastArgClass(program), *FindTarget("sm_90a"), {});
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_THAT(lowered->kernels[0].cluster, testing::Not(IsEmpty()));
    const TestCubin cubin = CompileForTest(lowered->source, "sm_90a");
    EXPECT_TRUE(cubin.ok) << cubin.log;
    EXPECT_EQ(cubin.complaints, "");
    EXPECT_EQ(cubin.spill_bytes, 0);
  }
}

}  // namespace
}  // namespace tilert
