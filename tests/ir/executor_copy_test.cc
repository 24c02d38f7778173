// Copies and fills: bounds on every side, conversions, scopes, strides, offsets beyond 32 bits.
#include <sys/mman.h>

#include <cmath>
#include <limits>

#include "tests/ir/exec_util.h"

namespace tilert {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Y[y0 : y0 + rows, x0 : x0 + columns] = X[s0 …] by way of a tile in `scope`, read with its own overhang.
void CheckBoxCopy(int64_t s0, int64_t s1, int64_t d0, int64_t d1, int64_t rows, int64_t columns, Scope scope) {
  const int64_t m = 5, n = 7;
  ProgramBuilder b("box");
  Buf X = b.Tensor("X", DType::kInt32, {m, n}), Y = b.Tensor("Y", DType::kInt32, {m, n}, Access::kInOut);
  b.Launch<1>("main", {1}, 32);
  Buf t = b.Alloc("t", DType::kInt32, scope, {rows, columns});
  b.Copy(X.At({s0, s1}, {rows, columns}), t);
  b.Copy(t, Y.At({d0, d1}, {rows, columns}));
  b.Close();
  Array x(DType::kInt32, {m, n}), y(DType::kInt32, {m, n});
  x.Random(1, 1, 1000);
  ExpectRuns(Built(b), {&x, &y});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const __int128 r = static_cast<__int128>(i) - d0, c = static_cast<__int128>(j) - d1;
      if (r < 0 || r >= rows || c < 0 || c >= columns) {
        ASSERT_TRUE(y.Untouched(i * n + j)) << i << ", " << j;
        continue;
      }
      const __int128 si = s0 + r, sj = s1 + c;
      const bool inside = si >= 0 && si < m && sj >= 0 && sj < n;
      ASSERT_EQ(y.Int(i * n + j), inside ? x.Int(static_cast<int64_t>(si * n + sj)) : 0) << i << ", " << j;
    }
  }
}

TEST(ExecutorCopy, BoxesOverEveryEdge) {
  const int64_t starts[] = {-9, -3, 0, 2, 6, int64_t{1} << 40, -(int64_t{1} << 62), INT64_MAX, INT64_MIN};
  for (int64_t s : starts) {
    for (int64_t d : starts) {
      CheckBoxCopy(s, 1, d, -2, 4, 6, Scope::kShared);
      CheckBoxCopy(-1, s, 1, d, 8, 3, Scope::kFragment);
      CheckBoxCopy(s, d, 0, 0, 5, 7, Scope::kLocal);
    }
  }
  CheckBoxCopy(0, 0, 0, 0, 0, 7, Scope::kShared);
  CheckBoxCopy(0, 0, 0, 0, 5, 0, Scope::kShared);
  CheckBoxCopy(4, 6, 4, 6, 1, 1, Scope::kShared);
}

// Shifts within one buffer, of few elements and of more than go at once: all are read before any is written.
TEST(ExecutorCopy, SourceAndTargetOverlap) {
  for (const int64_t rows : {3, 90, 200}) {
    for (const int64_t shift : {-2, -1, 1, 2}) {
      for (const bool adds : {false, true}) {
        const int64_t columns = 64, from = std::max<int64_t>(0, -shift), to = from + shift;
        ProgramBuilder b("shift");
        Buf Y = b.Tensor("Y", DType::kInt32, {rows + 2, columns}, Access::kInOut);
        b.Launch<1>("main", {1}, 32);
        const Tile src = Y.At({from, 0}, {rows, columns}), dst = Y.At({to, 0}, {rows, columns});
        if (adds) {
          b.AtomicTile(AtomicOp::kAdd, src, dst);
        } else {
          b.Copy(src, dst);
        }
        b.Close();
        Array y(DType::kInt32, {rows + 2, columns});
        y.Random(7, 1, 1000);
        std::vector<int64_t> before;
        for (int64_t k = 0; k < y.size(); ++k) before.push_back(y.Int(k));
        ExpectRuns(Built(b), {&y});
        for (int64_t k = 0; k < y.size(); ++k) {
          const int64_t row = k / columns - to;
          const bool moved = row >= 0 && row < rows;
          const int64_t there = moved ? before[static_cast<size_t>(k - shift * columns)] : 0;
          const int64_t here = moved && !adds ? 0 : before[static_cast<size_t>(k)];
          ASSERT_EQ(y.Int(k), there + here) << rows << " rows by " << shift << ", element " << k;
        }
      }
    }
  }
}

