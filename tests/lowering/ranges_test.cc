#include "lowering/ranges.h"

#include <random>

#include "gtest/gtest.h"
#include "ir/int_math.h"
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

// As a GPU computes it, modulo 2^64.
int64_t Wrapping(const ExprArena& arena, Expr e, const std::vector<int64_t>& vars) {
  const ExprNode& node = arena[e];
  const auto arg = [&](size_t i) { return Wrapping(arena, node.args[i], vars); };
  const auto u = [&](size_t i) { return static_cast<uint64_t>(arg(i)); };
  switch (node.op) {
    case ExprOp::kIntImm: return node.i;
    case ExprOp::kVar: return vars[static_cast<size_t>(node.i)];
    case ExprOp::kAdd: return static_cast<int64_t>(u(0) + u(1));
    case ExprOp::kSub: return static_cast<int64_t>(u(0) - u(1));
    case ExprOp::kMul: return static_cast<int64_t>(u(0) * u(1));
    case ExprOp::kNeg: return static_cast<int64_t>(0 - u(0));
    case ExprOp::kAbs: return arg(0) < 0 ? static_cast<int64_t>(0 - u(0)) : arg(0);
    case ExprOp::kFloorDiv: return FloorDivInt(arg(0), arg(1));
    case ExprOp::kFloorMod: return FloorModInt(arg(0), arg(1));
    case ExprOp::kMin: return std::min(arg(0), arg(1));
    case ExprOp::kMax: return std::max(arg(0), arg(1));
    case ExprOp::kBitAnd: return arg(0) & arg(1);
    case ExprOp::kBitOr: return arg(0) | arg(1);
    case ExprOp::kShl: return static_cast<int64_t>(u(0) << arg(1));
    case ExprOp::kShr: return arg(0) >> arg(1);
    case ExprOp::kCast: return arg(0);  // between types of 64 bits
    default: ADD_FAILURE() << "operator " << static_cast<int>(node.op); return 0;
  }
}

// Numbers at the ends of the types, as data may hold them, and what is computed from them.
TEST(Ranges, HoldWhatWrapsAtTheEndsOfTheType) {
  std::mt19937_64 random(11);
  const auto pick = [&random](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  constexpr int64_t kEnds[] = {INT64_MIN, INT64_MAX, int64_t{1} << 62, -(int64_t{1} << 62),   int64_t{1} << 32, -1,
                               0,         7,         INT64_MAX / 3,    (int64_t{1} << 61) + 5};
  const auto number = [&] { return kEnds[pick(std::size(kEnds))] + (pick(2) == 0 ? 0 : pick(3) - 1 < 0 ? 1 : 0); };
  constexpr ExprOp kOps[] = {ExprOp::kAdd,   ExprOp::kSub, ExprOp::kMul, ExprOp::kFloorDiv, ExprOp::kFloorMod,
                             ExprOp::kMin,   ExprOp::kMax, ExprOp::kNeg, ExprOp::kAbs,      ExprOp::kBitAnd,
                             ExprOp::kBitOr, ExprOp::kShl, ExprOp::kShr};
  int not_negative = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    KernelMaker m(1);
    ExprArena& arena = m.k.exprs;
    std::vector<Expr> pool = {m.V(m.Var("free")), arena.Cast(m.V(m.Var("big", DType::kUInt64)), DType::kIndex),
                              m.V(m.Var("bound"))};
    int64_t lo = number(), hi = number();
    if (lo > hi) std::swap(lo, hi);
    for (int i = 0; i < 3; ++i) pool.push_back(arena.Int(number()));
    pool.push_back(arena.Int(1 + pick(100)));
    for (int i = 0; i < 7; ++i) {
      const ExprOp op = kOps[random() % std::size(kOps)];
      const Expr a = pool[random() % pool.size()], b = pool[random() % pool.size()];
      const bool shift = op == ExprOp::kShl || op == ExprOp::kShr, unary = op == ExprOp::kNeg || op == ExprOp::kAbs;
      pool.push_back(unary ? arena.Unary(op, a) : arena.Binary(op, a, shift ? arena.Int(pick(64)) : b));
    }
    Ranges ranges(m.k);
    ranges.Bind(3, {lo, hi});
    for (int sample = 0; sample < 30; ++sample) {
      const auto within = [&] {
        const uint64_t span = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo);
        return static_cast<int64_t>(static_cast<uint64_t>(lo) + (sample % 3 == 0      ? 0
                                                                 : sample % 3 == 1    ? span
                                                                 : span == UINT64_MAX ? random()
                                                                                      : random() % (span + 1)));
      };
      const std::vector<int64_t> vars = {0, number(), number(), within()};
      for (Expr e : pool) {
        const int64_t value = Wrapping(arena, e, vars);
        const Range r = ranges.Of(e);
        ASSERT_GE(value, r.lo) << trial;
        ASSERT_LE(value, r.hi) << trial;
        ASSERT_EQ(value & (r.align - 1), 0) << trial << " align " << r.align << " operator " << static_cast<int>(arena[e].op);
        not_negative += r.lo >= 0;
      }
    }
  }
  EXPECT_GT(not_negative, 10000) << "ranges that say nothing";
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
