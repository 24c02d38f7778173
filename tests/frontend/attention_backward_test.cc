// Gradients of attention on the executor, and the log-sum-exp that they need, against float64.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "frontend/frontend.h"
#include "ir/verifier.h"
#include "tests/golden.h"
#include "tests/ir/exec_util.h"

namespace tilert::frontend {
namespace {

Program CompileKernel(const std::string& entry, std::vector<std::string> settings) {
  const std::string file = entry + ".py";
  Settings parsed;
  for (const std::string& text : settings) EXPECT_TRUE(AddSetting(text, &parsed).ok()) << text;
  absl::StatusOr<Program> program = Compile(ReadSourceFile("kernels/" + file), file, entry, parsed);
  EXPECT_TRUE(program.ok()) << program.status().message();
  return program.ok() ? *std::move(program) : Program();
}

struct Shape {
  int64_t batch, seq_q, seq_kv, heads, heads_kv;
};

constexpr int64_t kDim = 32;  // of a head
using Numbers = std::vector<double>;

// Of tensors (batch, sequence, heads, kDim).
struct Problem {
  Problem(const Shape& shape, DType type, double scale)
      : s(shape), q(type, {s.batch, s.seq_q, s.heads, kDim}), k(type, {s.batch, s.seq_kv, s.heads_kv, kDim}), v(k), o(q), d_o(q),
        d_q(q), d_k(k), d_v(k), lse(DType::kFloat32, {s.batch, s.heads, s.seq_q}) {
    q.Random(1, -scale, scale), k.Random(2, -scale, scale), v.Random(3), d_o.Random(4);
  }
  int64_t AtQ(int64_t b, int64_t i, int64_t h, int64_t c) const { return ((b * s.seq_q + i) * s.heads + h) * kDim + c; }
  int64_t AtK(int64_t b, int64_t j, int64_t h, int64_t c) const { return ((b * s.seq_kv + j) * s.heads_kv + h) * kDim + c; }

