// The programs of long_bodies.py: where loops over registers are not unrolled, the emitted source still computes what the
// executor does.
#include "lowering/emit_unroll.h"

#include "absl/strings/match.h"
#include "compile_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "host_program.h"

namespace tilert {
namespace {

using testing::HasSubstr;
using testing::Not;

Program Compiled(const std::string& entry) { return CompileSource("tests/lowering/long_bodies.py", entry); }

// The kernel that the emitter makes for `arch`, without what is in front of it.
std::string Kernel(const std::string& entry, bool fast, const std::string& arch = "sm_80") {
  const Program program = Compiled(entry);
  const absl::StatusOr<Lowered> lowered =
      Lower(program, fast ? FastArgClass(program) : GeneralArgClass(program), *FindTarget(arch, "auto"), {});
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  return lowered.ok() ? lowered->source.substr(lowered->source.find("extern \"C\"")) : "";
}

void ExpectAgrees(const std::string& entry, const std::vector<std::vector<std::vector<int64_t>>>& calls) {
  for (const bool fast : {false, true}) {
    SCOPED_TRACE(fast ? "fast" : "general");
    HostProgram program(Compiled(entry), fast);
    for (const auto& shapes : calls) program.Check(shapes, FillSmall, [](DType) { return 0.0; }, 0);
  }
}

TEST(LongBodies, FragmentsGoRound) {
  EXPECT_THAT(Kernel("fragments", true), HasSubstr(", rotate<"));
  ExpectAgrees("fragments", {{{24, 72}, {72}, {24}, {24, 72}}, {{31, 80}, {80}, {31}, {31, 80}}});
}

TEST(LongBodies, PackedElementsGoRound) {
  EXPECT_THAT(Kernel("packed", true), HasSubstr(", rotate<"));
  ExpectAgrees("packed", {{{32, 64}, {32, 64}, {32, 64}, {32, 64}}, {{37, 80}, {37, 80}, {37, 80}, {37, 80}}});
}

TEST(LongBodies, PartsOfWordsGoRound) {
  EXPECT_THAT(Kernel("odd_parts", true), HasSubstr(", rotate_packed<i8, "));
  ExpectAgrees("odd_parts", {{{24, 35}, {24, 35}}, {{29, 35}, {29, 35}}, {{29, 21}, {29, 21}}});
}

TEST(LongBodies, AddressesOfTheirOwn) {
  EXPECT_THAT(Kernel("strides", true), HasSubstr("#pragma unroll 1"));
  ExpectAgrees("strides", {{{64, 32, 2}, {32, 64, 2}}, {{70, 37, 3}, {37, 70, 3}}});
}

TEST(LongBodies, LoopsInThem) {
  EXPECT_THAT(Kernel("inner_loops", true), HasSubstr("#pragma unroll 2"));
  ExpectAgrees("inner_loops", {{{16, 64}, {16, 64}}, {{21, 64}, {21, 64}}});
}

TEST(LongBodies, ShortOnesAreUnrolled) { EXPECT_THAT(Kernel("short", true), Not(HasSubstr("#pragma unroll 1"))); }

TEST(LongBodies, ManyShortOnesAreNot) {
  EXPECT_THAT(Kernel("many", true), HasSubstr(", rotate<"));
  ExpectAgrees("many", {{{64, 64}, {64, 64}}, {{70, 64}, {70, 64}}});
}

// What is too much is taken from the largest.
TEST(LongBodies, LargestPart) {
  EXPECT_EQ(LargestPart({}, 10), INT64_MAX);
  EXPECT_EQ(LargestPart({3, 4, 3}, 10), INT64_MAX);
  EXPECT_EQ(LargestPart({3, 40, 3}, 10), 4);
  EXPECT_EQ(LargestPart({30, 40, 1}, 11), 5);
}

}  // namespace
}  // namespace tilert