// What lies outside takes no time, however much it is.
TEST(ExecutorCopy, RegionsFarLargerThanTheirBuffers) {
  const int64_t huge = int64_t{1} << 62;
  ProgramBuilder b("huge");
  Buf X = b.Tensor("X", DType::kInt32, {4, 5}), Y = b.Tensor("Y", DType::kInt32, {4, 5}, Access::kInOut);
  b.Launch<1>("main", {1}, 32);
  b.Fill(Y.At({-1, 2}, {huge, huge}), b.Lit(int64_t{3}));
  b.Copy(X.At({-huge, 0}, {huge, 2}), Y.At({-huge + 2, 0}, {huge, 2}));
  b.AtomicTile(AtomicOp::kAdd, X.At({0, 0}, {huge, 1}), Y.At({3, 4}, {huge, 1}));
  b.Close();
  Array x(DType::kInt32, {4, 5}), y(DType::kInt32, {4, 5});
  x.Random(1, 1, 9);
  y.Fill(7);
  ExpectRuns(Built(b), {&x, &y});
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 5; ++j) {
      const int64_t expected = j >= 2 ? 3 + (i == 3 && j == 4 ? x.Int(0) : 0) : i < 2 ? 0 : 7;
      EXPECT_EQ(y.Int(i * 5 + j), expected) << i << ", " << j;
    }
  }
}

TEST(ExecutorCopy, FillValueStandsForWhatIsOutside) {
  ProgramBuilder b("fill");
  Buf X = b.Tensor("X", DType::kFloat16, {4}), Y = b.Tensor("Y", DType::kFloat32, {10}, Access::kOut);
  b.Launch<1>("main", {1}, 32);
  Copy copy{.src = b.R(X.At({-3}, {10})),
            .dst = b.R(Y),
            .fill = b.E(b.Float(-std::numeric_limits<double>::infinity(), DType::kFloat16))};
  b.Add(copy);
  b.Close();
  Array x(DType::kFloat16, {4}), y(DType::kFloat32, {10});
  x.Random(2);
  ExpectRuns(Built(b), {&x, &y});
  for (int64_t k = 0; k < 10; ++k) EXPECT_EQ(y[k], k >= 3 && k < 7 ? x[k - 3] : -std::numeric_limits<double>::infinity()) << k;
}

TEST(ExecutorCopy, SafeValuesHoldAmongTheStatementsTheyStandAmong) {
  ProgramBuilder b("safe");
  Buf X = b.Tensor("X", DType::kFloat32, {4}), Y = b.Tensor("Y", DType::kFloat32, {3, 3}, Access::kOut);
  const auto annotate = [&](double value) {
    b.Add(Annotate{
        .kind = AnnotationKind::kSafeValue, .buffer = X.id(), .args = {b.E(b.Float(value, DType::kFloat32))}, .text = ""});
  };
  b.Launch<1>("main", {1}, 32);
  annotate(9);
  Val k = b.OpenFor(ForKind::kSerial, "k", 0, 3);
  b.Store(Y, {k, 0}, X(4));  // 9 in every iteration
  b.OpenIf(k >= 1);
  annotate(5);
  b.Store(Y, {k, 1}, X(4));
  b.Else();
  b.Store(Y, {k, 1}, X(4));
  b.Close();
  annotate(3);
  b.Store(Y, {k, 2}, X(4));
  b.Close();
  b.Close();
  Array x(DType::kFloat32, {4}), y(DType::kFloat32, {3, 3});
  ExpectRuns(Built(b), {&x, &y});
  const std::vector<double> expected = {9, 9, 3, 9, 5, 3, 9, 5, 3};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(y[static_cast<int64_t>(i)], expected[i]) << i;
}

