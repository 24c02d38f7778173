// Every operator, element by element, against references written here.
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/ir/exec_util.h"

namespace tilert {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// out[i] = make(builder, inputs[0][i], inputs[1][i], …) for all i.
Array Map(DType out_type, std::vector<Array*> inputs, const std::function<Val(ProgramBuilder&, std::vector<Val>)>& make) {
  ProgramBuilder b("map");
  Val N = b.Dim("N");
  std::vector<Buf> bufs;
  for (Array* a : inputs) bufs.push_back(b.Tensor(absl::StrCat("X", bufs.size()), a->type(), {N}));
  Buf out = b.Tensor("Y", out_type, {N}, Access::kOut);
  b.Launch<1>("main", {1}, 32);
  Val i = b.OpenParallel({"i"}, {N})[0];
  std::vector<Val> loads;
  for (const Buf& buf : bufs) loads.push_back(buf(i));
  b.Store(out, {i}, make(b, loads));
  b.Close();
  b.Close();
  Array y(out_type, {inputs[0]->size()});
  std::vector<Array*> all = inputs;
  all.push_back(&y);
  ExpectRuns(Built(b), all);
  return y;
}

Array Values(DType type, const std::vector<double>& values) {
  Array a(type, {static_cast<int64_t>(values.size())});
  for (size_t k = 0; k < values.size(); ++k) a.Set(static_cast<int64_t>(k), values[k]);
  return a;
}

bool Same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

// Every pair of special and random values of a float type.
void Pairs(DType type, Array* a, Array* b) {
  std::vector<double> values = {
      0.0, -0.0, 1, -1, 0.5, 3, kInf, -kInf, kNan, MaxFinite(type), -MaxFinite(type), 1e-7, -1e-40, 5.960464477539063e-08};
  std::mt19937_64 random(5);
  for (int k = 0; k < 40; ++k)
    values.push_back(std::ldexp(static_cast<double>(random() % 4096) - 2048, static_cast<int>(random() % 12) - 12));
  std::vector<double> left, right;
  for (double x : values) {
    for (double y : values) {
      left.push_back(x);
      right.push_back(y);
    }
  }
  *a = Values(type, left);
  *b = Values(type, right);
}

class FloatOps : public testing::TestWithParam<DType> {};

TEST_P(FloatOps, ArithmeticRoundsOnce) {
  const DType type = GetParam();
  Array a(type, {0}), b(type, {0});
  Pairs(type, &a, &b);
  const auto exact_min = [](double x, double y) {
    return std::isnan(x) || std::isnan(y) ? kNan : x < y || (x == y && std::signbit(x)) ? x : y;
  };
  const auto exact_max = [](double x, double y) {
    return std::isnan(x) || std::isnan(y) ? kNan : x > y || (x == y && std::signbit(y)) ? x : y;
  };
  // long double holds sums and products of narrow types exactly, and quotients with 11 bits to spare.
  const struct {
    ExprOp op;
    std::function<long double(long double, long double)> reference;
  } cases[] = {{ExprOp::kAdd, [](auto x, auto y) { return x + y; }},
               {ExprOp::kSub, [](auto x, auto y) { return x - y; }},
               {ExprOp::kMul, [](auto x, auto y) { return x * y; }},
               {ExprOp::kDiv, [](auto x, auto y) { return x / y; }},
               {ExprOp::kMin, [&](auto x, auto y) { return exact_min(static_cast<double>(x), static_cast<double>(y)); }},
               {ExprOp::kMax, [&](auto x, auto y) { return exact_max(static_cast<double>(x), static_cast<double>(y)); }}};
  for (const auto& c : cases) {
    const Array y = Map(type, {&a, &b}, [&](ProgramBuilder&, std::vector<Val> x) { return Call(c.op, x[0], x[1]); });
    for (int64_t k = 0; k < y.size(); ++k) {
      const long double wide = c.reference(a[k], b[k]);
      const double expected = type == DType::kFloat64   ? static_cast<double>(wide)
                              : type == DType::kFloat32 ? static_cast<double>(static_cast<float>(wide))
                                                        : RoundToType(type, static_cast<double>(wide));
      if (type == DType::kFloat64 && c.op != ExprOp::kMin && c.op != ExprOp::kMax) {
        const double x = a[k], z = b[k];
        const double direct = c.op == ExprOp::kAdd ? x + z : c.op == ExprOp::kSub ? x - z : c.op == ExprOp::kMul ? x * z : x / z;
        ASSERT_TRUE(Same(y[k], direct));
        continue;
      }
      ASSERT_TRUE(Same(y[k], expected)) << ExprOpText(c.op) << "(" << a[k] << ", " << b[k] << ") = " << y[k] << ", not "
                                        << expected;
    }
  }
}

TEST_P(FloatOps, Comparisons) {
  Array a(GetParam(), {0}), b(GetParam(), {0});
  Pairs(GetParam(), &a, &b);
  for (const auto& [op, reference] :
       std::vector<std::pair<ExprOp, std::function<bool(double, double)>>>{{ExprOp::kLt, std::less<double>()},
                                                                           {ExprOp::kLe, std::less_equal<double>()},
                                                                           {ExprOp::kGt, std::greater<double>()},
                                                                           {ExprOp::kGe, std::greater_equal<double>()},
                                                                           {ExprOp::kEq, std::equal_to<double>()},
                                                                           {ExprOp::kNe, std::not_equal_to<double>()}}) {
    const Array y = Map(DType::kBool, {&a, &b}, [op = op](ProgramBuilder&, std::vector<Val> x) { return Call(op, x[0], x[1]); });
    for (int64_t k = 0; k < y.size(); ++k)
      ASSERT_EQ(y.Int(k), reference(a[k], b[k])) << ExprOpText(op) << " " << a[k] << " " << b[k];
  }
}

TEST_P(FloatOps, Functions) {
  const DType type = GetParam();
  Array a(type, {2000});
  a.Random(3, -6, 6);
  const std::vector<double> special = {0.0, -0.0, kInf, -kInf, kNan, 1, -1, 0.5, 1.5, 2.5, -0.5, -1.5, 88, -100};
  for (size_t k = 0; k < special.size(); ++k) a.Set(static_cast<int64_t>(k), special[k]);
  const struct {
    ExprOp op;
    double (*reference)(double);
  } cases[] = {{ExprOp::kExp, [](double x) { return std::exp(x); }},
               {ExprOp::kExp2, [](double x) { return std::exp2(x); }},
               {ExprOp::kLog, [](double x) { return std::log(x); }},
               {ExprOp::kLog2, [](double x) { return std::log2(x); }},
               {ExprOp::kLog1p, [](double x) { return std::log1p(x); }},
               {ExprOp::kSin, [](double x) { return std::sin(x); }},
               {ExprOp::kCos, [](double x) { return std::cos(x); }},
               {ExprOp::kTanh, [](double x) { return std::tanh(x); }},
               {ExprOp::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
               {ExprOp::kErf, [](double x) { return std::erf(x); }},
               {ExprOp::kSqrt, [](double x) { return std::sqrt(x); }},
               {ExprOp::kRsqrt, [](double x) { return 1 / std::sqrt(x); }},
               {ExprOp::kFloor, [](double x) { return std::floor(x); }},
               {ExprOp::kCeil, [](double x) { return std::ceil(x); }},
               {ExprOp::kTrunc, [](double x) { return std::trunc(x); }},
               {ExprOp::kRound, [](double x) { return x - std::remainder(x, 1.0); }},
               {ExprOp::kAbs, [](double x) { return std::fabs(x); }},
               {ExprOp::kNeg, [](double x) { return -x; }}};
  for (const auto& c : cases) {
    const Array y = Map(type, {&a}, [&](ProgramBuilder&, std::vector<Val> x) { return Call(c.op, x[0]); });
    for (int64_t k = 0; k < y.size(); ++k) {
      if (c.op == ExprOp::kRound && (a[k] == 0 || std::isinf(a[k]))) continue;
      const double expected = RoundToType(type, c.reference(a[k]));
      if (expected == 0 && y[k] == 0) continue;
      ASSERT_TRUE(Same(y[k], expected)) << ExprOpText(c.op) << "(" << a[k] << ") = " << y[k] << ", not " << expected;
    }
  }
  const Array nan = Map(DType::kBool, {&a}, [](ProgramBuilder&, std::vector<Val> x) { return Call(ExprOp::kIsNan, x[0]); });
  const Array inf = Map(DType::kBool, {&a}, [](ProgramBuilder&, std::vector<Val> x) { return Call(ExprOp::kIsInf, x[0]); });
  for (int64_t k = 0; k < a.size(); ++k) {
    EXPECT_EQ(nan.Int(k), std::isnan(a[k]));
    EXPECT_EQ(inf.Int(k), std::isinf(a[k]));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, FloatOps, testing::Values(DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64),
                         [](const auto& info) { return std::string(DTypeName(info.param)); });

TEST(ExecutorExpr, FmaRoundsOnce) {
  // a·b + c with c so small that rounding the product first, or rounding through double, would lose it.
  for (DType type : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    const int p = type == DType::kFloat16 ? 11 : type == DType::kBFloat16 ? 8 : 24;
    const double one_ulp = std::ldexp(1, 1 - p);
    Array a = Values(type, {1 + one_ulp, 1 + one_ulp, 3, kInf, 2});
    Array b = Values(type, {1 + std::ldexp(1, -1), 1 - one_ulp / 2, 5, 0, 3});
    Array c = Values(type, {std::ldexp(1, -14), -1, 7, 1, -6});
    const Array y = Map(type, {&a, &b, &c}, [](ProgramBuilder& builder, std::vector<Val> x) {
      return builder.Apply(ExprOp::kFma, {x[0], x[1], x[2]});
    });
    EXPECT_EQ(y[1], RoundToType(type, one_ulp / 2 - one_ulp * one_ulp / 2))
        << DTypeName(type);  // 0 if the product were rounded first
    EXPECT_EQ(y[2], 22);
    EXPECT_TRUE(std::isnan(y[3]));
    EXPECT_EQ(y[4], 0);
    const double exact = (1 + one_ulp) * 1.5 + std::ldexp(1, -14);
    EXPECT_EQ(y[0], RoundToType(type, exact)) << DTypeName(type);
  }
  // The product is the middle of two float16 values and the addend is far below double's reach.
  Array a = Values(DType::kFloat16, {1 + 0x1p-10}), b = Values(DType::kFloat16, {0x1p14 * 1.5}),
        c = Values(DType::kFloat16, {0x1p-24});
  // 24576 + 24 = 16·1537.5: up because of the addend, and to even anyway.
  Array y = Map(DType::kFloat16, {&a, &b, &c}, [](ProgramBuilder& builder, std::vector<Val> x) {
    return builder.Apply(ExprOp::kFma, {x[0], x[1], x[2]});
  });
  EXPECT_EQ(y[0], 16 * 1538);
  a.Set(0, 1 + 3 * 0x1p-10);  // 24576 + 72 = 16·1540.5: up because of the addend, down (to even) without it
  y = Map(DType::kFloat16, {&a, &b, &c}, [](ProgramBuilder& builder, std::vector<Val> x) {
    return builder.Apply(ExprOp::kFma, {x[0], x[1], x[2]});
  });
  EXPECT_EQ(y[0], 16 * 1541);
  c.Set(0, -0x1p-24);
  y = Map(DType::kFloat16, {&a, &b, &c}, [](ProgramBuilder& builder, std::vector<Val> x) {
    return builder.Apply(ExprOp::kFma, {x[0], x[1], x[2]});
  });
  EXPECT_EQ(y[0], 16 * 1540);
}

TEST(ExecutorExpr, BFloat16RoundsAtEveryOperator) {
  Array a = Values(DType::kBFloat16, {256}), b = Values(DType::kBFloat16, {1});
  const Array y = Map(DType::kBFloat16, {&a, &b}, [](ProgramBuilder&, std::vector<Val> x) { return x[0] + x[1] + x[1] + x[1]; });
  EXPECT_EQ(y[0], 256);  // 257 rounds to 256 each time
}

class IntOps : public testing::TestWithParam<DType> {};

// The reference: exact in 128 bits, reduced modulo 2^bits.
int64_t Reduce(DType type, __int128 v) {
  const int bits = DTypeBits(type);
  const unsigned __int128 low = static_cast<unsigned __int128>(v) & (((static_cast<unsigned __int128>(1)) << bits) - 1);
  if (KindOf(type) == DTypeKind::kSigned && (low >> (bits - 1)) != 0)
    return static_cast<int64_t>(static_cast<__int128>(low) - (static_cast<__int128>(1) << bits));
  return static_cast<int64_t>(static_cast<uint64_t>(low));
}
__int128 Wide(DType type, int64_t v) {
  return KindOf(type) == DTypeKind::kSigned ? static_cast<__int128>(v) : static_cast<__int128>(static_cast<uint64_t>(v));
}
__int128 FloorDivide(__int128 a, __int128 b) {
  if (b == 0) return 0;
  const __int128 q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

TEST_P(IntOps, AgreeWithExactArithmetic) {
  const DType type = GetParam();
  const int bits = DTypeBits(type);
  std::vector<int64_t> values;
  for (int64_t v : {0, 1, -1, 2, 3, 7, -7, 8, 31, 32, 63, 64, 100, -128}) values.push_back(Reduce(type, v));
  for (__int128 v : {MinInt(type), MaxInt(type), MaxInt(type) - 1, MinInt(type) + 1}) values.push_back(Reduce(type, v));
  Array a(type, {static_cast<int64_t>(values.size() * values.size())}), b = a;
  for (size_t k = 0; k < values.size() * values.size(); ++k) {
    a.SetInt(static_cast<int64_t>(k), values[k / values.size()]);
    b.SetInt(static_cast<int64_t>(k), values[k % values.size()]);
  }
  using Reference = std::function<__int128(__int128, __int128)>;
  const std::vector<std::pair<ExprOp, Reference>> cases = {
      {ExprOp::kAdd, [](auto x, auto y) { return x + y; }},
      {ExprOp::kSub, [](auto x, auto y) { return x - y; }},
      {ExprOp::kMul,
       [](auto x, auto y) {
         return static_cast<__int128>(static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(y));
       }},
      {ExprOp::kFloorDiv, FloorDivide},
      {ExprOp::kFloorMod, [](auto x, auto y) { return y == 0 ? 0 : x - FloorDivide(x, y) * y; }},
      {ExprOp::kBitAnd, [](auto x, auto y) { return x & y; }},
      {ExprOp::kBitOr, [](auto x, auto y) { return x | y; }},
      {ExprOp::kBitXor, [](auto x, auto y) { return x ^ y; }},
      {ExprOp::kMin, [](auto x, auto y) { return x < y ? x : y; }},
      {ExprOp::kMax, [](auto x, auto y) { return x > y ? x : y; }},
      {ExprOp::kShl,
       [&](auto x, auto y) -> __int128 {
         return y < 0 || y >= bits ? 0 : static_cast<__int128>(static_cast<unsigned __int128>(x) << y);
       }},
      {ExprOp::kShr, [&](auto x, auto y) -> __int128 { return y < 0 || y >= bits ? (x < 0 ? -1 : 0) : x >> y; }},
      {ExprOp::kLt, [](auto x, auto y) { return x < y; }},
      {ExprOp::kLe, [](auto x, auto y) { return x <= y; }},
      {ExprOp::kGt, [](auto x, auto y) { return x > y; }},
      {ExprOp::kGe, [](auto x, auto y) { return x >= y; }},
      {ExprOp::kEq, [](auto x, auto y) { return x == y; }},
      {ExprOp::kNe, [](auto x, auto y) { return x != y; }}};
  for (const auto& [op, reference] : cases) {
    const DType result = IsComparison(op) ? DType::kBool : type;
    const Array y = Map(result, {&a, &b}, [&, op = op](ProgramBuilder&, std::vector<Val> x) { return Call(op, x[0], x[1]); });
    for (int64_t k = 0; k < y.size(); ++k) {
      const __int128 exact = reference(Wide(type, a.Int(k)), Wide(type, b.Int(k)));
      const int64_t expected = IsComparison(op) ? static_cast<int64_t>(exact) : Reduce(type, exact);
      ASSERT_EQ(y.Int(k), expected) << a.Int(k) << " " << ExprOpText(op) << " " << b.Int(k);
    }
  }
  const std::vector<std::pair<ExprOp, std::function<__int128(__int128)>>> unary = {
      {ExprOp::kNeg, [](auto x) { return -x; }},
      {ExprOp::kAbs, [](auto x) { return x < 0 ? -x : x; }},
      {ExprOp::kBitNot, [](auto x) { return ~x; }},
      {ExprOp::kPopcount, [&](auto x) {
         __int128 count = 0;
         for (int bit = 0; bit < bits; ++bit) count += static_cast<int>(x >> bit & 1);
         return count;
       }}};
  for (const auto& [op, reference] : unary) {
    const Array y =
        Map(type, {&a}, [&, op = op](ProgramBuilder& builder, std::vector<Val> x) { return builder.Cast(Call(op, x[0]), type); });
    for (int64_t k = 0; k < y.size(); ++k)
      ASSERT_EQ(y.Int(k), Reduce(type, reference(Wide(type, a.Int(k))))) << ExprOpText(op) << " " << a.Int(k);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, IntOps,
                         testing::Values(DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kUInt8, DType::kUInt16,
                                         DType::kUInt32, DType::kUInt64),
                         [](const auto& info) { return std::string(DTypeName(info.param)); });

TEST(ExecutorExpr, IndexNeverWraps) {
  Array a(DType::kInt64, {3}), b(DType::kInt64, {3});
  const int64_t left[] = {int64_t{3} << 40, -(int64_t{1} << 62), 7}, right[] = {1000003, 3, -2};
  for (int k = 0; k < 3; ++k) {
    a.SetInt(k, left[k]);
    b.SetInt(k, right[k]);
  }
  const auto index = [](ProgramBuilder& builder, Val v) { return builder.Cast(v, DType::kIndex); };
  Array y = Map(DType::kInt64, {&a, &b},
                [&](ProgramBuilder& g, std::vector<Val> x) { return FloorDiv(index(g, x[0]) * index(g, x[1]), index(g, x[1])); });
  EXPECT_EQ(y.Int(0), left[0]);
  EXPECT_LT(y.Int(1), 0);  // the product left 64 bits: whatever it is, it did not wrap around
  EXPECT_EQ(y.Int(2), 7);
  y = Map(DType::kInt64, {&a, &b},
          [&](ProgramBuilder& g, std::vector<Val> x) { return FloorDiv(index(g, x[0]), index(g, x[1])); });
  EXPECT_EQ(y.Int(2), -4);
}

TEST(ExecutorExpr, CastsEveryPairOfTypes) {
  for (uint32_t from = 1; from <= 15; ++from) {
    for (uint32_t to = 1; to <= 15; ++to) {
      const DType a_type = static_cast<DType>(from), b_type = static_cast<DType>(to);
      Array a(a_type, {300});
      a.Random(from * 16 + to, IsFloat(a_type) ? -1000 : 0, IsFloat(a_type) ? 1000 : 1);
      if (IsFloat(a_type)) {
        a.Set(0, kNan);
        a.Set(1, -kInf);
        a.Set(2, 0.0);
      }
      const Array y = Map(b_type, {&a}, [&](ProgramBuilder& builder, std::vector<Val> x) { return builder.Cast(x[0], b_type); });
      for (int64_t k = 0; k < a.size(); ++k) {
        if (IsFloat(b_type)) {
          ASSERT_TRUE(Same(y[k], a_type == b_type ? a[k] : RoundToType(b_type, a[k])))
              << DTypeName(a_type) << " to " << DTypeName(b_type) << ": " << a[k];
        } else {
          ASSERT_EQ(y.Int(k), IsFloat(a_type) ? FloatToInt(a[k], b_type) : a.Int(k))
              << DTypeName(a_type) << " to " << DTypeName(b_type) << ": " << a[k];
        }
      }
    }
  }
}

TEST(ExecutorExpr, ReinterpretKeepsBits) {
  Array a(DType::kInt32, {65536});
  for (int64_t k = 0; k < 65536; ++k) a.SetInt(k, k << 15);
  const Array y =
      Map(DType::kFloat32, {&a}, [](ProgramBuilder& b, std::vector<Val> x) { return b.Reinterpret(x[0], DType::kFloat32); });
  for (int64_t k = 0; k < 65536; ++k)
    ASSERT_TRUE(Same(y[k], static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(k << 15)))));
  Array h(DType::kFloat16, {2});
  h.Set(0, -1.5);
  h.Set(1, 6e-8);
  const Array u =
      Map(DType::kUInt16, {&h}, [](ProgramBuilder& b, std::vector<Val> x) { return b.Reinterpret(x[0], DType::kUInt16); });
  EXPECT_EQ(u.Int(0), 0xbe00);
  EXPECT_EQ(u.Int(1), 1);
}

TEST(ExecutorExpr, NotANumberAndInfinityPropagate) {
  Array a = Values(DType::kFloat32, {kNan, kInf, -kInf, 1});
  const Array zero = Map(DType::kFloat32, {&a}, [](ProgramBuilder&, std::vector<Val> x) { return x[0] * 0.0; });
  EXPECT_TRUE(std::isnan(zero[0]) && std::isnan(zero[1]) && std::isnan(zero[2]));
  EXPECT_EQ(zero[3], 0);
  const Array same = Map(DType::kFloat32, {&a}, [](ProgramBuilder&, std::vector<Val> x) { return x[0] - x[0]; });
  EXPECT_TRUE(std::isnan(same[1]));
  EXPECT_EQ(same[3], 0);
}

TEST(ExecutorExpr, OnlyTheChosenOperandIsRead) {
  // Unwritten elements are reported only when they are needed.
  ProgramBuilder b("lazy");
  Buf Y = b.Tensor("Y", DType::kFloat32, {8}, Access::kOut);
  Buf Z = b.Tensor("Z", DType::kBool, {8}, Access::kOut);
  b.Launch<1>("main", {1}, 32);
  Buf s = b.Shared("s", DType::kFloat32, {8});
  b.Fill(s.At({0}, {4}), 2.5);
  Val i = b.OpenParallel({"i"}, {8})[0];
  b.Store(Y, {i}, b.Select(i < 4, s(i), b.Select(i >= 6, s(i - 6), b.Float(1, DType::kFloat32))));
  b.Store(Z, {i}, Or(And(i<4, s(i)> 1.0), i == 7));
  b.Close();
  b.Close();
  Array y(DType::kFloat32, {8}), z(DType::kBool, {8});
  ExpectRuns(Built(b), {&y, &z});
  const double expected[] = {2.5, 2.5, 2.5, 2.5, 1, 1, 2.5, 2.5};
  for (int k = 0; k < 8; ++k) {
    EXPECT_EQ(y[k], expected[k]) << k;
    EXPECT_EQ(z.Int(k), k < 4 || k == 7) << k;
  }
}

}  // namespace
}  // namespace tilert
