// Sources that say what programs cannot: what they become computes, on the executor, what the source means.
#include "frontend/legalize.h"

#include <gtest/gtest.h>

#include "frontend/frontend.h"
#include "ir/printer.h"
#include "tests/frontend/cases.h"
#include "tests/ir/exec_util.h"

namespace tilert::frontend {
namespace {

// Compiles `entry`, checks that the text form is read back as the same, and runs it.
void Execute(const std::string& source, const std::string& entry, std::vector<Array*> arrays, const Settings& settings = {}) {
  const absl::StatusOr<Program> program = Compile(WithImports(source), "test.py", entry, settings);
  ASSERT_TRUE(program.ok()) << program.status().message();
  const std::string text = PrintProgram(*program);
  const absl::StatusOr<Program> again = Compile(text, "printed.py", entry, {});
  ASSERT_TRUE(again.ok()) << again.status().message() << text;
  EXPECT_EQ(PrintProgram(*again), text);
  ExpectRuns(*program, arrays);
}

TEST(Views, ReshapedTensors) {
  // (6, 20) seen as (2, 3, 4, 5) and as (40, 3): copies with ends outside, element accesses, stores.
  const std::string source = R"(
@T.prim_func
def k(A: T.Tensor((6, 20), "float32"), B: T.Tensor((6, 20), "float32"), C: T.Tensor((3, 2, 8), "float32")):
    with T.Kernel(1, threads=32) as bx:
        a = T.reshape(A, (2, 3, 4, 5))
        b = T.Tensor((40, 3), "float32", B.data)
        tile = T.alloc_shared((3, 4, 8), "float32")
        T.copy(a[1, 0, 0, 0], tile[:, :, :], fill=7.0)
        for i, j in T.Parallel(3, 8):
            C[i, 0, j] = tile[i, 3, j]
            C[i, 1, j] = a[0, i, 2, j]
        rows = T.alloc_shared((64, 3), "float32")
        for i, j in T.Parallel(64, 3):
            rows[i, j] = i * 10 + j
        T.copy(rows, b[0, 0])
)";
  Array A(DType::kFloat32, {6, 20}), B(DType::kFloat32, {6, 20}), C(DType::kFloat32, {3, 2, 8});
  A.Random(1);
  Execute(source, "k", {&A, &B, &C});
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 8; ++j) {
      EXPECT_EQ(C[(i * 2 + 0) * 8 + j], j < 5 ? A[((1 * 3 + i) * 4 + 3) * 5 + j] : 7.0) << i << " " << j;
      EXPECT_EQ(C[(i * 2 + 1) * 8 + j], j < 5 ? A[((0 * 3 + i) * 4 + 2) * 5 + j] : 0.0) << i << " " << j;
    }
  }
  for (int64_t i = 0; i < 40; ++i) {
    for (int64_t j = 0; j < 3; ++j) EXPECT_EQ(B[i * 3 + j], i * 10 + j);
  }
}

TEST(Views, ReshapedTilesInStatements) {
  const std::string source = R"(
@T.prim_func
def k(A: T.Tensor((16, 12), "float32"), B: T.Tensor((16, 3), "float32"), C: T.Tensor((16, 12), "float32")):
    with T.Kernel(1, threads=32) as bx:
        s = T.alloc_fragment((16, 12), "float32")
        v = T.view(s, (16, 3, 4))
        sums = T.alloc_fragment((16, 3), "float32")
        T.copy(A, s)
        for i, j, c in T.Parallel(16, 3, 4):
            v[i, j, c] = v[i, j, c] * (j + 1)
        T.reduce_sum(v, sums, dim=-1)
        T.cumsum(v, dim=2)
        T.copy(sums, B)
        T.copy(s, C)
)";
  Array A(DType::kFloat32, {16, 12}), B(DType::kFloat32, {16, 3}), C(DType::kFloat32, {16, 12});
  A.Random(2, -8, 8);
  for (int64_t k = 0; k < A.size(); ++k) A.Set(k, std::floor(A[k]));
  Execute(source, "k", {&A, &B, &C});
  for (int64_t i = 0; i < 16; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      double sum = 0;
      for (int64_t c = 0; c < 4; ++c) {
        sum += A[i * 12 + j * 4 + c] * static_cast<double>(j + 1);
        EXPECT_EQ(C[i * 12 + j * 4 + c], sum);
      }
      EXPECT_EQ(B[i * 3 + j], sum);
    }
  }
}

