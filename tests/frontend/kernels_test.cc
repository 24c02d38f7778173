// The standard kernels on the executor, against references in double precision that are written here.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "frontend/frontend.h"
#include "ir/verifier.h"
#include "tests/golden.h"
#include "tests/ir/exec_util.h"

namespace tilert::frontend {
namespace {

Program CompileKernel(const std::string& file, const std::string& entry, const std::vector<std::string>& settings) {
  Settings parsed;
  for (const std::string& text : settings) EXPECT_TRUE(AddSetting(text, &parsed).ok()) << text;
  absl::StatusOr<Program> program = Compile(ReadSourceFile("kernels/" + file), file, entry, parsed);
  EXPECT_TRUE(program.ok()) << program.status().message();
  if (!program.ok()) return Program();
  const absl::StatusOr<VerifiedProgram> verified = Verify(*program);
  EXPECT_TRUE(verified.ok()) << verified.status().message();
  return *std::move(program);
}

void RunOnExecutor(const Program& program, std::vector<TensorArg> tensors) {
  ExecOptions options;
  options.threads = 2;
  options.check_races = true;
  const absl::Status status = Execute(program, tensors, {}, options);
  ASSERT_TRUE(status.ok()) << status.message();
}

// |actual − expected| within the rounding of the type and what a sum of `terms` may lose in float32.
void ExpectNear(const Array& actual, int64_t k, double expected, double magnitude, double terms) {
  const double unit = actual.type() == DType::kFloat32 ? 0x1p-24 : actual.type() == DType::kFloat16 ? 0x1p-11 : 0x1p-8;
  const double bound = 1.01 * unit * std::abs(expected) + (terms + 4) * 0x1p-23 * magnitude + 1e-7;
  ASSERT_NEAR(actual[k], expected, bound) << "element " << k;
}

// Extents around a tile of `tile`.
std::vector<int64_t> Edges(int64_t tile) { return {0, 1, tile - 1, tile, tile + 1, 37}; }

const std::pair<DType, std::string> kTypes[] = {
    {DType::kFloat16, "float16"}, {DType::kBFloat16, "bfloat16"}, {DType::kFloat32, "float32"}};

TEST(Kernels, Add) {
  for (const auto& [type, name] : kTypes) {
    const Program program = CompileKernel("add.py", "add", {"dtype=" + name, "block=64", "threads=32"});
    for (const int64_t n : {0, 1, 63, 64, 65, 211}) {
      Array a(type, {n}), b(type, {n}), c(type, {n});
      a.Random(1 + n), b.Random(2 + n);
      RunOnExecutor(program, {a.arg(), b.arg(), c.arg()});
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(c[i], RoundToType(type, a[i] + b[i])) << name << " " << n;
    }
  }
}

TEST(Kernels, Gemm) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (const auto& [type, name] : {kTypes[0], kTypes[1]}) {
        const Program program =
            CompileKernel("gemm.py", "gemm",
                          {"dtype=" + name, "block_M=32", "block_N=32", "block_K=16", "threads=32",
                           ta ? "transpose_A=true" : "transpose_A=false", tb ? "transpose_B=true" : "transpose_B=false"});
        for (const auto& [m, n, k] :
             std::vector<std::array<int64_t, 3>>{{32, 32, 16}, {1, 33, 17}, {31, 1, 1}, {33, 37, 53}, {5, 7, 0}, {0, 8, 8}}) {
          Array a(type, ta ? std::vector<int64_t>{k, m} : std::vector<int64_t>{m, k}),
              b(type, tb ? std::vector<int64_t>{n, k} : std::vector<int64_t>{k, n}), c(type, {m, n});
          a.Random(3), b.Random(4);
          RunOnExecutor(program, {a.arg(), b.arg(), c.arg()});
          for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < n; ++j) {
              double sum = 0, magnitude = 0;
              for (int64_t p = 0; p < k; ++p) {
                const double product = a[ta ? p * m + i : i * k + p] * b[tb ? j * k + p : p * n + j];
                sum += product, magnitude += std::abs(product);
              }
              ExpectNear(c, i * n + j, sum, magnitude, static_cast<double>(k));
            }
          }
        }
      }
    }
  }
}

