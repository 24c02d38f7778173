#include "ir/printer.h"

#include "gtest/gtest.h"
#include "ir/builder.h"
#include "tests/golden.h"
#include "tests/ir/sample_programs.h"

namespace tilert {
namespace {

TEST(Printer, Samples) {
  for (const Program& program : SamplePrograms()) ExpectGolden("ir/" + program.name + ".py", PrintProgram(program));
}

TEST(Printer, NamesAreUniqueAmongVisibleOnesAndKeptAmongSiblings) {
  ProgramBuilder b("names");
  Buf x = b.Tensor("k", DType::kFloat32, {4});
  b.Launch<1>("k0", {1}, 32);
  for (int i = 0; i < 2; ++i) {
    Val outer = b.OpenFor(ForKind::kSerial, "i", 0, 4);
    Val inner = b.OpenFor(ForKind::kSerial, "i", 0, outer);
    b.Store(x, {inner}, 1);
    b.Close();
    b.Close();
  }
  Val odd = b.OpenFor(ForKind::kSerial, "for", 0, 4);
  Val worse = b.OpenFor(ForKind::kSerial, "9 lives\"", 0, 4);
  b.Store(x, {odd + worse}, 1);
  b.Close();
  b.Close();
  b.OpenFor(ForKind::kSerial, "k", 0, 4);
  b.Close();
  b.Close();
  const std::string text = PrintProgram(*b.Build());
  EXPECT_EQ(text.substr(text.find("    with")), R"(    with T.Kernel(1, threads=32) as bx:
        for i in T.serial(4):
            for i_1 in T.serial(i):
                k[i_1] = 1.0
        for i in T.serial(4):
            for i_1 in T.serial(i):
                k[i_1] = 1.0
        for _for in T.serial(4):
            for _9_lives_ in T.serial(4):
                k[_for + _9_lives_] = 1.0
        for k_1 in T.serial(4):
            pass
)");
}

TEST(Printer, StatementHeadsForMessages) {
  const Program program = GemmProgram();
  const Block& body = program.launches[0].body;
  EXPECT_EQ(PrintStmtHead(program, body[6]), "for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=3)");
  EXPECT_EQ(PrintStmtHead(program, *(&std::get<For>(body[6].op).body[0])),
            "T.copy(A[by * block_M:(by * block_M) + block_M, ko * block_K:(ko * block_K) + block_K], A_shared)");
}

TEST(Printer, Locations) {
  const Program program = ScaleProgram();
  EXPECT_EQ(PrintLoc(program, program.launches[0].loc), "scale.py:7:5");
  EXPECT_EQ(PrintLoc(program, SourceLoc{}), "");
  EXPECT_EQ(PrintLoc(program, SourceLoc{9, 1, 1}), "");
}

}  // namespace
}  // namespace tilert