TEST(Views, TensorsInAnOrderOfTheirOwn) {
  // Element (l, d) lies at (l // 4, d, l % 4); rows beyond the tensor are neither written nor read.
  const std::string source = R"(
def order(T_):
    return T.Layout(T_.shape, lambda l, d: [l // 4, d, l % 4])

@T.prim_func
def k(A: T.Tensor((12, 6), "float32"), B: T.Tensor((12, 6), "float32"), C: T.Tensor((12, 6), "float32")):
    with T.Kernel(2, threads=32) as bx:
        T.annotate_layout({B: order(B)})
        for i, j in T.Parallel(8, 6):
            T.atomic_add(B[bx * 8 + i, j], A[bx * 8 + i, j])
    with T.Kernel(2, threads=32) as bx:
        T.annotate_layout({B: order(B)})
        T.copy(B[bx * 8:bx * 8 + 8, :], C[bx * 8:bx * 8 + 8, :])
)";
  Array A(DType::kFloat32, {12, 6}), B(DType::kFloat32, {12, 6}), C(DType::kFloat32, {12, 6});
  A.Random(3);
  B.Fill(0);
  Execute(source, "k", {&A, &B, &C});
  for (int64_t l = 0; l < 12; ++l) {
    for (int64_t d = 0; d < 6; ++d) {
      EXPECT_EQ(B[(l / 4 * 6 + d) * 4 + l % 4], A[l * 6 + d]);
      EXPECT_EQ(C[l * 6 + d], A[l * 6 + d]);
    }
  }
}

TEST(Legalize, Reducers) {
  const std::string source = R"(
@T.prim_func
def k(A: T.Tensor((8, 40, 3), "float32"), S: T.Tensor((8,), "float32"), X: T.Tensor((8, 3), "float32")):
    with T.Kernel(1, threads=32) as bx:
        total = T.alloc_reducer(8, "float32", replication="all")
        top = T.alloc_reducer((8, 3), "float32", op="max")
        T.clear(total)
        T.fill(top, -T.infinity("float32"))
        for b in T.serial(2):
            for i, j, c in T.Parallel(8, 20, 3):
                total[i] += A[i, b * 20 + j, c]
                top[i, c] = T.max(top[i, c], A[i, b * 20 + j, c])
        T.finalize_reducer(total)
        T.copy(total, S)
        T.copy(top, X)
)";
  Array A(DType::kFloat32, {8, 40, 3}), S(DType::kFloat32, {8}), X(DType::kFloat32, {8, 3});
  A.Random(4, -50, 50);
  for (int64_t k = 0; k < A.size(); ++k) A.Set(k, std::floor(A[k]));
  Execute(source, "k", {&A, &S, &X});
  for (int64_t i = 0; i < 8; ++i) {
    double sum = 0;
    for (int64_t c = 0; c < 3; ++c) {
      double top = -1e9;
      for (int64_t j = 0; j < 40; ++j) {
        sum += A[(i * 40 + j) * 3 + c];
        top = std::max(top, A[(i * 40 + j) * 3 + c]);
      }
      EXPECT_EQ(X[i * 3 + c], top);
    }
    EXPECT_EQ(S[i], sum);
  }
}

TEST(Legalize, ParallelLoopsAndTilesInParallelLoops) {
  const std::string source = R"(
@T.prim_func
def k(A: T.Tensor((6, 8), "float32"), B: T.Tensor((6, 8), "float32"), C: T.Tensor((6, 8), "float32")):
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(6):
            for j in T.Parallel(8):
                B[i, j] = A[i, j] + 1.0
        for i in T.Parallel(6):
            first = A[i, 0]
            for j in T.Parallel(8):
                C[i, j] = A[i, j] - first
        for i, j in T.Parallel(6, 2):
            T.atomic_addx4(C[i, j * 4], A[i, j * 4])
)";
  Array A(DType::kFloat32, {6, 8}), B(DType::kFloat32, {6, 8}), C(DType::kFloat32, {6, 8});
  A.Random(5, -50, 50);
  for (int64_t k = 0; k < A.size(); ++k) A.Set(k, std::floor(A[k]));
  Execute(source, "k", {&A, &B, &C});
  for (int64_t k = 0; k < 48; ++k) {
    EXPECT_EQ(B[k], A[k] + 1);
    EXPECT_EQ(C[k], A[k] - A[k / 8 * 8] + A[k]);
  }
}

