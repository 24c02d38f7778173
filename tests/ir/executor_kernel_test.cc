// Whole kernels on the executor against references in double precision.
#include <cmath>
#include <ctime>
#include <limits>

#include "tests/ir/exec_util.h"

namespace tilert {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct GemmCase {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  DType type;
};

// C[M, N] = op(A) op(B) with tiles of 32 × 48 × 16, extents dynamic.
Program GemmProgram(const GemmCase& g, int64_t block_m = 32, int64_t block_n = 48, int64_t block_k = 16) {
  ProgramBuilder b("gemm");
  Val M = b.Dim("M"), N = b.Dim("N"), K = b.Dim("K");
  Buf A = b.Tensor("A", g.type, g.transpose_a ? std::vector<Val>{K, M} : std::vector<Val>{M, K});
  Buf B = b.Tensor("B", g.type, g.transpose_b ? std::vector<Val>{N, K} : std::vector<Val>{K, N});
  Buf C = b.Tensor("C", DType::kFloat32, {M, N}, Access::kOut);
  auto [bx, by] = b.Launch<2>("main", {CeilDiv(N, block_n), CeilDiv(M, block_m)}, 128);
  Buf As = g.transpose_a ? b.Shared("As", g.type, {block_k, block_m}) : b.Shared("As", g.type, {block_m, block_k});
  Buf Bs = g.transpose_b ? b.Shared("Bs", g.type, {block_n, block_k}) : b.Shared("Bs", g.type, {block_k, block_n});
  Buf acc = b.Fragment("acc", DType::kFloat32, {block_m, block_n});
  b.Fill(acc, 0);
  Val k = b.OpenFor(ForKind::kPipelined, "k", 0, CeilDiv(K, block_k), 1, 3);
  b.Copy(g.transpose_a ? A.At({k * block_k, by * block_m}, {block_k, block_m})
                       : A.At({by * block_m, k * block_k}, {block_m, block_k}),
         As);
  b.Copy(g.transpose_b ? B.At({bx * block_n, k * block_k}, {block_n, block_k})
                       : B.At({k * block_k, bx * block_n}, {block_k, block_n}),
         Bs);
  b.Gemm(As, Bs, acc, g.transpose_a, g.transpose_b);
  b.Close();
  b.Copy(acc, C.At({by * block_m, bx * block_n}, {block_m, block_n}));
  b.Close();
  return Built(b);
}

class GemmKernel : public testing::TestWithParam<GemmCase> {};

TEST_P(GemmKernel, EqualsTheReference) {
  const GemmCase g = GetParam();
  Array A(g.type, g.transpose_a ? std::vector<int64_t>{g.k, g.m} : std::vector<int64_t>{g.m, g.k});
  Array B(g.type, g.transpose_b ? std::vector<int64_t>{g.n, g.k} : std::vector<int64_t>{g.k, g.n});
  Array C(DType::kFloat32, {g.m, g.n});
  A.Random(1);
  B.Random(2);
  ExpectRuns(GemmProgram(g), {&A, &B, &C});
  for (int64_t m = 0; m < g.m; ++m) {
    for (int64_t n = 0; n < g.n; ++n) {
      double sum = 0, magnitude = 0;
      for (int64_t k = 0; k < g.k; ++k) {
        const double product = A[g.transpose_a ? k * g.m + m : m * g.k + k] * B[g.transpose_b ? n * g.k + k : k * g.n + n];
        sum += product;
        magnitude += std::fabs(product);
      }
      // One rounding a gemm statement.
      ASSERT_NEAR(C[m * g.n + n], sum, static_cast<double>(g.k / 16 + 2) * 0x1p-24 * magnitude) << m << ", " << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Extents, GemmKernel,
    testing::Values(GemmCase{1, 1, 1, false, false, DType::kBFloat16}, GemmCase{31, 47, 15, false, false, DType::kFloat16},
                    GemmCase{32, 48, 16, false, false, DType::kBFloat16}, GemmCase{33, 49, 17, false, false, DType::kFloat32},
                    GemmCase{67, 101, 53, true, false, DType::kBFloat16}, GemmCase{67, 101, 53, false, true, DType::kFloat16},
                    GemmCase{61, 97, 71, true, true, DType::kFloat8E4M3}, GemmCase{40, 50, 0, false, false, DType::kBFloat16},
                    GemmCase{0, 50, 7, false, false, DType::kBFloat16}, GemmCase{2, 3, 200, true, false, DType::kFloat8E5M2}));

TEST(ExecutorKernel, LargeGemmTakesSeconds) {
  const GemmCase g{512, 512, 512, false, false, DType::kBFloat16};
  Array A(g.type, {g.m, g.k}), B(g.type, {g.k, g.n}), C(DType::kFloat32, {g.m, g.n});
  A.Random(1);
  B.Random(2);
  const Program program = GemmProgram(g, 128, 128, 32);
  const std::clock_t start = std::clock();
  ASSERT_TRUE(RunOn(program, {&A, &B, &C}).ok());
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  RecordProperty("cpu_seconds", std::to_string(seconds));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(seconds, 6) << "of processor time: 3 seconds on two";
#endif
  double sum = 0;
  for (int64_t k = 0; k < g.k; ++k) sum += A[511 * g.k + k] * B[k * g.n + 300];
  EXPECT_NEAR(C[511 * g.n + 300], sum, 1e-5);
}

// Y = softmax of the rows of X, a row per block, tiles of `tile` columns, two passes.
Program SoftmaxProgram(int64_t tile) {
  ProgramBuilder b("softmax");
  Val M = b.Dim("M"), N = b.Dim("N");
  Buf X = b.Tensor("X", DType::kFloat16, {M, N}), Y = b.Tensor("Y", DType::kFloat32, {M, N}, Access::kOut);
  const Val row = b.Launch<1>("main", {M}, 128)[0];
  Buf x = b.Fragment("x", DType::kFloat32, {tile}), top = b.Fragment("top", DType::kFloat32, {1}),
      part = b.Fragment("part", DType::kFloat32, {1});
  Buf sum = b.Fragment("sum", DType::kFloat32, {1});
  b.Fill(top, b.Float(-kInf, DType::kFloat32));
  b.Fill(sum, 0);
  const auto load = [&](Val t) {
    Val i = b.OpenParallel({"i"}, {tile})[0];
    Val column = t * tile + i;
    b.Store(x, {i}, b.Select(column < N, b.Cast(X(row, column), DType::kFloat32), b.Float(-kInf, DType::kFloat32)));
    b.Close();
  };
  Val t = b.OpenFor(ForKind::kSerial, "t", 0, CeilDiv(N, tile));
  load(t);
  b.Reduce(ReduceOp::kMax, x, top, 0, /*clear=*/false);
  b.Close();
  t = b.OpenFor(ForKind::kSerial, "t", 0, CeilDiv(N, tile));
  load(t);
  Val i = b.OpenParallel({"i"}, {tile})[0];
  b.Store(x, {i}, Call(ExprOp::kExp, x(i) - top(0)));
  b.Close();
  b.Reduce(ReduceOp::kSum, x, part, 0);
  i = b.OpenParallel({"i"}, {1})[0];
  b.Store(sum, {i}, sum(i) + part(i));
  b.Close();
  b.Close();
  t = b.OpenFor(ForKind::kSerial, "t", 0, CeilDiv(N, tile));
  load(t);
  i = b.OpenParallel({"i"}, {tile})[0];
  b.Store(Y, {row, t * tile + i}, Call(ExprOp::kExp, x(i) - top(0)) / sum(0));
  b.Close();
  b.Close();
  b.Close();
  return Built(b);
}

TEST(ExecutorKernel, Softmax) {
  for (int64_t n : {1, 63, 64, 65, 257}) {
    Array X(DType::kFloat16, {5, n}), Y(DType::kFloat32, {5, n});
    X.Random(static_cast<uint64_t>(n), -8, 8);
    ExpectRuns(SoftmaxProgram(64), {&X, &Y});
    for (int64_t r = 0; r < 5; ++r) {
      double top = -kInf, sum = 0;
      for (int64_t c = 0; c < n; ++c) top = std::max(top, X[r * n + c]);
      for (int64_t c = 0; c < n; ++c) sum += std::exp(X[r * n + c] - top);
      for (int64_t c = 0; c < n; ++c) ASSERT_NEAR(Y[r * n + c], std::exp(X[r * n + c] - top) / sum, 2e-6) << n;
    }
  }
}

TEST(ExecutorKernel, LayerNorm) {
  const int64_t rows = 7, columns = 100, padded = 128;
  ProgramBuilder b("layer_norm");
  Val M = b.Dim("M");
  Val eps = b.Scalar("eps", DType::kFloat32);
  Buf X = b.Tensor("X", DType::kBFloat16, {M, columns}), W = b.Tensor("W", DType::kFloat32, {columns});
  Buf Y = b.Tensor("Y", DType::kFloat32, {M, columns}, Access::kOut);
  auto [block] = b.Launch<1>("main", {CeilDiv(M, 4)}, 64);
  Buf x = b.Fragment("x", DType::kFloat32, {4, padded}), square = b.Fragment("square", DType::kFloat32, {4, padded});
  Buf mean = b.Fragment("mean", DType::kFloat32, {4}), variance = b.Fragment("variance", DType::kFloat32, {4});
  b.Copy(X.At({block * 4, 0}, {4, padded}), x);
  b.Reduce(ReduceOp::kSum, x, mean, 1);
  auto p = b.OpenParallel({"i", "j"}, {4, padded});
  Val centred = x(p[0], p[1]) - mean(p[0]) / static_cast<double>(columns);
  b.Store(square, {p[0], p[1]}, b.Select(p[1] < columns, centred * centred, b.Float(0, DType::kFloat32)));
  b.Close();
  b.Reduce(ReduceOp::kSum, square, variance, 1);
  p = b.OpenParallel({"i", "j"}, {4, padded});
  centred = x(p[0], p[1]) - mean(p[0]) / static_cast<double>(columns);
  b.Store(x, {p[0], p[1]}, centred * Call(ExprOp::kRsqrt, variance(p[0]) / static_cast<double>(columns) + eps) * W(p[1]));
  b.Close();
  b.Copy(x, Y.At({block * 4, 0}, {4, padded}));
  b.Close();
  Array x_in(DType::kBFloat16, {rows, columns}), w(DType::kFloat32, {columns}), y(DType::kFloat32, {rows, columns});
  x_in.Random(3, -2, 5);
  w.Random(4);
  ExpectRuns(Built(b), {&x_in, &w, &y}, {ScalarArg::Float(1e-5, DType::kFloat32)});
  for (int64_t r = 0; r < rows; ++r) {
    double mu = 0, var = 0;
    for (int64_t c = 0; c < columns; ++c) mu += x_in[r * columns + c] / columns;
    for (int64_t c = 0; c < columns; ++c) var += std::pow(x_in[r * columns + c] - mu, 2) / columns;
    for (int64_t c = 0; c < columns; ++c) {
      ASSERT_NEAR(y[r * columns + c], (x_in[r * columns + c] - mu) / std::sqrt(var + 1e-5) * w[c], 1e-5) << r << ", " << c;
    }
  }
}

// Causal attention of one head with the online softmax: a block of 16 queries walks over tiles of 32 keys.
Program AttentionProgram(int64_t dim) {
  constexpr int64_t kM = 16, kN = 32;
  const DType f32 = DType::kFloat32, f16 = DType::kFloat16;
  ProgramBuilder b("attention");
  Val S = b.Dim("S");
  Buf Q = b.Tensor("Q", f16, {S, dim}), K = b.Tensor("K", f16, {S, dim}), V = b.Tensor("V", f16, {S, dim});
  Buf O = b.Tensor("O", f32, {S, dim}, Access::kOut);
  auto [bx] = b.Launch<1>("main", {CeilDiv(S, kM)}, 128);
  Buf q = b.Shared("q", f16, {kM, dim}), k = b.Shared("k", f16, {kN, dim}), v = b.Shared("v", f16, {kN, dim});
  Buf s = b.Fragment("s", f32, {kM, kN}), p = b.Fragment("p", f16, {kM, kN}), o = b.Fragment("o", f32, {kM, dim});
  Buf top = b.Fragment("top", f32, {kM}), old = b.Fragment("old", f32, {kM}), sum = b.Fragment("sum", f32, {kM}),
      part = b.Fragment("part", f32, {kM});
  const double scale = 1 / std::sqrt(static_cast<double>(dim));
  b.Copy(Q.At({bx * kM, 0}, {kM, dim}), q);
  b.Fill(o, 0);
  b.Fill(sum, 0);
  b.Fill(top, b.Float(-kInf, f32));
  Val t = b.OpenFor(ForKind::kPipelined, "t", 0, Min(CeilDiv(S, kN), CeilDiv((bx + 1) * kM, kN)), 1, 2);
  b.Copy(K.At({t * kN, 0}, {kN, dim}), k);
  b.Copy(V.At({t * kN, 0}, {kN, dim}), v);
  b.Gemm(q, k, s, false, true, /*clear_accum=*/true);
  auto ij = b.OpenParallel({"i", "j"}, {kM, kN});
  const Val query = bx * kM + ij[0], key = t * kN + ij[1];
  b.Store(s, {ij[0], ij[1]}, b.Select(And(key <= query, key < S), s(ij[0], ij[1]) * scale, b.Float(-kInf, f32)));
  b.Close();
  b.Copy(top, old);
  b.Reduce(ReduceOp::kMax, s, top, 1, /*clear=*/false);
  ij = b.OpenParallel({"i", "j"}, {kM, kN});
  b.Store(s, {ij[0], ij[1]}, Call(ExprOp::kExp, s(ij[0], ij[1]) - top(ij[0])));
  b.Close();
  b.Reduce(ReduceOp::kSum, s, part, 1);
  Val i = b.OpenParallel({"i"}, {kM})[0];
  b.Store(sum, {i}, sum(i) * Call(ExprOp::kExp, old(i) - top(i)) + part(i));
  b.Close();
  ij = b.OpenParallel({"i", "j"}, {kM, dim});
  b.Store(o, {ij[0], ij[1]}, o(ij[0], ij[1]) * Call(ExprOp::kExp, old(ij[0]) - top(ij[0])));
  b.Close();
  b.Copy(s, p);
  b.Gemm(p, v, o);
  b.Close();
  ij = b.OpenParallel({"i", "j"}, {kM, dim});
  b.Store(o, {ij[0], ij[1]}, o(ij[0], ij[1]) / sum(ij[0]));
  b.Close();
  b.Copy(o, O.At({bx * kM, 0}, {kM, dim}));
  b.Close();
  return Built(b);
}

TEST(ExecutorKernel, CausalAttention) {
  const int64_t dim = 24;
  for (int64_t s : {1, 15, 16, 33, 70}) {
    Array Q(DType::kFloat16, {s, dim}), K(DType::kFloat16, {s, dim}), V(DType::kFloat16, {s, dim}), O(DType::kFloat32, {s, dim});
    Q.Random(1, -2, 2);
    K.Random(2, -2, 2);
    V.Random(3);
    ExpectRuns(AttentionProgram(dim), {&Q, &K, &V, &O});
    for (int64_t i = 0; i < s; ++i) {
      std::vector<double> weights;
      double total = 0;
      for (int64_t j = 0; j <= i; ++j) {
        double dot = 0;
        for (int64_t d = 0; d < dim; ++d) dot += Q[i * dim + d] * K[j * dim + d];
        weights.push_back(std::exp(dot / std::sqrt(static_cast<double>(dim))));
        total += weights.back();
      }
      for (int64_t d = 0; d < dim; ++d) {
        double expected = 0;
        for (int64_t j = 0; j <= i; ++j) expected += weights[static_cast<size_t>(j)] / total * V[j * dim + d];
        ASSERT_NEAR(O[i * dim + d], expected, 2e-3) << "S = " << s << " at " << i << ", " << d;  // p is rounded to float16
      }
    }
  }
}

TEST(ExecutorKernel, SplitSumInTwoLaunches) {
  ProgramBuilder b("split_sum");
  Val N = b.Dim("N");
  Buf X = b.Tensor("X", DType::kInt32, {N}), Y = b.Tensor("Y", DType::kInt32, {1}, Access::kOut);
  Buf partial = b.Workspace("partial", DType::kInt32, {CeilDiv(N, 100)});
  auto [bx] = b.Launch<1>("parts", {CeilDiv(N, 100)}, 32);
  Buf x = b.Shared("x", DType::kInt32, {100}), sum = b.Fragment("sum", DType::kInt32, {1});
  b.Copy(X.At({bx * 100}, {100}), x);
  b.Reduce(ReduceOp::kSum, x, sum, 0);
  b.Copy(sum, partial.At({bx}, {1}));
  b.Close();
  b.Launch<1>("combine", {1}, 32);
  Buf all = b.Fragment("all", DType::kInt32, {64}), total = b.Fragment("total", DType::kInt32, {1});
  b.Copy(partial.At({0}, {64}), all);
  b.Reduce(ReduceOp::kSum, all, total, 0);
  b.Copy(total, Y);
  b.Close();
  Array x_in(DType::kInt32, {1234}), y(DType::kInt32, {1});
  x_in.Random(9, -1000, 1000);
  ExpectRuns(Built(b), {&x_in, &y});
  int64_t expected = 0;
  for (int64_t k = 0; k < 1234; ++k) expected += x_in.Int(k);
  EXPECT_EQ(y.Int(0), expected);
}

}  // namespace
}  // namespace tilert
