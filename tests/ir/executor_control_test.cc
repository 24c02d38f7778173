// Control flow, variables, atomics, thread regions, checks and errors.
#include <cfenv>
#include <set>

#include "tests/ir/exec_util.h"

namespace tilert {
namespace {

bool Says(const absl::Status& status, absl::string_view what) { return status.message().find(what) != absl::string_view::npos; }

TEST(ExecutorControl, NestedLoopsWithBreakAndContinue) {
  ProgramBuilder b("loops");
  Buf Y = b.Tensor("Y", DType::kInt32, {20}, Access::kOut);
  auto [bx] = b.Launch<1>("main", {20}, 32);
  Buf n = b.Mutable("n", DType::kInt32);
  b.Store(n, {}, 0);
  Val i = b.OpenFor(ForKind::kSerial, "i", 10, 0, -3);
  Val j = b.OpenFor(ForKind::kUnrolled, "j", bx, 7);
  b.OpenIf(j == 5);
  b.Add(Break{});
  b.Else();
  b.OpenIf((i + j) % 2 == 0);
  b.Add(Continue{});
  b.Close();
  b.Close();
  b.Store(n, {}, n() * 3 + b.Cast(i * 10 + j, DType::kInt32));
  b.Close();
  b.Store(n, {}, n() + 1);
  b.Close();
  b.Store(Y, {bx}, n());
  b.Close();
  Array y(DType::kInt32, {20});
  ExpectRuns(Built(b), {&y});
  for (int64_t block = 0; block < 20; ++block) {
    int32_t expected = 0;
    for (int64_t i2 = 10; i2 > 0; i2 -= 3) {
      for (int64_t j2 = block; j2 < 7; ++j2) {
        if (j2 == 5) break;
        if ((i2 + j2) % 2 == 0) continue;
        expected = expected * 3 + static_cast<int32_t>(i2 * 10 + j2);
      }
      ++expected;
    }
    EXPECT_EQ(y.Int(block), expected) << block;
  }
}

// Collatz steps of each element: while, break and continue that differ from point to point.
TEST(ExecutorControl, PointsOfAParallelLoopDiverge) {
  const int64_t n = 600;  // more than two batches of points
  ProgramBuilder b("collatz");
  Buf Y = b.Tensor("Y", DType::kInt32, {n}, Access::kOut);
  b.Launch<1>("main", {1}, 32);
  Val i = b.OpenParallel({"i"}, {n})[0];
  Buf x = b.Mutable("x", DType::kInt64), steps = b.Mutable("steps", DType::kInt32);
  b.Store(x, {}, b.Cast(i, DType::kInt64));
  b.Store(steps, {}, 0);
  b.OpenWhile(steps() < 1000);
  b.OpenIf(x() <= 1);
  b.Add(Break{});
  b.Close();
  b.Store(steps, {}, steps() + 1);
  b.OpenIf(x() % 2 == 0);
  b.Store(x, {}, FloorDiv(x(), 2));
  b.Add(Continue{});
  b.Close();
  b.Store(x, {}, x() * 3 + 1);
  b.Close();
  Val k = b.OpenFor(ForKind::kSerial, "k", 0, i % 4);  // trip counts that differ, too
  b.Store(steps, {}, steps() + b.Cast(k, DType::kInt32) * 1000);
  b.Close();
  b.Store(Y, {i}, steps());
  b.Close();
  b.Close();
  Array y(DType::kInt32, {n});
  ExpectRuns(Built(b), {&y});
  for (int64_t at = 0; at < n; ++at) {
    int64_t v = at, count = 0;
    for (; v > 1; ++count) v = v % 2 == 0 ? v / 2 : 3 * v + 1;
    const int64_t trips = at % 4;
    EXPECT_EQ(y.Int(at), count + trips * (trips - 1) / 2 * 1000) << at;
  }
}

TEST(ExecutorControl, BroadcastingTwoDimensionalLoop) {
  const int64_t m = 37, n = 41;
  ProgramBuilder b("outer");
  Buf A = b.Tensor("A", DType::kFloat32, {m}), B = b.Tensor("B", DType::kFloat32, {1, n}),
      C = b.Tensor("C", DType::kFloat32, {m, n}, Access::kOut);
  b.Launch<1>("main", {1}, 32);
  auto p = b.OpenParallel({"i", "j"}, {m, n});
  Val row = b.Let("row", A(p[0]) * 2.0);
  b.Store(C, {p[0], p[1]}, row + B(0, p[1]));
  b.Close();
  b.Close();
  Array a(DType::kFloat32, {m}), bb(DType::kFloat32, {1, n}), c(DType::kFloat32, {m, n});
  a.Random(1);
  bb.Random(2);
  ExpectRuns(Built(b), {&a, &bb, &c});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const float doubled = static_cast<float>(a[i]) * 2.0f;
      EXPECT_EQ(c[i * n + j], doubled + static_cast<float>(bb[j]));
    }
  }
}

