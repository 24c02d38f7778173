// Inputs copied to rows that every GPU reads fast: the copies and the program that reads them do what the program did.
#include "lowering/restride.h"

#include "absl/strings/str_cat.h"
#include "comparison.h"
#include "compile_source.h"
#include "gtest/gtest.h"
#include "ir/specialize.h"
#include "kernel_mutation.h"
#include "nvrtc_harness.h"
#include "program_sim.h"

namespace tilert {
namespace {

using Shape = std::vector<int64_t>;

std::vector<std::string> Names(const Program& program) {
  std::vector<std::string> names;
  for (const BufferId id : SharedInputs(program)) names.push_back(program.buffers[id].name);
  return names;
}

TEST(Restride, FindsWhatManyBlocksRead) {
  EXPECT_EQ(Names(CompileSource("kernels/gemm.py", "gemm")), (std::vector<std::string>{"A", "B"}));
  EXPECT_EQ(Names(CompileSource("kernels/gemm_strided.py", "gemm_strided")), (std::vector<std::string>{"A", "B"}));
  EXPECT_EQ(Names(CompileSource("kernels/attention.py", "attention", ParseSettings("head_dim=64"))),
            (std::vector<std::string>{"K", "V"}));
  EXPECT_EQ(Names(CompileSource("kernels/gemv.py", "gemv")), std::vector<std::string>{});
  EXPECT_EQ(Names(CompileSource("kernels/norm.py", "rms_norm")), std::vector<std::string>{});
  EXPECT_EQ(Names(CompileSource("kernels/transpose.py", "transpose")), std::vector<std::string>{});
}

// Declared strides may change only where they are the caller's own: a number, or one that something else depends on, stays.
TEST(Restride, StridesThatTheProgramKnowsStay) {
  const auto found = [](auto make) {
    ProgramBuilder b("rows");
    const Val n = b.Dim("N"), pitch = b.Dim("pitch");
    const auto [stride, bound, factor] = make(b, n, pitch);
    const Buf x = b.Tensor("X", DType::kFloat16, {n, n}, Access::kIn, {stride, Val(1)}),
              y = b.Tensor("Y", DType::kFloat16, {bound, n}, Access::kOut);
    const auto at = b.Launch<2>("main", {CeilDiv(n, 64), CeilDiv(n, 64)}, Val(128));
    const Buf t = b.Shared("t", DType::kFloat16, {64, 64});
    b.Copy(x.At({at[0] * factor, 0}, {64, 64}), t);
    b.Copy(t, y.At({at[0] * 64, at[1] * 64}, {64, 64}));
    b.Close();
    return Names(b.Build().value());
  };
  using Case = std::tuple<Val, Val, Val>;  // of the rows of X, and of Y; what subscripts are multiplied by
  EXPECT_EQ(found([](auto&, Val n, Val pitch) { return Case(pitch, n, 64); }), std::vector<std::string>{"X"});
  EXPECT_EQ(found([](auto&, Val n, Val) { return Case(n, n, 64); }), std::vector<std::string>{});
  EXPECT_EQ(found([](auto&, Val n, Val) { return Case(146, n, 64); }), std::vector<std::string>{});
  EXPECT_EQ(found([](auto&, Val n, Val pitch) { return Case(pitch * 2, n, 64); }), std::vector<std::string>{});
  EXPECT_EQ(found([](auto&, Val, Val pitch) { return Case(pitch, pitch, 64); }), std::vector<std::string>{});
  EXPECT_EQ(found([](auto&, Val n, Val pitch) { return Case(pitch, n, pitch); }), std::vector<std::string>{});
  EXPECT_EQ(found([](auto& b, Val n, Val pitch) { return b.Assume(pitch % 3 == 0), Case(pitch, n, 64); }),
            std::vector<std::string>{});
  EXPECT_EQ(found([](auto& b, Val n, Val pitch) { return b.Scalar("ld", DType::kInt64, pitch), Case(pitch, n, 64); }),
            std::vector<std::string>{});
}

TEST(Restride, FixedRowsAreFastOrNot) {
  const auto may = [](const std::string& settings, const std::map<std::string, int64_t>& dims) {
    return MayHaveSlowRows(Specialize(CompileSource("kernels/gemm.py", "gemm", ParseSettings(settings)), {}, dims).value());
  };
  EXPECT_TRUE(may("", {}));
  EXPECT_TRUE(may("", {{"K", 64}})) << "rows of B and C have N elements";
  EXPECT_FALSE(may("", {{"K", 64}, {"N", 72}}));
  EXPECT_TRUE(may("", {{"K", 64}, {"N", 73}}));
  EXPECT_FALSE(MayHaveSlowRows(CompileSource("kernels/attention.py", "attention", ParseSettings("head_dim=64"))));
  const auto strided = [](const std::map<std::string, int64_t>& dims) {
    return MayHaveSlowRows(Specialize(CompileSource("kernels/gemm_strided.py", "gemm_strided"), {}, dims).value());
  };
  EXPECT_TRUE(strided({{"K", 64}, {"N", 72}})) << "what counts is how far rows are apart";
  EXPECT_FALSE(strided({{"pitch_A", 64}, {"pitch_B", 72}, {"pitch_C", 80}}));
  EXPECT_TRUE(strided({{"pitch_A", 64}, {"pitch_B", 73}, {"pitch_C", 80}}));
}

// A tile's number taken apart: its quotient is the same in several blocks, and a name for it changes nothing.
TEST(Restride, QuotientsAreShared) {
  ProgramBuilder b("tiles");
  const Val n = b.Dim("N");
  const Buf x = b.Tensor("X", DType::kFloat16, {n, n}), y = b.Tensor("Y", DType::kFloat16, {n, n}, Access::kOut);
  const Val tile = b.Launch<1>("main", {CeilDiv(n, 64) * CeilDiv(n, 64)}, Val(128))[0];
  const Val row = b.Let("row", FloorDiv(tile, CeilDiv(n, 64)));
  const Buf t = b.Shared("t", DType::kFloat16, {64, 64});
  b.Copy(x.At({row * 64, 0}, {64, 64}), t);
  b.Copy(t, y.At({row * 64, (tile % CeilDiv(n, 64)) * 64}, {64, 64}));
  b.Close();
  EXPECT_EQ(Names(Built(b)), std::vector<std::string>{"X"});
}

// Memory of a tensor whose rows lie `pitch` elements apart, the gaps poisoned.
struct Padded {
  Padded(const Array& like, int64_t pitch) : memory(like.type(), {Rows(like), pitch}), shape(like.shape()) {
    memory.Fill(std::nan(""));
    strides.assign(shape.size(), 1);
    strides[shape.size() - 2] = pitch;
    for (size_t d = shape.size() - 2; d-- > 0;) strides[d] = strides[d + 1] * shape[d + 1];
  }
  static int64_t Rows(const Array& array) {
    int64_t rows = 1;
    for (size_t d = 0; d + 1 < array.shape().size(); ++d) rows *= array.shape()[d];
    return rows;
  }
  TensorArg arg() { return {memory.data(), memory.type(), shape, strides}; }
  double at(int64_t row, int64_t column) const { return memory[row * strides[shape.size() - 2] + column]; }
  Array memory;
  Shape shape, strides;
};

int64_t PitchOf(int64_t columns, DType type) {
  const int64_t bytes = columns * DTypeBytes(type);
  return (bytes % 16 == 0 ? bytes : (bytes + 127) / 128 * 128) / DTypeBytes(type);
}

TEST(Restride, PitchesAreFast) {
  for (const DType type : {DType::kInt8, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    for (const int64_t columns : {0, 1, 7, 8, 16, 63, 64, 65, 4097, 4104}) {
      ExprArena exprs;
      int64_t pitch = -1;
      ASSERT_TRUE(exprs.AsInt(PaddedPitch(exprs, exprs.Int(columns), type), &pitch));
      EXPECT_EQ(pitch, PitchOf(columns, type)) << columns << " of " << DTypeName(type);
    }
  }
}

TEST(Restride, CopiesRows) {
  for (const auto& [type, shape] : std::vector<std::pair<DType, Shape>>{{DType::kBFloat16, {17, 515}},
                                                                        {DType::kBFloat16, {1, 1}},
                                                                        {DType::kFloat8E4M3, {9, 1029}},
                                                                        {DType::kFloat32, {2, 3, 9, 131}},
                                                                        {DType::kInt8, {3, 0, 5}}}) {
    const auto program = RestrideProgram(type, shape.size());
    ASSERT_TRUE(program.ok()) << program.status();
    Array x = Array(type, shape).Random(7);
    Padded expected(x, PitchOf(shape.back(), type));
    const absl::Status executed = Execute(**program, {x.arg(), expected.arg()}, {}, Checked());
    ASSERT_TRUE(executed.ok()) << executed;
    for (int64_t i = 0; i < x.size(); ++i) ASSERT_EQ(expected.at(i / shape.back(), i % shape.back()), x[i]) << i;
    for (const char* arch : {"sm_80", "sm_90a"}) {
      const auto kernels = PlanAll(**program, PaddedArgClass(**program, std::vector<BufferId>{1}), arch);
      ASSERT_TRUE(kernels.ok()) << kernels.status();
      Padded copy(x, PitchOf(shape.back(), type));
      const std::vector<TensorArg> tensors = {x.arg(), copy.arg()};
      const absl::Status simulated = SimulateAll(**program, *kernels, tensors, {}, {});
      ASSERT_TRUE(simulated.ok()) << arch << ": " << simulated;
      for (int64_t i = 0; i < x.size(); ++i) ASSERT_EQ(copy.at(i / shape.back(), i % shape.back()), x[i]) << arch << " " << i;
    }
  }
}

// Rows that lie anywhere: what is between them is not copied.
TEST(Restride, CopiesRowsOfLargerTensors) {
  for (const Shape& shape : {Shape{17, 515}, Shape{2, 3, 9, 131}}) {
    const auto program = RestrideProgram(DType::kBFloat16, shape.size(), true);
    ASSERT_TRUE(program.ok()) << program.status();
    Padded x(Array(DType::kBFloat16, shape), shape.back() + 6);
    const int64_t rows = Padded::Rows(Array(DType::kBFloat16, shape));
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < shape.back(); ++j) x.memory.Set(i * (shape.back() + 6) + j, static_cast<double>((i * 7 + j) % 100));
    }
    for (const std::string arch : {"executor", "sm_80", "sm_90a"}) {
      Padded copy(Array(DType::kBFloat16, shape), PitchOf(shape.back(), DType::kBFloat16));
      const std::vector<TensorArg> tensors = {x.arg(), copy.arg()};
      if (arch == "executor") {
        ASSERT_TRUE(Execute(**program, tensors, {}, Checked()).ok());
      } else {
        const auto kernels = PlanAll(**program, PaddedArgClass(**program, std::vector<BufferId>{1}), arch);
        ASSERT_TRUE(kernels.ok()) << kernels.status();
        ASSERT_TRUE(SimulateAll(**program, *kernels, tensors, {}, {}).ok());
      }
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < shape.back(); ++j) ASSERT_EQ(copy.at(i, j), (i * 7 + j) % 100) << arch << " " << i << ", " << j;
        ASSERT_TRUE(std::isnan(copy.at(i, shape.back()))) << arch << " " << i << ": between the rows";
      }
    }
  }
}

