// Kernels of the Hopper family in the simulator: results against references in double precision, and every planted fault found.
#include <chrono>
#include <cmath>
#include <functional>

#include "gtest/gtest.h"
#include "hopper_gemm_run.h"
#include "kernel_mutation.h"

namespace tilert {
namespace {

void ExpectSound(const HopperGemm& gemm, int64_t m, int64_t n, int64_t k, SimOptions options = {}) {
  SCOPED_TRACE(testing::Message() << m << "x" << n << "x" << k << ", seed " << options.seed);
  GemmRun run(gemm, m, n, k, options.seed);
  const absl::StatusOr<SimReport> report = run.Simulated(HopperGemmKernel(gemm), options);
  ASSERT_TRUE(report.ok()) << report.status();
  run.ExpectProduct();
}

struct Config {
  const char* name;
  HopperGemm (*make)();
  friend void PrintTo(const Config& config, std::ostream* out) { *out << config.name; }
};
const auto kConfigs = testing::Values(Config{"small", Small}, Config{"cooperative", Cooperative}, Config{"ping_pong", PingPong});
std::string NameOf(const testing::TestParamInfo<Config>& info) { return info.param.name; }

class Trips : public testing::TestWithParam<Config> {};

// 0, 1, S − 1 … 2S + 1 steps, one to all blocks for three tiles, ragged edges.
TEST_P(Trips, EqualsTheReference) {
  const HopperGemm gemm = GetParam().make();
  std::vector<int64_t> trips = {0, 1};
  for (int64_t t = gemm.stages - 1; t <= 2 * gemm.stages + 1; ++t) trips.push_back(t);
  uint64_t seed = 0;
  for (int64_t t : trips) {
    const int64_t depth = t * gemm.bk - (t % 2 == 1 ? 24 : 0);
    ExpectSound(gemm, 2 * gemm.bm + 1, gemm.bn - 8, depth, {.seed = ++seed});
    ExpectSound(gemm, gemm.bm - 1, 2 * gemm.bn + 8, depth, {.seed = ++seed, .interleavings = 1, .blocks = 1});
    if (HasFatalFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(All, Trips, kConfigs, NameOf);

TEST(HopperSimulator, EmptyAndTinyProducts) {
  ExpectSound(Small(), 1, 8, 8);
  ExpectSound(Small(), 0, 8, 64);
  ExpectSound(PingPong(), 64, 64, 64);
  ExpectSound(PingPong(), 65, 72, 128);
}

TEST(HopperSimulator, OperandsOfEveryType) {
  struct Case {
    DType type, c, acc;
    int64_t bk;
    bool mn_major;
  };
  for (const Case& c : {Case{DType::kFloat16, DType::kFloat16, DType::kFloat32, 64, false},
                        Case{DType::kFloat16, DType::kFloat16, DType::kFloat16, 32, true},
                        Case{DType::kBFloat16, DType::kBFloat16, DType::kFloat32, 16, true},
                        Case{DType::kFloat32, DType::kFloat32, DType::kFloat32, 32, false},
                        Case{DType::kFloat8E4M3, DType::kBFloat16, DType::kFloat32, 128, false},
                        Case{DType::kFloat8E5M2, DType::kFloat32, DType::kFloat32, 64, false},
                        Case{DType::kInt8, DType::kInt32, DType::kInt32, 128, false},
                        Case{DType::kUInt8, DType::kInt32, DType::kInt32, 32, false}}) {
    HopperGemm gemm = Cooperative();
    gemm.dtype = c.type, gemm.c_dtype = c.c, gemm.acc_dtype = c.acc, gemm.bk = c.bk, gemm.b_mn_major = c.mn_major;
    gemm.staged = DTypeBytes(c.c) == 2;
    SCOPED_TRACE(DTypeName(c.type));
    ExpectSound(gemm, 130, 136, 3 * c.bk + 16);
  }
}

TEST(HopperSimulator, AnyNumberOfBlocksVisitsEachTileOnce) {
  for (int64_t blocks : {1, 2, 3, 5, 8, 12, 99}) {
    ExpectSound(Small(), 250, 192, 64, {.seed = static_cast<uint64_t>(blocks), .interleavings = 1, .blocks = blocks});
    ExpectSound(PingPong(), 250, 192, 64, {.seed = static_cast<uint64_t>(blocks), .interleavings = 1, .blocks = blocks});
  }
}

// The order of tiles in panels: their number is no multiple of the panel, columns alternate in direction.
TEST(HopperSimulator, RasterOrders) {
  for (bool column : {false, true}) {
    for (int panel : {0, 1, 2, 3, 16}) {
      kir::Kernel kernel = HopperGemmKernel(Small());
      kernel.raster_panel = panel;
      kernel.raster_column = column;
      GemmRun run(Small(), 300, 250 - 2, 64, 3);
      const absl::StatusOr<SimReport> report = run.Simulated(kernel, {.interleavings = 1});
      ASSERT_TRUE(report.ok()) << report.status();
      run.ExpectProduct();
    }
  }
}

struct AttentionRun {
  int64_t m, n;
  Bytes q, k, v, o;
  AttentionRun(int64_t queries, int64_t keys, uint64_t seed)
      : m(queries),
        n(keys),
        q(RandomElements(DType::kBFloat16, m * 64, seed)),
        k(RandomElements(DType::kBFloat16, n * 64, seed + 1)),
        v(RandomElements(DType::kBFloat16, n * 64, seed + 2)),
        o(static_cast<size_t>(m * 256), 0xff) {
    // Small scores, so that their powers stay near 1.
    for (int64_t i = 0; i < m * 64; ++i) {
      const Value value{.f = RoundToType(DType::kBFloat16, At(q, DType::kBFloat16, i) / 16)};
      StoreRow(DType::kBFloat16, &value, 1, q.data() + 2 * i, 1);
    }
  }
  absl::Status Simulated(const kir::Kernel& kernel, const SimOptions& options) {
    return Simulate(kernel, {{m, n}, {}, {absl::MakeSpan(q), absl::MakeSpan(k), absl::MakeSpan(v), absl::MakeSpan(o)}}, options)
        .status();
  }
  void ExpectResult() {
    std::vector<double> keys, values;
    for (int64_t i = 0; i < n * 64; ++i) keys.push_back(At(k, DType::kBFloat16, i)), values.push_back(At(v, DType::kBFloat16, i));
    for (int64_t i = 0; i < m; ++i) {
      std::vector<double> query;
      for (int64_t x = 0; x < 64; ++x) query.push_back(At(q, DType::kBFloat16, i * 64 + x));
      std::vector<double> exact(64), magnitude(64);
      for (int64_t j = 0; j < n; ++j) {
        double score = 0;
        for (int64_t x = 0; x < 64; ++x) score += query[static_cast<size_t>(x)] * keys[static_cast<size_t>(j * 64 + x)];
        for (int64_t x = 0; x < 64; ++x) {
          const double term = std::exp2(score) * values[static_cast<size_t>(j * 64 + x)];
          exact[static_cast<size_t>(x)] += term;
          magnitude[static_cast<size_t>(x)] += std::fabs(term);
        }
      }
      for (int64_t x = 0; x < 64; ++x) {  // powers are rounded to bfloat16
        const auto at = static_cast<size_t>(x);
        ASSERT_LE(std::fabs(At(o, DType::kFloat32, i * 64 + x) - exact[at]), magnitude[at] * (0x1p-8 + 0x1p-12))
            << i << ", " << x;
      }
    }
  }
};

TEST(HopperSimulator, AttentionEqualsTheReference) {
  for (int stages : {1, 2, 3}) {
    const kir::Kernel kernel = HopperAttentionKernel(stages);
    for (int64_t blocks = 0; blocks <= 2 * stages + 1; ++blocks) {
      AttentionRun run(blocks % 2 == 0 ? 130 : 63, 64 * blocks, 11);
      const absl::Status status = run.Simulated(kernel, {.seed = static_cast<uint64_t>(blocks + 1)});
      ASSERT_TRUE(status.ok()) << status;
      run.ExpectResult();
    }
  }
}

// ---- planted faults

// One of five seeds finds it; which one, and what it says, is in the test's XML output.
void ExpectFound(const std::string& what, const std::function<absl::Status(uint64_t seed)>& simulate) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const absl::Status status = simulate(seed);
    EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInternal) << what << ": " << status;
    if (status.ok()) continue;
    testing::Test::RecordProperty(what, "seed " + std::to_string(seed) + ": " + std::string(status.message()));
    return;
  }
  ADD_FAILURE() << what << " is not found";
}

class Planted : public testing::TestWithParam<Config> {};

TEST_P(Planted, IsFound) {
  const HopperGemm gemm = GetParam().make();
  const std::vector<Mutant> mutants = SynchronisationMutants(HopperGemmKernel(gemm));
  EXPECT_GE(mutants.size(), 20u);
  for (const Mutant& mutant : mutants) {
    ExpectFound(mutant.what, [&](uint64_t seed) {
      GemmRun run(gemm, 3 * gemm.bm, 2 * gemm.bn, 3 * gemm.bk, 7);
      return run.Simulated(mutant.kernel, {.seed = seed, .interleavings = 1, .blocks = 1}).status();
    });
  }
}
INSTANTIATE_TEST_SUITE_P(All, Planted, kConfigs, NameOf);

TEST(HopperSimulator, PlantedInAttentionIsFound) {
  for (const Mutant& mutant : SynchronisationMutants(HopperAttentionKernel(2))) {
    ExpectFound(mutant.what, [&](uint64_t seed) {
      AttentionRun run(192, 320, 5);
      return run.Simulated(mutant.kernel, {.seed = seed, .interleavings = 1, .blocks = 1});
    });
  }
}

// ---- speed

TEST(HopperSimulator, AWgmmaOf128x256x64TakesMilliseconds) {
  HopperGemm gemm;
  const kir::Kernel kernel = HopperGemmKernel(gemm);
  GemmRun run(gemm, 256, 256, 1024, 3);  // 32 of them
  const auto start = std::chrono::steady_clock::now();
  const absl::StatusOr<SimReport> report = run.Simulated(kernel, {.interleavings = 1, .blocks = 1});
  ASSERT_TRUE(report.ok()) << report.status();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%.1f ms each\n", seconds / 32 * 1000);
  EXPECT_LT(seconds, 10) << report->ToString();
}

}  // namespace
}  // namespace tilert