TEST(ExecutorControl, NestedParallelLoopsAndPrivateArrays) {
  const int64_t n = 300;
  ProgramBuilder b("private");
  Buf Y = b.Tensor("Y", DType::kInt32, {n}, Access::kOut);
  b.Launch<1>("main", {1}, 32);
  Val i = b.OpenParallel({"i"}, {n})[0];
  Buf t = b.Alloc("t", DType::kInt32, Scope::kLocal, {4});
  Val j = b.OpenParallel({"j"}, {i % 5})[0];  // up to 4 points, and t drops what is outside
  b.Store(t, {j}, b.Cast(i * 10 + j, DType::kInt32));
  b.Close();
  Buf sum = b.Alloc("sum", DType::kInt32, Scope::kLocal, {1});
  b.Fill(sum, 0);
  b.Reduce(ReduceOp::kSum, t.At({0}, {i % 5}), sum, 0);
  b.Store(Y, {i}, sum(0));
  b.Close();
  b.Close();
  Array y(DType::kInt32, {n});
  ExpectRuns(Built(b), {&y});
  for (int64_t at = 0; at < n; ++at) {
    const int64_t points = at % 5;
    EXPECT_EQ(y.Int(at), points * at * 10 + points * (points - 1) / 2) << at;
  }
}

TEST(ExecutorControl, ExtentsOfZeroAndOne) {
  ProgramBuilder b("extents");
  Val N = b.Dim("N");
  Buf X = b.Tensor("X", DType::kInt32, {N}, Access::kInOut), Y = b.Tensor("Y", DType::kInt32, {3}, Access::kInOut);
  b.Launch<1>("main", {1}, 32);
  auto p = b.OpenParallel({"i", "j"}, {N, 1});
  b.Store(X, {p[0]}, 5);
  b.Close();
  p = b.OpenParallel({"i", "j"}, {3, N});
  b.Store(Y, {p[0]}, 7);
  b.Close();
  Val i = b.OpenFor(ForKind::kSerial, "i", N, 0);
  b.Store(Y, {i}, 9);
  b.Close();
  b.Close();
  const Program program = Built(b);
  for (int64_t n : {0, 1}) {
    Array x(DType::kInt32, {n}), y(DType::kInt32, {3});
    ExpectRuns(program, {&x, &y});
    EXPECT_TRUE(n == 0 || x.Int(0) == 5);
    for (int64_t k = 0; k < 3; ++k) EXPECT_TRUE(n == 1 ? y.Int(k) == 7 : y.Untouched(k)) << k;
  }
}

TEST(ExecutorControl, ThreeDimensionalGridsBeyond16Bits) {
  ProgramBuilder b("grid");
  Buf Y = b.Tensor("Y", DType::kInt32, {70000, 2}, Access::kOut);
  auto [bx, by, bz] = b.Launch<3>("main", {2, 70000, 1}, 32);
  b.Store(Y, {by, bx}, b.Cast(by * 2 + bx + bz, DType::kInt32));
  b.Close();
  Array y(DType::kInt32, {70000, 2});
  EXPECT_TRUE(RunOn(Built(b), {&y}).ok());
  for (int64_t k = 0; k < y.size(); ++k) ASSERT_EQ(y.Int(k), k);
}