TEST(Im2Col, IsAConvolution) {
  const std::string source = R"(
@tilelang.jit
def conv(data, kernel, S, D, P, bm=16, bn=8, bk=8):
    N, H, W, C, F, K = T.const("N, H, W, C, F, K")
    OH = (H + 2 * P - D * (K - 1) - 1) // S + 1
    OW = (W + 2 * P - D * (K - 1) - 1) // S + 1
    data: T.Tensor((N, H, W, C), "float32")
    kernel: T.Tensor((K, K, C, F), "float32")
    out = T.empty((N, OH, OW, F), "float32")
    with T.Kernel(T.ceildiv(F, bn), T.ceildiv(N * OH * OW, bm), threads=32) as (bx, by):
        a = T.alloc_shared((bm, bk), "float32")
        b = T.alloc_shared((bk, bn), "float32")
        c = T.alloc_fragment((bm, bn), "float32")
        flat = T.Tensor((K * K * C, F), "float32", kernel.data)
        result = T.Tensor((N * OH * OW, F), "float32", out.data)
        T.clear(c)
        for k in T.Pipelined(T.ceildiv(K * K * C, bk), num_stages=2):
            T.im2col(data, a, by, k, K, S, D, P)
            T.copy(flat[k * bk, bx * bn], b)
            T.gemm(a, b, c)
        T.copy(c, result[by * bm, bx * bn])
    return out
)";
  struct Conv {
    int64_t n, h, w, c, f, k, s, d, p;
  };
  for (const Conv& v : {Conv{2, 5, 7, 3, 5, 3, 1, 1, 1}, Conv{1, 8, 8, 2, 9, 3, 2, 2, 2}, Conv{1, 4, 5, 1, 1, 1, 1, 1, 0}}) {
    const int64_t oh = (v.h + 2 * v.p - v.d * (v.k - 1) - 1) / v.s + 1, ow = (v.w + 2 * v.p - v.d * (v.k - 1) - 1) / v.s + 1;
    Array data(DType::kFloat32, {v.n, v.h, v.w, v.c}), kernel(DType::kFloat32, {v.k, v.k, v.c, v.f}),
        out(DType::kFloat32, {v.n, oh, ow, v.f});
    data.Random(6);
    kernel.Random(7);
    Settings settings = {{"S", v.s}, {"D", v.d}, {"P", v.p}};
    if (v.n == 2) {
      for (const auto& [name, value] : {std::pair{"N", v.n}, {"H", v.h}, {"W", v.w}, {"C", v.c}, {"F", v.f}, {"K", v.k}})
        settings[name] = value;
    }
    Execute(source, "conv", {&data, &kernel, &out}, settings);
    for (int64_t at = 0; at < out.size(); ++at) {
      const int64_t f = at % v.f, x = at / v.f % ow, y = at / v.f / ow % oh, n = at / v.f / ow / oh;
      double sum = 0;
      for (int64_t r = 0; r < v.k; ++r) {
        for (int64_t q = 0; q < v.k; ++q) {
          const int64_t iy = y * v.s + r * v.d - v.p, ix = x * v.s + q * v.d - v.p;
          if (iy < 0 || iy >= v.h || ix < 0 || ix >= v.w) continue;
          for (int64_t c = 0; c < v.c; ++c)
            sum += data[((n * v.h + iy) * v.w + ix) * v.c + c] * kernel[((r * v.k + q) * v.c + c) * v.f + f];
        }
      }
      EXPECT_NEAR(out[at], sum, 1e-5);
    }
  }
}

TEST(Persistent, WalksOverADomain) {
  const std::string source = R"(
@T.prim_func
def k(A: T.Tensor((5, 7), "int32")):
    with T.Kernel(4, threads=32) as block:
        for i, j in T.Persistent([5, 7], 4, block):
            A[i, j] = i * 100 + j * 10 + block
)";
  Array A(DType::kInt32, {5, 7});
  Execute(source, "k", {&A});
  for (int64_t k = 0; k < 35; ++k) EXPECT_EQ(A.Int(k), k / 7 * 100 + k % 7 * 10 + k % 4);
}

