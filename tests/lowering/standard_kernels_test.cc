// Every standard kernel of kernels/std.spec as it ships: what the lowering made of it equals the executor, in the simulator.
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "comparison.h"
#include "frontend/frontend.h"
#include "gtest/gtest.h"
#include "ir/specialize.h"
#include "ir/status_util.h"

namespace tilert {
namespace {

using Shape = std::vector<int64_t>;

std::string ReadKernelFile(const std::string& name) {
  std::ifstream file(absl::StrCat(TILERT_SOURCE_DIR, "/kernels/", name));
  EXPECT_TRUE(file) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct SpecLine {
  std::string name, source, function;
  frontend::Settings settings;
  friend void PrintTo(const SpecLine& line, std::ostream* out) { *out << line.name; }
  DType dtype = DType::kInvalid;
  bool Has(const std::string& setting) const { return settings.count(setting) > 0; }
};

std::vector<SpecLine> ReadSpec() {
  std::vector<SpecLine> lines;
  const std::vector<std::string> text = absl::StrSplit(ReadKernelFile("std.spec"), '\n');
  for (const std::string& line : text) {
    if (line.empty() || line[0] == '#' || line[0] == ' ') continue;  // indented: a variant
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    const std::vector<std::string> place = absl::StrSplit(words[2], ':');
    SpecLine spec{words[0], place[0], place[1], {}};
    for (size_t w = 3; w < words.size(); ++w) {
      EXPECT_TRUE(frontend::AddSetting(words[w], &spec.settings).ok()) << words[w];
      if (words[w].rfind("dtype=", 0) == 0) spec.dtype = ParseDType(words[w].substr(6));
    }
    lines.push_back(spec);
  }
  return lines;
}

// An output rounded to `type` twice, here and on the executor.
double TwoRoundings(DType type) { return type == DType::kFloat32 ? 0x1p-20 : type == DType::kBFloat16 ? 0x1p-7 : 0x1p-10; }

class StandardKernel : public testing::TestWithParam<SpecLine> {
 protected:
  StandardKernel() : spec(GetParam()), type(spec.dtype) {}

  Program Compiled() {
    absl::StatusOr<Program> program = frontend::Compile(ReadKernelFile(spec.source), spec.source, spec.function, spec.settings);
    EXPECT_TRUE(program.ok()) << program.status();
    if (!program.ok()) return {};
    absl::StatusOr<Program> special = Specialize(*program, {});
    EXPECT_TRUE(special.ok()) << special.status();
    if (!special.ok()) return {};
    special->name = spec.name;
    return *std::move(special);
  }
  // Tensors of the kernel's type; `out`: of the last, when it is another.
  void Agrees(Comparison& comparison, const std::vector<Shape>& tensors, double scale, const Bound& bound,
              DType out = DType::kInvalid, const std::vector<ScalarArg>& scalars = {}) {
    std::vector<std::pair<DType, Shape>> typed;
    for (const Shape& shape : tensors) typed.emplace_back(type, shape);
    if (out != DType::kInvalid) typed.back().first = out;
    std::string what;
    for (const Shape& shape : tensors) absl::StrAppend(&what, " [", absl::StrJoin(shape, ", "), "]");
    comparison.ExpectAgrees(MakeArgs(typed, scale, scalars), bound, what);
  }

  void Gemm(Comparison& c) {
    const bool ta = spec.Has("transpose_A"), tb = spec.Has("transpose_B");
    for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                                                     {127, 129, 31},
                                                                     {129, 127, 33},
                                                                     {131, 137, 53},
                                                                     {0, 8, 8},
                                                                     {128, 128, 0},
                                                                     {128, 128, 32},
                                                                     {136, 120, 96},
                                                                     {64, 128, 288}}) {
      Agrees(c, {ta ? Shape{k, m} : Shape{m, k}, tb ? Shape{n, k} : Shape{k, n}, {m, n}}, 1,
             {TwoRoundings(type), static_cast<double>(k + 2) * 0x1p-23, 0});
      if (HasFatalFailure()) return;
    }
  }
  // Of parts of matrices with padding behind their rows, which stays as it was.
  void StridedGemm(Comparison& c) {
    const bool ta = spec.Has("transpose_A"), tb = spec.Has("transpose_B");
    for (const auto& [m, n, k, pad] : std::vector<std::array<int64_t, 4>>{
             {1, 1, 1, 3}, {131, 137, 53, 5}, {0, 8, 8, 8}, {128, 128, 0, 8}, {136, 120, 96, 16}, {64, 128, 288, 0}}) {
      const std::vector<Shape> parts = {ta ? Shape{k, m} : Shape{m, k}, tb ? Shape{n, k} : Shape{k, n}, {m, n}};
      std::vector<std::pair<DType, Shape>> whole;
      for (const Shape& part : parts) whole.emplace_back(type, Shape{part[0], part[1] + pad});
      Args args = MakeArgs(whole);
      args.parts = parts;
      const Bound bound{TwoRoundings(type), static_cast<double>(k + 2) * 0x1p-23, 0};
      c.ExpectAgrees(args, bound, absl::StrCat(m, "x", n, "x", k, " + ", pad));
      if (HasFatalFailure()) return;
    }
  }
  void ScaledGemm(Comparison& c) {
    const std::vector<ScalarArg> scales = {ScalarArg::Float(0.125, DType::kFloat32), ScalarArg::Float(0.3, DType::kFloat32)};
    const bool exact = type == DType::kInt8;
    for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{
             {1, 1, 1}, {63, 65, 31}, {67, 61, 129}, {0, 8, 16}, {64, 64, 0}, {64, 64, 64}, {136, 72, 96}, {64, 128, 464}}) {
      const Bound bound{TwoRoundings(DType::kBFloat16), static_cast<double>(k + 2) * 0x1p-23, 0};
      Agrees(c, {{m, k}, {n, k}, {m, n}}, exact ? 127 : 3, exact ? Bound{} : bound, DType::kBFloat16, scales);
      if (HasFatalFailure()) return;
    }
  }
  void Rows(Comparison& c, int64_t chunk, size_t vectors, const Bound& bound) {
    for (const auto& [m, n] : std::vector<std::pair<int64_t, int64_t>>{
             {0, 8}, {1, 1}, {3, 1009}, {1, chunk - 1}, {2, chunk}, {1, chunk + 1}, {1, 2 * chunk + 8}}) {
      std::vector<Shape> tensors = {{m, n}};
      for (size_t v = 0; v < vectors; ++v) tensors.push_back({n});
      tensors.push_back({m, n});
      Agrees(c, tensors, 3, bound);
      if (HasFatalFailure()) return;
    }
  }
  // Weights below one, as those of a forward pass are.
  void AttentionBackward(Comparison& c) {
    const int64_t d = std::get<int64_t>(spec.settings.at("head_dim"));
    const double step = type == DType::kBFloat16 ? 0x1p-8 : 0x1p-11;
    for (const auto& [q, kv] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {67, 131}, {64, 64}, {129, 70}, {5, 0}, {0, 5}}) {
      if (type != DType::kFloat16 && q != 67 && q != 64) continue;
      const Shape of_q = {1, q, 2, d}, of_kv = {1, kv, 1, d};
      Args args = MakeArgs({{type, of_q}, {type, of_kv}, {type, of_kv}, {type, of_q}, {type, of_q}, {DType::kFloat32, {1, 2, q}},
                            {type, of_q}, {type, of_kv}, {type, of_kv}}, 1, {}, 3);
      for (int64_t i = 0; i < 2 * q; ++i) args.arrays[5].Set(i, 3.0 + static_cast<double>(i % 3));
      c.ExpectAgrees(args, {TwoRoundings(type), 0, step}, absl::StrCat(q, " queries, ", kv, " keys"));
      if (HasFatalFailure()) return;
    }
  }
  void Attention(Comparison& c) {
    const int64_t d = std::get<int64_t>(spec.settings.at("head_dim"));
    size_t number = 0;
    for (const auto& [q, kv] :
         std::vector<std::pair<int64_t, int64_t>>{{0, 5}, {1, 1}, {5, 0}, {63, 65}, {64, 64}, {129, 127}, {1, 200}, {67, 131}}) {
      if (number++ % 2 != 0 && type != DType::kFloat16) continue;  // half of them, to save time
      const Bound bound{TwoRoundings(type), 0, type == DType::kBFloat16 ? 0x1p-7 : 0x1p-10};
      const Shape of_q = {1, q, 2, d}, of_kv = {1, kv, 1, d};
      if (!spec.Has("with_lse")) {
        Agrees(c, {of_q, of_kv, of_kv, of_q}, 2, bound);
      } else if (q != 63 && q != 129) {
        const std::pair<DType, Shape> lse = {DType::kFloat32, {1, 2, q}};
        c.ExpectAgrees(MakeArgs({{type, of_q}, {type, of_kv}, {type, of_kv}, {type, of_q}, lse}, 2, {}, 2), bound,
                       absl::StrCat(q, " queries, ", kv, " keys"));
      }
      if (HasFatalFailure()) return;
    }
  }

  const SpecLine spec;
  const DType type;
};

