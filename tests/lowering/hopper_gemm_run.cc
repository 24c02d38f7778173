#include "hopper_gemm_run.h"

#include <cmath>
#include <cstring>
#include <random>

#include "gtest/gtest.h"
#include "ir/numeric.h"

namespace tilert {
namespace {

// As a tensor core sees it: of float32 only the bits of tf32.
double OperandAt(const Bytes& bytes, DType type, int64_t i) {
  const double value = At(bytes, type, i);
  if (type != DType::kFloat32) return value;
  const auto single = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &single, 4);
  return DecodeFloat(type, bits & 0xffffe000u);
}

}  // namespace

Bytes RandomElements(DType type, int64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(static_cast<size_t>(n * DTypeBytes(type)));
  for (int64_t i = 0; i < n; ++i) {
    Value value{.i = static_cast<int64_t>(random() % 15) - 7};
    if (IsFloat(type)) value.f = RoundToType(type, static_cast<double>(random() % 2001) / 1000 - 1);
    StoreRow(type, &value, 1, bytes.data() + i * DTypeBytes(type), 1);
  }
  return bytes;
}

double At(const Bytes& bytes, DType type, int64_t i) {
  Value value;
  LoadRow(type, bytes.data() + i * DTypeBytes(type), 1, 1, &value);
  return IsFloat(type) ? value.f : static_cast<double>(value.i);
}

GemmRun::GemmRun(const HopperGemm& g, int64_t rows, int64_t columns, int64_t depth, uint64_t seed)
    : gemm(g),
      m(rows),
      n(columns),
      k(depth),
      a(RandomElements(g.dtype, m * k, seed)),
      b(RandomElements(g.dtype, n * k, seed + 1)),
      c(static_cast<size_t>(m * n * DTypeBytes(g.c_dtype)), 0xff) {}

absl::StatusOr<SimReport> GemmRun::Simulated(const kir::Kernel& kernel, const SimOptions& options) {
  return Simulate(kernel, {{m, n, k}, {}, {absl::MakeSpan(a), absl::MakeSpan(b), absl::MakeSpan(c)}}, options);
}

void GemmRun::ExpectProduct() const {
  std::vector<double> left, right;
  for (int64_t i = 0; i < m * k; ++i) left.push_back(OperandAt(a, gemm.dtype, i));
  for (int64_t i = 0; i < n * k; ++i) right.push_back(OperandAt(b, gemm.dtype, i));
  const double rounding = gemm.c_dtype == DType::kBFloat16  ? 0x1p-8
                          : gemm.c_dtype == DType::kFloat16 ? 0x1p-11
                          : IsFloat(gemm.c_dtype)           ? 0x1p-23
                                                            : 0;
  const double sums = gemm.acc_dtype == DType::kFloat16 ? 0x1p-9 : IsFloat(gemm.acc_dtype) ? 0x1p-23 : 0;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double exact = 0, magnitude = 0;
      for (int64_t x = 0; x < k; ++x) {
        const double product =
            left[static_cast<size_t>(i * k + x)] * right[static_cast<size_t>(gemm.b_mn_major ? x * n + j : j * k + x)];
        exact += product;
        magnitude += std::fabs(product);
      }
      const double got = At(c, gemm.c_dtype, i * n + j);
      ASSERT_LE(std::fabs(got - exact), std::fabs(exact) * rounding + static_cast<double>(k + 2) * magnitude * sums)
          << i << ", " << j;
    }
  }
}

HopperGemm Small() {
  HopperGemm gemm;
  gemm.bm = 64;
  gemm.bn = 128;
  gemm.stages = 3;
  gemm.warpgroups = 1;
  return gemm;
}
HopperGemm Cooperative() {
  HopperGemm gemm = Small();
  gemm.bm = 128;
  gemm.warpgroups = 2;
  return gemm;
}
HopperGemm PingPong() {
  HopperGemm gemm = Small();
  gemm.warpgroups = 2;
  gemm.ping_pong = true;
  gemm.stages = 4;
  return gemm;
}

}  // namespace tilert