TEST(ExecutorControl, AtomicsFromManyBlocksThenRead) {
  ProgramBuilder b("histogram");
  Val N = b.Dim("N");
  Buf X = b.Tensor("X", DType::kInt32, {N}), H = b.Tensor("H", DType::kInt32, {8}, Access::kInOut),
      top = b.Tensor("top", DType::kInt32, {1}, Access::kInOut);
  Buf F = b.Tensor("F", DType::kFloat32, {8}, Access::kInOut);
  auto [bx] = b.Launch<1>("main", {CeilDiv(N, 50)}, 32);
  Buf x = b.Shared("x", DType::kInt32, {50});
  b.Copy(X.At({bx * 50}, {50}), x);
  Val i = b.OpenParallel({"i"}, {50})[0];
  b.OpenIf(bx * 50 + i < N);
  b.Atomic(AtomicOp::kAdd, H, {b.Cast(x(i) % 8, DType::kIndex)}, 1);
  b.Atomic(AtomicOp::kMax, top, {0}, x(i));
  b.Close();
  b.Close();
  Buf ones = b.Fragment("ones", DType::kFloat32, {12});
  b.Fill(ones, 1);
  b.AtomicTile(AtomicOp::kAdd, ones, F.At({-2}, {12}));
  b.Close();
  b.Launch<1>("double", {1}, 32);
  i = b.OpenParallel({"i"}, {8})[0];
  b.Store(H, {i}, H(i) * 2);
  b.Close();
  b.Close();
  const int64_t n = 1011;
  Array x_in(DType::kInt32, {n}), h(DType::kInt32, {8}), t(DType::kInt32, {1}), f(DType::kFloat32, {8});
  x_in.Random(4, 0, 100000);
  h.Fill(3);
  t.Fill(-5);
  f.Fill(0.5);
  ExpectRuns(Built(b), {&x_in, &h, &t, &f});
  std::vector<int64_t> expected(8, 3);
  int64_t top_expected = -5;
  for (int64_t k = 0; k < n; ++k) {
    ++expected[static_cast<size_t>(x_in.Int(k) % 8)];
    top_expected = std::max(top_expected, x_in.Int(k));
  }
  for (int64_t k = 0; k < 8; ++k) {
    EXPECT_EQ(h.Int(k), expected[static_cast<size_t>(k)] * 2) << k;
    EXPECT_EQ(f[k], 0.5 + 21);
  }
  EXPECT_EQ(t.Int(0), top_expected);
}

TEST(ExecutorControl, GathersByAnIndexTensorWithNegativeSubscripts) {
  ProgramBuilder b("gather");
  Buf I = b.Tensor("I", DType::kInt32, {6}), X = b.Tensor("X", DType::kFloat32, {4}),
      Y = b.Tensor("Y", DType::kFloat32, {6}, Access::kOut);
  Buf Z = b.Tensor("Z", DType::kFloat32, {4}, Access::kInOut);
  b.Launch<1>("main", {1}, 32);
  Val i = b.OpenParallel({"i"}, {6})[0];
  b.Store(Y, {i}, X(b.Cast(I(i), DType::kIndex)));
  b.Store(Z, {b.Cast(I(i), DType::kIndex)}, 1.5);
  b.Close();
  b.Close();
  Array index(DType::kInt32, {6}), x(DType::kFloat32, {4}), y(DType::kFloat32, {6}), z(DType::kFloat32, {4});
  const int64_t indices[] = {3, -1, 4, 0, INT32_MAX, INT32_MIN};
  for (int k = 0; k < 6; ++k) index.SetInt(k, indices[k]);
  x.Random(1, 1, 2);
  ExpectRuns(Built(b), {&index, &x, &y, &z});
  for (int k = 0; k < 6; ++k) EXPECT_EQ(y[k], indices[k] >= 0 && indices[k] < 4 ? x[indices[k]] : 0);
  EXPECT_EQ(z[0], 1.5);
  EXPECT_EQ(z[3], 1.5);
  EXPECT_TRUE(z.Untouched(1) && z.Untouched(2));
}

// ---- thread regions

// Reverses a row through shared memory, with or without the barrier that this needs.
Program ReverseProgram(bool barrier) {
  ProgramBuilder b("reverse");
  Buf X = b.Tensor("X", DType::kInt32, {64}), Y = b.Tensor("Y", DType::kInt32, {64}, Access::kOut);
  b.Launch<1>("main", {1}, 64);
  Buf s = b.Shared("s", DType::kInt32, {64});
  Val t = b.OpenThreadRegion("t");
  Buf mine = b.Mutable("mine", DType::kInt32);
  b.Store(mine, {}, X(t) * 2);
  b.Store(s, {t}, mine());
  if (barrier) b.Add(SyncThreads{});
  b.Store(Y, {t}, s(63 - t) + mine());
  b.Close();
  b.Close();
  return Built(b);
}

TEST(ExecutorThreads, BarriersOrderThreads) {
  Array x(DType::kInt32, {64}), y(DType::kInt32, {64});
  x.Random(1, -100, 100);
  ExpectRuns(ReverseProgram(true), {&x, &y});
  for (int64_t k = 0; k < 64; ++k) EXPECT_EQ(y.Int(k), 2 * (x.Int(63 - k) + x.Int(k)));
}

TEST(ExecutorThreads, AMissingBarrierIsARace) {
  Array x(DType::kInt32, {64}), y(DType::kInt32, {64});
  x.Random(1);
  const absl::Status status = RunOn(ReverseProgram(false), {&x, &y}, {}, Checked());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Says(status, "two threads without a barrier")) << status;
}