TEST(Kernels, Gemv) {
  for (const auto& [type, name] : kTypes) {
    const Program program = CompileKernel("gemv.py", "gemv", {"dtype=" + name, "block_N=4", "block_K=32", "threads=32"});
    for (const auto& [n, k] : std::vector<std::array<int64_t, 2>>{{4, 32}, {3, 31}, {5, 33}, {1, 1}, {7, 0}, {0, 7}, {13, 131}}) {
      Array w(type, {n, k}), x(type, {k}), y(type, {n});
      w.Random(5), x.Random(6);
      RunOnExecutor(program, {w.arg(), x.arg(), y.arg()});
      for (int64_t i = 0; i < n; ++i) {
        double sum = 0, magnitude = 0;
        for (int64_t p = 0; p < k; ++p) sum += w[i * k + p] * x[p], magnitude += std::abs(w[i * k + p] * x[p]);
        ExpectNear(y, i, sum, magnitude, static_cast<double>(k));
      }
    }
  }
}

TEST(Kernels, Norms) {
  for (const auto& [type, name] : kTypes) {
    const Program rms = CompileKernel("norm.py", "rms_norm", {"dtype=" + name, "block_M=2", "block_N=32", "threads=32"});
    const Program layer = CompileKernel("norm.py", "layer_norm", {"dtype=" + name, "block_M=2", "block_N=32", "threads=32"});
    for (const int64_t n : {1, 31, 32, 33, 64, 101}) {
      for (const int64_t m : {0, 1, 2, 3}) {
        Array x(type, {m, n}), w(type, {n}), b(type, {n}), y(type, {m, n}), z(type, {m, n});
        x.Random(7, -2, 3), w.Random(8), b.Random(9);
        RunOnExecutor(rms, {x.arg(), w.arg(), y.arg()});
        RunOnExecutor(layer, {x.arg(), w.arg(), b.arg(), z.arg()});
        for (int64_t i = 0; i < m; ++i) {
          double sum = 0, squares = 0, variance = 0;
          for (int64_t j = 0; j < n; ++j) sum += x[i * n + j], squares += x[i * n + j] * x[i * n + j];
          const double mean = sum / static_cast<double>(n);
          for (int64_t j = 0; j < n; ++j) variance += (x[i * n + j] - mean) * (x[i * n + j] - mean);
          const double r = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-6),
                       l = 1 / std::sqrt(variance / static_cast<double>(n) + 1e-5);
          for (int64_t j = 0; j < n; ++j) {
            const double v = x[i * n + j];
            ExpectNear(y, i * n + j, v * r * w[j], 4, 16);
            // Where the row is constant, the rounding of the mean is all that is left of the difference.
            ExpectNear(z, i * n + j, (v - mean) * l * w[j] + b[j], 4 + l * std::abs(mean), 16);
          }
        }
      }
    }
  }
}

TEST(Kernels, Softmax) {
  for (const auto& [type, name] : kTypes) {
    const Program program = CompileKernel("softmax.py", "softmax", {"dtype=" + name, "block_M=2", "block_N=32", "threads=32"});
    for (const int64_t n : {1, 31, 32, 33, 64, 101}) {
      for (const int64_t m : {0, 1, 3}) {
        Array x(type, {m, n}), y(type, {m, n});
        x.Random(10, -9, 9);
        if (m > 0) x.Set(n - 1, -std::numeric_limits<double>::infinity());
        if (n == 1) x.Random(11);
        RunOnExecutor(program, {x.arg(), y.arg()});
        for (int64_t i = 0; i < m; ++i) {
          double largest = -1e300, sum = 0;
          for (int64_t j = 0; j < n; ++j) largest = std::max(largest, x[i * n + j]);
          for (int64_t j = 0; j < n; ++j) sum += std::exp(x[i * n + j] - largest);
          for (int64_t j = 0; j < n; ++j) ExpectNear(y, i * n + j, std::exp(x[i * n + j] - largest) / sum, 1, 32);
        }
      }
    }
  }
}

