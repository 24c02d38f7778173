#include "ir/builder.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/printer.h"
#include "ir/specialize.h"
#include "tests/ir/sample_programs.h"

namespace tilert {
namespace {

using testing::HasSubstr;

TEST(CommonType, FollowsTheSpecification) {
  EXPECT_EQ(CommonType(DType::kInt8, DType::kInt32), DType::kInt32);
  EXPECT_EQ(CommonType(DType::kInt32, DType::kUInt32), DType::kUInt32);
  EXPECT_EQ(CommonType(DType::kUInt64, DType::kIndex), DType::kIndex);
  EXPECT_EQ(CommonType(DType::kInt64, DType::kFloat16), DType::kFloat16);
  EXPECT_EQ(CommonType(DType::kFloat16, DType::kBFloat16), DType::kFloat32);
  EXPECT_EQ(CommonType(DType::kFloat16, DType::kFloat32), DType::kFloat32);
  EXPECT_EQ(CommonType(DType::kFloat8E4M3, DType::kFloat8E5M2), DType::kFloat32);
  EXPECT_EQ(CommonType(DType::kBool, DType::kInt8), DType::kInt8);
}

class BuilderTest : public testing::Test {
 protected:
  std::string Text(Val v) { return PrintExpr(b_.program(), b_.E(v)); }
  ProgramBuilder b_{"test"};
  Val n_ = b_.Dim("N");
  Val h_ = b_.Scalar("h", DType::kFloat16), i_ = b_.Scalar("i", DType::kInt32), u_ = b_.Scalar("u", DType::kUInt8),
      f_ = b_.Scalar("f", DType::kFloat32);
  Val e_ = b_.Scalar("e", DType::kFloat8E4M3), t_ = b_.Scalar("t", DType::kBool);
};

TEST_F(BuilderTest, Promotion) {
  EXPECT_EQ(Text(h_ * 2), "h * 2.0");
  EXPECT_EQ((h_ * 2).dtype(), DType::kFloat16);
  EXPECT_EQ((h_ * 0.1).dtype(), DType::kFloat16);
  EXPECT_EQ(Text(h_ + f_), "T.cast(h, \"float32\") + f");
  EXPECT_EQ(Text(i_ + n_), "T.cast(i, \"index\") + N");
  EXPECT_EQ(Text(i_ + 1.5), "T.cast(i, \"float32\") + 1.5");
  EXPECT_EQ(Text(i_ / 2), "T.cast(i, \"float32\") / 2.0");
  EXPECT_EQ(Text(FloorDiv(f_, 2)), "T.floor(f / 2.0)");
  EXPECT_EQ(Text(e_ * e_), "T.cast(e, \"float32\") * T.cast(e, \"float32\")");
  EXPECT_EQ(Text(t_ + t_), "T.cast(t, \"int32\") + T.cast(t, \"int32\")");
  EXPECT_EQ(Text(Call(ExprOp::kExp, i_)), "T.exp(T.cast(i, \"float32\"))");
  EXPECT_EQ(Text(Call(ExprOp::kFloor, i_)), "i");
  EXPECT_EQ(Text(u_ & 255), "u & 255");
  EXPECT_EQ(Text(u_ + 300), "T.cast(u, \"index\") + 300");
  EXPECT_EQ(Text(And(i_, t_)), "T.cast(i, \"bool\") and t");
  EXPECT_EQ(Text(b_.Select(t_, h_, 0)), "T.if_then_else(t, h, 0.0)");
}

TEST_F(BuilderTest, MistakesAreReturnedByBuild) {
  const auto message = [](ProgramBuilder& b) { return std::string(b.Build().status().message()); };
  {
    ProgramBuilder b("open");
    b.Launch<1>("k0", {1}, 32);
    EXPECT_THAT(message(b), HasSubstr("open: 1 block(s) are still open"));
  }
  {
    ProgramBuilder b("rank");
    Buf x = b.Tensor("X", DType::kFloat32, {4, 4});
    b.SetLoc({b.File("r.py"), 2, 3});
    x(1);
    EXPECT_THAT(message(b), HasSubstr("r.py:2:3: X has 2 dimensions and is read with 1 subscripts"));
  }
  {
    ProgramBuilder b("loose");
    b.Add(SyncThreads{});
    EXPECT_THAT(message(b), HasSubstr("must stand inside a launch"));
  }
  {
    ProgramBuilder b("none");
    Val nothing;
    b.Lit(int64_t{1}) + nothing;
    EXPECT_THAT(message(b), HasSubstr("needs a value"));
  }
  {
    ProgramBuilder b("else");
    b.Launch<1>("k0", {1}, 32);
    b.Else();
    b.Close();
    EXPECT_THAT(message(b), HasSubstr("Else without an open If"));
  }
}

TEST(Specialize, ReplacesFoldsAndPrunes) {
  ProgramBuilder b("prune");
  Val n = b.Dim("N"), block = b.Constant("block", {64, 128}), swap = b.Constant("swap", {0, 1});
  Buf y = b.Tensor("Y", DType::kFloat32, {n}, Access::kOut);
  auto [bx] = b.Launch<1>("k0", {CeilDiv(n, block)}, 128);
  b.OpenIf(swap == 1);
  b.Store(y, {bx}, 1);
  b.Else();
  b.Store(y, {bx * block}, 2);
  b.Store(y, {bx + 1}, 3);
  b.Close();
  b.Close();
  const Program p = *b.Build();
  const absl::StatusOr<Program> q = Specialize(p, {{"block", 128}}, {{"N", 1000}});
  ASSERT_TRUE(q.ok());
  const std::string text = PrintProgram(*q);
  EXPECT_THAT(text, HasSubstr("Y: T.Tensor((1000,)"));
  EXPECT_THAT(text, HasSubstr("T.Kernel(8, threads=128)"));
  EXPECT_THAT(text, HasSubstr("        Y[bx * 128] = 2.0\n        Y[bx + 1] = 3.0\n"));
  EXPECT_EQ(q->constants[0].candidates, std::vector<int64_t>{128});
  EXPECT_EQ(q->constants[1].candidates, std::vector<int64_t>{0});
}

TEST(Specialize, KeepsTheStatementsOfAnOrderedPipeline) {
  ProgramBuilder b("ordered");
  Val on = b.Constant("on", {0});
  Buf y = b.Tensor("Y", DType::kFloat32, {8}, Access::kOut);
  b.Launch<1>("k0", {1}, 32);
  Val k = b.OpenFor(ForKind::kPipelined, "k", 0, 8, 1, 2, {1, 0}, {0, 1});
  b.OpenIf(on == 1);
  b.Store(y, {k}, 1);
  b.Close();
  b.Store(y, {k}, 2);
  b.Close();
  b.Close();
  const absl::StatusOr<Program> q = Specialize(*b.Build(), {});
  ASSERT_TRUE(q.ok());
  EXPECT_EQ(std::get<For>(q->launches[0].body[0].op).body.size(), 2u);
}

TEST(Specialize, RefusesWhatDoesNotExist) {
  const Program p = GemmProgram();
  const auto message = [&](std::map<std::string, int64_t> constants, std::map<std::string, int64_t> dims) {
    return std::string(Specialize(p, constants, dims).status().message());
  };
  EXPECT_THAT(message({{"tile", 1}}, {}), HasSubstr("no constant named tile; it has: block_M, block_N, block_K, stages"));
  EXPECT_THAT(message({{"block_M", 100}}, {}), HasSubstr("100 is no candidate of constant block_M; choose one of: 128, 64"));
  EXPECT_THAT(message({}, {{"Q", 1}}), HasSubstr("no dim named Q; it has: M, N, K, lda"));
  EXPECT_THAT(message({}, {{"M", -1}}), HasSubstr("cannot be negative"));
}

TEST(Specialize, BoundScalarsBecomeNumbers) {
  ProgramBuilder b("bound");
  Val n = b.Dim("N");
  Val s = b.Scalar("n", DType::kInt32, n);
  Buf y = b.Tensor("Y", DType::kInt32, {n}, Access::kOut);
  b.Launch<1>("k0", {1}, 32);
  b.Store(y, {0}, s + 1);
  b.Close();
  const absl::StatusOr<Program> q = Specialize(*b.Build(), {}, {{"N", 7}});
  ASSERT_TRUE(q.ok());
  EXPECT_THAT(PrintProgram(*q), HasSubstr("Y[0] = 8\n"));
}

}  // namespace
}  // namespace tilert
