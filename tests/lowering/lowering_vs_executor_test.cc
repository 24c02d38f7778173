// What the lowering made of a program gives, in the simulator, what the program means to the executor: over edge extents, trip
// counts, both argument classes and random interleavings; and every barrier and wait that the lowering placed is needed.
#include "comparison.h"
#include "gtest/gtest.h"
#include "sample_tiles.h"

namespace tilert {
namespace {

constexpr DType kF32 = DType::kFloat32, kF16 = DType::kFloat16, kBF16 = DType::kBFloat16;

// A sum of k products, rounded to `out`, against a reference in float32.
Bound GemmBound(DType out, int64_t k) {
  return {out == kF32 ? 0x1p-22 : out == kBF16 ? 0x1p-8 : 0x1p-11, static_cast<double>(k + 2) * 0x1p-23, 0};
}

Args GemmArgs(const GemmTiles& o, int64_t m, int64_t n, int64_t k) {
  using Shape = std::vector<int64_t>;
  return MakeArgs({{o.type, o.transpose_a ? Shape{k, m} : Shape{m, k}},
                   {o.type, o.transpose_b ? Shape{n, k} : Shape{k, n}},
                   {o.out, {m, n}}});
}

void CompareGemm(const GemmTiles& o) {
  GemmTiles wide = o;
  wide.out = kF32;
  Comparison comparison(GemmTilesProgram(o), GemmTilesProgram(wide));
  const int64_t bm = o.block_m, bn = o.block_n, bk = o.block_k, s = o.stages;
  std::vector<std::array<int64_t, 3>> shapes = {
      {1, 1, 1},   {bm, bn, bk},  {bm - 1, bn + 1, bk - 1}, {bm + 1, bn - 1, bk + 1}, {0, bn, bk}, {bm, 0, bk},
      {bm, bn, 0}, {67, 101, 53}, {bm + 8, bn - 8, 40},     {2 * bm, bn + 16, 2 * bk}};
  for (int64_t trips = std::max<int64_t>(s - 1, 2); trips <= 2 * s + 1; ++trips) shapes.push_back({bm, bn, trips * bk});
  for (const auto& [m, n, k] : shapes) {
    comparison.ExpectAgrees(GemmArgs(o, m, n, k), GemmBound(o.out, k), absl::StrCat(m, "x", n, "x", k));
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(comparison.compared(), static_cast<int>(shapes.size()));
}

TEST(LoweringVsExecutor, Gemm) { CompareGemm({}); }
TEST(LoweringVsExecutor, GemmTransposedB) { CompareGemm({.type = kF16, .out = kF16, .transpose_b = true}); }
TEST(LoweringVsExecutor, GemmTransposedA) { CompareGemm({.out = kF32, .transpose_a = true, .stages = 2}); }
TEST(LoweringVsExecutor, GemmTransposedBoth) {
  CompareGemm({.transpose_a = true, .transpose_b = true, .block_m = 32, .stages = 4});
}
TEST(LoweringVsExecutor, GemmThroughSharedMemory) {
  CompareGemm({.block_n = 32, .block_k = 64, .threads = 64, .stage_out = true});
}
TEST(LoweringVsExecutor, GemmWithoutPipeline) { CompareGemm({.transpose_b = true, .stages = 0}); }

TEST(LoweringVsExecutor, GemmSynchronisationIsNeeded) {
  for (const GemmTiles& o : {GemmTiles{}, GemmTiles{.transpose_b = true, .stages = 2}, GemmTiles{.stages = 4, .stage_out = true},
                             GemmTiles{.stages = 0}}) {
    Comparison(GemmTilesProgram(o)).ExpectAllSynchronisationNeeded(
        {GemmArgs(o, 64, 64, 32), GemmArgs(o, 64, 64, 32 * 7), GemmArgs(o, 192, 64, 32 * 7)});
  }
}

TEST(LoweringVsExecutor, Add) {
  for (DType type : {kF32, kBF16, DType::kInt32, DType::kInt8}) {
    Comparison comparison(AddProgram(type));
    for (int64_t n : {0, 1, 255, 256, 257, 1009})
      comparison.ExpectAgrees(MakeArgs({{type, {n}}, {type, {n}}, {type, {n}}}, 100), {}, absl::StrCat(n));
  }
}

TEST(LoweringVsExecutor, TransposeIsExact) {
  for (DType type : {kF16, DType::kInt32, DType::kInt8}) {
    Comparison comparison(TransposeProgram(type));
    for (auto [m, n] :
         std::vector<std::pair<int64_t, int64_t>>{{0, 5}, {1, 1}, {31, 33}, {32, 32}, {33, 31}, {64, 48}, {37, 101}}) {
      comparison.ExpectAgrees(MakeArgs({{type, {m, n}}, {type, {n, m}}}, 100), {}, absl::StrCat(m, "x", n));
    }
    comparison.ExpectAllSynchronisationNeeded({MakeArgs({{type, {64, 64}}, {type, {64, 64}}}, 100)});
  }
}

TEST(LoweringVsExecutor, RmsNorm) {
  Comparison comparison(RmsNormProgram(256));
  const auto args = [](int64_t m, int64_t n) {
    return MakeArgs({{kBF16, {m, n}}, {kBF16, {n}}, {kBF16, {m, n}}}, 3, {ScalarArg::Float(1e-5, kF32)});
  };
  for (auto [m, n] : std::vector<std::pair<int64_t, int64_t>>{{0, 8}, {1, 1}, {3, 255}, {4, 256}, {5, 131}, {9, 64}}) {
    comparison.ExpectAgrees(args(m, n), {.relative = 0x1p-7}, absl::StrCat(m, "x", n));
  }
  comparison.ExpectAllSynchronisationNeeded({args(9, 256)});
}

TEST(LoweringVsExecutor, SoftmaxOfAnyLength) {
  Comparison comparison(SoftmaxRowsProgram(128));
  const auto args = [](int64_t m, int64_t n) { return MakeArgs({{kF16, {m, n}}, {kF32, {m, n}}}, 6); };
  for (auto [m, n] : std::vector<std::pair<int64_t, int64_t>>{{0, 8}, {1, 1}, {2, 127}, {3, 128}, {2, 129}, {1, 1009}}) {
    comparison.ExpectAgrees(args(m, n), {.relative = 0x1p-18}, absl::StrCat(m, "x", n));
  }
  comparison.ExpectAllSynchronisationNeeded({args(2, 512)});
}

TEST(LoweringVsExecutor, Gemv) {
  Comparison comparison(GemvProgram(8, 128));
  const auto args = [](int64_t n, int64_t k) { return MakeArgs({{kF16, {n, k}}, {kF16, {k}}, {kF32, {n}}}); };
  for (auto [n, k] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 8}, {1, 1}, {7, 127}, {8, 128}, {9, 129}, {13, 1009}, {16, 512}}) {
    comparison.ExpectAgrees(args(n, k), GemmBound(kF32, k), absl::StrCat(n, "x", k));
  }
  comparison.ExpectAllSynchronisationNeeded({args(16, 512)});
}

TEST(LoweringVsExecutor, Attention) {
  for (bool causal : {false, true}) {
    Comparison comparison(AttentionTilesProgram(causal, 64, 64, 32, 2));
    const auto args = [](int64_t h, int64_t l, int64_t s) {
      return MakeArgs({{kF16, {h, l, 64}}, {kF16, {h, s, 64}}, {kF16, {h, s, 64}}, {kF16, {h, l, 64}}}, 2);
    };
    for (auto [l, s] :
         std::vector<std::pair<int64_t, int64_t>>{{0, 4}, {1, 1}, {5, 0}, {33, 31}, {64, 65}, {65, 160}, {131, 64}}) {
      comparison.ExpectAgrees(args(2, l, s), {.relative = 0x1p-9, .absolute = 0x1p-10},
                              absl::StrCat(l, " queries, ", s, " keys"));
      if (HasFatalFailure()) return;
    }
    comparison.ExpectAllSynchronisationNeeded({args(1, 64, 160), args(1, 64, 0), args(1, 192, 192)});
  }
}

TEST(LoweringVsExecutor, LaunchesShareAWorkspace) {
  Comparison comparison(SplitSumProgram());
  for (int64_t n : {0, 1, 99, 100, 101, 1234})
    comparison.ExpectAgrees(MakeArgs({{DType::kInt32, {n}}, {DType::kInt32, {1}}}, 1000), {}, absl::StrCat(n));
}

}  // namespace
}  // namespace tilert
