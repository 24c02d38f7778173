#include "sample_programs.h"

#include <cmath>
#include <functional>

#include "gtest/gtest.h"
#include "ir/builder.h"

namespace tilert {
namespace {

Program Built(ProgramBuilder& b) {
  absl::StatusOr<Program> program = b.Build();
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *std::move(program) : Program();
}

constexpr DType kF32 = DType::kFloat32;

}  // namespace

Program GemmProgram(const GemmSample& s) {
  ProgramBuilder b("gemm");
  const Val M = b.Dim("M"), N = b.Dim("N"), K = b.Dim("K");
  const Buf A = s.transpose_a ? b.Tensor("A", s.dtype, {K, M}) : b.Tensor("A", s.dtype, {M, K});
  const DType dtype_b = s.dtype_b == DType::kInvalid ? s.dtype : s.dtype_b;
  const Buf B = s.transpose_b ? b.Tensor("B", dtype_b, {N, K}) : b.Tensor("B", dtype_b, {K, N});
  const Buf C = b.Tensor("C", s.result, {M, N}, Access::kOut);
  auto [bx, by] = b.Launch<2>("main", {CeilDiv(N, s.n), CeilDiv(M, s.m)}, s.threads);
  const Buf a = b.Shared("A_shared", s.dtype, s.transpose_a ? std::vector<Val>{s.k, s.m} : std::vector<Val>{s.m, s.k});
  const Buf w = b.Shared("B_shared", dtype_b, s.transpose_b ? std::vector<Val>{s.n, s.k} : std::vector<Val>{s.k, s.n});
  const Buf acc = b.Fragment("C_local", IsFloat(s.dtype) ? kF32 : DType::kInt32, {s.m, s.n});
  b.SetFastMath(s.dtype == kF32);
  if (s.swizzle > 0) b.Add(Annotate{AnnotationKind::kUseSwizzle, kNoId, {b.E(b.Lit(s.swizzle))}, "row"});
  b.Fill(acc, 0);
  const Val ko = b.OpenFor(ForKind::kPipelined, "ko", 0, CeilDiv(K, s.k), 1, static_cast<uint32_t>(s.stages));
  b.Copy(s.transpose_a ? A.At({ko * s.k, by * s.m}, {s.k, s.m}) : A.At({by * s.m, ko * s.k}, {s.m, s.k}), a);
  b.Copy(s.transpose_b ? B.At({bx * s.n, ko * s.k}, {s.n, s.k}) : B.At({ko * s.k, bx * s.n}, {s.k, s.n}), w);
  b.Gemm(a, w, acc, s.transpose_a, s.transpose_b);
  b.Close();
  b.Copy(acc, C.At({by * s.m, bx * s.n}, {s.m, s.n}));
  b.Close();
  return Built(b);
}

Program AddProgram(int64_t tile, int64_t threads, DType dtype) {
  ProgramBuilder b("add");
  const Val N = b.Dim("N");
  const Buf A = b.Tensor("A", dtype, {N}), B = b.Tensor("B", dtype, {N}), C = b.Tensor("C", dtype, {N}, Access::kOut);
  auto [bx] = b.Launch<1>("main", {CeilDiv(N, tile)}, threads);
  const std::vector<Val> i = b.OpenParallel({"i"}, {tile});
  b.Store(C, {bx * tile + i[0]}, A(bx * tile + i[0]) + B(bx * tile + i[0]));
  b.Close();
  b.Close();
  return Built(b);
}

Program TransposeProgram(int64_t tile, int64_t threads, DType dtype) {
  ProgramBuilder b("transpose");
  const Val M = b.Dim("M"), N = b.Dim("N");
  const Buf X = b.Tensor("X", dtype, {M, N}), Y = b.Tensor("Y", dtype, {N, M}, Access::kOut);
  auto [bx, by] = b.Launch<2>("main", {CeilDiv(N, tile), CeilDiv(M, tile)}, threads);
  const Buf shared = b.Shared("tile", dtype, {tile, tile});
  b.Copy(X.At({by * tile, bx * tile}, {tile, tile}), shared);
  const Buf turned = b.Fragment("turned", dtype, {tile, tile});
  const std::vector<Val> at = b.OpenParallel({"i", "j"}, {tile, tile});
  b.Store(turned, {at[0], at[1]}, shared(at[1], at[0]));
  b.Close();
  b.Copy(turned, Y.At({bx * tile, by * tile}, {tile, tile}));
  b.Close();
  return Built(b);
}

Program RmsNormProgram(int64_t rows, int64_t columns, int64_t threads) {
  ProgramBuilder b("rmsnorm");
  const Val M = b.Dim("M");
  const DType type = DType::kBFloat16;
  const Buf X = b.Tensor("X", type, {M, columns}), W = b.Tensor("W", type, {columns}),
            Y = b.Tensor("Y", type, {M, columns}, Access::kOut);
  auto [bx] = b.Launch<1>("main", {CeilDiv(M, rows)}, threads);
  const Buf x = b.Fragment("x", kF32, {rows, columns}), square = b.Fragment("square", kF32, {rows, columns}),
            scale = b.Fragment("scale", kF32, {rows});
  b.Copy(X.At({bx * rows, 0}, {rows, columns}), x);
  const std::vector<Val> p = b.OpenParallel({"i", "j"}, {rows, columns});
  b.Store(square, {p[0], p[1]}, x(p[0], p[1]) * x(p[0], p[1]));
  b.Close();
  b.Reduce(ReduceOp::kSum, square, scale, 1);
  const std::vector<Val> r = b.OpenParallel({"i"}, {rows});
  b.Store(scale, {r[0]}, Call(ExprOp::kRsqrt, scale(r[0]) / Val(static_cast<double>(columns)) + Val(1e-6)));
  b.Close();
  const std::vector<Val> q = b.OpenParallel({"i", "j"}, {rows, columns});
  b.Store(x, {q[0], q[1]}, x(q[0], q[1]) * scale(q[0]) * b.Cast(W(q[1]), kF32));
  b.Close();
  b.Copy(x, Y.At({bx * rows, 0}, {rows, columns}));
  b.Close();
  return Built(b);
}

Program AttentionProgram(int64_t m, int64_t n, int64_t d, int64_t stages, int64_t threads, bool causal) {
  ProgramBuilder b("attention");
  const Val B = b.Dim("B"), H = b.Dim("H"), S = b.Dim("S");
  const DType type = DType::kBFloat16;
  const Buf Q = b.Tensor("Q", type, {B, H, S, d}), K = b.Tensor("K", type, {B, H, S, d}), V = b.Tensor("V", type, {B, H, S, d});
  const Buf O = b.Tensor("O", type, {B, H, S, d}, Access::kOut);
  auto [bx, by, bz] = b.Launch<3>("main", {CeilDiv(S, m), H, B}, threads);
  const Buf q = b.Shared("Q_shared", type, {m, d}), k = b.Shared("K_shared", type, {n, d}),
            v = b.Shared("V_shared", type, {n, d});
  const Buf scores = b.Fragment("scores", kF32, {m, n}), p = b.Fragment("p", type, {m, n}), o = b.Fragment("acc_o", kF32, {m, d});
  const Buf high = b.Fragment("row_max", kF32, {m}), before = b.Fragment("row_max_prev", kF32, {m}),
            sum = b.Fragment("row_sum", kF32, {m});
  const Buf total = b.Fragment("logsum", kF32, {m}), scale = b.Fragment("scale", kF32, {m});
  const Val factor = b.Lit(std::log2(std::exp(1.0)) / std::sqrt(static_cast<double>(d)));
  const auto rows = [&](const std::function<void(Val)>& body) {
    const std::vector<Val> i = b.OpenParallel({"i"}, {m});
    body(i[0]);
    b.Close();
  };
  const auto points = [&](int64_t columns, const std::function<void(Val, Val)>& body) {
    const std::vector<Val> at = b.OpenParallel({"i", "j"}, {m, columns});
    body(at[0], at[1]);
    b.Close();
  };
  b.Copy(Q.At({bz, by, bx * m, 0}, {1, 1, m, d}), q);
  b.Fill(o, 0);
  b.Fill(total, 0);
  b.Fill(high, b.Lit(-1e30));
  const Val blocks = causal ? Min(CeilDiv(S, n), CeilDiv((bx + 1) * m, n)) : CeilDiv(S, n);
  const Val t = b.OpenFor(ForKind::kPipelined, "t", 0, blocks, 1, static_cast<uint32_t>(stages));
  b.Copy(K.At({bz, by, t * n, 0}, {1, 1, n, d}), k);
  points(n, [&, bx = bx](Val i, Val j) {
    const Val inside = t * n + j < S;
    b.Store(scores, {i, j},
            b.Select(causal ? inside && bx * m + i >= t * n + j : inside, b.Float(0, kF32), b.Float(-1e30, kF32)));
  });
  b.Gemm(q, k, scores, false, true, false, GemmPolicy::kFullRow);
  b.Copy(V.At({bz, by, t * n, 0}, {1, 1, n, d}), v);
  b.Copy(high, before);
  b.Reduce(ReduceOp::kMax, scores, high, 1, false);
  rows([&](Val i) { b.Store(scale, {i}, Call(ExprOp::kExp2, before(i) * factor - high(i) * factor)); });
  points(n, [&](Val i, Val j) { b.Store(scores, {i, j}, Call(ExprOp::kExp2, scores(i, j) * factor - high(i) * factor)); });
  b.Reduce(ReduceOp::kSum, scores, sum, 1);
  rows([&](Val i) { b.Store(total, {i}, total(i) * scale(i) + sum(i)); });
  b.Copy(scores, p);
  points(d, [&](Val i, Val j) { b.Store(o, {i, j}, o(i, j) * scale(i)); });
  b.Gemm(p, v, o, false, false, false, GemmPolicy::kFullRow);
  b.Close();
  points(d, [&](Val i, Val j) { b.Store(o, {i, j}, o(i, j) / total(i)); });
  b.Copy(o, O.At({bz, by, bx * m, 0}, {1, 1, m, d}));
  b.Close();
  return Built(b);
}

}  // namespace tilert
