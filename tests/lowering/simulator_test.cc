// Kernels written by hand give the results of a reference in double precision, and each barrier or wait taken away is found.
#include "lowering/simulator.h"

#include <chrono>
#include <cmath>
#include <random>

#include "gtest/gtest.h"
#include "kernel_maker.h"
#include "kernel_mutation.h"
#include "lowering/simulator/layout_tables.h"
#include "random_layout.h"
#include "sample_kernels.h"

namespace tilert {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes RandomFloats(DType type, int64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(static_cast<size_t>(n * DTypeBytes(type)));
  for (int64_t i = 0; i < n; ++i) {
    const Value value{.f = static_cast<double>(random() % 2001) / 1000 - 1};
    StoreRow(type, &value, 1, bytes.data() + i * DTypeBytes(type), 1);
  }
  return bytes;
}

double At(const Bytes& bytes, DType type, int64_t i) {
  Value value;
  LoadRow(type, bytes.data() + i * DTypeBytes(type), 1, 1, &value);
  return value.f;
}

struct GemmRun {
  Bytes a, b, c;
  SimArgs args;
  GemmRun(int64_t m, int64_t n, int64_t k, uint64_t seed)
      : a(RandomFloats(DType::kBFloat16, m * k, seed)),
        b(RandomFloats(DType::kBFloat16, n * k, seed + 1)),
        c(static_cast<size_t>(2 * m * n), 0xff) {
    args.dims = {m, n, k};
    args.tensors = {absl::MakeSpan(a), absl::MakeSpan(b), absl::MakeSpan(c)};
  }
};

void ExpectGemm(const GemmRun& run) {
  const int64_t m = run.args.dims[0], n = run.args.dims[1], k = run.args.dims[2];
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double exact = 0, magnitude = 0;
      for (int64_t x = 0; x < k; ++x) {
        const double product = At(run.a, DType::kBFloat16, i * k + x) * At(run.b, DType::kBFloat16, j * k + x);
        exact += product;
        magnitude += std::fabs(product);
      }
      const double got = At(run.c, DType::kBFloat16, i * n + j);
      ASSERT_LE(std::fabs(got - exact), std::fabs(exact) / 256 + static_cast<double>(k + 2) * std::ldexp(magnitude, -23))
          << i << ", " << j;
    }
  }
}

TEST(Simulator, GemmEqualsReference) {
  SampleIds ids;
  const kir::Kernel kernel = SampleGemm(&ids);
  for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{
           {64, 64, 32}, {64, 64, 160}, {1, 8, 32}, {65, 72, 64}, {127, 40, 96}, {63, 64, 0}, {0, 64, 32}}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      GemmRun run(m, n, k, seed);
      const absl::StatusOr<SimReport> report = Simulate(kernel, run.args, {.seed = seed});
      ASSERT_TRUE(report.ok()) << report.status();
      ExpectGemm(run);
    }
  }
}

TEST(Simulator, EachBarrierAndWaitOfTheGemmIsNeeded) {
  SampleIds ids;
  const kir::Kernel kernel = SampleGemm(&ids);
  const std::vector<Mutant> mutants = SynchronisationMutants(kernel);
  EXPECT_EQ(mutants.size(), 3u);
  for (const Mutant& mutant : mutants) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      GemmRun run(64, 64, 128, 7);
      const absl::Status status = Simulate(mutant.kernel, run.args, {.seed = seed, .interleavings = 1}).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << mutant.what << " is not found";
    }
  }
}

TEST(Simulator, ASeedReplaysTheSameRun) {
  SampleIds ids;
  kir::Kernel kernel = SampleGemm(&ids);
  kernel = SynchronisationMutants(kernel)[0].kernel;
  auto message = [&](uint64_t seed) {
    GemmRun run(64, 128, 128, 7);
    return std::string(Simulate(kernel, run.args, {.seed = seed}).status().message());
  };
  EXPECT_EQ(message(3), message(3));
  EXPECT_NE(message(3).find("seed 3"), std::string::npos) << message(3);
}

// The time of a block that engine-sized tiles would need.
TEST(Simulator, IsFastEnough) {
  SampleIds ids;
  const kir::Kernel kernel = SampleGemm(&ids);
  GemmRun run(128, 128, 256, 3);  // 4 blocks of 64×64, 8 steps
  const auto start = std::chrono::steady_clock::now();
  const absl::StatusOr<SimReport> report = Simulate(kernel, run.args, {.interleavings = 1});
  ASSERT_TRUE(report.ok()) << report.status();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  RecordProperty("milliseconds", static_cast<int>(seconds * 1000));
  EXPECT_LT(seconds, 20) << report->ToString();
}

TEST(SimulatorLayout, TablesAgreeWithTheLayoutAlgebra) {
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    const FragmentLayout layout = RandomLayout(random, 1 + i % 3, 1 << i % 3);
    const sim::LayoutTables tables(layout);
    ASSERT_EQ(tables.regs(), layout.regs());
    for (int w = 0; w < layout.warps; ++w) {
      EXPECT_EQ((tables.ReplicaZero(w) & 1) != 0, layout.IsReplicaZero(0, w)) << ToString(layout);
      for (int l = 0; l < kLanes; l += 3) {
        for (int64_t r = 0; r < layout.regs(); ++r) {
          if (!tables.HoldsElement(r)) continue;
          const std::vector<int64_t> coords = layout.Coords({r, l, w});
          for (int d = 0; d < tables.rank(); ++d)
            ASSERT_EQ(tables.Coord(r, l, w, d), coords[static_cast<size_t>(d)]) << ToString(layout);
          ASSERT_EQ(tables.RegOf(l, w, [&](int d) { return coords[static_cast<size_t>(d)]; }), r) << ToString(layout);
          if (!layout.IsReplicaZero(l, w)) continue;
          ASSERT_EQ(layout.Locate(coords), (Place{r, l, w})) << ToString(layout);
        }
      }
    }
  }
}