TEST_P(StandardKernel, EqualsTheExecutor) {
  Comparison c(Compiled());
  if (spec.function == "gemm") {
    Gemm(c);
  } else if (spec.function == "gemm_strided") {
    StridedGemm(c);
  } else if (spec.function == "gemm_scaled") {
    ScaledGemm(c);
  } else if (spec.function == "attention") {
    Attention(c);
  } else if (spec.function == "attention_backward") {
    AttentionBackward(c);
  } else if (spec.function == "rms_norm") {
    Rows(c, spec.Has("block_N") ? std::get<int64_t>(spec.settings.at("block_N")) : 8192, 1, {TwoRoundings(type), 0, 0});
  } else if (spec.function == "layer_norm") {
    Rows(c, 4096, 2, {TwoRoundings(type), 0, 0x1p-16});
  } else if (spec.function == "softmax") {
    Rows(c, 4096, 0, {TwoRoundings(type), 0, 0x1p-24});  // float16 has subnormal results
  } else if (spec.function == "gemv") {
    for (const auto& [n, k] :
         std::vector<std::pair<int64_t, int64_t>>{{0, 8}, {1, 1}, {7, 511}, {8, 512}, {9, 513}, {13, 1031}, {16, 1024}}) {
      Agrees(c, {{n, k}, {k}, {n}}, 1, {TwoRoundings(type), static_cast<double>(k + 2) * 0x1p-23, 0});
    }
  } else if (spec.function == "transpose") {
    for (const auto& [m, n] :
         std::vector<std::pair<int64_t, int64_t>>{{0, 8}, {1, 1}, {63, 65}, {64, 64}, {65, 63}, {37, 101}, {128, 72}})
      Agrees(c, {{m, n}, {n, m}}, 9, {});
  } else {
    ASSERT_EQ(spec.function, "add") << "a kernel that this test does not know how to call";
    for (int64_t n : {0, 1, 2047, 2048, 2049, 5003}) Agrees(c, {{n}, {n}, {n}}, 9, {});
  }
  EXPECT_GT(c.compared(), 5);
}

