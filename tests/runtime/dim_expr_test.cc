#include "runtime/dim_expr.h"

#include <gtest/gtest.h>

#include <random>

#include "ir/bind_args.h"

namespace tilert {
namespace {

// A program with three dims and one scalar, and random expressions over them.
struct Subject {
  Subject() {
    program.name = "p";
    program.dims = {{"M"}, {"N"}, {"K"}};
    program.scalars = {{"s", DType::kInt32, kNoId}};
    program.constants = {{"c", {7, 9}}};
  }
  Expr Random(int depth) {
    ExprArena& arena = program.exprs;
    const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    if (depth == 0 || pick(6) == 0) {
      switch (pick(5)) {
        case 0:
          return arena.Int(static_cast<int64_t>(random()) - 2000000000);
        case 1:
          return arena.Leaf(ExprOp::kScalar, 0, DType::kInt32);
        case 2:
          return arena.Leaf(ExprOp::kConstant, 0, DType::kIndex);
        default:
          return arena.Leaf(ExprOp::kDim, pick(3), DType::kIndex);
      }
    }
    const Expr a = Random(depth - 1), b = Random(depth - 1);
    static constexpr ExprOp kOps[] = {ExprOp::kAdd,      ExprOp::kSub, ExprOp::kMul,   ExprOp::kFloorDiv,
                                      ExprOp::kFloorMod, ExprOp::kMin, ExprOp::kMax,   ExprOp::kLt,
                                      ExprOp::kEq,       ExprOp::kShr, ExprOp::kBitXor};
    switch (pick(13)) {
      case 0:
        return arena.Make(ExprOp::kSelect, DType::kIndex, {arena.Binary(ExprOp::kLe, a, b), a, b});
      case 1:
        return arena.Cast(a, DType::kInt16);
      case 2:
        return arena.Unary(ExprOp::kNeg, a);
      default:
        return arena.Binary(kOps[pick(11)], a, b);
    }
  }
  Program program;
  std::mt19937 random{12345};
};

TEST(DimExpr, AgreesWithTheReferenceEvaluator) {
  Subject subject;
  BoundArgs bound;
  bound.dims = {4096, 1, 131};
  bound.scalars = {Value{.i = -5}};
  int overflows = 0;
  for (int i = 0; i < 3000; ++i) {
    const Expr e = subject.Random(5);
    const auto compiled = DimExpr::Compile(subject.program, e);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    const auto expected = EvalBound(subject.program, e, bound);
    // What overflows is refused by the one and flagged by the other.
    EXPECT_EQ(compiled->EvalExact({bound.dims, bound.scalars}), expected.ok() ? *expected : DimExpr::kTooLarge)
        << expected.status();
    overflows += !expected.ok();
    if (expected.ok()) {
      EXPECT_EQ(compiled->Eval({bound.dims, bound.scalars}), *expected);
    }
    ByteWriter out;
    compiled->Encode(out);
    const std::string bytes = out.Take();
    ByteReader in(bytes);
    const auto decoded = DimExpr::Decode(in, 3, 1);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(*decoded, *compiled);
    EXPECT_TRUE(in.AtEnd());
  }
  EXPECT_GT(overflows, 0);
  EXPECT_LT(overflows, 1000);
}

TEST(DimExpr, RefusesWhatALaunchCannotKnow) {
  Subject subject;
  ExprArena& arena = subject.program.exprs;
  EXPECT_FALSE(DimExpr::Compile(subject.program, arena.Leaf(ExprOp::kVar, 0, DType::kIndex)).ok());
  EXPECT_FALSE(DimExpr::Compile(subject.program, arena.Float(1.5)).ok());
  EXPECT_FALSE(DimExpr::Compile(subject.program, Expr()).ok());
  Expr deep = arena.Leaf(ExprOp::kDim, 0, DType::kIndex);
  for (int i = 0; i < 100; ++i) deep = arena.Binary(ExprOp::kSub, arena.Int(i), deep);
  EXPECT_FALSE(DimExpr::Compile(subject.program, deep).ok());
}

TEST(DimExpr, DamagedCodeIsRefusedNotRun) {
  Subject subject;
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    ByteWriter out;
    DimExpr::Compile(subject.program, subject.Random(3)).value().Encode(out);
    std::string bytes = out.Take();
    bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    ByteReader in(bytes);
    const auto decoded = DimExpr::Decode(in, 3, 1);
    const std::vector<int64_t> dims = {1, 2, 3};
    const std::vector<Value> scalars = {Value{.i = 4}};
    if (decoded.ok()) (void)decoded->Eval({dims, scalars});  // must stay inside its stack (address sanitizer)
  }
}

}  // namespace
}  // namespace tilert