TEST(ExecutorCopy, AnnotatedSafeValueStandsForWhatIsOutside) {
  ProgramBuilder b("safe");
  Buf X = b.Tensor("X", DType::kFloat32, {4}), Y = b.Tensor("Y", DType::kFloat32, {8, 3}, Access::kOut);
  auto [bx] = b.Launch<1>("main", {8}, 32);
  Buf t = b.Fragment("t", DType::kFloat32, {6}), sum = b.Fragment("sum", DType::kFloat32, {1});
  b.Store(Y, {bx, 0}, X(bx));  // before the annotation: zero, also in a worker's second block
  b.Add(Annotate{.kind = AnnotationKind::kSafeValue, .buffer = X.id(), .args = {b.E(b.Float(2.5, DType::kFloat32))}, .text = ""});
  b.Store(Y, {bx, 1}, X(bx));
  b.Copy(X.At({bx}, {6}), t);
  b.Reduce(ReduceOp::kSum, t, sum, 0);
  b.Store(Y, {bx, 2}, sum(0));
  b.Close();
  Array x(DType::kFloat32, {4}), y(DType::kFloat32, {8, 3});
  x.Fill(1);
  ExpectRuns(Built(b), {&x, &y});
  for (int64_t k = 0; k < 8; ++k) {
    const double inside = static_cast<double>(std::max<int64_t>(4 - k, 0));
    EXPECT_EQ(y[k * 3], k < 4 ? 1 : 0);
    EXPECT_EQ(y[k * 3 + 1], k < 4 ? 1 : 2.5);
    EXPECT_EQ(y[k * 3 + 2], inside + (6 - inside) * 2.5);
  }
}

TEST(ExecutorCopy, ConvertsBetweenEveryPairOfTypes) {
  for (uint32_t from = 1; from <= 15; ++from) {
    ProgramBuilder b("convert");
    Buf X = b.Tensor("X", static_cast<DType>(from), {11});
    std::vector<Array> outputs;
    std::vector<Buf> bufs;
    for (uint32_t to = 1; to <= 15; ++to) {
      bufs.push_back(b.Tensor(absl::StrCat("Y", to), static_cast<DType>(to), {11}, Access::kOut));
      outputs.emplace_back(static_cast<DType>(to), std::vector<int64_t>{11});
    }
    b.Launch<1>("main", {1}, 32);
    for (const Buf& y : bufs) b.Copy(X, y);
    b.Close();
    Array x(static_cast<DType>(from), {11});
    x.Random(from, -300, 300);
    if (IsFloat(x.type())) x.Set(3, kNan);
    std::vector<Array*> all = {&x};
    for (Array& y : outputs) all.push_back(&y);
    ExpectRuns(Built(b), all);
    for (Array& y : outputs) {
      for (int64_t k = 0; k < 11; ++k) {
        Value v{.i = x.Int(k)};
        if (IsFloat(x.type())) v.f = x[k];
        const Value expected = ConvertValue(v, x.type(), y.type());
        if (IsFloat(y.type())) {
          EXPECT_TRUE(y[k] == expected.f || (std::isnan(y[k]) && std::isnan(expected.f)))
              << DTypeName(x.type()) << " to " << DTypeName(y.type());
        } else {
          EXPECT_EQ(y.Int(k), expected.i) << DTypeName(x.type()) << " to " << DTypeName(y.type());
        }
      }
    }
  }
}

