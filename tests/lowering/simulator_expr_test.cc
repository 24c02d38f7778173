// Every operator of the simulator, on random and on awkward operands, against C++ arithmetic of the type itself.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>

#include "gtest/gtest.h"
#include "lowering/simulator/expr_code.h"

namespace tilert {
namespace {

using sim::EvalOp;
using sim::Instr;

template <typename T>
Value ToValue(T x) {
  Value value;
  if constexpr (std::is_floating_point_v<T>) {
    value.f = x;
  } else {
    value.i = static_cast<int64_t>(x);
  }
  return value;
}

Value Eval(ExprOp op, DType type, DType result, Value a, Value b, Value c = {.i = 0}) {
  Value out;
  EvalOp(Instr{.op = op, .type = type, .result = result}, &a, &b, &c, &out, 1);
  return out;
}

template <typename T>
std::vector<T> Samples(std::mt19937_64& random) {
  std::vector<T> samples = {T(0), T(1), T(2), T(7), std::numeric_limits<T>::max(), std::numeric_limits<T>::lowest()};
  if constexpr (std::is_signed_v<T>) samples.insert(samples.end(), {T(-1), T(-2), T(-7)});
  for (int i = 0; i < 12; ++i) {
    const uint64_t bits = random();
    samples.push_back(std::is_floating_point_v<T> ? T(static_cast<double>(bits % 4000) / 64 - 30)
                                                  : static_cast<T>(bits >> (bits % 60)));
  }
  return samples;
}

template <typename T>
void CheckIntegers(DType type) {
  std::mt19937_64 random(type == DType::kBool ? 1 : static_cast<uint64_t>(type));
  using U = std::make_unsigned_t<T>;
  constexpr int kBits = std::numeric_limits<U>::digits;
  const auto wide = [](T x) { return static_cast<__int128>(x); };
  for (T a : Samples<T>(random)) {
    for (T b : Samples<T>(random)) {
      const auto expect = [&](ExprOp op, __int128 exact) {
        ASSERT_EQ(Eval(op, type, type, ToValue(a), ToValue(b)).i, static_cast<int64_t>(static_cast<T>(exact)))
            << ExprOpText(op) << " " << int64_t(a) << " " << int64_t(b);
      };
      const auto test = [&](ExprOp op, bool exact) {
        ASSERT_EQ(Eval(op, type, DType::kBool, ToValue(a), ToValue(b)).i, exact) << ExprOpText(op);
      };
      expect(ExprOp::kAdd, wide(a) + wide(b));
      expect(ExprOp::kSub, wide(a) - wide(b));
      expect(ExprOp::kMul, wide(a) * wide(b));
      __int128 quotient = 0, remainder = 0;
      if (b != 0) {
        quotient = wide(a) / wide(b);
        if (quotient * wide(b) != wide(a) && (a < 0) != (b < 0)) --quotient;
        remainder = wide(a) - quotient * wide(b);
      }
      expect(ExprOp::kFloorDiv, quotient);
      expect(ExprOp::kFloorMod, remainder);
      expect(ExprOp::kBitAnd, static_cast<T>(a & b));
      expect(ExprOp::kBitOr, static_cast<T>(a | b));
      expect(ExprOp::kBitXor, static_cast<T>(a ^ b));
      expect(ExprOp::kMin, a < b ? a : b);
      expect(ExprOp::kMax, a > b ? a : b);
      const bool in_range = b >= 0 && static_cast<U>(b) < kBits;
      expect(ExprOp::kShl, in_range ? static_cast<U>(static_cast<U>(a) << b) : U(0));
      expect(ExprOp::kShr, in_range ? static_cast<T>(a >> b) : (a < 0 ? T(-1) : T(0)));
      test(ExprOp::kLt, a < b);
      test(ExprOp::kLe, a <= b);
      test(ExprOp::kGt, a > b);
      test(ExprOp::kGe, a >= b);
      test(ExprOp::kEq, a == b);
      test(ExprOp::kNe, a != b);
    }
    ASSERT_EQ(Eval(ExprOp::kNeg, type, type, ToValue(a), {}).i, static_cast<int64_t>(static_cast<T>(-wide(a))));
    ASSERT_EQ(Eval(ExprOp::kAbs, type, type, ToValue(a), {}).i, static_cast<int64_t>(static_cast<T>(a < 0 ? -wide(a) : wide(a))));
    ASSERT_EQ(Eval(ExprOp::kBitNot, type, type, ToValue(a), {}).i, static_cast<int64_t>(static_cast<T>(~a)));
    ASSERT_EQ(Eval(ExprOp::kPopcount, type, type, ToValue(a), {}).i, __builtin_popcountll(static_cast<U>(a)));
  }
}

TEST(SimulatorExpr, Integers) {
  CheckIntegers<int8_t>(DType::kInt8);
  CheckIntegers<int16_t>(DType::kInt16);
  CheckIntegers<int32_t>(DType::kInt32);
  CheckIntegers<int64_t>(DType::kInt64);
  CheckIntegers<uint8_t>(DType::kUInt8);
  CheckIntegers<uint16_t>(DType::kUInt16);
  CheckIntegers<uint32_t>(DType::kUInt32);
  CheckIntegers<uint64_t>(DType::kUInt64);
}

void ExpectSame(double got, double expected, const char* what) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(got)) << what;
  } else {
    EXPECT_EQ(got, expected) << what;
    EXPECT_EQ(std::signbit(got), std::signbit(expected)) << what;
  }
}

