// The programs of generated_faults.py: what the lowering makes of each equals the executor, in the simulator, and can be emitted.
#include "absl/strings/str_cat.h"
#include "comparison.h"
#include "compile_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nvrtc_harness.h"
#include "program_sim.h"

namespace tilert {
namespace {

using Shape = std::vector<int64_t>;

// Equal values, within `bound`, for each list of tensors, of which the last is the output.
void ExpectAgrees(const std::string& entry, const std::vector<Tensors>& calls, const Bound& bound = {}) {
  ExpectProgramAgrees("tests/lowering/generated_faults.py", entry, calls, bound);
}

// Inputs and output of extents M and N.
std::vector<Tensors> Matrices(DType type, const std::vector<std::pair<int64_t, int64_t>>& shapes) {
  std::vector<Tensors> calls;
  for (const auto& [m, n] : shapes) calls.push_back({{type, {m, n}}, {type, {m, n}}});
  return calls;
}

constexpr DType kI8 = DType::kInt8, kI32 = DType::kInt32, kF16 = DType::kFloat16, kF32 = DType::kFloat32, kF64 = DType::kFloat64,
                kBF16 = DType::kBFloat16;

TEST(GeneratedFaults, ExtentsOfABlock) {
  ExpectAgrees("extents_of_a_block", Matrices(kI32, {{1, 1}, {8, 32}, {61, 40}, {75, 30}}));
}
TEST(GeneratedFaults, PointsOfALaunch) {
  ExpectAgrees("points_of_a_launch", Matrices(kF32, {{1, 1}, {3, 128}, {2, 300}, {4, 0}}));
}
TEST(GeneratedFaults, NarrowScan) {
  ExpectAgrees("narrow_scan", {{{kI8, {6, 70}}, {kI32, {6, 64}}}, {{kI8, {1, 3}}, {kI32, {1, 64}}}});
}
TEST(GeneratedFaults, HalfScan) { ExpectAgrees("half_scan", {{{kF16, {6, 70}}, {kF32, {6, 64}}}}); }
TEST(GeneratedFaults, DoubleSum) { ExpectAgrees("double_sum", {{{kF32, {6, 64}}, {kF64, {6}}}}); }
TEST(GeneratedFaults, LeastAbsolute) { ExpectAgrees("least_absolute", {{{kI8, {6, 40}}, {kI32, {6}}}}); }
TEST(GeneratedFaults, StoresInTurn) { ExpectAgrees("stores_in_turn", Matrices(kI32, {{1, 1}, {8, 32}, {19, 40}})); }
TEST(GeneratedFaults, OnePointManyThreads) { ExpectAgrees("one_point_many_threads", Matrices(kI32, {{1, 1}, {2, 8}, {5, 12}})); }
TEST(GeneratedFaults, TurnedRegisters) {
  ExpectAgrees("turned_registers",
               {{{kF16, {96, 64}}, {kF16, {96, 32}}, {kF32, {64, 32}}}, {{kF16, {40, 64}}, {kF16, {40, 32}}, {kF32, {64, 32}}}});
}
TEST(GeneratedFaults, RegistersOfAnIteration) {
  const Bound bound{.of_magnitude = 0x1p-16};
  ExpectAgrees("registers_of_an_iteration", {{{kF16, {64, 96}}, {kF16, {32, 96}}, {kF32, {64, 32}}}}, bound);
  ExpectAgrees("registers_of_an_iteration", {{{kF16, {64, 20}}, {kF16, {32, 20}}, {kF32, {64, 32}}}}, bound);
}
TEST(GeneratedFaults, PaddedRow) {
  ExpectAgrees("padded_row", {{{kF64, {2, 2}}, {kF32, {1, 2}}}, {{kF64, {1, 3}}, {kF32, {1, 2}}}},
               {.relative = 0x1p-20, .of_magnitude = 0x1p-20});
}
TEST(GeneratedFaults, ExtremesOfNegatives) { ExpectAgrees("extremes_of_negatives", Matrices(kI32, {{1, 1}, {3, 64}, {5, 67}})); }
// Instructions of Hopper's that take the extreme of three integers (VIMNMX3), by the lower half of their first word.
int ExtremesOfThree(const std::string& cubin) {
  int count = 0;
  for (size_t at = 0; at + 16 <= cubin.size(); at += 16) count += cubin[at] == '\x0f' && cubin[at + 1] == '\x72';
  return count;
}
TEST(GeneratedFaults, NoExtremeOfThreeLosesAMinus) {
  if (!HasNvrtc()) GTEST_SKIP() << "no NVRTC";
  const std::string plain = R"(extern "C" __global__ void f(int* x) {
    const int least = min(x[threadIdx.x], -x[32 + threadIdx.x]);
    x[threadIdx.x] = min(least, x[64 + threadIdx.x]);
  })";
  EXPECT_EQ(ExtremesOfThree(CompileForTest(plain, "sm_90a").code), 1);  // what is looked for, and found here
  const std::string version = "#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1304\n#error repaired\n#endif\n";
  if (CompileForTest(version + plain, "sm_90a").ok) {
    const Program program = CompileSource("tests/lowering/generated_faults.py", "extremes_of_negatives");
    const auto lowered = Lower(program, FastArgClass(program), *FindTarget("sm_90a"));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_EQ(ExtremesOfThree(CompileForTest(lowered->source, "sm_90a").code), 0);
  }
}
// ptxas makes two products of float16 of one of float8 on Hopper, and a wrong one where it knows operands to be zero.
TEST(GeneratedFaults, HalfAProduct) {
  for (int64_t m : {64, 37})
    ExpectAgrees("half_a_product", {{{DType::kFloat8E5M2, {m, 48}}, {kF32, {64, 8}}}}, {.of_magnitude = 0x1p-16});
  if (!HasNvrtc()) GTEST_SKIP() << "no NVRTC";
  const Program program = CompileSource("tests/lowering/generated_faults.py", "half_a_product");
  for (const auto& [target, ptx, bytes] : {std::tuple("sm_90a", "compute_90a", false), {"sm_89", "compute_89", true}}) {
    const auto lowered = Lower(program, FastArgClass(program), *FindTarget(target));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const std::string code = CompileForTest(lowered->source, ptx).code;
    EXPECT_EQ(code.find("m16n8k32") != std::string::npos, bytes) << target;
    EXPECT_EQ(code.find("m16n8k16.row.col.f32.f16") != std::string::npos, !bytes) << target;
  }
}
TEST(GeneratedFaults, ReducedIntoItself) {
  ExpectAgrees("reduced_into_itself", {{{kI32, {1, 4}}, {kI32, {1, 5}}}, {{kI32, {3, 7}}, {kI32, {3, 5}}}});
}
TEST(GeneratedFaults, RolesInLoops) {
  for (int64_t n : {0, 8, 32, 40, 64, 96, 128, 200})
    ExpectAgrees("roles_in_loops", {{{kF16, {64, n}}, {kF16, {n, 64}}, {kF32, {64, 64}}}}, {.of_magnitude = 0x1p-16});
}
TEST(GeneratedFaults, OddWindows) {
  const Program program = CompileSource("tests/lowering/generated_faults.py", "windows");
  Comparison comparison(program);
  for (int start : {0, 5, -3}) {
    for (const auto& [m, n] : {std::pair(32, 96), {20, 71}}) {
      Args args = MakeArgs({{kF16, {m, n}}, {kF16, {4, 3, 32, 64}}}, 9);
      args.scalars = {ScalarArg::Int(start, kI32)};
      comparison.ExpectAgrees(args, {}, "windows");
    }
  }
  const auto kernels = PlanAll(program, FastArgClass(program), "sm_90a");
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  const char* const why = "no TMA: it is not known to start at a multiple of 16 bytes of a row";
  for (const char* odd : {"X → odd .*", "X → given .*"})
    EXPECT_THAT(kernels->front().schedule, testing::ContainsRegex(absl::StrCat(odd, why)));
  for (const char* even : {"X → whole .*", "X → named .*"})
    EXPECT_THAT(kernels->front().schedule, testing::ContainsRegex(absl::StrCat(even, "TMA, boxes")));
  const Program stored = CompileSource("tests/lowering/generated_faults.py", "odd_window_stored");
  Comparison(stored).ExpectAgrees(MakeArgs({{kF16, {64, 80}}, {kF16, {3, 64, 72}}}, 9), {}, "odd_window_stored");
  const auto storing = PlanAll(stored, FastArgClass(stored), "sm_90a");
  ASSERT_TRUE(storing.ok()) << storing.status();
  EXPECT_THAT(storing->front().schedule, testing::ContainsRegex(absl::StrCat("f → Y .*", why)));
  EXPECT_THAT(storing->front().schedule, testing::ContainsRegex("X → x .*TMA, boxes"));
}
TEST(GeneratedFaults, ReducedToFewer) { ExpectAgrees("reduced_to_fewer", {{{kI32, {2, 2}}, {DType::kUInt8, {2, 2}}}}); }
TEST(GeneratedFaults, OperandReadAgain) {
  ExpectAgrees("operand_read_again", {{{kBF16, {64, 16}}, {kF32, {64, 80}}}}, {.of_magnitude = 0x1p-16});
}
TEST(GeneratedFaults, AllThreadsBesideRoles) { ExpectAgrees("all_threads_beside_roles", {{{kI32, {1, 1}}, {kI32, {64}}}}); }
TEST(GeneratedFaults, RowOfProducts) { ExpectAgrees("row_of_products", {{{kF16, {16, 16}}, {kI8, {1, 16}}}}); }
TEST(GeneratedFaults, FilledWithANumber) { ExpectAgrees("filled_with_a_number", Matrices(kF16, {{3, 5}, {2, 70}, {1, 41}})); }
TEST(GeneratedFaults, AbsoluteOfUnsigned) {
  ExpectAgrees("absolute_of_unsigned", {{{kI32, {6, 40}}, {kI32, {6}}}, {{kI32, {3, 7}}, {kI32, {6}}}});
}
TEST(GeneratedFaults, StagedOperand) {
  ExpectAgrees("staged_operand", {{{kF16, {32, 32}}, {kF32, {32, 32}}}, {{kF16, {20, 9}}, {kF32, {32, 32}}}},
               {.of_magnitude = 0x1p-16});
}
TEST(GeneratedFaults, ReadInFlight) {
  ExpectAgrees("read_in_flight", {{{kF16, {100, 64}}, {kF16, {64, 64}}, {kF32, {100, 64}}}},
               {.relative = 0x1p-20, .of_magnitude = 0x1p-16});
}
TEST(GeneratedFaults, SumsOfOne) {
  ExpectAgrees("sums_of_one", {{{kI32, {1, 2}}, {kI32, {3, 4, 2}}}, {{kI32, {2, 5}}, {kI32, {3, 4, 2}}}});
}
TEST(GeneratedFaults, EveryThread) { ExpectAgrees("every_thread", Matrices(kI32, {{32, 256}, {40, 70}})); }
TEST(GeneratedFaults, FilledAgain) {
  ExpectAgrees("filled_again", {{{DType::kFloat16, {64, 64}}, {DType::kFloat16, {64, 64}}, {DType::kFloat32, {64, 64}}}},
               {.of_magnitude = 0x1p-16});
}
// ptxas keeps wgmma in flight (no remark C7514).
TEST(GeneratedFaults, SumsInALoop) {
  ExpectAgrees("sums_in_a_loop", {{{DType::kFloat16, {64, 64}}, {DType::kFloat16, {64, 64}}, {DType::kFloat32, {64, 64}}}},
               {.of_magnitude = 0x1p-16});
  if (!HasNvrtc()) GTEST_SKIP() << "no NVRTC";
  const Program program = CompileSource("tests/lowering/generated_faults.py", "sums_in_a_loop");
  for (const ArgClass& arg_class : {GeneralArgClass(program), FastArgClass(program)}) {
    const absl::StatusOr<Lowered> lowered = Lower(program, arg_class, *FindTarget("sm_90a"));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_EQ(CompileForTest(lowered->source, "sm_90a").complaints, "");
  }
}
TEST(GeneratedFaults, MatricesWithOnes) {
  ExpectAgrees("matrices_with_ones", {{{kF16, {32, 32}}, {kF16, {32, 32}}, {kF32, {2, 32, 3, 32}}}},
               {.of_magnitude = 0x1p-16});
  ExpectAgrees("exact_matrices_with_ones", {{{kF32, {32, 32}}, {kF32, {32, 32}}, {kF32, {32, 1, 32}}}},
               {.of_magnitude = 0x1p-20});
}
TEST(GeneratedFaults, TwoGridsOfWarps) {
  ExpectAgrees("two_grids_of_warps", {{{kF16, {16, 16}}, {kF16, {16, 8}}, {kF32, {16, 8}}}}, {.of_magnitude = 0x1p-16});
}
TEST(GeneratedFaults, ProductsWithTheSums) {
  ExpectAgrees("products_with_the_sums", {{{kF16, {16, 16}}, {kF32, {16, 16}}, {kF32, {16, 64}}}},
               {.relative = 0x1p-10, .of_magnitude = 0x1p-10});
}
TEST(GeneratedFaults, BytesOfAPhase) { ExpectAgrees("bytes_of_a_phase", Matrices(kF16, {{128, 64}})); }
TEST(GeneratedFaults, TilesOfATrip) {
  ExpectAgrees("tiles_of_a_trip", {{{DType::kFloat16, {128, 64}}, {DType::kFloat16, {64, 128}}, {DType::kFloat32, {128, 128}}}},
               {.of_magnitude = 0x1p-16});
}
TEST(GeneratedFaults, OneRow) {
  ExpectAgrees("one_row", {{{kBF16, {2, 80}}, {kBF16, {64, 80}}, {kF32, {2, 64}}}}, {.of_magnitude = 0x1p-16});
}

}  // namespace
}  // namespace tilert