TEST(ExecutorCopy, EveryCodeOfNarrowTypesSurvives) {
  for (DType type : {DType::kFloat8E4M3, DType::kFloat8E5M2, DType::kFloat16, DType::kBFloat16}) {
    const int64_t codes = int64_t{1} << DTypeBits(type);
    ProgramBuilder b("codes");
    Buf X = b.Tensor("X", type, {codes}), Y = b.Tensor("Y", type, {codes}, Access::kOut);
    b.Launch<1>("main", {codes / 64}, 32);
    b.Copy(X.At({b.VarVal(0) * 64}, {64}), Y.At({b.VarVal(0) * 64}, {64}));
    b.Close();
    Array x(type, {codes}), y(type, {codes});
    for (int64_t k = 0; k < codes; ++k) {
      if (DTypeBits(type) == 8) {
        static_cast<uint8_t*>(x.data())[k] = static_cast<uint8_t>(k);
      } else {
        static_cast<uint16_t*>(x.data())[k] = static_cast<uint16_t>(k);
      }
    }
    ExpectRuns(Built(b), {&x, &y});
    for (int64_t k = 0; k < codes; ++k) {
      if (std::isnan(x[k])) {
        ASSERT_TRUE(std::isnan(y[k])) << k;
      } else {
        ASSERT_EQ(std::memcmp(static_cast<char*>(x.data()) + k * DTypeBytes(type),
                              static_cast<char*>(y.data()) + k * DTypeBytes(type), static_cast<size_t>(DTypeBytes(type))),
                  0)
            << k;
      }
    }
  }
}

TEST(ExecutorCopy, DropsDimensionsOfExtentOne) {
  ProgramBuilder b("squeeze");
  Buf X = b.Tensor("X", DType::kInt32, {3, 4, 2, 5}), Y = b.Tensor("Y", DType::kInt32, {4, 1, 5, 1}, Access::kOut);
  b.Launch<1>("main", {1}, 32);
  Buf t = b.Shared("t", DType::kInt32, {4, 5});
  b.Copy(X.At({2, 0, 1, 0}, {1, 4, 1, 5}), t);
  b.Copy(t, Y);
  b.Close();
  Array x(DType::kInt32, {3, 4, 2, 5}), y(DType::kInt32, {4, 1, 5, 1});
  x.Random(1, -9999, 9999);
  ExpectRuns(Built(b), {&x, &y});
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 5; ++j) EXPECT_EQ(y.Int(i * 5 + j), x.Int(((2 * 4 + i) * 2 + 1) * 5 + j));
  }
}

TEST(ExecutorCopy, RefusesShapesThatDoNotAgree) {
  ProgramBuilder b("mismatch");
  b.SetLoc({b.File("bad.py"), 12, 5});
  Buf X = b.Tensor("X", DType::kInt32, {4, 6}), Y = b.Tensor("Y", DType::kInt32, {6, 4}, Access::kOut);
  b.Launch<1>("main", {1}, 32);
  Buf t = b.Shared("t", DType::kInt32, {4, 6});
  b.Copy(X, t);
  b.Copy(t, Y);
  b.Close();
  Array x(DType::kInt32, {4, 6}), y(DType::kInt32, {6, 4});
  const absl::Status status = RunOn(Built(b), {&x, &y});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      status.message(),
      "bad.py:12:5: T.copy(t, Y): the region of 't' is (4, 6), that of 'Y' is (6, 4): apart from extents of 1 they must agree");
}

TEST(ExecutorCopy, StridesIncludingZeroAndNegative) {
  ProgramBuilder b("strides");
  Val s0 = b.Dim("s0"), s1 = b.Dim("s1");
  Buf X = b.Tensor("X", DType::kInt16, {3, 4}, Access::kIn, {s0, s1}), Y = b.Tensor("Y", DType::kInt16, {3, 4}, Access::kOut);
  b.Launch<1>("main", {1}, 32);
  b.Copy(X, Y);
  b.Close();
  const Program program = Built(b);
  std::vector<int16_t> memory(64);
  for (size_t k = 0; k < memory.size(); ++k) memory[k] = static_cast<int16_t>(k * 3 + 1);
  const int64_t shape[] = {3, 4};
  for (const auto& strides : {std::vector<int64_t>{1, 3}, {11, 2}, {0, 1}, {0, 0}}) {
    Array y(DType::kInt16, {3, 4});
    const TensorArg args[] = {{memory.data() + 20, DType::kInt16, shape, strides}, y.arg()};
    ASSERT_TRUE(Execute(program, args, {}).ok());
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < 4; ++j)
        EXPECT_EQ(y.Int(i * 4 + j), memory[static_cast<size_t>(20 + i * strides[0] + j * strides[1])]);
    }
  }
}

