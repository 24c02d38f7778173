// The programs of hostile.py: what the lowering makes of each touches nothing outside its buffers and gives the executor's
// results, on the host between pages that no access survives, and in the simulator.
#include <cstring>

#include "comparison.h"
#include "compile_source.h"
#include "gtest/gtest.h"
#include "host_program.h"
#include "lowering/target.h"

namespace tilert {
namespace {

// Near 0; the ends of the type; what a small factor takes out of 64 bits, or a sum of two. None comes back to where a subscript
// may be.
constexpr int64_t kNumbers[] = {0,
                                3,
                                -1,
                                INT64_MAX,
                                INT64_MIN,
                                INT64_MAX / 5 + 1,
                                7,
                                INT64_MAX - 4,
                                int64_t{1} << 40,
                                -(int64_t{1} << 40),
                                int64_t{1} << 58,
                                12,
                                -8,
                                int64_t{1} << 32,
                                int64_t{1} << 31,
                                31};

void FillHostile(HostTensor& tensor, uint32_t seed) {
  const bool wide = tensor.dtype == DType::kInt64 || tensor.dtype == DType::kUInt64;
  if (!wide && seed != 1) return FillSmall(tensor, seed);
  if (IsFloat(tensor.dtype)) return FillSmall(tensor, seed);
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const Value value = {.i = kNumbers[static_cast<size_t>(i + seed - 1) % std::size(kNumbers)]};
    StoreRow(tensor.dtype, &value, 1, tensor.memory->data() + i * DTypeBytes(tensor.dtype), 1);
  }
}

double Exact(DType) { return 0; }

void ExpectSafe(const std::string& entry, const std::vector<std::vector<int64_t>>& shapes) {
  const Program program = CompileSource("tests/lowering/hostile.py", entry);
  ASSERT_FALSE(program.launches.empty());
  ExpectLowers(program);
  for (bool fast : {false, true}) {
    SCOPED_TRACE(fast ? "fast" : "general");
    HostProgram(program, fast).Check(shapes, FillHostile, Exact, 0);
  }
}

TEST(Hostile, VectorsInFrontOfATensor) {
  ExpectSafe("in_front", {{100}, {100}});
  ExpectSafe("in_front", {{8}, {8}});
  ExpectSafe("in_front", {{131}, {131}});
}
TEST(Hostile, TilesThatBeginWhereDataSays) { ExpectSafe("gathered", {{16}, {40, 48}, {16, 40, 48}}); }
TEST(Hostile, GuardsOfOneSide) {
  ExpectSafe("half_guarded", {{64}, {64}, {40}, {40}});
  ExpectSafe("half_guarded", {{64}, {64}, {1}, {1}});
}
TEST(Hostile, StepsThatLeave64Bits) { ExpectSafe("long_steps", {{8}, {8, 33}}); }
TEST(Hostile, ShiftsOfMoreThanARegister) { ExpectSafe("far_shifts", {{64}, {131}, {131}}); }
TEST(Hostile, PartsOfOperands) { ExpectSafe("rows_of_operands", {{4}, {32, 64}, {64, 64}, {4, 32, 64}}); }

TEST(Hostile, OperandsOfAnyMatrices) {
  const Program program = CompileSource("tests/lowering/generated_faults.py", "staged_operand");
  ASSERT_FALSE(program.launches.empty());
  for (const char* arch : {"sm_80", "sm_90a"}) HostProgram(program, false, arch).Check({{32, 32}, {32, 32}}, FillSmall, Exact, 0);
}

// A subscript stands once in the source of an access: compilers load twice what they are told to load twice.
TEST(Hostile, WhatMayChangeIsReadOnce) {
  const Program program = CompileSource("tests/lowering/hostile.py", "racing");
  ASSERT_FALSE(program.launches.empty());
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const absl::StatusOr<Lowered> lowered = Lower(program, GeneralArgClass(program), *FindTarget(arch));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const std::string body = lowered->source.substr(lowered->source.find("__global__"));
    for (const char* subscript : {"A[tx0 + 1]", "A[tx0 + 2]"}) {
      size_t count = 0;
      for (size_t at = body.find(subscript); at != std::string::npos; at = body.find(subscript, at + 1)) ++count;
      EXPECT_EQ(count, 1u) << subscript << "\n" << body;
    }
  }
}

}  // namespace
}  // namespace tilert