// One element type is enough: synchronisation does not depend on it.
TEST_P(StandardKernel, NeedsAllItsSynchronisation) {
  if (type != DType::kFloat16) GTEST_SKIP();
  Comparison c(Compiled());
  const auto args = [&](const std::vector<Shape>& tensors) {
    std::vector<std::pair<DType, Shape>> typed;
    for (const Shape& shape : tensors) typed.emplace_back(type, shape);
    return MakeArgs(typed);
  };
  if (spec.function == "gemm") {
    c.ExpectAllSynchronisationNeeded({args({{128, 128}, {128, 128}, {128, 128}}), args({{288, 288}, {288, 288}, {288, 288}})});
  } else if (spec.function == "attention" && !spec.Has("with_lse")) {
    const int64_t d = std::get<int64_t>(spec.settings.at("head_dim"));
    const auto sequences = [&](int64_t q, int64_t kv) {
      return args({{1, q, 1, d}, {1, kv, 1, d}, {1, kv, 1, d}, {1, q, 1, d}});
    };
    c.ExpectAllSynchronisationNeeded({sequences(128, 320), sequences(128, 0), sequences(384, 320)});
  } else if (spec.function == "rms_norm") {
    c.ExpectAllSynchronisationNeeded({args({{1, 16400}, {16400}, {1, 16400}})});
  } else if (spec.function == "layer_norm" || spec.function == "softmax") {
    // The barrier of the pipeline is one too many here: each thread reads only what it copied itself, and the barriers of two
    // reductions order the rest. So are waits for what the pipeline's own wait has covered.
    const Args one_row =
        spec.function == "softmax" ? args({{1, 12400}, {1, 12400}}) : args({{1, 8200}, {8200}, {8200}, {1, 8200}});
    for (const char* needed : {"BarSync 1", "BarSync 2", "CpAsyncWait 0"}) c.ExpectAllSynchronisationNeeded({one_row}, needed);
  } else if (spec.function == "gemv") {
    c.ExpectAllSynchronisationNeeded({args({{8, 1024}, {1024}, {8}})});
  } else if (spec.function == "transpose") {
    c.ExpectAllSynchronisationNeeded({args({{64, 64}, {64, 64}})});
  }
}

INSTANTIATE_TEST_SUITE_P(All, StandardKernel, testing::ValuesIn(ReadSpec()), [](const auto& line) { return line.param.name; });

}  // namespace
}  // namespace tilert