// Each row's sum, lanes by shuffles and warps through shared memory, and back to every thread.
TEST(Simulator, ReductionAcrossWarps) {
  KernelMaker m(4);
  const int64_t rows = 4, columns = 200;
  const BufferId x = m.Global("X", DType::kFloat32, {m.Int(rows), m.Int(columns)}),
                 y = m.Global("Y", DType::kFloat32, {m.Int(rows)}, true);
  const FragmentLayout layout = BlockedLayout({rows, columns}, 4, 1);
  const BufferId tile = m.Register("tile", DType::kFloat32, layout);
  FragmentLayout by_warp = layout;  // what is left when lanes and registers of the columns are reduced away
  std::vector<Factor> warp_factors;
  for (const Factor& f : layout.dims[1].factors) {
    if (f.owner == Owner::kWarp) warp_factors.push_back(f);
  }
  int64_t warps = 1;
  for (const Factor& f : warp_factors) warps *= f.size;
  by_warp.dims[1] = {warps, warp_factors};
  by_warp = Canonical(by_warp);
  const BufferId partial = m.Register("partial", DType::kFloat32, by_warp);
  const BufferId exchange = m.Shared("exchange", DType::kFloat32, {rows, warps});
  const VarId i = m.Var("i"), w = m.Var("w"), sum = m.Var("sum", DType::kFloat32);
  m.Add(kir::Declare{tile});
  m.Add(kir::Declare{partial});
  m.Add(m.WholeCopy(kir::CopyMethod::kVector, tile, x, layout));
  m.Add(kir::LaneReduce{ReduceOp::kSum, partial, tile, 1, true, false});
  m.Add(m.WholeCopy(kir::CopyMethod::kVector, exchange, partial, by_warp));
  m.Add(kir::BarSync{});
  m.Points(BlockedLayout({rows}, 4, 1), {i}, [&] {
    const BufferId total = m.Scalar("total", DType::kFloat32);
    (void)sum;
    m.Store(total, {}, m.Real(0));
    m.With(kir::For{w, m.Int(0), m.Int(warps), m.Int(1), kir::Unroll::kNo, {}}, [&] {
      m.Store(total, {}, m.Sum(m.Load(total, {}), m.Load(exchange, {m.Int(0), m.V(i), m.V(w)})));
    });
    m.Store(y, {m.V(i)}, m.Load(total, {}));
  });
  Bytes in = RandomFloats(DType::kFloat32, rows * columns, 9), out(static_cast<size_t>(4 * rows), 0xff);
  const SimArgs args{{}, {}, {absl::MakeSpan(in), absl::MakeSpan(out)}};
  const absl::StatusOr<SimReport> report = Simulate(m.k, args);
  ASSERT_TRUE(report.ok()) << report.status();
  for (int64_t r = 0; r < rows; ++r) {
    double exact = 0;
    for (int64_t c = 0; c < columns; ++c) exact += At(in, DType::kFloat32, r * columns + c);
    EXPECT_NEAR(At(out, DType::kFloat32, r), exact, 1e-4);
  }
  for (const Mutant& mutant : SynchronisationMutants(m.k)) EXPECT_FALSE(Simulate(mutant.kernel, args).ok()) << mutant.what;
}

// A transpose through shared memory, ragged on both sides.
TEST(Simulator, TransposeIsExact) {
  for (auto [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{{32, 32}, {31, 33}, {1, 5}, {40, 7}}) {
    KernelMaker m(2, (rows + 31) / 32 * ((columns + 31) / 32));
    const BufferId x = m.Global("X", DType::kInt32, {m.Int(rows), m.Int(columns)}),
                   y = m.Global("Y", DType::kInt32, {m.Int(columns), m.Int(rows)}, true);
    const BufferId tile = m.Shared("tile", DType::kInt32, {32, 32});
    const Expr across = m.Int((columns + 31) / 32);
    const Expr row = m.Op(ExprOp::kMul, m.Op(ExprOp::kFloorDiv, m.bx(), across), m.Int(32));
    const Expr column = m.Op(ExprOp::kMul, m.Op(ExprOp::kFloorMod, m.bx(), across), m.Int(32));
    const FragmentLayout layout = BlockedLayout({32, 32}, 2, 1);
    kir::Copy in = m.WholeCopy(kir::CopyMethod::kVector, tile, x, layout),
              out = m.WholeCopy(kir::CopyMethod::kVector, y, tile, layout);
    in.src.start = {row, column};
    in.src.inside = {false, false};
    out.dst.start = {column, row};
    out.dst.inside = {false, false};
    out.src.follows = {-1, 1, 0};
    m.Add(in);
    m.Add(kir::BarSync{});
    m.Add(out);
    std::vector<int32_t> from(static_cast<size_t>(rows * columns)), to(from.size(), -7);
    for (size_t e = 0; e < from.size(); ++e) from[e] = static_cast<int32_t>(e * 2654435761u);
    const auto bytes = [](std::vector<int32_t>& v) { return absl::MakeSpan(reinterpret_cast<uint8_t*>(v.data()), v.size() * 4); };
    const SimArgs args{{}, {}, {bytes(from), bytes(to)}};
    const absl::StatusOr<SimReport> report = Simulate(m.k, args);
    ASSERT_TRUE(report.ok()) << report.status();
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        ASSERT_EQ(to[static_cast<size_t>(c * rows + r)], from[static_cast<size_t>(r * columns + c)]);
      }
    }
    EXPECT_FALSE(Simulate(SynchronisationMutants(m.k)[0].kernel, args).ok());
  }
}

}  // namespace
}  // namespace tilert