TEST(ExecutorThreads, ABarrierThatSomeThreadsMiss) {
  ProgramBuilder b("divergent");
  Buf Y = b.Tensor("Y", DType::kInt32, {64}, Access::kOut);
  b.Launch<1>("main", {1}, 64);
  Val t = b.OpenThreadRegion("t");
  b.OpenIf(t < 32);
  b.Add(SyncThreads{});
  b.Close();
  b.Store(Y, {t}, 1);
  b.Close();
  b.Close();
  Array y(DType::kInt32, {64});
  EXPECT_TRUE(Says(RunOn(Built(b), {&y}), "only some threads")) << "even without checks";
}

// ---- checks

TEST(ExecutorChecks, ConflictingWritesOfParallelPoints) {
  for (bool conflict : {true, false}) {
    ProgramBuilder b("conflict");
    b.SetLoc({b.File("race.py"), 3, 9});
    Buf Y = b.Tensor("Y", DType::kInt32, {10}, Access::kOut);
    b.Launch<1>("main", {1}, 32);
    Val i = b.OpenParallel({"i"}, {1000})[0];
    b.Store(Y, {i % 7}, b.Cast(conflict ? i : i % 7, DType::kInt32));  // equal values do not conflict
    b.Close();
    b.Close();
    Array y(DType::kInt32, {10});
    const Program program = Built(b);
    const absl::Status status = RunOn(program, {&y}, {}, Checked());
    EXPECT_EQ(status.ok(), !conflict) << status;
    EXPECT_EQ(Says(status, "race.py:3:9: Y["), conflict) << status;
    EXPECT_EQ(Says(status, "two points of one parallel loop"), conflict) << status;
    EXPECT_TRUE(RunOn(program, {&y}).ok());
  }
}

TEST(ExecutorChecks, ReadingANeighbourThatAnotherPointWrites) {
  ProgramBuilder b("shift");
  Buf X = b.Tensor("X", DType::kInt32, {100}, Access::kInOut);
  b.Launch<1>("main", {1}, 32);
  Val i = b.OpenParallel({"i"}, {100})[0];
  b.Store(X, {i}, X(i + 1));
  b.Close();
  b.Close();
  Array x(DType::kInt32, {100});
  x.Random(1);
  EXPECT_TRUE(Says(RunOn(Built(b), {&x}, {}, Checked()), "element X["));
}

TEST(ExecutorChecks, ConflictingWritesOfBlocks) {
  ProgramBuilder b("blocks");
  Buf Y = b.Tensor("Y", DType::kInt32, {4, 2}, Access::kOut);
  auto [bx] = b.Launch<1>("main", {4}, 32);
  Buf t = b.Fragment("t", DType::kInt32, {2});
  b.Fill(t, b.Cast(bx, DType::kInt32));
  b.Copy(t, Y.At({FloorDiv(bx, 2), 0}, {1, 2}));
  b.Close();
  Array y(DType::kInt32, {4, 2});
  const absl::Status status = RunOn(Built(b), {&y}, {}, Checked());
  EXPECT_TRUE(Says(status, "two blocks of one launch")) << status;
  EXPECT_TRUE(Says(status, "T.copy(t, Y[")) << status;
}

TEST(ExecutorChecks, UnwrittenReads) {
  ProgramBuilder b("unwritten");
  Buf Y = b.Tensor("Y", DType::kInt32, {8}, Access::kOut);
  b.Launch<1>("main", {1}, 32);
  Buf s = b.Shared("s", DType::kInt32, {8});
  b.Fill(s.At({0}, {5}), 3);
  b.Copy(s, Y);
  b.Close();
  const Program program = Built(b);
  Array y(DType::kInt32, {8});
  const absl::Status status = RunOn(program, {&y}, {}, Checked());
  EXPECT_TRUE(Says(status, "element s[5] is read but was never written")) << status;
  EXPECT_TRUE(RunOn(program, {&y}).ok());
  for (int64_t k = 0; k < 8; ++k) EXPECT_EQ(y.Int(k), k < 5 ? 3 : 0);
}

