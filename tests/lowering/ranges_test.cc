#include "lowering/ranges.h"

#include <random>

#include "gtest/gtest.h"
#include "kernel_maker.h"

namespace tilert {
namespace {

// Value of an index expression with variables replaced by numbers.
int64_t Evaluate(ExprArena& arena, Expr e, const std::vector<int64_t>& vars) {
  const Expr replaced = Rewrite(arena, e, arena, [&](Expr, const ExprNode& node) {
    return node.op == ExprOp::kVar ? arena.Int(vars[static_cast<size_t>(node.i)]) : Expr{};
  });
  int64_t value = 0;
  EXPECT_TRUE(arena.AsInt(Fold(arena, replaced), &value));
  return value;
}

TEST(Ranges, HoldEveryValueOfRandomExpressions) {
  std::mt19937 random(7);
  const auto pick = [&random](int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(random() % static_cast<uint64_t>(hi - lo + 1));
  };
  constexpr ExprOp kOps[] = {ExprOp::kAdd, ExprOp::kSub,    ExprOp::kMul,   ExprOp::kFloorDiv, ExprOp::kFloorMod, ExprOp::kMin,
                             ExprOp::kMax, ExprOp::kBitAnd, ExprOp::kBitOr, ExprOp::kBitXor,   ExprOp::kShl,      ExprOp::kShr};
  int narrowed = 0;
  for (int trial = 0; trial < 400; ++trial) {
    KernelMaker m(1);
    ExprArena& arena = m.k.exprs;
    std::vector<Expr> pool;
    std::vector<Range> bounds(1);
    for (int v = 0; v < 3; ++v) {
      pool.push_back(m.V(m.Var("v")));
      const int64_t lo = pick(-20, 20);
      bounds.push_back({lo, lo + pick(0, 30)});
    }
    for (int64_t constant : {pick(-8, 8), pick(1, 16), int64_t{8}}) pool.push_back(arena.Int(constant));
    for (int n = 0; n < 6; ++n) {
      const ExprOp op = kOps[random() % std::size(kOps)];
      const Expr b = op == ExprOp::kShl || op == ExprOp::kShr ? arena.Int(pick(0, 4)) : pool[random() % pool.size()];
      pool.push_back(arena.Binary(op, pool[random() % pool.size()], b));
    }
    pool.push_back(arena.Make(ExprOp::kSelect, DType::kIndex, {arena.Binary(ExprOp::kLt, pool[0], pool[1]), pool[6], pool[7]}));
    Ranges ranges(m.k);
    for (size_t v = 1; v < bounds.size(); ++v) ranges.Bind(static_cast<VarId>(v), bounds[v]);
    for (int sample = 0; sample < 20; ++sample) {
      std::vector<int64_t> vars;
      for (const Range& r : bounds) vars.push_back(pick(r.lo, r.hi));
      for (Expr e : pool) {
        const int64_t value = Evaluate(arena, e, vars);
        const Range r = ranges.Of(e);
        ASSERT_GE(value, r.lo);
        ASSERT_LE(value, r.hi);
        ASSERT_EQ(value % r.align, 0);
        narrowed += r.hi - r.lo < 1000;
      }
    }
  }
  EXPECT_GT(narrowed, 10000) << "ranges that say nothing";
}

TEST(Ranges, IntegersThatMayWrapHaveTheRangeOfTheirType) {
  KernelMaker m(1);
  const Expr x = m.V(m.Var("x", DType::kInt32));
  Ranges ranges(m.k);
  EXPECT_EQ(ranges.Of(m.Op(ExprOp::kAdd, x, m.k.exprs.Int(1, DType::kInt32))), TypeRange(DType::kInt32));
  ranges.Bind(1, {0, 10});
  EXPECT_EQ(ranges.Of(m.Op(ExprOp::kAdd, x, m.k.exprs.Int(1, DType::kInt32))), (Range{1, 11, 1}));
}

TEST(Ranges, AlignmentFollowsMultiples) {
  KernelMaker m(1);
  const Expr v = m.V(m.Var("v"));
  Ranges ranges(m.k);
  ranges.Bind(1, {0, 100});
  EXPECT_EQ(ranges.Of(m.Op(ExprOp::kMul, v, m.Int(24))).align, 8);
  EXPECT_EQ(ranges.Of(m.Sum(m.Op(ExprOp::kMul, v, m.Int(64)), m.Int(16))).align, 16);
}

TEST(Ranges, DimsAreSmallOnlyWithIndex32) {
  KernelMaker m(1);
  const Expr n = m.Dim("N");
  EXPECT_FALSE(Ranges(m.k).Of(n).FitsInt());
  m.k.index32 = true;
  EXPECT_TRUE(Ranges(m.k).Of(m.Sum(n, n)).FitsInt());
}

TEST(Ranges, GuardsProve) {
  KernelMaker m(1);
  const Expr n = m.Dim("N"), v = m.V(m.Var("v")), w = m.V(m.Var("w"));
  const BufferId memory = m.Shared("memory", DType::kInt64, {4});
  Ranges ranges(m.k);
  EXPECT_FALSE(ranges.ProveLess(v, n));
  {
    const Ranges::Assume known(ranges, m.Op(ExprOp::kAnd, m.Op(ExprOp::kLt, v, n), m.Op(ExprOp::kGt, n, w)));
    EXPECT_TRUE(ranges.ProveLess(v, n));
    EXPECT_TRUE(ranges.ProveLess(w, n));
    EXPECT_FALSE(ranges.ProveLess(n, v));
  }
  EXPECT_FALSE(ranges.ProveLess(v, n)) << "the guard has ended";
  const Expr loaded = m.Load(memory, {m.Int(0), m.Int(0)});
  const Ranges::Assume changing(ranges, m.Op(ExprOp::kLt, loaded, n));
  EXPECT_FALSE(ranges.ProveLess(loaded, n)) << "memory may change after the guard";
  EXPECT_FALSE(ranges.ProveLess(w, m.Int(8)));
  ranges.Bind(2, {0, 7});
  EXPECT_TRUE(ranges.ProveLess(w, m.Int(8)));
}

}  // namespace
}  // namespace tilert
