// Reductions, scans and gemm statements against double precision and exact integers.
#include <cmath>
#include <functional>
#include <limits>

#include "tests/ir/exec_util.h"

namespace tilert {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<int64_t> Without(std::vector<int64_t> shape, size_t axis) {
  shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
  return shape;
}

std::vector<Val> Vals(const std::vector<int64_t>& shape) { return std::vector<Val>(shape.begin(), shape.end()); }

Array RunReduce(ReduceOp op, Array& x, const std::vector<int64_t>& shape, size_t axis, DType out, bool clear, bool nan_propagate,
                double old = 0) {
  ProgramBuilder b("reduce");
  const std::vector<int64_t> kept = Without(shape, axis);
  Buf X = b.Tensor("X", x.type(), Vals(shape)), Y = b.Tensor("Y", out, Vals(kept), Access::kInOut);
  b.Launch<1>("main", {1}, 32);
  Reduce reduce{.op = op,
                .src = b.R(X),
                .dst = b.R(Y),
                .axis = static_cast<uint32_t>(axis),
                .clear = clear,
                .nan_propagate = nan_propagate};
  b.Add(reduce);
  b.Close();
  Array y(out, kept);
  y.Fill(old);
  ExpectRuns(Built(b), {&x, &y});
  return y;
}

// Calls f(output element, inputs along the axis).
void ForEachFibre(const Array& x, const std::vector<int64_t>& shape, size_t axis,
                  const std::function<void(int64_t, const std::vector<int64_t>&)>& f) {
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < shape.size(); ++d) (d < axis ? outer : inner) *= d == axis ? 1 : shape[d];
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      std::vector<int64_t> at;
      for (int64_t k = 0; k < shape[axis]; ++k) at.push_back((o * shape[axis] + k) * inner + i);
      f(o * inner + i, at);
    }
  }
  ASSERT_EQ(x.size(), outer * inner * shape[axis]);
}

TEST(ExecutorReduce, EveryAxisAndExtent) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{7}, {1}, {5, 1}, {1, 5}, {13, 17}, {3, 1, 4}, {2, 33, 3}, {2, 3, 4, 5}}) {
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      for (bool clear : {true, false}) {
        Array x(DType::kFloat16, shape);
        x.Random(axis + 7, -3, 3);
        const Array sum = RunReduce(ReduceOp::kSum, x, shape, axis, DType::kFloat32, clear, true, 10);
        const Array abs_sum = RunReduce(ReduceOp::kAbsSum, x, shape, axis, DType::kFloat32, clear, true, -10);
        const Array max = RunReduce(ReduceOp::kMax, x, shape, axis, DType::kFloat16, clear, true, 0.5);
        const Array min = RunReduce(ReduceOp::kMin, x, shape, axis, DType::kFloat32, clear, true, -0.5);
        const Array abs_max = RunReduce(ReduceOp::kAbsMax, x, shape, axis, DType::kFloat32, clear, true, 0.25);
        ForEachFibre(x, shape, axis, [&](int64_t at, const std::vector<int64_t>& fibre) {
          double s = clear ? 0 : 10, a = clear ? 0 : -10, hi = clear ? -kInf : 0.5, lo = clear ? kInf : -0.5,
                 am = clear ? 0 : 0.25;
          for (int64_t k : fibre) {
            s += x[k];
            a += std::fabs(x[k]);
            hi = std::max(hi, x[k]);
            lo = std::min(lo, x[k]);
            am = std::max(am, std::fabs(x[k]));
          }
          EXPECT_EQ(sum[at], static_cast<float>(s));  // sums of a few float16 values are exact in double
          EXPECT_EQ(abs_sum[at], static_cast<float>(a));
          EXPECT_EQ(max[at], hi);
          EXPECT_EQ(min[at], lo);
          EXPECT_EQ(abs_max[at], am);
        });
      }
    }
  }
}

TEST(ExecutorReduce, IntegersWrapAndBitsCombine) {
  const std::vector<int64_t> shape = {9, 6};
  Array x(DType::kInt8, shape), u(DType::kUInt32, shape);
  x.Random(1, -128, 127);
  u.Random(2, 0, 4294967295.0);
  const Array narrow = RunReduce(ReduceOp::kSum, x, shape, 0, DType::kInt8, true, true);
  const Array wide = RunReduce(ReduceOp::kSum, x, shape, 0, DType::kInt32, false, true, 1000);
  const Array all = RunReduce(ReduceOp::kBitAnd, u, shape, 0, DType::kUInt32, true, true);
  const Array any = RunReduce(ReduceOp::kBitOr, u, shape, 0, DType::kUInt32, false, true, 5);
  const Array odd = RunReduce(ReduceOp::kBitXor, u, shape, 0, DType::kUInt32, true, true);
  const Array top = RunReduce(ReduceOp::kMax, u, shape, 0, DType::kUInt32, true, true);
  ForEachFibre(x, shape, 0, [&](int64_t at, const std::vector<int64_t>& fibre) {
    int64_t sum = 0;
    uint32_t a = ~0u, o = 5, e = 0, t = 0;
    for (int64_t k : fibre) {
      sum += x.Int(k);
      const uint32_t v = static_cast<uint32_t>(u.Int(k));
      a &= v;
      o |= v;
      e ^= v;
      t = std::max(t, v);
    }
    EXPECT_EQ(narrow.Int(at), static_cast<int8_t>(sum));
    EXPECT_EQ(wide.Int(at), sum + 1000);
    EXPECT_EQ(static_cast<uint32_t>(all.Int(at)), a);
    EXPECT_EQ(static_cast<uint32_t>(any.Int(at)), o);
    EXPECT_EQ(static_cast<uint32_t>(odd.Int(at)), e);
    EXPECT_EQ(static_cast<uint32_t>(top.Int(at)), t);
  });
}