// C of the program, on arrays as they are, against C of the copies and the program that reads them.
void CompareProducts(const std::string& settings, const std::string& arch, int64_t m, int64_t n, int64_t k) {
  SCOPED_TRACE(absl::StrCat(settings, " ", arch, " ", m, "x", n, "x", k));
  const Program program = CompileSource("kernels/gemm.py", "gemm", ParseSettings(settings));
  const bool transpose_b = settings.find("transpose_B=true") != std::string::npos;
  const DType type = DType::kFloat16;
  // Small integers: every sum is exact.
  Array a = Array(type, {m, k}).Random(1, -2, 2), b = Array(type, transpose_b ? Shape{n, k} : Shape{k, n}).Random(2, -2, 2);
  for (Array* array : {&a, &b}) {
    for (int64_t i = 0; i < array->size(); ++i) array->Set(i, std::round((*array)[i]));
  }
  Array expected(type, {m, n});
  ExpectRuns(program, {&a, &b, &expected});
  const std::vector<BufferId> inputs = SharedInputs(program);
  const Program padded = WithPaddedRows(program, inputs);
  std::vector<Padded> copies;
  for (Array* array : {&a, &b}) {
    copies.emplace_back(*array, PitchOf(array->shape().back(), type));
    const auto copy = RestrideProgram(type, 2);
    ASSERT_TRUE(copy.ok());
    const absl::Status copied = Execute(**copy, {array->arg(), copies.back().arg()}, {}, Checked());
    ASSERT_TRUE(copied.ok()) << copied;
  }
  Array executed(type, {m, n}), simulated(type, {m, n});
  const absl::Status run = Execute(padded, {copies[0].arg(), copies[1].arg(), executed.arg()}, {}, Checked());
  ASSERT_TRUE(run.ok()) << run;
  const auto kernels = PlanAll(padded, PaddedArgClass(padded, inputs), arch);
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  const std::vector<TensorArg> tensors = {copies[0].arg(), copies[1].arg(), simulated.arg()};
  const absl::Status sim = SimulateAll(padded, *kernels, tensors, {}, {});
  ASSERT_TRUE(sim.ok()) << sim;
  for (int64_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(executed[i], expected[i]) << i;
    ASSERT_EQ(simulated[i], expected[i]) << i;
  }
}

