// Loops that blocks of a cluster share (split_sums.py, kernels/gemm.py): results are the executor's, synchronisation is needed
// and enough, and loops that cannot be shared run whole and say why.
#include "absl/strings/str_cat.h"
#include "comparison.h"
#include "compile_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/status_util.h"
#include "kernel_mutation.h"
#include "lowering/target.h"
#include "nvrtc_harness.h"
#include "program_sim.h"

namespace tilert {
namespace {

using testing::HasSubstr;
using Shape = std::vector<int64_t>;
constexpr DType kF16 = DType::kFloat16, kF32 = DType::kFloat32;
constexpr Bound kHalf{1e-3, 2e-6, 1e-6}, kSingle{1e-6, 2e-6, 1e-6};

Program Split(const std::string& entry, const std::string& settings = "") {
  return CompileSource("tests/lowering/split_sums.py", entry, ParseSettings(settings));
}

kir::Kernel Planned(const Program& program, const std::string& arch = "sm_90a", bool fast = true) {
  const absl::StatusOr<std::vector<kir::Kernel>> kernels =
      PlanAll(program, fast ? FastArgClass(program) : GeneralArgClass(program), arch);
  EXPECT_TRUE(kernels.ok()) << kernels.status();
  return kernels.ok() ? kernels->front() : kir::Kernel();
}

Args ProductArgs(int64_t m, int64_t n, int64_t k) {
  return MakeArgs({{kF16, {m, k}}, {kF16, {n, k}}, {kF32, {m, n}}, {kF16, {m, n}}});
}

// One iteration, fewer than there are blocks, odd numbers, more than the ring has slots.
TEST(SplitSums, ProductsAgree) {
  const std::pair<const char*, std::vector<Shape>> kCases[] = {{"", {{1, 8, 8}, {65, 72, 64}, {33, 64, 520}}},
                                                               {"split=3", {{17, 24, 72}, {9, 64, 328}}},
                                                               {"start=true", {{20, 72, 200}}},
                                                               {"split=4 bn=128 threads=256 bm=128", {{130, 24, 328}}},
                                                               {"bm=16", {{17, 72, 136}}}};
  for (const auto& [settings, shapes] : kCases) {
    Comparison comparison(Split("product", settings));
    for (const Shape& s : shapes)
      comparison.ExpectAgrees(ProductArgs(s[0], s[1], s[2]), kHalf, absl::StrCat(settings, " ", s[0], "x", s[1], "x", s[2]));
    EXPECT_GT(comparison.compared(), 0);
  }
}

TEST(SplitSums, ProductsWithoutIterations) {
  Comparison comparison(Split("product", "start=true"));
  comparison.ExpectAgrees(ProductArgs(9, 8, 0), kHalf, "no iterations");
}

TEST(SplitSums, OtherSumsAgree) {
  Comparison two(Split("two_products"));
  for (int64_t k : {8, 96, 168})
    two.ExpectAgrees(MakeArgs({{kF16, {70, k}}, {kF16, {72, k}}, {kF16, {72, k}}, {kF32, {70, 72}}}), kSingle,
                     absl::StrCat("two products, ", k));
  for (const char* settings : {"", "stages=0", "split=2"}) {
    Comparison rows(Split("row_sums", settings));
    for (int64_t n : {1, 128, 640, 1001})
      rows.ExpectAgrees(MakeArgs({{kF32, {13, n}}, {kF32, {13}}}), kSingle, absl::StrCat("row sums, ", settings, " ", n));
  }
}

TEST(SplitSums, AllSynchronisationIsNeeded) {
  Comparison product(Split("product", "bm=64 bn=64 stages=2"));
  product.ExpectAllSynchronisationNeeded({ProductArgs(8, 200, 648), ProductArgs(8, 200, 64)});
  Comparison rows(Split("row_sums"));
  rows.ExpectAllSynchronisationNeeded({MakeArgs({{kF32, {24, 900}}, {kF32, {24}}})}, "ClusterSync");
}

// All blocks share all tiles: fewer, as many and more of them than tiles; fewer iterations than blocks.
TEST(SplitSums, TilesThatAllBlocksShareAgree) {
  const std::pair<const char*, std::vector<Shape>> kCases[] = {
      {"split=0", {{1, 8, 8}, {65, 72, 64}, {130, 72, 328}}},
      {"split=0 start=true", {{20, 72, 200}, {130, 72, 328}, {9, 8, 0}}},
      {"split=0 bn=128 threads=256 bm=128", {{130, 264, 328}}},
      {"split=0 bm=16", {{40, 72, 136}}}};
  for (const auto& [settings, shapes] : kCases) {
    Comparison comparison(Split("product", settings));
    for (int round = 0; round < 2; ++round) {  // other numbers of blocks
      for (const Shape& s : shapes)
        comparison.ExpectAgrees(ProductArgs(s[0], s[1], s[2]), kHalf, absl::StrCat(settings, " ", s[0], "x", s[1], "x", s[2]));
    }
  }
  Comparison two(Split("two_products", "split=0"));
  for (int64_t k : {8, 96, 168})
    two.ExpectAgrees(MakeArgs({{kF16, {70, k}}, {kF16, {72, k}}, {kF16, {72, k}}, {kF32, {70, 72}}}), kSingle,
                     absl::StrCat("two products, ", k));
  for (const char* settings : {"split=0", "split=0 stages=0"}) {
    Comparison rows(Split("row_sums", settings));
    for (int64_t n : {1, 128, 640, 1001})
      rows.ExpectAgrees(MakeArgs({{kF32, {13, n}}, {kF32, {13}}}), kSingle, absl::StrCat("row sums, ", settings, " ", n));
  }
}

TEST(SplitSums, ClustersThatShareTilesAgree) {
  const Program program = CompileSource(
      "kernels/gemm.py", "gemm",
      ParseSettings("block_M=64 block_N=64 block_K=64 threads=128 num_stages=2 transpose_B=true split=0 cluster_M=2"));
  Comparison comparison(program);
  for (const Shape& s : {Shape{65, 200, 328}, Shape{200, 72, 72}, Shape{130, 136, 648}}) {
    comparison.ExpectAgrees(MakeArgs({{kF16, {s[0], s[2]}}, {kF16, {s[1], s[2]}}, {kF16, {s[0], s[1]}}}), kHalf,
                            absl::StrCat(s[0], "x", s[1], "x", s[2]));
  }
}

// Every barrier and wait, and the sums that go from block to block, taken away or done twice in turn: found with one block or
// with several.
TEST(SplitSums, AllSynchronisationOfSharedTilesIsNeeded) {
  const Program program = Split("product", "split=0 bm=64 bn=64 stages=2");
  const kir::Kernel kernel = Planned(program);
  ASSERT_TRUE(static_cast<bool>(kernel.shared_trips)) << kernel.schedule;
  const Args shapes[] = {ProductArgs(8, 200, 648), ProductArgs(8, 200, 64)};
  const auto simulate = [&](const kir::Kernel& changed, Args args, int64_t blocks) {
    return SimulateAll(program, {changed}, args.tensors(), args.scalars, {.seed = 5, .interleavings = 1, .blocks = blocks});
  };
  int sums = 0;
  for (int64_t blocks : {1, 3, 8}) {
    for (const Args& args : shapes) ASSERT_TRUE(simulate(kernel, args, blocks).ok()) << simulate(kernel, args, blocks);
  }
  for (const Mutant& mutant : SynchronisationMutants(kernel)) {
    bool found = false;
    for (const Args& args : shapes) {
      for (int64_t blocks : {1, 3}) found = found || simulate(mutant.kernel, args, blocks).code() == absl::StatusCode::kInternal;
    }
    EXPECT_TRUE(found) << "nothing is wrong " << mutant.what;
    sums += mutant.what.find("Sums") != std::string::npos;
  }
  EXPECT_EQ(sums, 4);
}

TEST(SplitSums, WhatAllBlocksShare) {
  const kir::Kernel shared = Planned(Split("product", "split=0"));
  EXPECT_THAT(shared.schedule, HasSubstr("shared by all blocks, which add up acc"));
  EXPECT_TRUE(static_cast<bool>(shared.shared_trips) && shared.cluster.empty());
  EXPECT_EQ(kir::GivenBytes(shared), 256 + 64 * 64 * 4);
  const kir::Kernel general = Planned(Split("product", "split=0"), "sm_90a", false);
  EXPECT_THAT(general.schedule, HasSubstr("not shared: no tile of the loop comes by TMA"));
  EXPECT_EQ(kir::GivenBytes(general), 0);
  EXPECT_THAT(Planned(Split("product", "split=0"), "sm_80").schedule,
              HasSubstr("not split: blocks of the target take one tile each"));
  EXPECT_THAT(Planned(Split("ragged", "")).schedule, HasSubstr("not split: how many iterations there are depends on the block"));
}

TEST(SplitSums, WhatIsSplit) {
  for (const char* entry : {"product", "two_products", "row_sums"}) {
    for (bool fast : {true, false}) {
      const kir::Kernel kernel = Planned(Split(entry), "sm_90a", fast);
      EXPECT_THAT(kernel.schedule, HasSubstr("which add up")) << entry;
      EXPECT_EQ(kernel.cluster.back(), std::string(entry) == "row_sums" ? 3 : 2) << entry;
    }
    const kir::Kernel ampere = Planned(Split(entry), "sm_80");
    EXPECT_THAT(ampere.schedule, HasSubstr("not split: the target has no clusters"));
    EXPECT_TRUE(ampere.cluster.empty());
  }
}

TEST(SplitSums, WhatIsNot) {
  const std::pair<const char*, const char*> kCases[] = {{"largest", "not split: 'top' carries more than a sum"},
                                                        {"last_chunk", "not split: 'x' carries more than a sum"},
                                                        {"writes_inside", "not split: it writes 'Z'"},
                                                        {"inner_loop", "not split: it stands in a loop or condition"},
                                                        {"roles_behind", "not split: threads of the launch have roles"}};
  for (const auto& [entry, why] : kCases) {
    const kir::Kernel kernel = Planned(Split(entry));
    EXPECT_THAT(kernel.schedule, HasSubstr(why)) << entry;
    EXPECT_TRUE(kernel.cluster.empty()) << entry;
  }
  const Program wide = CompileSource("kernels/gemm.py", "gemm",
                                     ParseSettings("block_M=64 block_N=64 block_K=64 transpose_B=true split=4 cluster_M=4"));
  EXPECT_THAT(Planned(wide).schedule, HasSubstr("not split: clusters would have 16 blocks, more than 8"));
  Comparison largest(Split("largest"));
  largest.ExpectAgrees(MakeArgs({{kF32, {13, 600}}, {kF32, {13}}}), {}, "largest");
  Comparison roles(Split("roles_behind"));
  roles.ExpectAgrees(MakeArgs({{kF32, {16, 600}}, {kF32, {16, 128}}}), kSingle, "roles behind");
}

TEST(SplitSums, CompileClean) {
  if (!HasNvrtc()) GTEST_SKIP() << "no NVRTC";
  const Target target = *FindTarget("sm_90a");
  for (const char* settings : {"bm=136 bn=128 threads=256", "split=4", "split=0", "split=0 bm=128 bn=256 threads=256",
                               "split=0 bm=136 bn=128 threads=256"}) {
    const Program program = Split("product", settings);
    for (const ArgClass& arg_class : {FastArgClass(program), GeneralArgClass(program)}) {
      const absl::StatusOr<Lowered> lowered = Lower(program, arg_class, target);
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      const TestCubin cubin = CompileForTest(lowered->source, "sm_90a");
      EXPECT_TRUE(cubin.ok) << settings << cubin.log;
      EXPECT_EQ(cubin.complaints, "") << settings;
      EXPECT_LE(cubin.spill_bytes, 0) << settings << arg_class.ToString();
    }
  }
}

}  // namespace
}  // namespace tilert
