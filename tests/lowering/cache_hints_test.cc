// Which tensors are streamed through L2, and what the emitted code asks of it.
#include "compile_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lowering/lowered.h"
#include "lowering/target.h"
#include "nvrtc_harness.h"

namespace tilert {
namespace {

using testing::HasSubstr;
using testing::Not;

Lowered LoweredFor(const Program& program, const std::string& arch) {
  absl::StatusOr<Lowered> lowered = Lower(program, FastArgClass(program), *FindTarget(arch));
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  return lowered.ok() ? *std::move(lowered) : Lowered();
}
Program Compiled(const std::string& entry) { return CompileSource("tests/lowering/cache_hints.py", entry); }

TEST(CacheHints, WeightsOfAProductOfFewRows) {
  const std::string settings = "block_M=64 block_N=128 block_K=64 transpose_B=true";
  const Lowered lowered = LoweredFor(CompileSource("kernels/gemm.py", "gemm", ParseSettings(settings)), "sm_90a");
  EXPECT_THAT(lowered.report,
              HasSubstr("B is read once, by one block each: evicted first, if (M + 64 - 1) // 64 == 1 and 2 * N * K > 33554432"));
  EXPECT_THAT(
      lowered.report,
      HasSubstr("A is read once, by one block each: evicted first, if (N + 128 - 1) // 128 == 1 and 2 * M * K > 33554432"));
  EXPECT_THAT(lowered.report, HasSubstr("A is read by several blocks beside a stream: evicted last, if (M + 64 - 1) // 64 == 1"));
  EXPECT_THAT(lowered.source, HasSubstr("B_policy = "));
  EXPECT_THAT(lowered.source, HasSubstr("? kEvictFirst : "));
  EXPECT_THAT(lowered.source, HasSubstr(", B_policy, "));
}

TEST(CacheHints, RowsAndWhatAllRowsShare) {
  const Lowered lowered = LoweredFor(Compiled("row_scale"), "sm_90a");
  EXPECT_THAT(lowered.report, HasSubstr("X is read once, by one block each: evicted first, if 4 * M * N > 33554432"));
  EXPECT_THAT(
      lowered.report,
      HasSubstr("S is read by several blocks beside a stream: evicted last, if 4 * M * N > 33554432 and 4 * N <= 4194304"));
  EXPECT_THAT(lowered.source, HasSubstr(", X_policy, "));
  if (!HasNvrtc()) return;
  const TestCubin cubin = CompileForTest(lowered.source, "sm_90a");
  EXPECT_TRUE(cubin.ok) << cubin.log;
  EXPECT_EQ(cubin.complaints, "");
}

TEST(CacheHints, OnlyWhatTmaLoads) {
  const Lowered lowered = LoweredFor(Compiled("row_scale"), "sm_80");
  EXPECT_THAT(lowered.report, Not(HasSubstr("L2:")));
  EXPECT_THAT(lowered.source, Not(HasSubstr("_policy")));
}

TEST(CacheHints, WhatIsReadAgainIsNoStream) {
  const Lowered repeated = LoweredFor(Compiled("repeated"), "sm_90a");
  EXPECT_THAT(repeated.report, Not(HasSubstr("L2:")));
  EXPECT_THAT(repeated.source, Not(HasSubstr("_policy")));
  // Rows that neighbours read too: a stream only where there are no neighbours.
  EXPECT_THAT(LoweredFor(Compiled("overlapping"), "sm_90a").report,
              HasSubstr("if (N + 128 - 1) // 128 == 1 and ((M + 4 - 1) // 4 == 1 and "));
}

}  // namespace
}  // namespace tilert
