// T.Kernel(cluster_dims=…): text → Program → bytes → Program → text, and what is refused.
#include "frontend/frontend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/container.h"
#include "ir/flat_reader.h"
#include "ir/flat_writer.h"
#include "ir/printer.h"
#include "ir/specialize.h"
#include "ir/verifier.h"

namespace tilert::frontend {
namespace {

using testing::HasSubstr;

absl::StatusOr<Program> Compiled(const std::string& grid, const Settings& settings = {}) {
  const std::string text =
      "import tilelang\nimport tilelang.language as T\n"
      "@tilelang.jit\ndef k(A, c=1):\n  M = T.const('M')\n  A: T.Tensor((M, 64), 'float32')\n"
      "  with T.Kernel(" +
      grid +
      ", threads=64) as (bx, by):\n"
      "    A[bx, by] = 1.0\n";
  absl::StatusOr<Program> program = Compile(text, "k.py", "k", settings);
  if (!program.ok()) return program;
  const std::vector<VerifyError> errors = FindErrors(*program);
  if (!errors.empty()) return absl::InvalidArgumentError(errors[0].message);
  return program;
}

int MinorOf(const Program& program) {
  Bundle bundle;
  bundle.programs = {program};
  const absl::StatusOr<std::string> bytes = WriteBundle(bundle);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  const absl::StatusOr<Bundle> back = ReadBundle(*bytes);
  EXPECT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->programs[0], program);
  return DecodeHeader(*bytes)->minor;
}

TEST(ClusterDims, RoundTrips) {
  const absl::StatusOr<Program> program = Compiled("M, 4, cluster_dims=(2, c)", {{"c", Candidates{{1, 2}}}});
  ASSERT_TRUE(program.ok()) << program.status();
  const std::string text = PrintProgram(*program);
  EXPECT_THAT(text, HasSubstr("threads=64, cluster_dims=(2, c))"));
  const absl::StatusOr<Program> again = Compile(text, "k.py", "k", {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(PrintProgram(*again), text);
  EXPECT_EQ(MinorOf(*program), 2);
  const absl::StatusOr<Program> fixed = Specialize(*program, {{"c", 2}}, {});
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_THAT(PrintProgram(*fixed), HasSubstr("cluster_dims=(2, 2))"));
}

TEST(ClusterDims, AnIntIsTheFirstExtent) {
  EXPECT_THAT(PrintProgram(*Compiled("M, 4, cluster_dims=2")), HasSubstr("cluster_dims=(2, 1))"));
  EXPECT_THAT(PrintProgram(*Compiled("M, 4, cluster_dims=(1, 2, 1)")), HasSubstr("cluster_dims=(1, 2))"));
}

// A program without clusters is what it has always been, digest and version too.
TEST(ClusterDims, OnesAreNone) {
  const absl::StatusOr<Program> none = Compiled("M, 4"), ones = Compiled("M, 4, cluster_dims=(1, 1)"),
                                some = Compiled("M, 4, cluster_dims=2");
  EXPECT_EQ(PrintProgram(*ones), PrintProgram(*none));
  EXPECT_EQ(MinorOf(*ones), 0);
  EXPECT_EQ(ProgramDigest(*ones), ProgramDigest(*none));
  EXPECT_NE(ProgramDigest(*some), ProgramDigest(*none));
}

TEST(ClusterDims, Refused) {
  const auto error = [](const std::string& grid) { return std::string(Compiled(grid).status().message()); };
  EXPECT_THAT(error("M, 4, cluster_dims=16"), HasSubstr("cluster extent 16: a cluster has 1 to 8 blocks along a dimension"));
  EXPECT_THAT(error("M, 4, cluster_dims=(4, 4)"), HasSubstr("a cluster of 16 blocks; 8 is the most"));
  EXPECT_THAT(error("M, 4, cluster_dims=0"), HasSubstr("cluster extent 0"));
  EXPECT_THAT(error("M, 4, cluster_dims=M"), HasSubstr("known at launch only"));
  EXPECT_THAT(error("M, 4, cluster_dims=(1, 1, 2)"), HasSubstr("the grid has 2 dimensions, cluster_dims 3"));
}

}  // namespace
}  // namespace tilert::frontend
