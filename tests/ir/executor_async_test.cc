// Roles, declared barriers and asynchronous statements on the executor: what they compute, and what it reports.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/ir/exec_util.h"

namespace tilert {
namespace {

Program Made(ProgramBuilder& b) {
  absl::StatusOr<Program> program = b.Build();
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

void AsyncCopy(ProgramBuilder& b, const Tile& src, const Tile& dst, const Buf* barrier = nullptr, std::vector<Val> at = {}) {
  Copy copy{b.R(src), b.R(dst)};
  copy.is_async = true;
  if (barrier != nullptr) copy.barrier = barrier->id(), copy.barrier_indices = b.Es(at);
  b.Add(std::move(copy));
}

void Arrive(ProgramBuilder& b, const Buf& barrier, Val at) {
  b.Add(BarrierOp{BarrierOpKind::kArrive, barrier.id(), b.Es({at}), {}});
}
void Wait(ProgramBuilder& b, const Buf& barrier, Val at, Val parity) {
  b.Add(BarrierOp{BarrierOpKind::kWait, barrier.id(), b.Es({at}), b.Index(parity)});
}

constexpr int kRows = 8, kStages = 2;

// One role brings rows of X into a ring of tiles, the other adds them up. `fault` leaves one statement out.
Program Ring(const std::string& fault = "") {
  ProgramBuilder b("ring");
  Val n = b.Dim("N");
  Buf X = b.Tensor("X", DType::kFloat32, {n, kRows}), Y = b.Tensor("Y", DType::kFloat32, {kRows}, Access::kOut);
  b.Launch<1>("main", {1}, 64);
  Buf tiles = b.Shared("tiles", DType::kFloat32, {kStages, kRows});
  Buf full = b.Alloc("full", DType::kUInt64, Scope::kBarrier, {kStages}, 32);
  Buf empty = b.Alloc("empty", DType::kUInt64, Scope::kBarrier, {kStages}, 32);
  b.OpenRoles();
  b.OpenRole(0, 32);
  Val i = b.OpenFor(ForKind::kSerial, "i", 0, n);
  if (fault != "no wait for empty") Wait(b, empty, i % kStages, (FloorDiv(i, kStages) + 1) % 2);
  AsyncCopy(b, X.At({i, 0}, {1, kRows}), tiles.At({i % kStages, 0}, {1, kRows}), &full, {i % kStages});
  if (fault != "no arrival at full") Arrive(b, full, i % kStages);
  b.Close();
  b.Close();
  b.OpenRole(32, 64);
  Buf sum = b.Fragment("sum", DType::kFloat32, {kRows});
  b.Fill(sum, 0.0);
  Val k = b.OpenFor(ForKind::kSerial, "k", 0, n);
  if (fault != "no wait for full") Wait(b, full, k % kStages, FloorDiv(k, kStages) % 2);
  Val r = b.OpenParallel({"r"}, {kRows})[0];
  b.Store(sum, {r}, sum(r) + tiles(k % kStages, r));
  b.Close();
  if (fault != "no arrival at empty") Arrive(b, empty, k % kStages);
  b.Close();
  b.Copy(sum, Y);
  b.Close();
  b.Close();
  b.Close();
  return Made(b);
}

ExecOptions With(uint64_t seed) {
  ExecOptions options;
  options.threads = 1;
  options.seed = seed;
  options.check_races = true;
  return options;
}

bool Says(const absl::Status& status, const std::string& text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

absl::Status RunRing(const Program& program, int n, uint64_t seed, Array* y) {
  Array x(DType::kFloat32, {n, kRows});
  x.Random(7);
  const absl::Status status = Execute(program, {x.arg(), y->arg()}, {}, With(seed));
  for (int r = 0; status.ok() && r < kRows; ++r) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum = RoundToType(DType::kFloat32, sum + x[i * kRows + r]);
    EXPECT_EQ((*y)[r], sum) << n << " rows, column " << r;
  }
  return status;
}

TEST(ExecutorRoles, ARingOfTilesAtEveryTripCount) {
  const Program program = Ring();
  for (int n : {0, 1, 2, 3, 4, 5, 7}) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      Array y(DType::kFloat32, {kRows});
      const absl::Status status = RunRing(program, n, seed, &y);
      EXPECT_TRUE(status.ok()) << status << " with seed " << seed;
    }
  }
}

TEST(ExecutorRoles, EachStatementLeftOutIsFound) {
  for (const std::string fault : {"no wait for empty", "no arrival at full", "no wait for full", "no arrival at empty"}) {
    const Program program = Ring(fault);
    bool found = false;
    for (uint64_t seed = 0; seed < 8 && !found; ++seed) {
      Array y(DType::kFloat32, {kRows});
      const absl::Status status = RunRing(program, 6, seed, &y);
      found = !status.ok();
      if (fault.find("arrival") != std::string::npos) {
        EXPECT_TRUE(Says(status, "deadlock in block 0: role [")) << status;
      }
    }
    EXPECT_TRUE(found) << fault;
  }
}

TEST(ExecutorRoles, ADeadlockSaysWhoWaitsWhere) {
  Array y(DType::kFloat32, {kRows});
  const absl::Status status = RunRing(Ring("no arrival at full"), 6, 0, &y);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  for (const char* part : {"role [0, 32) waits at", "T.barrier_wait(empty", "role [32, 64) waits at", "T.barrier_wait(full",
                           "of parity 0 of 'full'[0]", "0 of 32 arrivals"}) {
    EXPECT_TRUE(Says(status, part)) << part << " in " << status;
  }
}

TEST(ExecutorRoles, AWaitAmongTileStatementsThatNobodyAnswers) {
  ProgramBuilder b("alone");
  Buf Y = b.Tensor("Y", DType::kFloat32, {1}, Access::kOut);
  b.Launch<1>("main", {1}, 64);
  Buf done = b.Alloc("done", DType::kUInt64, Scope::kBarrier, {1}, 64);
  Arrive(b, done, 0);  // once for each thread: completes phase 0
  Wait(b, done, 0, 0);
  b.Store(Y, {0}, 3.0);
  Wait(b, done, 0, 1);  // of phase 1, nobody has arrived
  b.Close();
  Array y(DType::kFloat32, {1});
  const absl::Status status = Execute(Made(b), {y.arg()}, {}, With(0));
  EXPECT_TRUE(Says(status, "nobody else runs")) << status;
  EXPECT_EQ(y[0], 3);
}

// Copies a tile in and out; `touch` does something between the statement and its wait.
absl::Status CopyThrough(const std::function<void(ProgramBuilder&, Buf, Buf)>& touch, Array* y) {
  ProgramBuilder b("through");
  Buf X = b.Tensor("X", DType::kFloat32, {16}), Y = b.Tensor("Y", DType::kFloat32, {16}, Access::kOut);
  b.Launch<1>("main", {1}, 32);
  Buf tile = b.Shared("tile", DType::kFloat32, {16}), other = b.Shared("other", DType::kFloat32, {16});
  b.Fill(tile, -1.0);
  b.Fill(other, -2.0);
  AsyncCopy(b, X, tile);
  touch(b, tile, other);
  b.Add(AsyncWait{false, 0});
  b.Copy(tile, Y);
  b.Close();
  Array x(DType::kFloat32, {16});
  for (int i = 0; i < 16; ++i) x.Set(i, i);
  return Execute(Made(b), {x.arg(), y->arg()}, {}, {});
}

TEST(ExecutorAsync, ACopyHasItsEffectAtItsWait) {
  Array y(DType::kFloat32, {16});
  EXPECT_TRUE(CopyThrough([](ProgramBuilder& b, Buf, Buf other) { b.Fill(other, 5.0); }, &y).ok());
  for (int i = 0; i < 16; ++i) EXPECT_EQ(y[i], i);
  // Touching what it writes is an error, without any option; so is a second one that overlaps.
  const absl::Status reads = CopyThrough([](ProgramBuilder& b, Buf tile, Buf other) { b.Copy(tile, other); }, &y);
  EXPECT_TRUE(Says(reads, "element tile[0] is touched while an asynchronous statement may still write it")) << reads;
  const absl::Status writes = CopyThrough([](ProgramBuilder& b, Buf tile, Buf) { b.Store(tile, {7}, 1.0); }, &y);
  EXPECT_TRUE(Says(writes, "element tile[7]")) << writes;
  const absl::Status twice = CopyThrough([](ProgramBuilder& b, Buf tile, Buf other) { AsyncCopy(b, other, tile); }, &y);
  EXPECT_TRUE(Says(twice, "two unfinished asynchronous statements touch 'tile'")) << twice;
}

TEST(ExecutorAsync, AWaitLeavesTheYoungestGroupsUnfinished) {
  for (uint32_t pending : {0u, 1u}) {
    ProgramBuilder b("groups");
    Buf X = b.Tensor("X", DType::kFloat32, {16}), Y = b.Tensor("Y", DType::kFloat32, {16}, Access::kOut);
    b.Launch<1>("main", {1}, 32);
    Buf one = b.Shared("one", DType::kFloat32, {16}), two = b.Shared("two", DType::kFloat32, {16});
    AsyncCopy(b, X, one);
    AsyncCopy(b, X, two);
    b.Add(AsyncWait{false, pending});
    b.Copy(one, Y);
    b.Copy(two, Y);
    b.Close();
    Array x(DType::kFloat32, {16}), y(DType::kFloat32, {16});
    x.Random(3);
    const absl::Status status = Execute(Made(b), {x.arg(), y.arg()}, {}, {});
    EXPECT_EQ(status.ok(), pending == 0) << status;
    EXPECT_EQ(Says(status, "element two[0]"), pending == 1) << status;
  }
}

// c += a·b twice in a row, in flight together; the accumulator may be read after the wait only.
TEST(ExecutorAsync, GemmsInFlightTakeTurns) {
  for (bool wait : {true, false}) {
    ProgramBuilder b("gemms");
    Buf A = b.Tensor("A", DType::kFloat16, {64, 16}), B = b.Tensor("B", DType::kFloat16, {16, 8});
    Buf C = b.Tensor("C", DType::kFloat32, {64, 8}, Access::kOut);
    b.Launch<1>("main", {1}, 128);
    Buf a = b.Shared("a", DType::kFloat16, {64, 16}), bb = b.Shared("b", DType::kFloat16, {16, 8});
    Buf acc = b.Fragment("acc", DType::kFloat32, {64, 8});
    b.Copy(A, a);
    b.Copy(B, bb);
    Gemm gemm{b.R(a), b.R(bb), b.R(acc), false, false, true, GemmPolicy::kSquare, true};
    b.Add(gemm);
    gemm.clear_accum = false;
    b.Add(gemm);
    if (wait) b.Add(AsyncWait{true, 0});
    b.Copy(acc, C);
    b.Close();
    Array x(DType::kFloat16, {64, 16}), y(DType::kFloat16, {16, 8}), z(DType::kFloat32, {64, 8});
    x.Random(1, -4, 4), y.Random(2, -4, 4);
    const absl::Status status = Execute(Made(b), {x.arg(), y.arg(), z.arg()}, {}, {});
    EXPECT_EQ(status.ok(), wait) << status;
    for (int m = 0; wait && m < 64; ++m) {
      double sum = 0;
      for (int k = 0; k < 16; ++k) sum += 2 * x[m * 16 + k] * y[k * 8 + 3];
      EXPECT_NEAR(z[m * 8 + 3], sum, 1e-3);
    }
  }
}

// Bytes announced by hand: the phase is complete when they have come.
TEST(ExecutorAsync, BytesAnnouncedByHand) {
  for (int64_t bytes : {int64_t{64}, int64_t{60}, int64_t{68}, int64_t{-64}, int64_t{1} << 20, INT64_MAX}) {
    ProgramBuilder b("bytes");
    const Val given = b.Scalar("bytes", DType::kInt64);
    Buf X = b.Tensor("X", DType::kFloat32, {16}), Y = b.Tensor("Y", DType::kFloat32, {16}, Access::kOut);
    b.Launch<1>("main", {1}, 32);
    Buf tile = b.Shared("tile", DType::kFloat32, {16});
    Buf full = b.Alloc("full", DType::kUInt64, Scope::kBarrier, {1}, 32);
    b.Add(BarrierOp{BarrierOpKind::kExpectTx, full.id(), b.Es({0}), b.E(given)});
    AsyncCopy(b, X, tile, &full, {0});
    Arrive(b, full, 0);
    Wait(b, full, 0, 0);
    b.Copy(tile, Y);
    b.Close();
    Array x(DType::kFloat32, {16}), y(DType::kFloat32, {16});
    x.Random(1);
    const absl::Status status = Execute(Made(b), {x.arg(), y.arg()}, {ScalarArg::Int(bytes, DType::kInt64)}, {});
    EXPECT_EQ(status.ok(), bytes == 64) << status;
  }
}

// As many barriers as a launch says: no more than fit the memory of a block.
TEST(ExecutorAsync, TooManyBarriers) {
  for (const int64_t extent : {int64_t{4}, int64_t{1} << 25}) {
    ProgramBuilder b("many");
    const Val n = b.Dim("n");
    Buf Y = b.Tensor("Y", DType::kInt8, {n}, Access::kOut);
    b.Launch<1>("main", {1}, 32);
    Buf full = b.Alloc("full", DType::kUInt64, Scope::kBarrier, {n}, 32);
    Arrive(b, full, 0);
    Wait(b, full, 0, 0);
    b.Store(Y, {0}, 1);
    b.Close();
    Array y(DType::kInt8, {extent});
    ExecOptions options;
    options.max_bytes = 1 << 20;
    EXPECT_EQ(absl::IsResourceExhausted(Execute(Made(b), {y.arg()}, {}, options)), extent > 4);
  }
}

// ---- thread regions

TEST(ExecutorThreads, PrivateMemoryOutlivesARegion) {
  ProgramBuilder b("kept");
  Buf Y = b.Tensor("Y", DType::kInt32, {96}, Access::kOut);
  b.Launch<1>("main", {1}, 96);
  Buf own = b.Alloc("own", DType::kInt32, Scope::kLocal, {2});
  Val t = b.OpenThreadRegion("t");
  b.Store(own, {1}, b.Cast(t * 3, DType::kInt32));
  b.Close();
  Val u = b.OpenThreadRegion("u");
  b.Store(Y, {u}, own(1) + own(0));
  b.Close();
  b.Close();
  Array y(DType::kInt32, {96});
  const absl::Status status = Execute(Made(b), {y.arg()}, {}, {});
  ASSERT_TRUE(status.ok()) << status;
  for (int i = 0; i < 96; ++i) EXPECT_EQ(y.Int(i), 3 * i);
}

TEST(ExecutorThreads, ButterflyByShuffles) {
  ProgramBuilder b("butterfly");
  Buf X = b.Tensor("X", DType::kFloat32, {64}), Y = b.Tensor("Y", DType::kFloat32, {64}, Access::kOut);
  b.Launch<1>("main", {1}, 64);
  Val t = b.OpenThreadRegion("t");
  Buf sum = b.Mutable("sum", DType::kFloat32);
  b.Store(sum, {}, X(t));
  for (int step : {1, 2, 4, 8, 16}) {
    const VarId other = b.NewVar("other", DType::kFloat32);
    Shuffle shuffle{other, b.E(sum()), b.Index(b.Apply(ExprOp::kBitXor, {t % 32, b.Lit(int64_t{step})}))};
    b.Add(shuffle);
    b.Store(sum, {}, sum() + b.VarVal(other));
  }
  b.Store(Y, {t}, sum());
  b.Close();
  b.Close();
  Array x(DType::kFloat32, {64}), y(DType::kFloat32, {64});
  x.Random(5, -8, 8);
  const absl::Status status = Execute(Made(b), {x.arg(), y.arg()}, {}, {});
  ASSERT_TRUE(status.ok()) << status;
  for (int w = 0; w < 2; ++w) {
    double sum = 0;
    for (int i = 0; i < 32; ++i) sum += x[w * 32 + i];
    for (int i = 0; i < 32; ++i) EXPECT_NEAR(y[w * 32 + i], sum, 1e-4);
  }
}

// Roles that meet at a numbered barrier, with a thread region in each.
TEST(ExecutorRoles, GroupsOfThreadsMeet) {
  for (bool meet : {true, false}) {
    ProgramBuilder b("meet");
    Buf Y = b.Tensor("Y", DType::kInt32, {64}, Access::kOut);
    b.Launch<1>("main", {1}, 64);
    Buf s = b.Shared("s", DType::kInt32, {64});
    b.OpenRoles();
    for (int role = 0; role < 2; ++role) {
      b.OpenRole(32 * role, 32 * role + 32);
      Val t = b.OpenThreadRegion("t");
      b.Store(s, {t}, b.Cast(t, DType::kInt32));
      b.Close();
      if (meet) b.Add(SyncThreads{3, 64});
      Val u = b.OpenThreadRegion("u");
      b.Store(Y, {u}, s(63 - u));
      b.Close();
      b.Close();
    }
    b.Close();
    b.Close();
    const Program program = Made(b);
    int found = 0;
    for (uint64_t seed = 0; seed < 4; ++seed) {
      Array y(DType::kInt32, {64});
      const absl::Status status = Execute(program, {y.arg()}, {}, With(seed));
      found += !status.ok();
      for (int i = 0; status.ok() && i < 64; ++i) EXPECT_EQ(y.Int(i), 63 - i);
      if (!status.ok()) {
        EXPECT_TRUE(Says(status, "two roles without a barrier")) << status;
      }
    }
    EXPECT_EQ(found, meet ? 0 : 4);
  }
}

}  // namespace
}  // namespace tilert
