#include "ir/expr.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "ir/int_math.h"

namespace tilert {
namespace {

TEST(ExprArena, EqualExpressionsHaveEqualIds) {
  ExprArena arena;
  const Expr x = arena.Leaf(ExprOp::kDim, 0, DType::kIndex);
  EXPECT_EQ(arena.Binary(ExprOp::kAdd, x, arena.Int(1)), arena.Binary(ExprOp::kAdd, x, arena.Int(1)));
  EXPECT_NE(arena.Binary(ExprOp::kAdd, x, arena.Int(1)), arena.Binary(ExprOp::kAdd, x, arena.Int(2)));
  EXPECT_NE(arena.Int(1), arena.Int(1, DType::kInt32));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(arena.Float(nan), arena.Float(nan));
  EXPECT_NE(arena.Float(0.0), arena.Float(-0.0));
}

TEST(ExprArena, NumbersWrapToTheirType) {
  ExprArena arena;
  EXPECT_EQ(arena.Int(300, DType::kUInt8), arena.Int(44, DType::kUInt8));
  EXPECT_EQ(arena.Int(200, DType::kInt8), arena.Int(-56, DType::kInt8));
  EXPECT_EQ(arena.Int(5, DType::kBool), arena.Int(1, DType::kBool));
}

TEST(Expr, SameExprAcrossArenas) {
  ExprArena a, b;
  b.Int(99);  // other ids
  const auto make = [](ExprArena& arena, int64_t k) {
    const Expr x = arena.Leaf(ExprOp::kVar, 3, DType::kIndex);
    const Expr sum = arena.Binary(ExprOp::kAdd, x, arena.Int(k));
    return arena.Binary(ExprOp::kMul, sum, sum);
  };
  EXPECT_TRUE(SameExpr(a, make(a, 1), b, make(b, 1)));
  EXPECT_FALSE(SameExpr(a, make(a, 1), b, make(b, 2)));
  EXPECT_TRUE(SameExpr(a, Expr{}, b, Expr{}));
  EXPECT_FALSE(SameExpr(a, make(a, 1), b, Expr{}));
}

TEST(Expr, RewriteReplacesFromTheRootDown) {
  ExprArena from, to;
  const Expr x = from.Leaf(ExprOp::kDim, 0, DType::kIndex), y = from.Leaf(ExprOp::kDim, 1, DType::kIndex);
  const Expr root = from.Binary(ExprOp::kSub, from.Binary(ExprOp::kAdd, x, y), x);
  const Expr result = Rewrite(from, root, to, [&](Expr e, const ExprNode&) { return e == x ? to.Int(7) : Expr{}; });
  EXPECT_EQ(result,
            to.Binary(ExprOp::kSub, to.Binary(ExprOp::kAdd, to.Int(7), to.Leaf(ExprOp::kDim, 1, DType::kIndex)), to.Int(7)));
  const Expr in_place = Rewrite(from, root, from, [&](Expr e, const ExprNode&) { return e == y ? x : Expr{}; });
  EXPECT_EQ(in_place, from.Binary(ExprOp::kSub, from.Binary(ExprOp::kAdd, x, x), x));
}

TEST(Expr, DeepExpressionsNeedNoStack) {
  ExprArena arena;
  Expr e = arena.Leaf(ExprOp::kDim, 0, DType::kIndex);
  for (int i = 0; i < 50000; ++i) e = arena.Binary(i % 2 == 0 ? ExprOp::kMul : ExprOp::kMax, e, arena.Int(i + 2));
  ExprArena copy;
  const Expr other = Rewrite(arena, e, copy, nullptr);
  EXPECT_TRUE(SameExpr(arena, e, copy, other));
  EXPECT_EQ(Fold(arena, e), e);
}

class FoldTest : public testing::Test {
 protected:
  Expr Int(int64_t v, DType t = DType::kIndex) { return arena_.Int(v, t); }
  Expr Folded(ExprOp op, Expr a, Expr b) { return Fold(arena_, arena_.Binary(op, a, b)); }
  ExprArena arena_;
};

TEST_F(FoldTest, DivisionRoundsDownAndByZeroGivesZero) {
  for (int64_t a : {-7, -6, -1, 0, 1, 6, 7}) {
    for (int64_t b : {-3, -1, 1, 3}) {
      const double q = std::floor(static_cast<double>(a) / static_cast<double>(b));
      EXPECT_EQ(Folded(ExprOp::kFloorDiv, Int(a), Int(b)), Int(static_cast<int64_t>(q))) << a << " // " << b;
      EXPECT_EQ(Folded(ExprOp::kFloorMod, Int(a), Int(b)), Int(a - static_cast<int64_t>(q) * b)) << a << " % " << b;
    }
    EXPECT_EQ(Folded(ExprOp::kFloorDiv, Int(a), Int(0)), Int(0));
    EXPECT_EQ(Folded(ExprOp::kFloorMod, Int(a), Int(0)), Int(0));
  }
  EXPECT_EQ(Folded(ExprOp::kFloorDiv, Int(INT64_MIN, DType::kInt64), Int(-1, DType::kInt64)), Int(INT64_MIN, DType::kInt64));
}

TEST_F(FoldTest, IntegersWrapAndIndexDoesNot) {
  EXPECT_EQ(Folded(ExprOp::kAdd, Int(127, DType::kInt8), Int(1, DType::kInt8)), Int(-128, DType::kInt8));
  EXPECT_EQ(Folded(ExprOp::kSub, Int(0, DType::kUInt32), Int(1, DType::kUInt32)), Int(0xffffffff, DType::kUInt32));
  EXPECT_EQ(Folded(ExprOp::kMul, Int(INT64_MAX, DType::kInt64), Int(2, DType::kInt64)), Int(-2, DType::kInt64));
  const Expr overflow = arena_.Binary(ExprOp::kAdd, Int(INT64_MAX), Int(1));
  EXPECT_EQ(Fold(arena_, overflow), overflow);
}

// 16-bit types against arithmetic in int.
TEST_F(FoldTest, AgreesWithWiderArithmetic) {
  std::mt19937 rng(7);
  for (int i = 0; i < 2000; ++i) {
    const auto a = static_cast<int16_t>(rng()), b = static_cast<int16_t>(rng());
    const auto ua = static_cast<uint16_t>(a), ub = static_cast<uint16_t>(b);
    const DType s = DType::kInt16, u = DType::kUInt16;
    EXPECT_EQ(Folded(ExprOp::kMul, Int(a, s), Int(b, s)), Int(static_cast<int16_t>(a * b), s));
    EXPECT_EQ(Folded(ExprOp::kSub, Int(ua, u), Int(ub, u)), Int(static_cast<uint16_t>(ua - ub), u));
    EXPECT_EQ(Folded(ExprOp::kLt, Int(a, s), Int(b, s)), Int(a < b, DType::kBool));
    EXPECT_EQ(Folded(ExprOp::kLt, Int(ua, u), Int(ub, u)), Int(ua < ub, DType::kBool));
    EXPECT_EQ(Folded(ExprOp::kMin, Int(ua, u), Int(ub, u)), Int(std::min(ua, ub), u));
    EXPECT_EQ(Folded(ExprOp::kShr, Int(a, s), Int(3, s)), Int(a >> 3, s));
    EXPECT_EQ(Folded(ExprOp::kShr, Int(ua, u), Int(3, u)), Int(ua >> 3, u));
    if (ub != 0) {
      EXPECT_EQ(Folded(ExprOp::kFloorDiv, Int(ua, u), Int(ub, u)), Int(ua / ub, u));
    }
  }
  EXPECT_EQ(Folded(ExprOp::kFloorDiv, Int(-1, DType::kUInt64), Int(2, DType::kUInt64)), Int(INT64_MAX, DType::kUInt64));
  EXPECT_EQ(Folded(ExprOp::kLt, Int(-1, DType::kUInt64), Int(2, DType::kUInt64)), Int(0, DType::kBool));
}

TEST_F(FoldTest, Identities) {
  const Expr x = arena_.Leaf(ExprOp::kDim, 0, DType::kIndex), t = Int(1, DType::kBool), f = Int(0, DType::kBool);
  const Expr c = arena_.Binary(ExprOp::kLt, x, Int(3));
  EXPECT_EQ(Folded(ExprOp::kAdd, x, Int(0)), x);
  EXPECT_EQ(Folded(ExprOp::kMul, Int(1), x), x);
  EXPECT_EQ(Folded(ExprOp::kMul, x, Int(0)), Int(0));
  EXPECT_EQ(Folded(ExprOp::kFloorDiv, x, Int(1)), x);
  EXPECT_EQ(Folded(ExprOp::kFloorMod, x, Int(1)), Int(0));
  EXPECT_EQ(Folded(ExprOp::kAnd, t, c), c);
  EXPECT_EQ(Folded(ExprOp::kOr, c, t), t);
  EXPECT_EQ(Folded(ExprOp::kAnd, c, f), f);
  EXPECT_EQ(Fold(arena_, arena_.Make(ExprOp::kSelect, DType::kIndex, {t, x, Int(5)})), x);
  EXPECT_EQ(Fold(arena_, arena_.Cast(Int(-1), DType::kUInt8)), Int(255, DType::kUInt8));
  EXPECT_EQ(Fold(arena_, arena_.Cast(x, DType::kIndex)), x);
}

TEST_F(FoldTest, FloatsAreLeftAlone) {
  const Expr x = arena_.Leaf(ExprOp::kScalar, 0, DType::kFloat32);
  for (const Expr e : {arena_.Binary(ExprOp::kMul, x, arena_.Float(0)), arena_.Binary(ExprOp::kAdd, x, arena_.Float(0)),
                       arena_.Binary(ExprOp::kSub, x, x), arena_.Binary(ExprOp::kEq, x, x),
                       arena_.Binary(ExprOp::kAdd, arena_.Float(1), arena_.Float(2))}) {
    EXPECT_EQ(Fold(arena_, e), e);
  }
}

}  // namespace
}  // namespace tilert
