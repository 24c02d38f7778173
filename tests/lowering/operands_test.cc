// Statements and loops that change what their operands are made of: lowered programs, in the simulator and as source on the host,
// have evaluated them before. (In the simulator the end of a loop is a value; in C++ the text of it is evaluated in each turn.)
#include "comparison.h"
#include "compile_source.h"
#include "gtest/gtest.h"
#include "host_program.h"
#include "ir/verifier.h"

namespace tilert {
namespace {

TEST(Operands, AreEvaluatedOnce) {
  for (const char* entry : {"fills", "tiles", "points", "threads", "loops"}) {
    SCOPED_TRACE(entry);
    const Program program = CompileSource("tests/lowering/operands.py", entry);
    const auto verified = Verify(program);
    ASSERT_TRUE(verified.ok()) << verified.status();
    Comparison comparison(program);
    for (int64_t scale : {1, 3}) {
      comparison.ExpectAgrees(MakeArgs({{DType::kInt32, {64}}, {DType::kInt32, {64}}}, static_cast<double>(scale)), {}, entry);
    }
    EXPECT_GT(comparison.compared(), 0);
    HostProgram(program).Check({{64}, {64}}, FillSmall, [](DType) { return 0.0; }, 0);
  }
}

// What says where a tile lies is read before others write it, and after they have.
TEST(Operands, PlacesAreReadInOrder) {
  const Program program = CompileSource("tests/lowering/operands.py", "places");
  Comparison comparison(program);
  const Args args = MakeArgs({{DType::kInt32, {64}}, {DType::kInt32, {64}}, {DType::kInt32, {64}}}, 9, {}, 2);
  comparison.ExpectAgrees(args, {}, "places");
  EXPECT_GT(comparison.compared(), 0);
  HostProgram(program).Check({{64}, {64}, {64}}, FillSmall, [](DType) { return 0.0; }, 0);
}

}  // namespace
}  // namespace tilert