TEST(SimulatorExpr, Float32) {
  std::mt19937_64 random(3);
  std::vector<float> samples = Samples<float>(random);
  samples.insert(samples.end(),
                 {-0.0f, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), std::nanf(""), 1e-42f});
  for (float a : samples) {
    for (float b : samples) {
      const auto run = [&](ExprOp op) {
        return Eval(op, DType::kFloat32, DType::kFloat32, ToValue(a), ToValue(b), ToValue(0.3f)).f;
      };
      ExpectSame(run(ExprOp::kAdd), a + b, "+");
      ExpectSame(run(ExprOp::kSub), a - b, "-");
      ExpectSame(run(ExprOp::kMul), a * b, "*");
      ExpectSame(run(ExprOp::kDiv), a / b, "/");
      ExpectSame(run(ExprOp::kFma), std::fma(a, b, 0.3f), "fma");
      const bool nan = std::isnan(a) || std::isnan(b);
      const float less = a == b ? (std::signbit(a) ? a : b) : a < b ? a : b;
      const float more = a == b ? (std::signbit(a) ? b : a) : a > b ? a : b;
      ExpectSame(run(ExprOp::kMin), nan ? std::nanf("") : less, "min");
      ExpectSame(run(ExprOp::kMax), nan ? std::nanf("") : more, "max");
      EXPECT_EQ(Eval(ExprOp::kLt, DType::kFloat32, DType::kBool, ToValue(a), ToValue(b)).i, a < b);
      EXPECT_EQ(Eval(ExprOp::kNe, DType::kFloat32, DType::kBool, ToValue(a), ToValue(b)).i, a != b);
    }
    const auto one = [&](ExprOp op) { return Eval(op, DType::kFloat32, DType::kFloat32, ToValue(a), {}).f; };
    ExpectSame(one(ExprOp::kNeg), -a, "neg");
    ExpectSame(one(ExprOp::kAbs), std::fabs(a), "abs");
    ExpectSame(one(ExprOp::kSqrt), std::sqrt(a), "sqrt");
    ExpectSame(one(ExprOp::kFloor), std::floor(a), "floor");
    ExpectSame(one(ExprOp::kRound), std::nearbyint(a), "round");
    ExpectSame(one(ExprOp::kExp2), static_cast<float>(std::exp2(static_cast<double>(a))), "exp2");
    EXPECT_EQ(Eval(ExprOp::kIsNan, DType::kFloat32, DType::kBool, ToValue(a), {}).i, std::isnan(a));
    EXPECT_EQ(Eval(ExprOp::kIsInf, DType::kFloat32, DType::kBool, ToValue(a), {}).i, std::isinf(a));
  }
}

// bfloat16 by hand: a float32 operation, then round to nearest even on the upper half.
TEST(SimulatorExpr, BFloat16RoundsEveryOperator) {
  const auto rounded = [](float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    std::memcpy(&x, &bits, 4);
    return x;
  };
  std::mt19937_64 random(4);
  for (int i = 0; i < 2000; ++i) {
    const float a = rounded(static_cast<float>(random() % 100000) / 777 - 60),
                b = rounded(static_cast<float>(random() % 100000) / 999 - 50);
    EXPECT_EQ(Eval(ExprOp::kMul, DType::kBFloat16, DType::kBFloat16, ToValue(a), ToValue(b)).f, rounded(a * b));
    EXPECT_EQ(Eval(ExprOp::kAdd, DType::kBFloat16, DType::kBFloat16, ToValue(a), ToValue(b)).f, rounded(a + b));
  }
}

TEST(SimulatorExpr, ConversionsAndBits) {
  EXPECT_EQ(Eval(ExprOp::kCast, DType::kFloat32, DType::kInt8, ToValue(-300.7), {}).i, -128);
  EXPECT_EQ(Eval(ExprOp::kCast, DType::kInt32, DType::kUInt8, ToValue(-1), {}).i, 255);
  EXPECT_EQ(Eval(ExprOp::kReinterpret, DType::kFloat32, DType::kInt32, ToValue(-1.0f), {}).i, static_cast<int32_t>(0xbf800000));
  EXPECT_EQ(Eval(ExprOp::kReinterpret, DType::kUInt16, DType::kBFloat16, ToValue(0x3fc0), {}).f, 1.5);
  EXPECT_EQ(Eval(ExprOp::kSelect, DType::kFloat32, DType::kFloat32, ToValue(1), ToValue(2.5), ToValue(3.5)).f, 2.5);
  EXPECT_EQ(Eval(ExprOp::kAnd, DType::kBool, DType::kBool, ToValue(1), ToValue(0)).i, 0);
  EXPECT_EQ(Eval(ExprOp::kOr, DType::kBool, DType::kBool, ToValue(1), ToValue(0)).i, 1);
}

}  // namespace
}  // namespace tilert