TEST(Tiles, RunningMaximaAndQuestions) {
  const std::string source = R"(
@T.prim_func
def k(
    A: T.Tensor((4, 9), "float32"),
    B: T.Tensor((4, 9), "float32"),
    C: T.Tensor((4, 9), "float32"),
    D: T.Tensor((2,), "int32"),
    E: T.Tensor((6, 9), "bool"),
):
    with T.Kernel(1, threads=32) as bx:
        a = T.alloc_fragment((4, 9), "float32")
        b = T.alloc_shared((4, 9), "float32")
        T.copy(A, a)
        T.cummax(a, b, dim=1)
        T.copy(b, B)
        T.cummax(a, dim=0, reverse=True)
        T.copy(a, C)
        D[0] = T.if_then_else(T.any_of(E[2:4, 0:9]), 1, 0)
        if T.all_of(E[4, :]):
            D[1] = 1
        else:
            D[1] = 0
)";
  for (const double fill : {0.0, 1.0}) {
    Array A(DType::kFloat32, {4, 9}), B(DType::kFloat32, {4, 9}), C(DType::kFloat32, {4, 9}), D(DType::kInt32, {2}),
        E(DType::kBool, {6, 9});
    A.Random(11);
    E.Fill(fill);
    for (int64_t k = 0; k < 18; ++k) E.Set(k, 1 - fill);
    Execute(source, "k", {&A, &B, &C, &D, &E});
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t j = 0; j < 9; ++j) {
        double along = A[i * 9], down = A[i * 9 + j];
        for (int64_t t = 0; t <= j; ++t) along = std::max(along, A[i * 9 + t]);
        for (int64_t t = i; t < 4; ++t) down = std::max(down, A[t * 9 + j]);
        EXPECT_EQ(B[i * 9 + j], along);
        EXPECT_EQ(C[i * 9 + j], down);
      }
    }
    EXPECT_EQ(D.Int(0), fill);
    EXPECT_EQ(D.Int(1), fill);
  }
}

TEST(Legalize, GridSyncs) {
  const std::string source = R"(
@T.prim_func
def k(A: T.Tensor((4, 8), "int32"), B: T.Tensor((4, 8), "int32"), C: T.Tensor((4, 8), "int32")):
    with T.Kernel(4, threads=32) as bx:
        first = T.alloc_shared((8,), "int32")
        second = T.alloc_shared((8,), "int32")
        T.copy(A[bx, :], first)
        T.copy(first, B[bx, :])
        T.sync_grid()
        T.copy(B[(bx + 1) % 4, :], second)
        T.copy(second, C[bx, :])
)";
  Array A(DType::kInt32, {4, 8}), B(DType::kInt32, {4, 8}), C(DType::kInt32, {4, 8});
  A.Random(10, 0, 100);
  Execute(source, "k", {&A, &B, &C});
  for (int64_t i = 0; i < 32; ++i) EXPECT_EQ(C.Int(i), A.Int((i / 8 + 1) % 4 * 8 + i % 8));
}

// In whatever order they begin, each waits for another.
TEST(Legalize, BlocksOfACooperativeLaunchWaitForEachOther) {
  const std::string source = R"(
@T.prim_func
def k(begun: T.Tensor((8,), "int32"), C: T.Tensor((8,), "int32")):
    with T.Kernel(8, threads=32, cooperative=True) as bx:
        seen = T.alloc_var("int32", init=0)
        T.atomic_add(begun[bx], 1 + bx)
        while seen == 0:
            seen = T.atomic_add(begun[(bx + 3) % 8], 0, return_prev=True)
        C[bx] = seen

@T.prim_func
def many(C: T.Tensor((100000,), "int32")):
    with T.Kernel(100000, threads=32, cooperative=True) as bx:
        C[bx] = bx
)";
  Array begun(DType::kInt32, {8}), C(DType::kInt32, {8});
  begun.Fill(0);
  const absl::StatusOr<Program> program = Compile(WithImports(source), "test.py", "k", {});
  ASSERT_TRUE(program.ok()) << program.status().message();
  for (const int threads : {1, 2, 8}) {
    begun.Fill(0);
    ExecOptions options;
    options.threads = threads;
    const absl::Status status = RunOn(*program, {&begun, &C}, {}, options);
    ASSERT_TRUE(status.ok()) << status.message();
    for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(C.Int(i), (i + 3) % 8 + 1);
  }
  const absl::StatusOr<Program> many = Compile(WithImports(source), "test.py", "many", {});
  ASSERT_TRUE(many.ok()) << many.status().message();
  Array wide(DType::kInt32, {100000});
  const absl::Status refused = RunOn(*many, {&wide});
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("launch fewer"), absl::string_view::npos) << refused.message();
}