TEST(ExecutorCopy, OffsetsBeyond32Bits) {
  // Rows 3·2³⁰ elements apart: only the pages that are touched exist.
  const int64_t stride = int64_t{3} << 30, rows = 5;
  const size_t bytes = static_cast<size_t>(stride * (rows - 1) + 64);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no 12 GiB of address space";
  ProgramBuilder b("far");
  Buf X = b.Tensor("X", DType::kUInt8, {rows, 64}, Access::kInOut, {stride, 1}),
      Y = b.Tensor("Y", DType::kUInt8, {rows, 64}, Access::kOut);
  b.Launch<1>("main", {1}, 32);
  auto p = b.OpenParallel({"i", "j"}, {rows, 64});
  b.Store(X, {p[0], p[1]}, b.Cast(p[0] * 50 + p[1], DType::kUInt8));
  b.Close();
  b.Copy(X, Y);
  b.Close();
  Array y(DType::kUInt8, {rows, 64});
  const int64_t shape[] = {rows, 64}, strides[] = {stride, 1};
  const TensorArg args[] = {{memory, DType::kUInt8, shape, strides}, y.arg()};
  EXPECT_TRUE(Execute(Built(b), args, {}).ok());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < 64; ++j) {
      ASSERT_EQ(y.Int(i * 64 + j), (i * 50 + j) % 256);
      ASSERT_EQ(static_cast<uint8_t*>(memory)[i * stride + j], (i * 50 + j) % 256);
    }
  }
  munmap(memory, bytes);
}

TEST(ExecutorCopy, EmptyTensorsAndGrids) {
  ProgramBuilder b("empty");
  Val N = b.Dim("N");
  Buf X = b.Tensor("X", DType::kFloat32, {N, 3}), Y = b.Tensor("Y", DType::kFloat32, {N, 3}, Access::kOut);
  auto [bx] = b.Launch<1>("main", {CeilDiv(N, 8)}, 32);
  b.Copy(X.At({bx * 8, 0}, {8, 3}), Y.At({bx * 8, 0}, {8, 3}));
  b.Close();
  b.Launch<1>("whole", {1}, 32);
  b.Copy(X, Y);
  b.Close();
  const Program program = Built(b);
  const int64_t shape[] = {0, 3};
  const TensorArg none[] = {{nullptr, DType::kFloat32, shape, {}}, {nullptr, DType::kFloat32, shape, {}}};
  EXPECT_TRUE(Execute(program, none, {}).ok());
}

TEST(ExecutorCopy, FillsConvertAndClip) {
  ProgramBuilder b("fill");
  Buf Y = b.Tensor("Y", DType::kBFloat16, {5, 5}, Access::kInOut);
  b.Launch<1>("main", {1}, 32);
  b.Fill(Y.At({-1, 2}, {3, 9}), 1.0 / 3);
  b.Fill(Y.At({3, 0}, {1, 0}), 7);
  b.Close();
  Array y(DType::kBFloat16, {5, 5});
  ExpectRuns(Built(b), {&y});
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < 5; ++j) {
      if (i < 2 && j >= 2) {
        EXPECT_EQ(y[i * 5 + j], RoundToType(DType::kBFloat16, 1.0 / 3));
      } else {
        EXPECT_TRUE(y.Untouched(i * 5 + j)) << i << ", " << j;
      }
    }
  }
}

}  // namespace
}  // namespace tilert