TEST(ExecutorReduce, NotANumber) {
  const std::vector<int64_t> shape = {3, 3};
  Array x(DType::kFloat32, shape);
  const double values[] = {1, kNan, 2, kNan, kNan, kNan, -0.0, 0.0, -kInf};
  for (int k = 0; k < 9; ++k) x.Set(k, values[k]);
  Array y = RunReduce(ReduceOp::kMax, x, shape, 1, DType::kFloat32, true, true);
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
  EXPECT_EQ(y[2], 0);
  EXPECT_FALSE(std::signbit(y[2]));
  y = RunReduce(ReduceOp::kMax, x, shape, 1, DType::kFloat32, true, false);
  EXPECT_EQ(y[0], 2);
  EXPECT_EQ(y[1], -kInf);
  y = RunReduce(ReduceOp::kMin, x, shape, 1, DType::kFloat32, false, false, 1.5);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 1.5);
  EXPECT_EQ(y[2], -kInf);
  y = RunReduce(ReduceOp::kSum, x, shape, 1, DType::kFloat32, true, false);
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
  EXPECT_EQ(y[2], -kInf);
}

TEST(ExecutorReduce, NothingGivesTheIdentity) {
  const std::vector<int64_t> shape = {2, 0};
  Array f(DType::kFloat32, shape), i(DType::kInt16, shape), n(DType::kFloat8E4M3, shape);
  EXPECT_EQ(RunReduce(ReduceOp::kSum, f, shape, 1, DType::kFloat32, true, true, 7)[1], 0);
  EXPECT_EQ(RunReduce(ReduceOp::kMax, f, shape, 1, DType::kFloat32, true, true)[1], -kInf);
  EXPECT_EQ(RunReduce(ReduceOp::kMin, f, shape, 1, DType::kFloat32, true, true)[1], kInf);
  EXPECT_EQ(RunReduce(ReduceOp::kMax, i, shape, 1, DType::kInt16, true, true)[1], -32768);
  EXPECT_EQ(RunReduce(ReduceOp::kMin, i, shape, 1, DType::kInt16, true, true)[1], 32767);
  EXPECT_EQ(RunReduce(ReduceOp::kBitAnd, i, shape, 1, DType::kInt16, true, true)[1], -1);
  EXPECT_EQ(RunReduce(ReduceOp::kMax, n, shape, 1, DType::kFloat8E4M3, true, true)[1], -448);
  EXPECT_EQ(RunReduce(ReduceOp::kSum, f, shape, 1, DType::kFloat32, false, true, 7)[1], 7);
}

TEST(ExecutorReduce, SumsRoundOnce) {
  // 2048 ones on top of 2^24 would all be lost one by one in float32.
  const std::vector<int64_t> shape = {2049};
  Array x(DType::kFloat32, shape);
  x.Fill(1);
  x.Set(0, 0x1p24);
  EXPECT_EQ(RunReduce(ReduceOp::kSum, x, shape, 0, DType::kFloat32, true, true)[0], 0x1p24 + 2048);
  EXPECT_EQ(RunReduce(ReduceOp::kSum, x, shape, 0, DType::kFloat16, true, true)[0], kInf);
}

TEST(ExecutorScan, EveryAxisBothDirections) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1}, {37}, {5, 9}, {4, 1, 3}, {3, 8, 2}, {2, 0}}) {
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      for (bool reverse : {false, true}) {
        ProgramBuilder b("scan");
        Buf X = b.Tensor("X", DType::kBFloat16, Vals(shape)), Y = b.Tensor("Y", DType::kFloat32, Vals(shape), Access::kOut);
        b.Launch<1>("main", {1}, 32);
        b.Scan(X, Y, static_cast<uint32_t>(axis), reverse);
        b.Close();
        Array x(DType::kBFloat16, shape), y(DType::kFloat32, shape);
        x.Random(axis + 1, -5, 5);
        ExpectRuns(Built(b), {&x, &y});
        ForEachFibre(x, shape, axis, [&](int64_t, std::vector<int64_t> fibre) {
          if (reverse) std::reverse(fibre.begin(), fibre.end());
          double sum = 0;
          for (int64_t k : fibre) {
            sum += x[k];
            EXPECT_EQ(y[k], static_cast<float>(sum));
          }
        });
      }
    }
  }
}

