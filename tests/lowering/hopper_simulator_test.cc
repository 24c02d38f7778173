// Kernels of the Hopper family in the simulator: results against references in double precision, and every planted fault found.
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hopper_kernels.h"
#include "ir/numeric.h"
#include "kernel_maker.h"
#include "kernel_mutation.h"
#include "lowering/simulator.h"

namespace tilert {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

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

// As a tensor core sees it: of float32 only the bits of tf32.
double OperandAt(const Bytes& bytes, DType type, int64_t i) {
  const double value = At(bytes, type, i);
  if (type != DType::kFloat32) return value;
  const auto single = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &single, 4);
  return DecodeFloat(type, bits & 0xffffe000u);
}

struct GemmRun {
  HopperGemm gemm;
  int64_t m, n, k;
  Bytes a, b, c;

  GemmRun(const HopperGemm& g, int64_t rows, int64_t columns, int64_t depth, uint64_t seed)
      : gemm(g), m(rows), n(columns), k(depth), a(RandomElements(g.dtype, m * k, seed)), b(RandomElements(g.dtype, n * k, seed + 1)),
        c(static_cast<size_t>(m * n * DTypeBytes(g.c_dtype)), 0xff) {}

  absl::StatusOr<SimReport> Simulated(const kir::Kernel& kernel, const SimOptions& options) {
    return Simulate(kernel, {{m, n, k}, {}, {absl::MakeSpan(a), absl::MakeSpan(b), absl::MakeSpan(c)}}, options);
  }
  void ExpectProduct() {
    const double rounding = gemm.c_dtype == DType::kBFloat16 ? 0x1p-8 : gemm.c_dtype == DType::kFloat16 ? 0x1p-11 : IsFloat(gemm.c_dtype) ? 0x1p-23 : 0;
    const double sums = gemm.acc_dtype == DType::kFloat16 ? 0x1p-9 : IsFloat(gemm.acc_dtype) ? 0x1p-23 : 0;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double exact = 0, magnitude = 0;
        for (int64_t x = 0; x < k; ++x) {
          const double product = OperandAt(a, gemm.dtype, i * k + x) * OperandAt(b, gemm.dtype, gemm.b_mn_major ? x * n + j : j * k + x);
          exact += product;
          magnitude += std::fabs(product);
        }
        const double got = At(c, gemm.c_dtype, i * n + j);
        ASSERT_LE(std::fabs(got - exact), std::fabs(exact) * rounding + static_cast<double>(k + 2) * magnitude * sums) << i << ", " << j;
      }
    }
  }
};

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
  struct Case { DType type, c, acc; int64_t bk; bool mn_major; };
  for (const Case& c : {Case{DType::kFloat16, DType::kFloat16, DType::kFloat32, 64, false}, Case{DType::kFloat16, DType::kFloat16, DType::kFloat16, 32, true},
                        Case{DType::kBFloat16, DType::kBFloat16, DType::kFloat32, 16, true}, Case{DType::kFloat32, DType::kFloat32, DType::kFloat32, 32, false},
                        Case{DType::kFloat8E4M3, DType::kBFloat16, DType::kFloat32, 128, false}, Case{DType::kFloat8E5M2, DType::kFloat32, DType::kFloat32, 64, false},
                        Case{DType::kInt8, DType::kInt32, DType::kInt32, 128, false}, Case{DType::kUInt8, DType::kInt32, DType::kInt32, 32, false}}) {
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
      : m(queries), n(keys), q(RandomElements(DType::kBFloat16, m * 64, seed)), k(RandomElements(DType::kBFloat16, n * 64, seed + 1)),
        v(RandomElements(DType::kBFloat16, n * 64, seed + 2)), o(static_cast<size_t>(m * 256), 0xff) {
    // Small scores, so that their powers stay near 1.
    for (int64_t i = 0; i < m * 64; ++i) {
      const Value value{.f = RoundToType(DType::kBFloat16, At(q, DType::kBFloat16, i) / 16)};
      StoreRow(DType::kBFloat16, &value, 1, q.data() + 2 * i, 1);
    }
  }
  absl::Status Simulated(const kir::Kernel& kernel, const SimOptions& options) {
    return Simulate(kernel, {{m, n}, {}, {absl::MakeSpan(q), absl::MakeSpan(k), absl::MakeSpan(v), absl::MakeSpan(o)}}, options).status();
  }
  void ExpectResult() {
    for (int64_t i = 0; i < m; ++i) {
      std::vector<double> exact(64), magnitude(64);
      for (int64_t j = 0; j < n; ++j) {
        double score = 0;
        for (int64_t x = 0; x < 64; ++x) score += At(q, DType::kBFloat16, i * 64 + x) * At(k, DType::kBFloat16, j * 64 + x);
        for (int64_t x = 0; x < 64; ++x) {
          const double term = std::exp2(score) * At(v, DType::kBFloat16, j * 64 + x);
          exact[static_cast<size_t>(x)] += term;
          magnitude[static_cast<size_t>(x)] += std::fabs(term);
        }
      }
      for (int64_t x = 0; x < 64; ++x) {  // powers are rounded to bfloat16
        const auto at = static_cast<size_t>(x);
        ASSERT_LE(std::fabs(At(o, DType::kFloat32, i * 64 + x) - exact[at]), magnitude[at] * (0x1p-8 + 0x1p-12)) << i << ", " << x;
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

// The seed that finds the fault, of five; what it said if asked for.
void ExpectFound(const std::string& what, const std::function<absl::Status(uint64_t seed)>& simulate) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const absl::Status status = simulate(seed);
    EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInternal) << what << ": " << status;
    if (status.ok()) continue;
    if (seed > 1) testing::Test::RecordProperty(what, static_cast<int>(seed));
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

// What a fault of the small kernel, damaged by `damage`, is called by every seed.
void ExpectMessage(const std::function<void(kir::Kernel&)>& damage, const std::vector<std::string>& parts) {
  kir::Kernel kernel = HopperGemmKernel(Small());
  damage(kernel);
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    GemmRun run(Small(), 128, 64, 512, 7);
    const absl::Status status = run.Simulated(kernel, {.seed = seed, .interleavings = 1, .blocks = 1}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    for (const std::string& part : parts) EXPECT_THAT(std::string(status.message()), HasSubstr(part)) << "seed " << seed;
  }
}

template <typename Op>
void Erase(kir::Block& block, size_t number = 0) {
  for (size_t i = 0; i < block.size(); ++i) {
    if (std::holds_alternative<Op>(block[i].op) && number-- == 0) return void(block.erase(block.begin() + static_cast<std::ptrdiff_t>(i)));
  }
  ADD_FAILURE() << "no such statement";
}
kir::Block& TileBody(kir::Block& role) { return std::get<kir::ForTiles>(role.front().op).body; }

TEST(HopperFaults, ConsumerThatDoesNotAcquire) {
  ExpectMessage([](kir::Kernel& k) { Erase<kir::Acquire>(MainLoop(ConsumerBody(k))); }, {"Wgmma(acc)", "role consumer warp", "A_tile"});
}
TEST(HopperFaults, ProducerThatDoesNotAcquire) {
  ExpectMessage([](kir::Kernel& k) { Erase<kir::Acquire>(MainLoop(ProducerBody(k))); }, {"role producer warp 0"});
}
TEST(HopperFaults, ReleaseBeforeTheWait) {
  ExpectMessage(
      [](kir::Kernel& k) {
        kir::Block& loop = MainLoop(ConsumerBody(k));
        Erase<kir::WgmmaWait>(loop);
        Erase<kir::If>(loop);
        loop.insert(loop.end() - 1, kir::Stmt{kir::Release{0, 0}, {}});
        for (kir::Stmt& stmt : TileBody(ConsumerBody(k))) {
          if (auto* last = std::get_if<kir::If>(&stmt.op)) last->then_body.clear();
        }
      },
      {"TmaLoad(", "role producer warp 0", "tile, byte", "still read", "wgmma at"});
}
TEST(HopperFaults, MissingBytesDeadlock) {
  ExpectMessage([](kir::Kernel& k) { Erase<kir::TmaLoad>(MainLoop(ProducerBody(k)), 1); },
                {"deadlock", "role consumer warp 0 at ", "slot 0 of ring ab to be full", "lacks 0 of 1 arrivals and 16384 bytes"});
}
TEST(HopperFaults, MissingReleaseDeadlocks) {
  ExpectMessage(
      [](kir::Kernel& k) {
        Erase<kir::If>(MainLoop(ConsumerBody(k)));
      },
      {"deadlock", "role producer warp 0 at ", "slot 0 of ring ab to be empty", "lacks 4 of 4 arrivals"});
}
TEST(HopperFaults, UnannouncedBytes) {
  ExpectMessage([](kir::Kernel& k) { Erase<kir::ExpectTx>(MainLoop(ProducerBody(k))); }, {"TmaLoad(", "not announced by an ExpectTx"});
}
TEST(HopperFaults, OneArrivalTooMany) {
  ExpectMessage(
      [](kir::Kernel& k) {
        kir::Block& loop = MainLoop(ProducerBody(k));
        loop.insert(loop.begin() + 2, kir::Stmt{kir::ExpectTx{0, 0}, {}});
      },
      {"ExpectTx(ab)", "arrives at the full barrier of slot 0 of ring ab for round 0"});
}
TEST(HopperFaults, ReleasedTwice) {
  ExpectMessage(
      [](kir::Kernel& k) {
        kir::Block& loop = MainLoop(ConsumerBody(k));
        loop.insert(loop.end() - 1, loop[loop.size() - 2]);
      },
      {"Release(ab)", "released already"});
}
TEST(HopperFaults, AccumulatorsTouchedInFlight) {
  ExpectMessage(
      [](kir::Kernel& k) {
        kir::Block& body = TileBody(ConsumerBody(k));
        Erase<kir::WgmmaWait>(body);
        for (kir::Stmt& stmt : body) {
          if (auto* last = std::get_if<kir::If>(&stmt.op)) last->then_body.clear();
        }
      },
      {"touches acc while the wgmma at", "Wgmma(acc)"});
}
TEST(HopperFaults, MissingWgmmaFence) {
  ExpectMessage([](kir::Kernel& k) { Erase<kir::WgmmaFence>(MainLoop(ConsumerBody(k))); }, {"Wgmma(acc)", "acc were touched and no WgmmaFence"});
}
TEST(HopperFaults, MissingProxyFence) {
  ExpectMessage([](kir::Kernel& k) { Erase<kir::ProxyFence>(TileBody(ConsumerBody(k))); }, {"TmaStore(C_tile to C)", "without a ProxyFence", "C_tile"});
}
TEST(HopperFaults, ProxyFenceOfTheReaderOnly) {
  ExpectMessage(
      [](kir::Kernel& k) {
        kir::Block& body = TileBody(ConsumerBody(k));
        for (size_t i = 0; i + 1 < body.size(); ++i) {
          if (std::holds_alternative<kir::ProxyFence>(body[i].op)) std::swap(body[i], body[i + 1]);
        }
      },
      {"TmaStore(C_tile to C)", "without a ProxyFence"});
}
TEST(HopperFaults, StagingOverwrittenWhileStored) {
  ExpectMessage([](kir::Kernel& k) { Erase<kir::StoreWait>(TileBody(ConsumerBody(k))); }, {"Copy(acc to C_tile)", "still read", "TMA store at"});
}
TEST(HopperFaults, StoresReadKnownToOneThreadOnly) {
  ExpectMessage([](kir::Kernel& k) { Erase<kir::BarSync>(TileBody(ConsumerBody(k))); }, {"Copy(acc to C_tile)", "still read", "TMA store at"});
}
// One chunk a tile, so the same version every time, but one store may be unfinished.
TEST(HopperFaults, OneVersionTooFew) {
  HopperGemm gemm = Small();
  gemm.bn = 64;
  GemmRun run(gemm, 128, 64, 64, 1);
  EXPECT_THAT(std::string(run.Simulated(HopperGemmKernel(gemm), {.blocks = 1}).status().message()), HasSubstr("still read"));
}
TEST(HopperFaults, EndsBeforeStoresHaveRead) {
  ExpectMessage([](kir::Kernel& k) { Erase<kir::StoreWait>(ConsumerBody(k)); }, {"TmaStore(", "ends before a StoreWait"});
}
TEST(HopperFaults, WaitsRetireTheTruth) {
  ExpectMessage([](kir::Kernel& k) { std::get<kir::WgmmaWait>(MainLoop(ConsumerBody(k))[4].op).retires = {{6, {}}}; }, {"WgmmaWait", "retired, but the wgmma at"});
}
TEST(HopperFaults, BarriersInsideATile) {
  kir::Kernel kernel = HopperGemmKernel(Small());
  kernel.rings[0].offset = kernel.buffers[4].offset + 128;
  GemmRun run(Small(), 64, 64, 64, 1);
  EXPECT_THAT(std::string(run.Simulated(kernel, {}).status().message()), HasSubstr("mbarriers of ring ab lie in"));
}
TEST(HopperFaults, TileOffItsAtom) {
  kir::Kernel kernel = HopperGemmKernel(Small());
  kernel.buffers[3].offset += 128;
  GemmRun run(Small(), 64, 64, 64, 1);
  EXPECT_THAT(std::string(run.Simulated(kernel, {}).status().message()), HasSubstr("no multiple of 1024"));
}
TEST(HopperFaults, StridesThatTmaCannotDo) {
  GemmRun run(Small(), 64, 64, 63, 1);
  EXPECT_EQ(run.Simulated(HopperGemmKernel(Small()), {}).status().code(), absl::StatusCode::kInvalidArgument);
}

// ---- TMA without roles: a tile of two panels, added into a tensor whose edges it crosses.

class Stores : public testing::Test {
 protected:
  Stores() : m(2, 4) {
    out = m.Global("out", DType::kFloat32, {m.Int(3), m.Int(10), m.Int(68)}, true);
    tile = m.Shared("tile", DType::kFloat32, {2, 8, 64});
    m.k.buffers[tile].shared = SwizzledShared({2, 8, 64}, 4);
    i = m.Var("i"), j = m.Var("j"), l = m.Var("l");
    m.k.tensor_maps.push_back({out, {2, 8, 32}, 128});
    result.assign(3 * 10 * 68, 0.5f);
  }
  void Body(kir::StoreOp op, bool fence = true) {
    m.Points(BlockedLayout({2, 8, 64}, 2, 4), {i, j, l}, [&] { m.Store(tile, {m.Int(0), m.V(i), m.V(j), m.V(l)}, m.Real(2)); });
    if (fence) m.Add(kir::ProxyFence{});
    m.Add(kir::BarSync{});
    const Expr row = m.Sum(m.Op(ExprOp::kMul, m.bx(), m.Int(op == kir::StoreOp::kAdd ? 3 : 8)), m.Int(-2));
    m.Add(kir::TmaStore{0, tile, m.Int(0), {m.Int(2), row, m.Int(16)}, op});
    m.Add(kir::StoreCommit{});
    m.Add(kir::StoreWait{0, true, {{tile, m.Int(0)}}});
  }
  absl::Status Simulated() {
    return Simulate(m.k, {{}, {}, {absl::MakeSpan(reinterpret_cast<uint8_t*>(result.data()), result.size() * 4)}}, {.interleavings = 1}).status();
  }
  KernelMaker m;
  BufferId out, tile;
  VarId i, j, l;
  std::vector<float> result;
};

TEST_F(Stores, AddsWhatIsInside) {
  Body(kir::StoreOp::kAdd);
  const absl::Status status = Simulated();
  ASSERT_TRUE(status.ok()) << status;
  for (int64_t z = 0; z < 3; ++z) {
    for (int64_t y = 0; y < 10; ++y) {
      for (int64_t x = 0; x < 68; ++x) {
        float expected = 0.5f;
        for (int64_t b = 0; b < 4; ++b) expected += z == 2 && x >= 16 && y >= 3 * b - 2 && y < 3 * b + 6 ? 2.0f : 0.0f;
        ASSERT_EQ(result[static_cast<size_t>((z * 10 + y) * 68 + x)], expected) << z << ", " << y << ", " << x;
      }
    }
  }
}

TEST_F(Stores, OfOverlappingTilesAreARace) {
  Body(kir::StoreOp::kAdd);
  std::get<kir::TmaStore>(m.k.body[3].op).op = kir::StoreOp::kStore;
  EXPECT_THAT(std::string(Simulated().message()), HasSubstr("of another block"));
}

TEST_F(Stores, DistinctTilesAreNone) {
  Body(kir::StoreOp::kStore);
  EXPECT_TRUE(Simulated().ok()) << Simulated();
  EXPECT_EQ(result[(2 * 10 + 9) * 68 + 67], 2.0f);
}

TEST_F(Stores, NeedAProxyFence) {
  Body(kir::StoreOp::kStore, false);
  EXPECT_THAT(std::string(Simulated().message()), HasSubstr("without a ProxyFence"));
}

TEST_F(Stores, OfUnwrittenMemory) {
  Body(kir::StoreOp::kStore);
  m.k.body.erase(m.k.body.begin());
  EXPECT_THAT(std::string(Simulated().message()), HasSubstr("never written"));
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
