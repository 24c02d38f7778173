#include "sample_tiles.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "ir/builder.h"

namespace tilert {
namespace {

constexpr DType kF32 = DType::kFloat32;

Program Finish(ProgramBuilder& b) {
  b.Close();
  absl::StatusOr<Program> program = b.Build();
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *std::move(program) : Program();
}

Val LowestFloat(ProgramBuilder& b) { return b.Float(-std::numeric_limits<double>::infinity(), kF32); }

}  // namespace

Program GemmTilesProgram(const GemmTiles& o) {
  ProgramBuilder b("gemm_tiles");
  const Val M = b.Dim("M"), N = b.Dim("N"), K = b.Dim("K");
  using Shape = std::vector<Val>;
  const Buf A = b.Tensor("A", o.type, o.transpose_a ? Shape{K, M} : Shape{M, K}),
            B = b.Tensor("B", o.type, o.transpose_b ? Shape{N, K} : Shape{K, N});
  const Buf C = b.Tensor("C", o.out, {M, N}, Access::kOut);
  const auto [bx, by] = b.Launch<2>("main", {CeilDiv(N, o.block_n), CeilDiv(M, o.block_m)}, o.threads);
  const Shape a_tile = o.transpose_a ? Shape{o.block_k, o.block_m} : Shape{o.block_m, o.block_k};
  const Shape b_tile = o.transpose_b ? Shape{o.block_n, o.block_k} : Shape{o.block_k, o.block_n};
  const Buf a = b.Shared("a", o.type, a_tile), w = b.Shared("b", o.type, b_tile),
            acc = b.Fragment("acc", kF32, {o.block_m, o.block_n});
  b.Fill(acc, 0);
  const Val k = b.OpenFor(ForKind::kPipelined, "k", 0, CeilDiv(K, o.block_k), 1, o.stages);
  const Val m0 = by * o.block_m, n0 = bx * o.block_n, k0 = k * o.block_k;
  b.Copy(A.At(o.transpose_a ? Shape{k0, m0} : Shape{m0, k0}, a_tile), a);
  b.Copy(B.At(o.transpose_b ? Shape{n0, k0} : Shape{k0, n0}, b_tile), w);
  b.Gemm(a, w, acc, o.transpose_a, o.transpose_b);
  b.Close();
  if (o.stage_out) {
    const Buf out = b.Shared("out", o.out, {o.block_m, o.block_n});
    b.Copy(acc, out);
    b.Copy(out, C.At({m0, n0}, {o.block_m, o.block_n}));
  } else {
    b.Copy(acc, C.At({m0, n0}, {o.block_m, o.block_n}));
  }
  return Finish(b);
}

Program AddProgram(DType type) {
  ProgramBuilder b("add");
  const Val N = b.Dim("N");
  const Buf A = b.Tensor("A", type, {N}), B = b.Tensor("B", type, {N}), C = b.Tensor("C", type, {N}, Access::kOut);
  const auto [bx] = b.Launch<1>("main", {CeilDiv(N, 256)}, 64);
  const Val i = b.OpenParallel({"i"}, {256})[0];
  b.Store(C, {bx * 256 + i}, A(bx * 256 + i) + B(bx * 256 + i));
  b.Close();
  return Finish(b);
}

Program TransposeProgram(DType type) {
  ProgramBuilder b("transpose");
  const Val M = b.Dim("M"), N = b.Dim("N");
  const Buf A = b.Tensor("A", type, {M, N}), B = b.Tensor("B", type, {N, M}, Access::kOut);
  const auto [bx, by] = b.Launch<2>("main", {CeilDiv(N, 32), CeilDiv(M, 32)}, 64);
  const Buf tile = b.Shared("tile", type, {32, 32}), turned = b.Fragment("turned", type, {32, 32});
  b.Copy(A.At({by * 32, bx * 32}, {32, 32}), tile);
  const auto ij = b.OpenParallel({"i", "j"}, {32, 32});
  b.Store(turned, {ij[0], ij[1]}, tile(ij[1], ij[0]));
  b.Close();
  b.Copy(turned, B.At({bx * 32, by * 32}, {32, 32}));
  return Finish(b);
}

Program RmsNormProgram(int64_t padded) {
  constexpr int64_t kRows = 4;
  ProgramBuilder b("rms_norm");
  const Val M = b.Dim("M"), N = b.Dim("N");
  const Val eps = b.Scalar("eps", kF32);
  const Buf X = b.Tensor("X", DType::kBFloat16, {M, N}), W = b.Tensor("W", DType::kBFloat16, {N});
  const Buf Y = b.Tensor("Y", DType::kBFloat16, {M, N}, Access::kOut);
  const auto [bx] = b.Launch<1>("main", {CeilDiv(M, kRows)}, 128);
  const Buf x = b.Fragment("x", kF32, {kRows, padded}), square = b.Fragment("square", kF32, {kRows, padded}),
            sum = b.Fragment("sum", kF32, {kRows});
  b.Copy(X.At({bx * kRows, 0}, {kRows, padded}), x);
  auto ij = b.OpenParallel({"i", "j"}, {kRows, padded});
  b.Store(square, {ij[0], ij[1]}, x(ij[0], ij[1]) * x(ij[0], ij[1]));
  b.Close();
  b.Reduce(ReduceOp::kSum, square, sum, 1);
  ij = b.OpenParallel({"i", "j"}, {kRows, padded});
  const Val scale = Call(ExprOp::kRsqrt, sum(ij[0]) / b.Cast(N, kF32) + eps);
  b.Store(x, {ij[0], ij[1]}, x(ij[0], ij[1]) * scale * b.Cast(W(ij[1]), kF32));
  b.Close();
  b.Copy(x, Y.At({bx * kRows, 0}, {kRows, padded}));
  return Finish(b);
}

Program SoftmaxRowsProgram(int64_t tile) {
  ProgramBuilder b("softmax_rows");
  const Val M = b.Dim("M"), N = b.Dim("N");
  const Buf X = b.Tensor("X", DType::kFloat16, {M, N}), Y = b.Tensor("Y", kF32, {M, N}, Access::kOut);
  const auto [row] = b.Launch<1>("main", {M}, 128);
  const Buf x = b.Fragment("x", kF32, {1, tile}), top = b.Fragment("top", kF32, {1}), part = b.Fragment("part", kF32, {1}),
            sum = b.Fragment("sum", kF32, {1});
  b.Fill(top, LowestFloat(b));
  b.Fill(sum, 0);
  const Val r = row;  // clang 14 lets no lambda capture a structured binding
  const auto load = [&](Val t) {
    const Val j = b.OpenParallel({"j"}, {tile})[0];
    b.Store(x, {0, j}, b.Select(t * tile + j < N, b.Cast(X(r, t * tile + j), kF32), LowestFloat(b)));
    b.Close();
  };
  Val t = b.OpenFor(ForKind::kSerial, "t", 0, CeilDiv(N, tile));
  load(t);
  b.Reduce(ReduceOp::kMax, x, top, 1, /*clear=*/false);
  b.Close();
  t = b.OpenFor(ForKind::kSerial, "t", 0, CeilDiv(N, tile));
  load(t);
  Val j = b.OpenParallel({"j"}, {tile})[0];
  b.Store(x, {0, j}, Call(ExprOp::kExp, x(0, j) - top(0)));
  b.Close();
  b.Reduce(ReduceOp::kSum, x, part, 1);
  j = b.OpenParallel({"j"}, {1})[0];
  b.Store(sum, {j}, sum(j) + part(j));
  b.Close();
  b.Close();
  t = b.OpenFor(ForKind::kSerial, "t", 0, CeilDiv(N, tile));
  load(t);
  j = b.OpenParallel({"j"}, {tile})[0];
  b.Store(Y, {row, t * tile + j}, Call(ExprOp::kExp, x(0, j) - top(0)) / sum(0));
  b.Close();
  b.Close();
  return Finish(b);
}

Program GemvProgram(int64_t block_n, int64_t block_k) {
  ProgramBuilder b("gemv");
  const Val N = b.Dim("N"), K = b.Dim("K");
  const Buf A = b.Tensor("A", DType::kFloat16, {N, K}), x = b.Tensor("x", DType::kFloat16, {K}),
            y = b.Tensor("y", kF32, {N}, Access::kOut);
  const auto [bx] = b.Launch<1>("main", {CeilDiv(N, block_n)}, 128);
  const Buf acc = b.Fragment("acc", kF32, {block_n, block_k}), sum = b.Fragment("sum", kF32, {block_n});
  b.Fill(acc, 0);
  const Val k = b.OpenFor(ForKind::kSerial, "k", 0, CeilDiv(K, block_k));
  const auto ij = b.OpenParallel({"i", "j"}, {block_n, block_k});
  const Val column = k * block_k + ij[1];
  b.Store(acc, {ij[0], ij[1]}, acc(ij[0], ij[1]) + b.Cast(A(bx * block_n + ij[0], column), kF32) * b.Cast(x(column), kF32));
  b.Close();
  b.Close();
  b.Reduce(ReduceOp::kSum, acc, sum, 1);
  b.Copy(sum, y.At({bx * block_n}, {block_n}));
  return Finish(b);
}

Program AttentionTilesProgram(bool causal, int64_t dim, int64_t block_m, int64_t block_n, uint32_t stages) {
  const DType f16 = DType::kFloat16;
  ProgramBuilder b("attention_tiles");
  const Val H = b.Dim("H"), L = b.Dim("L"), S = b.Dim("S");
  const Buf Q = b.Tensor("Q", f16, {H, L, dim}), K = b.Tensor("K", f16, {H, S, dim}), V = b.Tensor("V", f16, {H, S, dim});
  const Buf O = b.Tensor("O", f16, {H, L, dim}, Access::kOut);
  const auto [bx, h] = b.Launch<2>("main", {CeilDiv(L, block_m), H}, 128);
  const Buf q = b.Shared("q", f16, {block_m, dim}), k = b.Shared("k", f16, {block_n, dim}),
            v = b.Shared("v", f16, {block_n, dim});
  const Buf out = b.Shared("out", f16, {block_m, dim});
  const Buf s = b.Fragment("s", kF32, {block_m, block_n}), p = b.Fragment("p", f16, {block_m, block_n}),
            o = b.Fragment("o", kF32, {block_m, dim});
  const Buf top = b.Fragment("top", kF32, {block_m}), old = b.Fragment("old", kF32, {block_m});
  const Buf sum = b.Fragment("sum", kF32, {block_m}), part = b.Fragment("part", kF32, {block_m});
  const double scale = 1 / std::sqrt(static_cast<double>(dim));
  b.Copy(Q.At({h, bx * block_m, 0}, {1, block_m, dim}), q);
  b.Fill(o, 0);
  b.Fill(sum, 0);
  b.Fill(top, LowestFloat(b));
  const Val all = CeilDiv(S, block_n), seen = CeilDiv((bx + 1) * block_m, block_n);
  const Val t = b.OpenFor(ForKind::kPipelined, "t", 0, causal ? Min(all, seen) : all, 1, stages);
  b.Copy(K.At({h, t * block_n, 0}, {1, block_n, dim}), k);
  b.Gemm(q, k, s, false, true, /*clear_accum=*/true);
  auto ij = b.OpenParallel({"i", "j"}, {block_m, block_n});
  const Val query = bx * block_m + ij[0], key = t * block_n + ij[1];
  b.Store(s, {ij[0], ij[1]}, b.Select(causal ? key <= query && key < S : key < S, s(ij[0], ij[1]) * scale, LowestFloat(b)));
  b.Close();
  b.Copy(top, old);
  b.Reduce(ReduceOp::kMax, s, top, 1, /*clear=*/false);
  ij = b.OpenParallel({"i", "j"}, {block_m, block_n});
  b.Store(s, {ij[0], ij[1]}, Call(ExprOp::kExp, s(ij[0], ij[1]) - top(ij[0])));
  b.Close();
  b.Reduce(ReduceOp::kSum, s, part, 1);
  const Val i = b.OpenParallel({"i"}, {block_m})[0];
  b.Store(old, {i}, Call(ExprOp::kExp, old(i) - top(i)));
  b.Store(sum, {i}, sum(i) * old(i) + part(i));
  b.Close();
  ij = b.OpenParallel({"i", "j"}, {block_m, dim});
  b.Store(o, {ij[0], ij[1]}, o(ij[0], ij[1]) * old(ij[0]));
  b.Close();
  b.Copy(V.At({h, t * block_n, 0}, {1, block_n, dim}), v);
  b.Copy(s, p);
  b.Gemm(p, v, o);
  b.Close();
  ij = b.OpenParallel({"i", "j"}, {block_m, dim});
  b.Store(o, {ij[0], ij[1]}, b.Select(sum(ij[0]) > b.Float(0, kF32), o(ij[0], ij[1]) / sum(ij[0]), b.Float(0, kF32)));
  b.Close();
  b.Copy(o, out);
  b.Copy(out, O.At({h, bx * block_m, 0}, {1, block_m, dim}));
  return Finish(b);
}

Program SplitSumProgram() {
  ProgramBuilder b("split_sum");
  const Val N = b.Dim("N");
  const Buf X = b.Tensor("X", DType::kInt32, {N}), Y = b.Tensor("Y", DType::kInt32, {1}, Access::kOut);
  const Buf partial = b.Workspace("partial", DType::kInt32, {CeilDiv(N, 100)});
  const auto [bx] = b.Launch<1>("parts", {CeilDiv(N, 100)}, 64);
  const Buf x = b.Fragment("x", DType::kInt32, {100}), sum = b.Fragment("sum", DType::kInt32, {1});
  b.Copy(X.At({bx * 100}, {100}), x);
  b.Reduce(ReduceOp::kSum, x, sum, 0);
  b.Copy(sum, partial.At({bx}, {1}));
  b.Close();
  b.Launch<1>("combine", {1}, 32);
  const Buf all = b.Fragment("all", DType::kInt32, {64}), total = b.Fragment("total", DType::kInt32, {1});
  b.Copy(partial.At({0}, {64}), all);
  b.Reduce(ReduceOp::kSum, all, total, 0);
  b.Copy(total, Y);
  return Finish(b);
}

}  // namespace tilert