TEST(Kernels, Transpose) {
  for (const auto& [type, name] : kTypes) {
    const Program program = CompileKernel("transpose.py", "transpose", {"dtype=" + name, "block=16", "threads=32"});
    for (const int64_t m : Edges(16)) {
      for (const int64_t n : {0, 1, 16, 17, 53}) {
        Array x(type, {m, n}), y(type, {n, m});
        x.Random(12);
        RunOnExecutor(program, {x.arg(), y.arg()});
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) ASSERT_EQ(y[j * m + i], x[i * n + j]);
        }
      }
    }
  }
}

struct AttentionShape {
  int64_t batch, seq_q, seq_kv, heads, heads_kv;
};

void CheckAttention(const Program& program, DType type, const AttentionShape& s, int64_t d, bool causal) {
  Array q(type, {s.batch, s.seq_q, s.heads, d}), k(type, {s.batch, s.seq_kv, s.heads_kv, d}),
      v(type, {s.batch, s.seq_kv, s.heads_kv, d}), o(type, {s.batch, s.seq_q, s.heads, d});
  q.Random(13, -2, 2), k.Random(14, -2, 2), v.Random(15);
  RunOnExecutor(program, {q.arg(), k.arg(), v.arg(), o.arg()});
  const double weight_error = type == DType::kFloat16 ? 0x1p-11 : 0x1p-8;  // the weights are rounded to the type
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.heads; ++h) {
      const int64_t g = h / (s.heads / s.heads_kv);
      for (int64_t i = 0; i < s.seq_q; ++i) {
        const int64_t seen = causal ? std::max<int64_t>(0, s.seq_kv - s.seq_q + i + 1) : s.seq_kv;
        std::vector<double> score(static_cast<size_t>(seen));
        double largest = -1e300, sum = 0;
        for (int64_t j = 0; j < seen; ++j) {
          for (int64_t c = 0; c < d; ++c)
            score[j] += q[((b * s.seq_q + i) * s.heads + h) * d + c] * k[((b * s.seq_kv + j) * s.heads_kv + g) * d + c];
          score[j] /= std::sqrt(static_cast<double>(d));
          largest = std::max(largest, score[j]);
        }
        for (double& x : score) sum += x = std::exp(x - largest);
        for (int64_t c = 0; c < d; ++c) {
          double expected = 0;
          for (int64_t j = 0; j < seen; ++j) expected += score[j] / sum * v[((b * s.seq_kv + j) * s.heads_kv + g) * d + c];
          const int64_t at = ((b * s.seq_q + i) * s.heads + h) * d + c;
          ASSERT_NEAR(o[at], expected, 2.1 * weight_error + 1e-5) << "b" << b << " h" << h << " i" << i << " c" << c;
        }
      }
    }
  }
}

TEST(Kernels, Attention) {
  const AttentionShape shapes[] = {{1, 16, 16, 1, 1}, {2, 17, 17, 2, 1}, {1, 5, 37, 4, 2}, {1, 37, 5, 2, 2},
                                   {1, 1, 33, 2, 1},  {1, 3, 0, 1, 1},   {0, 4, 4, 1, 1}};
  for (const bool causal : {false, true}) {
    for (const auto& [type, name] : {kTypes[0], kTypes[1]}) {
      const Program program = CompileKernel(
          "attention.py", "attention",
          {"dtype=" + name, "head_dim=64", "block_M=16", "block_N=16", "threads=32", causal ? "causal=true" : "causal=false"});
      for (const AttentionShape& shape : shapes) CheckAttention(program, type, shape, 64, causal);
    }
  }
}

}  // namespace
}  // namespace tilert::frontend
