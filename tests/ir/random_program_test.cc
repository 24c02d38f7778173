// Properties of programs over many random ones.
#include "tests/ir/random_program.h"

#include <map>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/flat_reader.h"
#include "ir/flat_writer.h"
#include "ir/printer.h"
#include "ir/specialize.h"
#include "ir/verifier.h"

namespace tilert {
namespace {

constexpr uint64_t kPrograms = 150;

TEST(RandomProgram, IsValid) {
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    const Program program = RandomProgram(seed);
    std::string errors;
    for (const VerifyError& error : FindErrors(program)) errors += error.ToString() + "\n";
    ASSERT_EQ(errors, "") << "seed " << seed << "\n" << PrintProgram(program);
  }
}

TEST(RandomProgram, CoversEveryStatementAndOperator) {
  std::set<size_t> statements;
  std::set<ExprOp> operators;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    const Program program = RandomProgram(seed);
    for (const Launch& launch : program.launches)
      ForEachStmt(launch.body, [&](const Stmt& stmt) { statements.insert(stmt.op.index()); });
    for (const ExprNode& node : program.exprs.nodes()) operators.insert(node.op);
  }
  EXPECT_EQ(statements.size(), std::variant_size_v<StmtOp>);
  EXPECT_GT(operators.size(), 50u);
}

TEST(RandomProgram, BytesRoundTrip) {
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    Bundle bundle;
    bundle.programs = {RandomProgram(seed)};
    const absl::StatusOr<std::string> bytes = WriteBundle(bundle);
    ASSERT_TRUE(bytes.ok()) << bytes.status() << " seed " << seed;
    const absl::StatusOr<Bundle> back = ReadBundle(*bytes);
    ASSERT_TRUE(back.ok()) << back.status() << " seed " << seed;
    ASSERT_TRUE(back->programs[0] == bundle.programs[0]) << "seed " << seed;
    ASSERT_EQ(PrintProgram(back->programs[0]), PrintProgram(bundle.programs[0])) << "seed " << seed;
    ASSERT_EQ(*WriteBundle(*back), *bytes) << "seed " << seed;
    ASSERT_EQ(ProgramDigest(back->programs[0]), ProgramDigest(bundle.programs[0])) << "seed " << seed;
  }
}

TEST(RandomProgram, StaysValidWhenSpecialised) {
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    const Program program = RandomProgram(seed);
    const absl::StatusOr<Program> fixed = Specialize(program, {{"block", 32}}, {{"M", 100}});
    ASSERT_TRUE(fixed.ok()) << fixed.status();
    for (const ExprNode& node : fixed->exprs.nodes()) ASSERT_NE(node.op, ExprOp::kConstant);
    const absl::Status status = Verify(*fixed).status();
    ASSERT_TRUE(status.ok()) << status << " seed " << seed << "\n" << PrintProgram(*fixed);
    ASSERT_TRUE(*Specialize(*fixed, {}) == *fixed) << "seed " << seed;
  }
}

// A change anywhere is seen by ==.
TEST(RandomProgram, EqualityIsExact) {
  std::map<std::string, uint64_t> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Program program = RandomProgram(seed);
    EXPECT_TRUE(program == program);
    EXPECT_TRUE(program == CompactExprs(program));
    const auto [it, is_new] = seen.try_emplace(PrintProgram(program), seed);
    if (is_new && seed > 0) {
      EXPECT_FALSE(program == RandomProgram(seed - 1));
    }
  }
  EXPECT_GT(seen.size(), 95u);
}

}  // namespace
}  // namespace tilert
