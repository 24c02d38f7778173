// What users of TileLang have published as pitfalls: here it runs, and is right, or is warned of (tests/frontend/lint.txt).
#include <cmath>

#include "absl/strings/str_cat.h"
#include "comparison.h"
#include "compile_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/lint.h"

namespace tilert {
namespace {

constexpr DType kF16 = DType::kFloat16, kF32 = DType::kFloat32;

// There the tile was too large for one family's layout, or wrong.
TEST(Pitfalls, AttentionOf64By64By128) {
  const Program program = CompileSource("kernels/attention.py", "attention",
                                        ParseSettings("block_M=64 block_N=64 head_dim=128 threads=128 causal=true"));
  Comparison comparison(program);
  for (const int64_t length : {64, 100}) {
    const std::vector<int64_t> shape = {1, length, 1, 128};
    comparison.ExpectAgrees(MakeArgs({{kF16, shape}, {kF16, shape}, {kF16, shape}, {kF16, shape}}), {.absolute = 0x1p-9},
                            absl::StrCat(length));
  }
  EXPECT_GT(comparison.compared(), 0);
}

TEST(Pitfalls, LayoutsWrittenByHand) {
  for (const std::string layout : {"xor", "transposed", "blocks", "swizzled"}) {
    Comparison comparison(CompileSource("tests/lowering/pitfalls.py", "own_layout", ParseSettings("layout=" + layout)));
    comparison.ExpectAgrees(MakeArgs({{kF16, {256, 128}}, {kF16, {128, 64}}, {kF32, {256, 64}}}), {.of_magnitude = 130 * 0x1p-23},
                            layout);
    EXPECT_GT(comparison.compared(), 0) << layout;
  }
}

// The gradient of Q for random arguments, from float64.
std::vector<double> Gradient(const Args& args) {
  const auto& [q, k, v, d] = std::tie(args.arrays[0], args.arrays[1], args.arrays[2], args.arrays[3]);
  const Array &lse = args.arrays[4], &delta = args.arrays[5];
  const auto dot = [](const Array& a, int64_t i, const Array& b, int64_t j) {
    double sum = 0;
    for (int64_t c = 0; c < 32; ++c) sum += a[i * 32 + c] * b[j * 32 + c];
    return sum;
  };
  std::vector<double> result(64 * 32);
  for (int64_t i = 0; i < 64; ++i) {
    for (int64_t j = 0; j < 96; ++j) {
      const double weight = std::exp2(dot(q, i, k, j) * 0.25 - lse[i]), slope = weight * (dot(d, i, v, j) - delta[i]);
      for (int64_t c = 0; c < 32; ++c) result[static_cast<size_t>(i * 32 + c)] += slope * k[j * 32 + c];
    }
  }
  return result;
}

// The largest error of the executor, relative to the largest element.
double ErrorOf(const Program& program, Args args) {
  EXPECT_TRUE(Execute(program, args.tensors(), {}, {}).ok());
  const std::vector<double> expected = Gradient(args);
  double error = 0, largest = 0;
  for (size_t k = 0; k < expected.size(); ++k) {
    largest = std::max(largest, std::abs(expected[k]));
    error = std::max(error, std::abs(expected[k] - args.out()[static_cast<int64_t>(k)]));
  }
  return error / largest;
}

TEST(Pitfalls, NarrowIntermediatesOfABackwardPass) {
  Args args = MakeArgs(
      {{kF16, {64, 32}}, {kF16, {96, 32}}, {kF16, {96, 32}}, {kF16, {64, 32}}, {kF32, {64}}, {kF32, {64}}, {kF32, {64, 32}}}, 2);
  for (int64_t i = 0; i < 64; ++i) args.arrays[4].Set(i, 8.0 + static_cast<double>(i % 4));
  double errors[2] = {};
  for (const bool narrow : {false, true}) {
    const Program program =
        CompileSource("tests/lowering/pitfalls.py", "backward", ParseSettings(narrow ? "narrow=true" : "narrow=false"));
    Comparison comparison(program);
    comparison.ExpectAgrees(args, {.absolute = narrow ? 0.5 : 0.02}, narrow ? "narrow" : "wide");
    EXPECT_GT(comparison.compared(), 0);
    errors[narrow] = ErrorOf(program, args);
    const absl::StatusOr<VerifiedProgram> verified = Verify(program);
    ASSERT_TRUE(verified.ok()) << verified.status();
    std::string warnings;
    for (const LintWarning& warning : Lint(*verified)) warnings += warning.ToString() + "\n";
    if (narrow) {
      EXPECT_THAT(warnings, testing::HasSubstr("the exponent of this exp2 is made of 'scores', which a gemm sums up in float16"));
      EXPECT_THAT(warnings, testing::HasSubstr("this difference takes 'gradient', which a gemm sums up in float16"));
    } else {
      EXPECT_EQ(warnings, "");
    }
  }
  EXPECT_LE(errors[0], 1e-2) << "in float32";
  EXPECT_GT(errors[1], errors[0]) << "what the warnings are about";
}

}  // namespace
}  // namespace tilert
