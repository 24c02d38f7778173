// Emitted sources, run on the host, give the executor's results.
#include <array>

#include "compile_source.h"
#include "gtest/gtest.h"
#include "host_program.h"
#include "lowering/target.h"
#include "sample_programs.h"

namespace tilert {
namespace {

double Exact(DType) { return 0; }

void CheckGemm(const GemmSample& sample, bool fast, const std::vector<std::array<int64_t, 3>>& sizes) {
  HostProgram program(GemmProgram(sample), fast);
  for (auto [m, n, k] : sizes) {
    SCOPED_TRACE(testing::Message() << "M " << m << " N " << n << " K " << k);
    const std::vector<int64_t> a = {m, k}, at = {k, m}, b = {k, n}, bt = {n, k};
    program.Check({sample.transpose_a ? at : a, sample.transpose_b ? bt : b, {m, n}}, FillSmall, Exact, 0);
  }
}

TEST(EmitRun, GemmOfEveryTransposition) {
  for (bool ta : {false, true}) {
    for (bool tb : {false, true}) {
      SCOPED_TRACE(testing::Message() << "transposed " << ta << tb);
      GemmSample sample;
      sample.transpose_a = ta;
      sample.transpose_b = tb;
      CheckGemm(sample, true, {{64, 64, 32}, {72, 88, 104}, {64, 128, 0}});
    }
  }
}

TEST(EmitRun, GemmOfAnyExtent) {
  GemmSample sample;
  sample.dtype = sample.result = DType::kFloat16;
  CheckGemm(sample, false, {{1, 1, 1}, {65, 63, 33}, {17, 131, 71}});
}

TEST(EmitRun, GemmWithPanelsAndManyWarps) {
  GemmSample sample{128, 64, 64, 4, 256};
  sample.transpose_b = true;
  sample.swizzle = 2;
  sample.result = DType::kFloat32;
  CheckGemm(sample, true, {{640, 192, 128}});
}

TEST(EmitRun, GemmOfOddTiles) {
  GemmSample sample{48, 24, 32, 2, 96};
  sample.transpose_b = true;
  CheckGemm(sample, true, {{48, 24, 64}, {56, 40, 8}});
}

// By ldmatrix where a byte's neighbour lies along K, else byte by byte. HostProgram lowers for sm_80, which has no mma of float8.
TEST(EmitRun, GemmOfBytes) {
  GemmSample sample{64, 64, 64, 3, 128};
  sample.dtype = DType::kInt8, sample.result = DType::kInt32;
  sample.transpose_b = true;
  CheckGemm(sample, true, {{64, 64, 64}, {80, 96, 208}, {64, 128, 0}});
  sample.dtype = DType::kUInt8, sample.dtype_b = DType::kInt8;
  sample.transpose_a = true, sample.transpose_b = false;
  CheckGemm(sample, false, {{1, 1, 1}, {65, 63, 131}});
}

TEST(EmitRun, GemmOfTf32) {
  GemmSample sample{64, 48, 32, 2, 64};
  sample.dtype = sample.result = DType::kFloat32;
  CheckGemm(sample, true, {{64, 48, 32}, {72, 88, 104}});
}

TEST(EmitRun, AddWithTail) {
  for (DType type : {DType::kBFloat16, DType::kInt8, DType::kFloat64}) {
    for (bool fast : {true, false}) {
      SCOPED_TRACE(std::string(DTypeName(type)));
      HostProgram program(AddProgram(512, 128, type), fast);
      for (int64_t n : {1, 511, 512, 513, 1021}) program.Check({{n}, {n}, {n}}, FillSmall, Exact, 0);
    }
  }
}

TEST(EmitRun, Transpose) {
  for (DType type : {DType::kBFloat16, DType::kInt8}) {
    HostProgram(TransposeProgram(64, 128, type), true).Check({{128, 80}, {80, 128}}, FillSmall, Exact, 0);
    HostProgram(TransposeProgram(64, 128, type), false).Check({{67, 131}, {131, 67}}, FillSmall, Exact, 0);
  }
}

TEST(EmitRun, RmsNorm) {
  HostProgram(RmsNormProgram(2, 520, 128), true)
      .Check(
          {{5, 520}, {520}, {5, 520}}, FillSmall, [](DType) { return 1.0 / 128; }, 1e-3);
}

TEST(EmitRun, Attention) {
  for (bool causal : {false, true}) {
    const std::vector<int64_t> shape = {1, 2, 100, 64};
    HostProgram(AttentionProgram(64, 32, 64, 2, 128, causal), true)
        .Check(
            {shape, shape, shape, shape}, FillSmall, [](DType) { return 1.0 / 64; }, 1e-2);
  }
}

// Threads without a row that the condition holds for go round the loop; which rows those are is up to the inputs.
TEST(EmitRun, GuardedRows) {
  for (const auto& [entry, branches] : {std::pair("rows", true), std::pair("columns", true), std::pair("changing", false)}) {
    SCOPED_TRACE(entry);
    const Program program = CompileSource("tests/lowering/guarded_rows.py", entry);
    const absl::StatusOr<Lowered> lowered = Lower(program, FastArgClass(program), *FindTarget("sm_80"));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_EQ(lowered->source.find("if (any)") != std::string::npos, branches);
    HostProgram host(program, true);
    for (int64_t m : {1, 24, 50}) host.Check({{m, 252}, {m, 252}}, FillSmall, Exact, 0);
  }
}

}  // namespace
}  // namespace tilert
