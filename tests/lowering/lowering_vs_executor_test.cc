// What the lowering made of a program gives, in the simulator, what the program means to the executor: over edge extents, trip counts, both
// argument classes and random interleavings; and every barrier and wait that the lowering placed is needed.
#include <cmath>

#include "gtest/gtest.h"
#include "kernel_mutation.h"
#include "program_sim.h"
#include "sample_tiles.h"
#include "tests/ir/exec_util.h"

namespace tilert {
namespace {

constexpr DType kF32 = DType::kFloat32, kF16 = DType::kFloat16, kBF16 = DType::kBFloat16;

// How far an output may be off: relative·|ref| + of_magnitude·(the executor's result on the absolute values of the inputs) + absolute.
struct Bound {
  double relative = 0, of_magnitude = 0, absolute = 0;
};
// A sum of k products with a result of type `out`.
Bound GemmBound(DType out, int64_t k) { return {out == kF32 ? 0x1p-22 : out == kBF16 ? 0x1p-8 : 0x1p-11, static_cast<double>(k + 2) * 0x1p-23, 0}; }

struct Args {
  std::vector<Array> arrays;  // the last one is the output
  std::vector<ScalarArg> scalars;
  std::vector<TensorArg> tensors() {
    std::vector<TensorArg> result;
    for (Array& array : arrays) result.push_back(array.arg());
    return result;
  }
  Array& out() { return arrays.back(); }
};

Args MakeArgs(const std::vector<std::pair<DType, std::vector<int64_t>>>& tensors, double scale = 1, std::vector<ScalarArg> scalars = {}) {
  Args args;
  args.scalars = std::move(scalars);
  for (const auto& [type, shape] : tensors) args.arrays.emplace_back(type, shape);
  for (size_t i = 0; i + 1 < args.arrays.size(); ++i) args.arrays[i].Random(i + 1, -scale, scale);
  return args;
}

Array Reference(const Program& program, Args args) {
  ExecOptions options;
  options.threads = 2;
  const absl::Status status = Execute(program, args.tensors(), args.scalars, options);
  EXPECT_TRUE(status.ok()) << status;
  return args.out();
}

Args Absolute(Args args) {
  for (size_t i = 0; i + 1 < args.arrays.size(); ++i) {
    for (int64_t e = 0; e < args.arrays[i].size(); ++e) args.arrays[i].Set(e, std::fabs(args.arrays[i][e]));
  }
  return args;
}

// Every element: equal bits when `bound` is zero.
testing::AssertionResult Near(const Array& got, const Array& expected, const Array* magnitude, const Bound& bound) {
  for (int64_t e = 0; e < expected.size(); ++e) {
    const double a = got[e], b = expected[e];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double allowed = bound.relative * std::fabs(b) + (magnitude != nullptr ? bound.of_magnitude * (*magnitude)[e] : 0) + bound.absolute;
    if (!(std::fabs(a - b) <= allowed)) {
      return testing::AssertionFailure() << "element " << e << " of " << expected.size() << ": simulated " << a << ", executed " << b << ", allowed " << allowed;
    }
  }
  return testing::AssertionSuccess();
}

std::vector<ArgClass> ArgClasses(const Program& program) { return {GeneralArgClass(program), FastArgClass(program)}; }

// One program, its kernels for both classes; ExpectAgrees runs one set of arguments through all that applies.
class Comparison {
 public:
  explicit Comparison(Program program) : program_(std::move(program)) {
    for (const ArgClass& arg_class : ArgClasses(program_)) {
      absl::StatusOr<std::vector<kir::Kernel>> kernels = PlanAll(program_, arg_class);
      EXPECT_TRUE(kernels.ok()) << program_.name << " for " << arg_class.ToString() << ": " << kernels.status();
      planned_.emplace_back(arg_class, kernels.ok() ? *std::move(kernels) : std::vector<kir::Kernel>());
    }
  }

  void ExpectAgrees(const Args& args, const Bound& bound, const std::string& what) {
    const Array expected = Reference(program_, args);
    const bool sized = bound.of_magnitude != 0;
    const Array magnitude = sized ? Reference(program_, Absolute(args)) : expected;
    for (const auto& [arg_class, kernels] : planned_) {
      Args run = args;
      if (kernels.empty() || !Fits(program_, arg_class, run.tensors())) continue;
      ++compared_;
      const SimOptions options{.seed = ++seed_, .interleavings = 2};
      const absl::Status status = SimulateAll(program_, kernels, run.tensors(), run.scalars, options);
      ASSERT_TRUE(status.ok()) << program_.name << " " << what << ", " << arg_class.ToString() << ": " << status << "\n" << kir::ToText(kernels.front());
      ASSERT_TRUE(Near(run.out(), expected, sized ? &magnitude : nullptr, bound)) << program_.name << " " << what << ", " << arg_class.ToString();
    }
  }

