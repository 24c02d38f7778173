// Emitted kernels of the Hopper family run on the host: what the text computes, with TMA, mbarriers, wgmma and stmatrix as
// host_hopper.h has them from the PTX ISA.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "hopper_kernels.h"
#include "host_kernel.h"
#include "ir/numeric.h"
#include "kernel_maker.h"

namespace tilert {
namespace {

// The kernel emitted, and compiled for the host.
std::unique_ptr<HostKernels> BuildOk(const kir::Kernel& kernel) {
  EXPECT_EQ(kir::VerifyKernel(kernel), "");
  const Target target = *FindTarget("sm_90a");
  const absl::StatusOr<std::string> text = EmitKernel(kernel, target);
  EXPECT_TRUE(text.ok()) << text.status();
  if (!text.ok()) return nullptr;
  Lowered lowered;
  lowered.source = Prelude(target) + *text;
  lowered.kernels.push_back({.symbol = kernel.name, .threads = static_cast<uint32_t>(kernel.warps * kLanes)});
  std::string error;
  std::unique_ptr<HostKernels> host = HostKernels::Build(lowered, target, &error);
  EXPECT_NE(host, nullptr) << error;
  return host;
}

struct Matrix {
  Matrix(DType type, int64_t rows, int64_t columns)
      : dtype(type), shape{rows, columns}, memory(static_cast<size_t>(rows * columns * DTypeBytes(type))) {}
  double At(int64_t i, int64_t j) const {
    const uint8_t* p = memory.data() + (i * shape[1] + j) * DTypeBytes(dtype);
    uint32_t bits = 0;
    std::memcpy(&bits, p, static_cast<size_t>(DTypeBytes(dtype)));
    if (dtype == DType::kInt8) return static_cast<int8_t>(bits);
    if (dtype == DType::kUInt8) return bits;
    if (dtype == DType::kInt32) return static_cast<int32_t>(bits);
    return DecodeFloat(dtype, bits);
  }
  void Set(int64_t i, int64_t j, double value) {
    const uint32_t bits =
        IsFloat(dtype) ? static_cast<uint32_t>(EncodeFloat(dtype, value)) : static_cast<uint32_t>(static_cast<int32_t>(value));
    std::memcpy(memory.data() + (i * shape[1] + j) * DTypeBytes(dtype), &bits, static_cast<size_t>(DTypeBytes(dtype)));
  }
  void Fill(uint32_t seed) {
    std::mt19937 random(seed);
    const int low = dtype == DType::kUInt8 ? 0 : -3;
    for (int64_t i = 0; i < shape[0]; ++i) {
      for (int64_t j = 0; j < shape[1]; ++j) Set(i, j, static_cast<int>(random() % static_cast<uint32_t>(4 - low)) + low);
    }
  }
  // All elements, the index along `k` innermost.
  std::vector<double> Values(bool k_first) const {
    std::vector<double> values;
    for (int64_t i = 0; i < shape[k_first ? 1 : 0]; ++i) {
      for (int64_t x = 0; x < shape[k_first ? 0 : 1]; ++x) values.push_back(k_first ? At(x, i) : At(i, x));
    }
    return values;
  }
  HostTensorMap Map(const kir::TensorMap& map) const { return {memory.data(), DTypeBytes(dtype), shape, map.box, map.swizzle}; }

