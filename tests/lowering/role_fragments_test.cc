// The programs of role_fragments.py: what the lowering makes of each equals the executor, in the simulator, and can be emitted.
#include "comparison.h"
#include "compile_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "program_sim.h"

namespace tilert {
namespace {

constexpr DType kF16 = DType::kFloat16, kF32 = DType::kFloat32, kI32 = DType::kInt32;

void ExpectAgrees(const std::string& entry, const std::vector<Tensors>& calls, const Bound& bound = {}) {
  ExpectProgramAgrees("tests/lowering/role_fragments.py", entry, calls, bound);
}

std::string Report(const std::string& entry, const char* arch) {
  const Program program = CompileSource("tests/lowering/role_fragments.py", entry);
  const absl::StatusOr<Lowered> lowered = Lower(program, FastArgClass(program), *FindTarget(arch));
  return lowered.ok() ? lowered->report : std::string(lowered.status().message());
}

TEST(RoleFragments, ClearedAndStoredOutside) {
  std::vector<Tensors> calls;
  for (int64_t n : {0, 1, 32, 90}) calls.push_back({{kF16, {64, n}}, {kF16, {n, 64}}, {kF32, {64}}, {kF32, {64, 64}}});
  ExpectAgrees("cleared_outside", calls, {.relative = 1e-5, .absolute = 1e-4});
}

// Registers of the role that multiplies, not shared memory.
TEST(RoleFragments, BelongToTheRoleThatUsesThem) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    EXPECT_THAT(Report("cleared_outside", arch), testing::Not(testing::HasSubstr("several roles")));
    EXPECT_THAT(Report("handed_over", arch), testing::HasSubstr("f: in shared memory, as several roles use it"));
  }
}

TEST(RoleFragments, HandedOver) {
  std::vector<Tensors> calls;
  for (int64_t n : {5, 16, 50}) calls.push_back({{kF32, {32, n}}, {kF32, {32, 16}}});
  ExpectAgrees("handed_over", calls);
}

TEST(RoleFragments, SumsInTurns) {
  std::vector<Tensors> calls;
  for (int64_t n : {1, 64, 130}) calls.push_back({{kF16, {64, n}}, {kF16, {n, 64}}, {kF32, {64, 64}}});
  ExpectAgrees("sums_in_turns", calls, {.relative = 1e-5, .absolute = 1e-4});
}

TEST(RoleFragments, OneStatementOverTwoRoles) {
  std::vector<Tensors> calls;
  for (int64_t n : {1, 16, 37}) calls.push_back({{kF32, {n, 32}}, {kF32, {n, 32}}});
  ExpectAgrees("two_homes", calls);
}

TEST(RoleFragments, DividedAnew) {
  std::vector<Tensors> calls;
  for (int64_t n : {1, 32, 90}) calls.push_back({{kF16, {64, n}}, {kF16, {n, 64}}, {kF32, {64, 64}}, {kF32, {64, 64}}});
  ExpectAgrees("divided_anew", calls, {.relative = 1e-5, .absolute = 1e-4});
  EXPECT_THAT(Report("divided_anew", "sm_90a"), testing::HasSubstr("by all threads: others divide these in another way"));
  calls.clear();
  for (int64_t n : {1, 2, 7}) calls.push_back({{kF32, {n, 32}}, {kF32, {n, 32}}});
  ExpectAgrees("divided_in_turns", calls, {.relative = 1e-6, .absolute = 1e-6});
}

TEST(RoleFragments, LookedAtByAll) { ExpectAgrees("looked_at", {{{kI32, {8}}, {kF32, {64, 16}}, {kF32, {8, 16}}}}); }
TEST(RoleFragments, LookedAtAndChanged) { ExpectAgrees("looks_and_changes", {{{kI32, {8}}, {kI32, {8}}}}); }
TEST(RoleFragments, ScanThatSaysWhere) { ExpectAgrees("scan_that_says_where", {{{kF32, {50}}, {kF32, {3, 8}}}}); }

}  // namespace
}  // namespace tilert