  Shape s;
  Array q, k, v, o, d_o, d_q, d_k, d_v, lse;
};

struct Gradients {
  Numbers q, k, v, lse;
};

// Of one query: its weights, and what it adds to the gradients.
void AddQuery(const Problem& p, bool causal, int64_t b, int64_t h, int64_t i, Gradients& sums) {
  const int64_t g = h / (p.s.heads / p.s.heads_kv);
  const int64_t seen = causal ? std::max<int64_t>(0, p.s.seq_kv - p.s.seq_q + i + 1) : p.s.seq_kv;
  const double root = 1 / std::sqrt(static_cast<double>(kDim));
  Numbers weight(static_cast<size_t>(seen)), slope(weight);
  double largest = -std::numeric_limits<double>::infinity(), total = 0, delta = 0;
  for (int64_t j = 0; j < seen; ++j) {
    for (int64_t c = 0; c < kDim; ++c) {
      weight[j] += root * p.q[p.AtQ(b, i, h, c)] * p.k[p.AtK(b, j, g, c)];
      slope[j] += p.d_o[p.AtQ(b, i, h, c)] * p.v[p.AtK(b, j, g, c)];
    }
    largest = std::max(largest, weight[j]);
  }
  for (const double w : weight) total += std::exp(w - largest);
  sums.lse[(b * p.s.heads + h) * p.s.seq_q + i] = total > 0 ? largest + std::log(total) : largest;
  for (int64_t j = 0; j < seen; ++j) delta += (weight[j] = std::exp(weight[j] - largest) / total) * slope[j];
  for (int64_t j = 0; j < seen; ++j) {
    const double change = weight[j] * (slope[j] - delta) * root;
    for (int64_t c = 0; c < kDim; ++c) {
      sums.v[p.AtK(b, j, g, c)] += weight[j] * p.d_o[p.AtQ(b, i, h, c)];
      sums.k[p.AtK(b, j, g, c)] += change * p.q[p.AtQ(b, i, h, c)];
      sums.q[p.AtQ(b, i, h, c)] += change * p.k[p.AtK(b, j, g, c)];
    }
  }
}

Gradients GradientsOf(const Problem& p, bool causal) {
  Gradients sums{Numbers(p.q.size()), Numbers(p.k.size()), Numbers(p.k.size()), Numbers(p.lse.size())};
  for (int64_t b = 0; b < p.s.batch; ++b) {
    for (int64_t h = 0; h < p.s.heads; ++h) {
      for (int64_t i = 0; i < p.s.seq_q; ++i) AddQuery(p, causal, b, h, i, sums);
    }
  }
  return sums;
}

void ExpectClose(const Array& actual, const Numbers& expected, double relative, const std::string& what) {
  double largest = 1e-6;
  for (const double x : expected) largest = std::max(largest, std::isfinite(x) ? std::abs(x) : 0);
  for (size_t k = 0; k < expected.size(); ++k) {
    if (actual[static_cast<int64_t>(k)] == expected[k]) continue;  // infinities too
    ASSERT_NEAR(actual[static_cast<int64_t>(k)], expected[k], relative * largest) << what << ", element " << k;
  }
}

void Run(const Program& program, std::vector<Array*> arrays) {
  ExecOptions options;
  options.check_races = true;
  const absl::Status status = RunOn(program, std::move(arrays), {}, options);
  ASSERT_TRUE(status.ok()) << status.message();
}

// Forward, then backward with what it gave. `relative_q`: of dQ, from which what all keys have in common cancels.
void Check(const Program& forward, const Program& backward, Problem p, bool causal, const std::string& what,
           double relative_q = 1e-2) {
  Run(forward, {&p.q, &p.k, &p.v, &p.o, &p.lse});
  Run(backward, {&p.q, &p.k, &p.v, &p.o, &p.d_o, &p.lse, &p.d_q, &p.d_k, &p.d_v});
  const Gradients expected = GradientsOf(p, causal);
  ExpectClose(p.lse, expected.lse, 1e-6, what + ": lse");
  ExpectClose(p.d_q, expected.q, relative_q, what + ": dQ");
  ExpectClose(p.d_k, expected.k, 1e-2, what + ": dK");
  ExpectClose(p.d_v, expected.v, 1e-2, what + ": dV");
}

TEST(AttentionBackward, EqualsFloat64) {
  const Shape shapes[] = {{1, 1, 1, 1, 1},    {1, 32, 48, 1, 1},  {2, 37, 53, 4, 2},  {1, 70, 33, 2, 1},
                          {1, 31, 100, 3, 3}, {1, 100, 31, 2, 1}, {1, 0, 40, 1, 1},   {1, 40, 0, 1, 1},
                          {0, 8, 8, 1, 1},    {1, 96, 96, 2, 2},  {1, 129, 65, 1, 1}, {1, 64, 200, 6, 2}};
  for (const auto& [type, name] : {std::pair(DType::kFloat16, "float16"), std::pair(DType::kBFloat16, "bfloat16")}) {
    for (const bool causal : {false, true}) {
      // Float16 as it is for mma.sync, bfloat16 as for wgmma.
      const bool by_mma = type == DType::kFloat16;
      const std::vector<std::string> common = {absl::StrCat("dtype=", name), "head_dim=32", "threads=32",
                                               causal ? "causal=true" : "causal=false"};
      std::vector<std::string> first = common, second = common;
      first.insert(first.end(), {"block_M=32", "block_N=16", "with_lse=true"});
      second.insert(second.end(), {"block_M=32", "block_N=48"});
      if (by_mma) {
        first.insert(first.end(), {"slack=3", "longest_first=1"});
        second.insert(second.end(), {"shared_weights=1", "longest_first=1"});
      }
      const Program forward = CompileKernel("attention", first), backward = CompileKernel("attention_backward", second);
      for (const Shape& s : shapes) {
        const std::string what = absl::StrCat(name, causal ? " causal " : " ", s.seq_q, " × ", s.seq_kv);
        Check(forward, backward, Problem(s, type, 2), causal, what);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// Scores far from zero on either side: no weight overflows, and keys beyond the end, whose scores are zero, count for nothing.
TEST(AttentionBackward, LargeScores) {
  for (const char* slack : {"slack=0", "slack=8"}) {
    const Program forward =
        CompileKernel("attention", {"head_dim=32", "threads=32", "block_M=32", "block_N=16", "with_lse=true", slack});
    const Program backward = CompileKernel("attention_backward", {"head_dim=32", "threads=32", "block_M=32", "block_N=48"});
    Problem p({1, 40, 50, 1, 1}, DType::kFloat16, 1);
    for (int64_t i = 0; i < p.q.size(); ++i) p.q.Set(i, 40 + p.q[i]);
    for (int64_t i = 0; i < p.k.size(); ++i) p.k.Set(i, -8 + p.k[i] / 64);
    Check(forward, backward, p, false, "scores near -1800", 1);
    for (int64_t i = 0; i < p.k.size(); ++i) p.k.Set(i, -p.k[i]);
    Check(forward, backward, p, false, "scores near 1800", 1);
  }
}

}  // namespace
}  // namespace tilert::frontend