  DType dtype;
  std::vector<int64_t> shape;
  GuardedMemory memory;
};

void CheckGemm(const HopperGemm& gemm, const std::vector<std::array<int, 3>>& shapes, uint32_t blocks = 2) {
  const kir::Kernel kernel = HopperGemmKernel(gemm);
  const std::unique_ptr<HostKernels> host = BuildOk(kernel);
  if (host == nullptr) return;
  for (auto [m, n, k] : shapes) {
    SCOPED_TRACE(testing::Message() << m << "x" << n << "x" << k);
    Matrix a(gemm.dtype, gemm.a_mn_major ? k : m, gemm.a_mn_major ? m : k),
        b(gemm.dtype, gemm.b_mn_major ? k : n, gemm.b_mn_major ? n : k),
        c(gemm.c_dtype, gemm.transposed ? n : m, gemm.transposed ? m : n);
    a.Fill(1), b.Fill(2);
    std::memset(c.memory.data(), gemm.add ? 0 : 0xff, c.memory.size());
    std::vector<HostTensorMap> maps;
    for (const Matrix* matrix : {&a, &b, &c}) {
      if (maps.size() < kernel.tensor_maps.size()) maps.push_back(matrix->Map(kernel.tensor_maps[maps.size()]));
    }
    void* pointers[] = {a.memory.data(), b.memory.data(), c.memory.data()};
    int dims[] = {m, n, k};
    std::vector<void*> args = {&pointers[0], &pointers[1], &pointers[2]};
    for (HostTensorMap& map : maps) args.push_back(&map);
    for (int& dim : dims) args.push_back(&dim);
    ASSERT_TRUE(host->Run(0, blocks, 7, args)) << "the threads wait for each other for ever";
    EXPECT_TRUE(c.memory.Intact());
    const std::vector<double> left = a.Values(gemm.a_mn_major), right = b.Values(gemm.b_mn_major);
    int wrong = 0;
    for (int i = 0; i < m && wrong < 5; ++i) {
      for (int j = 0; j < n && wrong < 5; ++j) {
        double expected = 0;
        const double *row = left.data() + int64_t{i} * k, *column = right.data() + int64_t{j} * k;
        for (int x = 0; x < k; ++x) expected += row[x] * column[x];
        if (IsFloat(gemm.c_dtype)) expected = RoundToType(gemm.c_dtype, expected);
        const double actual = gemm.transposed ? c.At(j, i) : c.At(i, j);
        if (actual == expected) continue;
        ADD_FAILURE() << "C[" << i << ", " << j << "] is " << actual << ", not " << expected;
        ++wrong;
      }
    }
  }
}

constexpr HopperGemm kSmall{.bm = 64, .bn = 64, .bk = 64, .stages = 3, .warpgroups = 1};
HopperGemm With(HopperGemm gemm, void (*change)(HopperGemm&)) {
  change(gemm);
  return gemm;
}

TEST(HopperRun, TripsAndEdges) {
  CheckGemm(kSmall, {{64, 64, 0}, {64, 64, 64}, {1, 8, 8}, {65, 72, 136}, {130, 136, 448}, {64, 128, 192}});
}

TEST(HopperRun, MnMajor) {
  CheckGemm(With(kSmall, [](HopperGemm& g) { g.b_mn_major = true; }), {{65, 72, 136}, {130, 136, 448}});
  CheckGemm({.bm = 64, .bn = 96, .bk = 32, .stages = 2, .warpgroups = 1, .b_mn_major = true, .staged = false}, {{64, 200, 104}});
  CheckGemm({.bm = 64, .bn = 48, .bk = 64, .stages = 2, .warpgroups = 1, .b_mn_major = true, .staged = false}, {{64, 200, 104}});
}

TEST(HopperRun, OtherSwizzles) {
  CheckGemm({.bm = 64, .bn = 72, .bk = 32, .stages = 2, .warpgroups = 1, .staged = false}, {{64, 200, 104}});
  CheckGemm({.bm = 64, .bn = 40, .bk = 16, .stages = 2, .warpgroups = 1, .staged = false}, {{64, 80, 104}});
  CheckGemm({.bm = 64, .bn = 40, .bk = 48, .stages = 2, .warpgroups = 1, .staged = false}, {{64, 80, 104}});
  CheckGemm({.bm = 64, .bn = 64, .bk = 128, .stages = 2, .warpgroups = 1}, {{64, 64, 392}});
}

TEST(HopperRun, TwoWarpgroups) {
  CheckGemm({}, {{257, 264, 328}});
  CheckGemm({.bn = 128, .b_mn_major = true}, {{257, 264, 328}});
}

TEST(HopperRun, OperandsAndResultsOfOtherShapes) {
  CheckGemm(With(kSmall, [](HopperGemm& g) { g.a_mn_major = true, g.b_mn_major = true; }), {{72, 72, 136}});
  CheckGemm({.bm = 128, .bn = 128, .stages = 2, .staged = false, .a_mn_major = true, .split_n = true}, {{136, 200, 136}});
  CheckGemm(With(kSmall, [](HopperGemm& g) { g.transposed = true; }), {{72, 72, 136}});
  CheckGemm(With(kSmall, [](HopperGemm& g) { g.transposed = true, g.bn = 40; }), {{72, 72, 136}});  // an odd number of matrices
  CheckGemm({.c_dtype = DType::kFloat32, .bm = 64, .bn = 64, .stages = 2, .warpgroups = 1, .staged = false, .add = true},
            {{72, 72, 136}});
}

TEST(HopperRun, PingPong) {
  CheckGemm({.bn = 64, .stages = 3, .ping_pong = true}, {{128, 64, 64}, {400, 200, 328}, {1, 256, 64}}, 1);
  CheckGemm({.bn = 128, .ping_pong = true, .b_mn_major = true}, {{400, 400, 72}});
}

TEST(HopperRun, OtherTypes) {
  CheckGemm(
      With(kSmall, [](HopperGemm& g) { g.dtype = DType::kFloat16, g.c_dtype = DType::kFloat16, g.acc_dtype = DType::kFloat16; }),
      {{65, 72, 136}});
  CheckGemm(
      With(kSmall,
           [](HopperGemm& g) { g.dtype = DType::kFloat16, g.b_mn_major = true, g.c_dtype = DType::kFloat32, g.staged = false; }),
      {{65, 72, 136}});
  CheckGemm(With(kSmall, [](HopperGemm& g) { g.dtype = DType::kFloat8E4M3, g.bk = 128; }), {{65, 80, 144}});
  CheckGemm(With(kSmall, [](HopperGemm& g) { g.dtype = DType::kFloat8E5M2, g.bk = 64; }), {{65, 80, 144}});
  CheckGemm(
      With(kSmall, [](HopperGemm& g) { g.dtype = DType::kFloat32, g.c_dtype = DType::kFloat32, g.staged = false, g.bk = 32; }),
      {{65, 72, 136}});
  for (DType type : {DType::kInt8, DType::kUInt8}) {
    HopperGemm gemm{.dtype = type,
                    .c_dtype = DType::kInt32,
                    .acc_dtype = DType::kInt32,
                    .bm = 64,
                    .bn = 64,
                    .bk = 128,
                    .stages = 2,
                    .warpgroups = 1,
                    .staged = false};
    CheckGemm(gemm, {{65, 80, 144}});
  }
}

TEST(HopperRun, AttentionWithOperandInRegisters) {
  const kir::Kernel kernel = HopperAttentionKernel();
  const std::unique_ptr<HostKernels> host = BuildOk(kernel);
  if (host == nullptr) return;
  constexpr int kM = 100, kN = 192, kD = 64;
  Matrix q(DType::kBFloat16, kM, kD), k(DType::kBFloat16, kN, kD), v(DType::kBFloat16, kN, kD), o(DType::kFloat32, kM, kD);
  k.Fill(2), v.Fill(3);
  for (int i = 0; i < kM; ++i) {
    for (int d = 0; d < kD; ++d) q.Set(i, d, d == i % kD ? 1 : 0);  // scores are elements of K
  }
  std::vector<HostTensorMap> maps = {q.Map(kernel.tensor_maps[0]), k.Map(kernel.tensor_maps[1]), v.Map(kernel.tensor_maps[2])};
  void* pointers[] = {q.memory.data(), k.memory.data(), v.memory.data(), o.memory.data()};
  int m = kM, n = kN;
  std::vector<void*> args = {&pointers[0], &pointers[1], &pointers[2], &pointers[3], &maps[0], &maps[1], &maps[2], &m, &n};
  ASSERT_TRUE(host->Run(0, 2, 3, args));
  for (int i = 0; i < kM; ++i) {
    for (int d = 0; d < kD; ++d) {
      double expected = 0;
      for (int j = 0; j < kN; ++j) expected += std::exp2(k.At(j, i % kD)) * v.At(j, d);
      ASSERT_EQ(o.At(i, d), expected) << i << ", " << d;
    }
  }
}

}  // namespace
}  // namespace tilert