TEST(ExecutorGemm, RegionsAccumulateIntoPartOfATile) {
  // c[1, 2:5, 3:8] += a[0:3, 2:6] · b[4:8, 1:6], the rest of c unchanged; a is partly outside and reads zero there.
  ProgramBuilder b("regions");
  Buf A = b.Tensor("A", DType::kFloat16, {3, 5}), B = b.Tensor("B", DType::kFloat16, {8, 6});
  Buf C = b.Tensor("C", DType::kFloat32, {2, 6, 9}, Access::kInOut);
  b.Launch<1>("main", {1}, 32);
  b.Gemm(A.At({0, 2}, {3, 4}), B.At({4, 1}, {4, 5}), C.At({1, 2, 3}, {1, 3, 5}));
  b.Close();
  Array a(DType::kFloat16, {3, 5}), bb(DType::kFloat16, {8, 6}), c(DType::kFloat32, {2, 6, 9});
  a.Random(1);
  bb.Random(2);
  c.Random(3);
  const Array old = c;
  ExpectRuns(Built(b), {&a, &bb, &c});
  for (int64_t p = 0; p < 2; ++p) {
    for (int64_t i = 0; i < 6; ++i) {
      for (int64_t j = 0; j < 9; ++j) {
        double expected = old[(p * 6 + i) * 9 + j];
        for (int64_t k = 0; p == 1 && i >= 2 && i < 5 && j >= 3 && j < 8 && k < 3; ++k)
          expected += a[(i - 2) * 5 + 2 + k] * bb[(4 + k) * 6 + 1 + j - 3];
        EXPECT_EQ(c[(p * 6 + i) * 9 + j], static_cast<float>(expected)) << p << ", " << i << ", " << j;
      }
    }
  }
}

TEST(ExecutorGemm, IntegersWrapFloatsRoundOnceNarrowAccumulators) {
  for (const auto& [in, out] : {std::pair(DType::kInt8, DType::kInt32), std::pair(DType::kUInt8, DType::kInt32),
                                std::pair(DType::kFloat16, DType::kFloat16), std::pair(DType::kFloat64, DType::kFloat64)}) {
    ProgramBuilder b("types");
    Buf A = b.Tensor("A", in, {4, 40}), B = b.Tensor("B", in, {5, 40}), C = b.Tensor("C", out, {4, 5}, Access::kOut);
    b.Launch<1>("main", {1}, 32);
    b.Gemm(A, B, C, false, true, /*clear_accum=*/true);
    b.Close();
    Array x(in, {4, 40}), y(in, {5, 40}), c(out, {4, 5});
    x.Random(1, -100, 100);
    y.Random(2, -100, 100);
    ExpectRuns(Built(b), {&x, &y, &c});
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t j = 0; j < 5; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < 40; ++k) sum += x[i * 40 + k] * y[j * 40 + k];
        if (IsFloat(out)) {
          EXPECT_EQ(c[i * 5 + j], RoundToType(out, sum));
        } else {
          EXPECT_EQ(c[i * 5 + j], sum);
        }
      }
    }
  }
}

TEST(ExecutorGemm, InfinityTimesZero) {
  ProgramBuilder b("inf");
  Buf A = b.Tensor("A", DType::kFloat32, {1, 2}), B = b.Tensor("B", DType::kFloat32, {2, 3}),
      C = b.Tensor("C", DType::kFloat32, {1, 3}, Access::kOut);
  b.Launch<1>("main", {1}, 32);
  b.Gemm(A, B, C, false, false, true);
  b.Close();
  Array a(DType::kFloat32, {1, 2}), bb(DType::kFloat32, {2, 3}), c(DType::kFloat32, {1, 3});
  a.Set(0, kInf);
  a.Set(1, 0);
  const double values[] = {0, 1, -2, 1, 1, 1};
  for (int k = 0; k < 6; ++k) bb.Set(k, values[k]);
  ExpectRuns(Built(b), {&a, &bb, &c});
  EXPECT_TRUE(std::isnan(c[0]));
  EXPECT_EQ(c[1], kInf);
  EXPECT_EQ(c[2], -kInf);
}

TEST(ExecutorGemm, RefusesOperandsThatDoNotFit) {
  ProgramBuilder b("fit");
  Buf A = b.Tensor("A", DType::kFloat16, {4, 8}), B = b.Tensor("B", DType::kFloat16, {7, 5}),
      C = b.Tensor("C", DType::kFloat32, {4, 5}, Access::kOut);
  b.Launch<1>("main", {1}, 32);
  b.Gemm(A, B, C, false, false, true);
  b.Close();
  Array x(DType::kFloat16, {4, 8}), y(DType::kFloat16, {7, 5}), c(DType::kFloat32, {4, 5});
  const absl::Status status = RunOn(Built(b), {&x, &y, &c});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("4 by 8 and 7 by 5"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace tilert