TEST(FourBits, IntegersAreUnpacked) {
  const std::string source = R"(
@T.prim_func
def k(A: T.Tensor((8, 16), T.int4), B: T.Tensor((8, 16), "uint4"), C: T.Tensor((8, 8), "int32"), D: T.Tensor((8, 16), T.int4)):
    with T.Kernel(1, threads=32) as bx:
        a = T.alloc_shared((8, 16), T.int4)
        b = T.alloc_shared((8, 16), T.uint4)
        c = T.alloc_fragment((8, 8), "int32")
        d = T.alloc_fragment((8, 16), T.int4)
        T.copy(A, a)
        T.copy(B[0:8, 0:16], b)
        T.clear(c)
        T.gemm(a, b, c, transpose_B=True)
        T.copy(c, C)
        for i, j in T.Parallel(8, 16):
            d[i, j] = a[i, j] + 3
        T.copy(d, D)
)";
  Array A(DType::kUInt8, {8, 8}), B(DType::kUInt8, {8, 8}), C(DType::kInt32, {8, 8}), D(DType::kUInt8, {8, 8});
  A.Random(8, 0, 255);
  B.Random(9, 0, 255);
  Execute(source, "k", {&A, &B, &C, &D});
  const auto nibble = [](const Array& x, int64_t i, int64_t j) { return x.Int(i * 8 + j / 2) >> (j % 2 * 4) & 15; };
  const auto sign = [](int64_t n) { return n < 8 ? n : n - 16; };
  for (int64_t i = 0; i < 8; ++i) {
    for (int64_t j = 0; j < 8; ++j) {
      int64_t sum = 0;
      for (int64_t k = 0; k < 16; ++k) sum += sign(nibble(A, i, k)) * nibble(B, j, k);
      EXPECT_EQ(C.Int(i * 8 + j), sum);
    }
    for (int64_t j = 0; j < 16; ++j) EXPECT_EQ(nibble(D, i, j), (nibble(A, i, j) + 3) % 16);
  }
}

TEST(FourBits, FloatsAreRoundedToNearestEven) {
  const std::string source = R"(
@T.prim_func
def k(X: T.Tensor((2, 64), "float32"), Q: T.Tensor((2, 64), T.float4_e2m1fn), Y: T.Tensor((2, 64), "float32")):
    with T.Kernel(1, threads=32) as bx:
        q = T.alloc_fragment((2, 64), T.float4_e2m1fn)
        for i, j in T.Parallel(2, 64):
            q[i, j] = X[i, j]
        T.copy(q, Q)
    with T.Kernel(1, threads=32) as bx:
        T.copy(Q, Y)
)";
  Array X(DType::kFloat32, {2, 64}), Q(DType::kUInt8, {2, 32}), Y(DType::kFloat32, {2, 64});
  for (int64_t i = 0; i < 128; ++i) X.Set(i, (i - 64) / 8.0);
  X.Set(0, std::nan(""));
  X.Set(1, 1e30);
  X.Set(2, 0.2499999);
  Execute(source, "k", {&X, &Q, &Y});
  constexpr double kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  EXPECT_EQ(Y[0], 6);
  for (int64_t i = 1; i < 128; ++i) {
    const double magnitude = std::min(std::abs(X[i]), 6.0);
    double nearest = 0;
    int code = 0;
    for (int c = 1; c < 8; ++c) {
      const double there = std::abs(kValues[c] - magnitude), here = std::abs(nearest - magnitude);
      if (there < here || (there == here && c % 2 == 0)) nearest = kValues[c], code = c;
    }
    EXPECT_EQ(Y[i], std::copysign(nearest, X[i])) << X[i];
    EXPECT_EQ(Q.Int(i / 2) >> (i % 2 * 4) & 7, code) << X[i];
  }
}

}  // namespace
}  // namespace tilert::frontend