TEST(Restride, ProductsAreTheSame) {
  for (const char* settings : {"", "transpose_B=true"}) {
    for (const char* tile : {" block_M=64 block_N=64 block_K=64 num_stages=3 threads=128",
                             " block_M=128 block_N=64 block_K=32 num_stages=2 threads=256"}) {
      for (const char* arch : {"sm_80", "sm_90a"}) {
        const std::string all = absl::StrCat(settings, tile);
        CompareProducts(all, arch, 65, 67, 131);
        CompareProducts(all, arch, 130, 129, 72);  // rows of A are fast as they are
        CompareProducts(all, arch, 1, 8, 9);
      }
    }
  }
}

// Two instances of a warpgroup, each with pieces of shared memory of its own.
TEST(Restride, ResultsInPiecesBySeveralInstances) {
  const std::string tile = "transpose_B=true block_M=128 block_N=96 block_K=64 num_stages=2 threads=128";
  const Program program = CompileSource("kernels/gemm.py", "gemm", ParseSettings(tile));
  const auto kernels = PlanAll(program, PaddedArgClass(program, SharedInputs(program)), "sm_90a");
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  const kir::Roles* const roles = std::get_if<kir::Roles>(&(*kernels)[0].body.front().op);
  ASSERT_NE(roles, nullptr);
  EXPECT_EQ(roles->roles[0].instances, 2);
  CompareProducts(tile, "sm_90a", 260, 203, 131);
}