  // Each synchronisation removed in turn is found by at least one of `shapes`.
  void ExpectAllSynchronisationNeeded(const std::vector<Args>& shapes) {
    for (const auto& [arg_class, kernels] : planned_) {
      for (size_t k = 0; k < kernels.size(); ++k) {
        for (const Mutant& mutant : SynchronisationMutants(kernels[k])) {
          std::vector<kir::Kernel> mutated = kernels;
          mutated[k] = mutant.kernel;
          bool found = false;
          for (const Args& args : shapes) {
            Args run = args;
            if (found || !Fits(program_, arg_class, run.tensors())) continue;
            found = !SimulateAll(program_, mutated, run.tensors(), run.scalars, {.seed = ++seed_, .interleavings = 2}).ok();
          }
          EXPECT_TRUE(found) << program_.name << ", " << arg_class.ToString() << ": nothing is wrong " << mutant.what << ": it is not needed\n"
                             << kir::ToText(kernels[k]);
        }
      }
    }
  }
  // How many simulations were compared: a test that compared none shows nothing.
  int compared() const { return compared_; }

 private:
  Program program_;
  std::vector<std::pair<ArgClass, std::vector<kir::Kernel>>> planned_;
  uint64_t seed_ = 0;
  int compared_ = 0;
};

Args GemmArgs(const GemmTiles& o, int64_t m, int64_t n, int64_t k) {
  using Shape = std::vector<int64_t>;
  return MakeArgs({{o.type, o.transpose_a ? Shape{k, m} : Shape{m, k}}, {o.type, o.transpose_b ? Shape{n, k} : Shape{k, n}}, {o.out, {m, n}}});
}

void CompareGemm(const GemmTiles& o) {
  Comparison comparison(GemmTilesProgram(o));
  const int64_t bm = o.block_m, bn = o.block_n, bk = o.block_k, s = o.stages;
  std::vector<std::array<int64_t, 3>> shapes = {{1, 1, 1},           {bm, bn, bk},           {bm - 1, bn + 1, bk - 1}, {bm + 1, bn - 1, bk + 1},
                                                {0, bn, bk},         {bm, 0, bk},            {bm, bn, 0},              {67, 101, 53},
                                                {bm + 8, bn - 8, 40}, {2 * bm, bn + 16, 2 * bk}};
  for (int64_t trips = std::max<int64_t>(s - 1, 2); trips <= 2 * s + 1; ++trips) shapes.push_back({bm, bn, trips * bk});
  for (const auto& [m, n, k] : shapes) {
    comparison.ExpectAgrees(GemmArgs(o, m, n, k), GemmBound(o.out, k), absl::StrCat(m, "x", n, "x", k));
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(comparison.compared(), static_cast<int>(shapes.size()));
}

TEST(LoweringVsExecutor, Gemm) { CompareGemm({}); }
TEST(LoweringVsExecutor, GemmTransposedB) { CompareGemm({.type = kF16, .out = kF16, .transpose_b = true}); }
TEST(LoweringVsExecutor, GemmTransposedA) { CompareGemm({.out = kF32, .transpose_a = true, .stages = 2}); }
TEST(LoweringVsExecutor, GemmTransposedBoth) { CompareGemm({.transpose_a = true, .transpose_b = true, .block_m = 32, .stages = 4}); }
TEST(LoweringVsExecutor, GemmThroughSharedMemory) { CompareGemm({.block_n = 32, .block_k = 64, .threads = 64, .stage_out = true}); }
TEST(LoweringVsExecutor, GemmWithoutPipeline) { CompareGemm({.transpose_b = true, .stages = 0}); }

TEST(LoweringVsExecutor, GemmSynchronisationIsNeeded) {
  for (const GemmTiles& o : {GemmTiles{}, GemmTiles{.transpose_b = true, .stages = 2}, GemmTiles{.stages = 4, .stage_out = true}, GemmTiles{.stages = 0}}) {
    Comparison(GemmTilesProgram(o)).ExpectAllSynchronisationNeeded({GemmArgs(o, 64, 64, 32), GemmArgs(o, 64, 64, 32 * 7)});
  }
}

TEST(LoweringVsExecutor, Add) {
  for (DType type : {kF32, kBF16, DType::kInt32, DType::kInt8}) {
    Comparison comparison(AddProgram(type));
    for (int64_t n : {0, 1, 255, 256, 257, 1009}) comparison.ExpectAgrees(MakeArgs({{type, {n}}, {type, {n}}, {type, {n}}}, 100), {}, absl::StrCat(n));
  }
}

TEST(LoweringVsExecutor, TransposeIsExact) {
  for (DType type : {kF16, DType::kInt32, DType::kInt8}) {
    Comparison comparison(TransposeProgram(type));
    for (auto [m, n] : std::vector<std::pair<int64_t, int64_t>>{{0, 5}, {1, 1}, {31, 33}, {32, 32}, {33, 31}, {64, 48}, {37, 101}}) {
      comparison.ExpectAgrees(MakeArgs({{type, {m, n}}, {type, {n, m}}}, 100), {}, absl::StrCat(m, "x", n));
    }
    comparison.ExpectAllSynchronisationNeeded({MakeArgs({{type, {64, 64}}, {type, {64, 64}}}, 100)});
  }
}

TEST(LoweringVsExecutor, RmsNorm) {
  Comparison comparison(RmsNormProgram(256));
  const auto args = [](int64_t m, int64_t n) {
    return MakeArgs({{kBF16, {m, n}}, {kBF16, {n}}, {kBF16, {m, n}}}, 3, {ScalarArg::Float(1e-5, kF32)});
  };
  for (auto [m, n] : std::vector<std::pair<int64_t, int64_t>>{{0, 8}, {1, 1}, {3, 255}, {4, 256}, {5, 131}, {9, 64}}) {
    comparison.ExpectAgrees(args(m, n), {.relative = 0x1p-7}, absl::StrCat(m, "x", n));
  }
  comparison.ExpectAllSynchronisationNeeded({args(9, 256)});
}

TEST(LoweringVsExecutor, SoftmaxOfAnyLength) {
  Comparison comparison(SoftmaxRowsProgram(128));
  const auto args = [](int64_t m, int64_t n) { return MakeArgs({{kF16, {m, n}}, {kF32, {m, n}}}, 6); };
  for (auto [m, n] : std::vector<std::pair<int64_t, int64_t>>{{0, 8}, {1, 1}, {2, 127}, {3, 128}, {2, 129}, {1, 1009}}) {
    comparison.ExpectAgrees(args(m, n), {.relative = 0x1p-18}, absl::StrCat(m, "x", n));
  }
  comparison.ExpectAllSynchronisationNeeded({args(2, 512)});
}

TEST(LoweringVsExecutor, Gemv) {
  Comparison comparison(GemvProgram(8, 128));
  const auto args = [](int64_t n, int64_t k) { return MakeArgs({{kF16, {n, k}}, {kF16, {k}}, {kF32, {n}}}); };
  for (auto [n, k] : std::vector<std::pair<int64_t, int64_t>>{{0, 8}, {1, 1}, {7, 127}, {8, 128}, {9, 129}, {13, 1009}, {16, 512}}) {
    comparison.ExpectAgrees(args(n, k), GemmBound(kF32, k), absl::StrCat(n, "x", k));
  }
  comparison.ExpectAllSynchronisationNeeded({args(16, 512)});
}

TEST(LoweringVsExecutor, Attention) {
  for (bool causal : {false, true}) {
    Comparison comparison(AttentionTilesProgram(causal, 64, 64, 32, 2));
    const auto args = [](int64_t h, int64_t s) { return MakeArgs({{kF16, {h, s, 64}}, {kF16, {h, s, 64}}, {kF16, {h, s, 64}}, {kF16, {h, s, 64}}}, 2); };
    for (int64_t s : {0, 1, 31, 33, 64, 65, 131}) {
      comparison.ExpectAgrees(args(2, s), {.relative = 0x1p-9, .absolute = 0x1p-10}, absl::StrCat("S = ", s));
      if (HasFatalFailure()) return;
    }
    comparison.ExpectAllSynchronisationNeeded({args(1, 192)});
  }
}

TEST(LoweringVsExecutor, LaunchesShareAWorkspace) {
  Comparison comparison(SplitSumProgram());
  for (int64_t n : {0, 1, 99, 100, 101, 1234}) comparison.ExpectAgrees(MakeArgs({{DType::kInt32, {n}}, {DType::kInt32, {1}}}, 1000), {}, absl::StrCat(n));
}

}  // namespace
}  // namespace tilert
