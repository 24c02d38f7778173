// One fault at a time in kernels of the Hopper family: the simulator says where it is and what is wrong.
#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hopper_gemm_run.h"
#include "kernel_maker.h"

namespace tilert {
namespace {

using testing::HasSubstr;

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
    if (std::holds_alternative<Op>(block[i].op) && number-- == 0)
      return void(block.erase(block.begin() + static_cast<std::ptrdiff_t>(i)));
  }
  ADD_FAILURE() << "no such statement";
}
kir::Block& TileBody(kir::Block& role) { return std::get<kir::ForTiles>(role.front().op).body; }

TEST(HopperFaults, ConsumerThatDoesNotAcquire) {
  ExpectMessage([](kir::Kernel& k) { Erase<kir::Acquire>(MainLoop(ConsumerBody(k))); },
                {"Wgmma(acc)", "role consumer warp", "A_tile"});
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
  ExpectMessage(
      [](kir::Kernel& k) { Erase<kir::TmaLoad>(MainLoop(ProducerBody(k)), 1); },
      {"deadlock", "role consumer warp 0, 1, 2, 3 at ", "slot 0 of ring ab to be full", "lacks 0 of 1 arrivals and 16384 bytes"});
}
TEST(HopperFaults, MissingReleaseDeadlocks) {
  ExpectMessage([](kir::Kernel& k) { Erase<kir::If>(MainLoop(ConsumerBody(k))); },
                {"deadlock", "role producer warp 0 at ", "slot 0 of ring ab to be empty", "lacks 4 of 4 arrivals"});
}
TEST(HopperFaults, BoxThatStartsBetweenMultiplesOf16Bytes) {
  ExpectMessage(
      [](kir::Kernel& k) {
        for (kir::Stmt& stmt : MainLoop(ProducerBody(k))) {
          auto* load = std::get_if<kir::TmaLoad>(&stmt.op);
          if (load != nullptr) load->coords.back() = k.exprs.Binary(ExprOp::kAdd, load->coords.back(), k.exprs.Int(4));
        }
      },
      {"TmaLoad(", "TMA starts at element 4 of a row of ", "between multiples of 16 bytes"});
}
TEST(HopperFaults, UnannouncedBytes) {
  ExpectMessage([](kir::Kernel& k) { Erase<kir::ExpectTx>(MainLoop(ProducerBody(k))); },
                {"TmaLoad(", "not announced by an ExpectTx"});
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
  ExpectMessage([](kir::Kernel& k) { Erase<kir::WgmmaFence>(MainLoop(ConsumerBody(k))); },
                {"Wgmma(acc)", "acc were touched and no WgmmaFence"});
}
TEST(HopperFaults, WgmmaFenceThatDoesNotNameTheAccumulator) {
  ExpectMessage(
      [](kir::Kernel& k) {
        for (kir::Stmt& stmt : MainLoop(ConsumerBody(k))) {
          if (auto* product = std::get_if<kir::Wgmma>(&stmt.op)) product->zero = {};
        }
      },
      {"Wgmma(acc)", "acc were touched and no WgmmaFence since then names them"});
}
TEST(HopperFaults, MissingProxyFence) {
  ExpectMessage([](kir::Kernel& k) { Erase<kir::ProxyFence>(TileBody(ConsumerBody(k))); },
                {"TmaStore(C_tile to C)", "without a ProxyFence", "C_tile"});
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
  ExpectMessage([](kir::Kernel& k) { Erase<kir::StoreWait>(TileBody(ConsumerBody(k))); },
                {"Copy(acc to C_tile)", "still read", "TMA store at"});
}
TEST(HopperFaults, StoresReadKnownToOneThreadOnly) {
  ExpectMessage([](kir::Kernel& k) { Erase<kir::BarSync>(TileBody(ConsumerBody(k))); },
                {"Copy(acc to C_tile)", "still read", "TMA store at"});
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
  ExpectMessage(
      [](kir::Kernel& k) {
        std::get<kir::WgmmaWait>(MainLoop(ConsumerBody(k))[4].op).retires = {{6, {}}};
      },
      {"WgmmaWait", "retired, but the wgmma at"});
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
    return Simulate(m.k, {{}, {}, {absl::MakeSpan(reinterpret_cast<uint8_t*>(result.data()), result.size() * 4)}},
                    {.interleavings = 1})
        .status();
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

}  // namespace
}  // namespace tilert