// Each barrier, wait and fence of such a kernel is there for a reason: without it the simulator finds a fault.
TEST(Restride, AllSynchronisationIsNeeded) {
  const Program program =
      WithPaddedRows(CompileSource("kernels/gemm.py", "gemm",
                                   ParseSettings("transpose_B=true block_M=64 block_N=128 block_K=64 num_stages=2 threads=128")),
                     std::vector<BufferId>{0, 1});
  const auto kernels = PlanAll(program, PaddedArgClass(program, std::vector<BufferId>{0, 1}), "sm_90a");
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  const auto simulate = [&](const kir::Kernel& kernel, int64_t k, uint64_t seed) {
    Array a = Array(DType::kFloat16, {130, k}).Random(1), b = Array(DType::kFloat16, {259, k}).Random(2);
    Array c(DType::kFloat16, {130, 259});
    Padded rows_of_a(a, k), rows_of_b(b, k);
    rows_of_a.memory = a, rows_of_b.memory = b;
    const std::vector<TensorArg> tensors = {rows_of_a.arg(), rows_of_b.arg(), c.arg()};
    return SimulateAll(program, {kernel}, tensors, {}, {.seed = seed, .interleavings = 1, .blocks = 1});
  };
  for (const int64_t k : {0, 320}) ASSERT_TRUE(simulate((*kernels)[0], k, 1).ok()) << simulate((*kernels)[0], k, 1);
  int mutants = 0;
  for (const Mutant& mutant : SynchronisationMutants((*kernels)[0])) {
    ++mutants;
    const bool found = simulate(mutant.kernel, 320, 2).code() == absl::StatusCode::kInternal ||
                       simulate(mutant.kernel, 0, 3).code() == absl::StatusCode::kInternal;
    EXPECT_TRUE(found) << mutant.what;
  }
  EXPECT_GT(mutants, 10);
}

// As it is launched: wide tiles whose results leave element by element.
TEST(Restride, CompilesWithoutSpills) {
  if (!HasNvrtc()) GTEST_SKIP() << "no NVRTC";
  const Program program =
      CompileSource("kernels/gemm.py", "gemm",
                    ParseSettings("dtype=bfloat16 transpose_B=true block_M=128 block_N=256 block_K=64 threads=256 num_stages=4"));
  const std::vector<BufferId> inputs = SharedInputs(program);
  const Program padded = WithPaddedRows(program, inputs);
  const auto lowered = Lower(padded, PaddedArgClass(padded, inputs), *FindTarget("sm_90a"));
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(lowered->kernels[0].maps.size(), 2u) << lowered->report;
  const TestCubin cubin = CompileForTest(lowered->source, "sm_90a");
  EXPECT_TRUE(cubin.ok && cubin.complaints.empty()) << cubin.log;
  EXPECT_EQ(cubin.spill_bytes, 0) << cubin.log;
}

}  // namespace
}  // namespace tilert
