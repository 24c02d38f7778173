// kernels/gemm_scaled.py: products of 8-bit operands with a scale each. Executor against a reference in double precision; what
// the lowering makes of it against the executor, by wgmma, and where that is not to be had.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "comparison.h"
#include "compile_source.h"
#include "gtest/gtest.h"
#include "ir/status_util.h"

namespace tilert {
namespace {

using Shapes = std::vector<std::array<int64_t, 3>>;

Program Scaled(DType type, DType out, const std::string& settings = "") {
  const std::string types =
      Cat("dtype=", DTypeName(type), type == DType::kInt8 ? " accum_dtype=int32" : "", " out_dtype=", DTypeName(out));
  return CompileSource("kernels/gemm_scaled.py", "gemm_scaled", ParseSettings(types + " " + settings));
}

Args ScaledArgs(DType type, DType out, const std::array<int64_t, 3>& shape) {
  const auto [m, n, k] = shape;
  return MakeArgs({{type, {m, k}}, {type, {n, k}}, {out, {m, n}}}, type == DType::kInt8 ? 127 : 3,
                  {ScalarArg::Float(0.0375, DType::kFloat32), ScalarArg::Float(0.5, DType::kFloat32)});
}

// Two roundings to `out`; sums of int8 are exact.
Bound BoundOf(DType type, DType out, int64_t k) {
  if (type == DType::kInt8) return {};
  return {out == DType::kFloat32 ? 0x1p-21 : out == DType::kBFloat16 ? 0x1p-7 : 0x1p-10, static_cast<double>(k + 2) * 0x1p-23, 0};
}

const DType kTypes[] = {DType::kFloat8E4M3, DType::kFloat8E5M2, DType::kInt8};

TEST(GemmScaled, ExecutorComputesTheProduct) {
  for (DType type : kTypes) {
    for (DType out : {DType::kBFloat16, DType::kFloat16, DType::kFloat32}) {
      const Program program = Scaled(type, out);
      for (const std::array<int64_t, 3>& shape : Shapes{{1, 1, 1}, {65, 63, 130}, {7, 70, 0}, {3, 5, 777}}) {
        const auto [m, n, k] = shape;
        Args args = ScaledArgs(type, out, shape);
        const absl::Status status = Execute(program, args.tensors(), args.scalars, Checked());
        ASSERT_TRUE(status.ok()) << status;
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            double sum = 0, size = 0;
            for (int64_t x = 0; x < k; ++x) {
              const double product = args.arrays[0][i * k + x] * args.arrays[1][j * k + x];
              sum += product;
              size += std::fabs(product);
            }
            // A rounding of the sum for each block of K, one of each product with a scale, one to the output.
            const double scale = static_cast<double>(0.0375f) * 0.5, expected = sum * scale, got = args.out()[i * n + j];
            const double u = out == DType::kFloat32 ? 0 : out == DType::kBFloat16 ? 0x1p-8 : 0x1p-11;
            const double blocks = type == DType::kInt8 ? 0 : static_cast<double>(k / 64 + 1);
            ASSERT_NEAR(got, expected, std::fabs(expected) * (u + 0x1p-22) + size * scale * blocks * 0x1p-24)
                << i << ", " << j << " of " << m << "x" << n << "x" << k;
          }
        }
      }
    }
  }
}

// Extents around the tiles, aligned and not; 0, 1, 2 and 2·stages + 1 trips.
void CompareTiles(DType type, DType out, const std::string& settings, int64_t bm, int64_t bn, int64_t bk, int stages) {
  Comparison comparison(Scaled(type, out, Cat(settings, " num_stages=", stages)));
  const Shapes shapes = {
      {1, 1, 1}, {bm - 1, bn + 1, bk + 3}, {bm + 3, bn, bk + 16}, {bm, bn, 0}, {bm, 16, (2 * stages + 1) * bk}};
  for (const std::array<int64_t, 3>& shape : shapes) {
    comparison.ExpectAgrees(ScaledArgs(type, out, shape), BoundOf(type, out, shape[2]),
                            absl::StrCat(shape[0], "x", shape[1], "x", shape[2]));
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(comparison.compared(), static_cast<int>(shapes.size()));
}

// What is as in kernels/std.spec is compared in standard_kernels_test.
TEST(GemmScaled, Cooperative) {
  for (DType type : kTypes) {
    CompareTiles(type, DType::kBFloat16, "block_M=128 block_N=32 block_K=128 threads=256", 128, 32, 128, 2);
  }
}
TEST(GemmScaled, InTurns) {
  CompareTiles(DType::kFloat8E4M3, DType::kFloat16, "block_M=64 block_N=96 block_K=128 threads=128", 64, 96, 128, 2);
  CompareTiles(DType::kInt8, DType::kFloat16, "block_M=64 block_N=96 block_K=64 threads=128", 64, 96, 64, 3);
}
TEST(GemmScaled, FewRows) {
  for (DType type : kTypes) CompareTiles(type, DType::kBFloat16, "block_M=16 block_K=128 threads=128", 16, 64, 128, 2);
}
TEST(GemmScaled, OtherResults) {
  CompareTiles(DType::kInt8, DType::kFloat32, "block_K=128 threads=128", 64, 64, 128, 2);
  CompareTiles(DType::kFloat8E5M2, DType::kFloat32, "block_N=32 block_K=128 threads=128", 64, 32, 128, 2);
}
TEST(GemmScaled, BlocksOfKAddedInFloat32) {
  CompareTiles(DType::kFloat8E4M3, DType::kBFloat16, "block_K=128 threads=128 fast_accum=false", 64, 64, 128, 2);
}

}  // namespace
}  // namespace tilert