TEST(ExecutorChecks, MemoryOfThePreviousBlockIsGone) {
  ProgramBuilder b("stale");
  Buf Y = b.Tensor("Y", DType::kInt32, {8}, Access::kOut);
  auto [bx] = b.Launch<1>("main", {8}, 32);
  Buf s = b.Shared("s", DType::kInt32, {1});
  b.OpenIf(bx % 2 == 0);
  b.Fill(s, 9);
  b.Close();
  b.Copy(s, Y.At({bx}, {1}));
  b.Close();
  Array y(DType::kInt32, {8});
  ExecOptions options;
  options.threads = 1;
  EXPECT_TRUE(RunOn(Built(b), {&y}, {}, options).ok());
  for (int64_t k = 0; k < 8; ++k) EXPECT_EQ(y.Int(k), k % 2 == 0 ? 9 : 0);
}

TEST(ExecutorChecks, AssertsPrintsAndTheOrderOfBlocks) {
  ProgramBuilder b("debug");
  b.SetLoc({b.File("debug.py"), 7, 1});
  Val N = b.Dim("N");
  b.Tensor("X", DType::kFloat32, {N});
  auto [bx] = b.Launch<1>("main", {10}, 32);
  b.Add(Print{"block {} of {{{}}} {}", b.Es({bx, b.Int(10, DType::kInt32), b.Float(0.5, DType::kFloat32)})});
  b.Add(Assert{b.E(N < 5), "N is too large"});
  b.Close();
  const Program program = Built(b);
  for (uint64_t seed : {0, 1, 2}) {
    Array x(DType::kFloat32, {4});
    std::vector<std::string> lines;
    ExecOptions options;
    options.threads = 1;
    options.seed = seed;
    options.print = [&](std::string_view line) { lines.emplace_back(line); };
    EXPECT_TRUE(RunOn(program, {&x}, {}, options).ok());
    ASSERT_EQ(lines.size(), 10u);
    EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()).size(), 10u);
    EXPECT_EQ(std::is_sorted(lines.begin(), lines.end()), seed == 0);
    EXPECT_TRUE(seed != 0 || lines[3] == "block 3 of {10} 0.5") << lines[3];
  }
  Array x(DType::kFloat32, {5});
  const absl::Status status = RunOn(program, {&x});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Says(status, "debug.py:7:1: ") && Says(status, "assertion failed in block ") && Says(status, "N is too large"))
      << status;
}

TEST(ExecutorChecks, LimitsAreErrors) {
  ProgramBuilder endless("endless");
  endless.Launch<1>("main", {1}, 32);
  Buf n = endless.Mutable("n", DType::kInt32);
  endless.OpenWhile(n() == 0);
  endless.Store(n, {}, 0);
  endless.Close();
  endless.Close();
  ExecOptions options;
  options.max_steps = 10000;
  EXPECT_EQ(RunOn(Built(endless), {}, {}, options).code(), absl::StatusCode::kResourceExhausted);

  ProgramBuilder wide("wide");
  wide.Launch<1>("main", {int64_t{1} << 40}, 32);
  wide.Close();
  EXPECT_EQ(RunOn(Built(wide), {}, {}, options).code(), absl::StatusCode::kResourceExhausted);

  ProgramBuilder large("large");
  large.Launch<1>("main", {1}, 32);
  large.Shared("s", DType::kFloat32, {int64_t{1} << 40});
  large.Close();
  EXPECT_EQ(RunOn(Built(large), {}).code(), absl::StatusCode::kResourceExhausted);

  ProgramBuilder threads("threads");
  threads.Launch<1>("main", {1}, 2048);
  threads.Close();
  EXPECT_EQ(RunOn(Built(threads), {}).code(), absl::StatusCode::kInvalidArgument);

  ProgramBuilder step("step");
  step.Launch<1>("main", {1}, 32);
  step.OpenFor(ForKind::kSerial, "i", 0, 5, 0);
  step.Close();
  step.Close();
  EXPECT_TRUE(Says(RunOn(Built(step), {}), "the loop's step is 0"));
}

TEST(ExecutorChecks, TheHostsFloatEnvironmentDoesNotMatter) {
  ProgramBuilder b("third");
  Buf X = b.Tensor("X", DType::kFloat32, {1}), Y = b.Tensor("Y", DType::kFloat32, {1}, Access::kOut);
  b.Launch<1>("main", {1}, 32);
  b.Store(Y, {0}, X(0) / 3.0);
  b.Close();
  const Program program = Built(b);
  Array x(DType::kFloat32, {1}), y(DType::kFloat32, {1});
  x.Set(0, 2);
  std::fesetround(FE_TOWARDZERO);
  const absl::Status status = RunOn(program, {&x, &y});
  const int after = std::fegetround();
  std::fesetround(FE_TONEAREST);
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(after, FE_TOWARDZERO);
  EXPECT_EQ(y[0], 2.0f / 3.0f);
}

}  // namespace
}  // namespace tilert
