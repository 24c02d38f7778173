// Conversions against a slow reference: a table of every value of a format, built with ldexp, and nearest-value search in it.
#include "ir/numeric.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "ir/int_math.h"

namespace tilert {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Spec {
  DType type;
  int exponent_bits, mantissa_bits;
  bool ieee;      // the top exponent is infinity and NaN
  bool saturate;  // conversions never give infinity
};
const Spec kSpecs[] = {{DType::kFloat16, 5, 10, true, false},
                       {DType::kBFloat16, 8, 7, true, false},
                       {DType::kFloat8E4M3, 4, 3, false, true},
                       {DType::kFloat8E5M2, 5, 2, true, true}};

double ReferenceDecode(const Spec& spec, uint32_t code) {
  const int bits = 1 + spec.exponent_bits + spec.mantissa_bits;
  const uint32_t mantissa = code % (1u << spec.mantissa_bits);
  const uint32_t exponent = (code >> spec.mantissa_bits) % (1u << spec.exponent_bits);
  const double sign = code >> (bits - 1) ? -1.0 : 1.0;
  const int bias = (1 << (spec.exponent_bits - 1)) - 1;
  const uint32_t top = (1u << spec.exponent_bits) - 1;
  if (exponent == top && spec.ieee) return mantissa ? kNan : sign * kInf;
  if (exponent == top && !spec.ieee && mantissa == (1u << spec.mantissa_bits) - 1) return kNan;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - spec.mantissa_bits);
  return sign * std::ldexp(1.0 + std::ldexp(mantissa, -spec.mantissa_bits), static_cast<int>(exponent) - bias);
}

// Non-negative finite values in order; the index is the code.
std::vector<double> Magnitudes(const Spec& spec) {
  std::vector<double> values;
  for (uint32_t code = 0; std::isfinite(ReferenceDecode(spec, code)); ++code) values.push_back(ReferenceDecode(spec, code));
  return values;
}

double ReferenceRound(const Spec& spec, const std::vector<double>& values, double x) {
  if (std::isnan(x)) return x;
  const double a = std::fabs(x), max = values.back();
  const double step = max - values[values.size() - 2];
  double result;
  if (a >= max) {
    result = spec.saturate || a < max + step / 2 ? max : kInf;
  } else {
    const size_t above = static_cast<size_t>(std::upper_bound(values.begin(), values.end(), a) - values.begin());
    const double middle = (values[above - 1] + values[above]) / 2;
    const bool up = a > middle || (a == middle && (above - 1) % 2 == 1);
    result = up ? values[above] : values[above - 1];
  }
  return std::copysign(result, x);
}

bool Same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

class NarrowFloat : public testing::TestWithParam<Spec> {};

TEST_P(NarrowFloat, DecodesEveryCode) {
  const uint32_t codes = 1u << DTypeBits(GetParam().type);
  for (uint32_t code = 0; code < codes; ++code) {
    ASSERT_TRUE(Same(DecodeFloat(GetParam().type, code), ReferenceDecode(GetParam(), code))) << code;
  }
}

TEST_P(NarrowFloat, EveryCodeSurvivesARoundTrip) {
  const Spec& spec = GetParam();
  const uint32_t codes = 1u << DTypeBits(spec.type);
  for (uint32_t code = 0; code < codes; ++code) {
    const double value = DecodeFloat(spec.type, code);
    if (std::isnan(value)) {
      EXPECT_EQ(EncodeFloat(spec.type, value), codes / 2 - 1);
    } else {
      ASSERT_EQ(EncodeFloat(spec.type, value), code);
    }
  }
}

TEST_P(NarrowFloat, RoundsToNearestEven) {
  const Spec& spec = GetParam();
  const std::vector<double> values = Magnitudes(spec);
  const auto check = [&](double x) {
    for (double signed_x : {x, -x}) {
      const double expected = ReferenceRound(spec, values, signed_x);
      ASSERT_TRUE(Same(RoundToType(spec.type, signed_x), expected)) << signed_x;
      const double coded = std::isinf(x) && spec.ieee ? signed_x : expected;  // infinity is a value: only conversions saturate it
      ASSERT_TRUE(Same(DecodeFloat(spec.type, EncodeFloat(spec.type, signed_x)), coded)) << signed_x;
    }
  };
  for (size_t k = 0; k + 1 < values.size(); ++k) {
    const double middle = (values[k] + values[k + 1]) / 2;
    for (double x : {values[k], middle, std::nextafter(middle, 0), std::nextafter(middle, kInf)}) check(x);
  }
  const double max = values.back(), edge = max + (max - values[values.size() - 2]) / 2;
  for (double x : {max, edge, std::nextafter(edge, 0), std::nextafter(edge, kInf), 2 * max, 1e300, kInf, kNan, 5e-324}) check(x);
  std::mt19937_64 random(7);
  for (int k = 0; k < 100000; ++k)
    check(std::ldexp(1.0 + std::ldexp(static_cast<double>(random() >> 12), -52), static_cast<int>(random() % 300) - 160));
}

TEST_P(NarrowFloat, KnowsItsLimits) {
  EXPECT_EQ(MaxFinite(GetParam().type), Magnitudes(GetParam()).back());
  EXPECT_EQ(HasInfinity(GetParam().type), GetParam().ieee);
}

INSTANTIATE_TEST_SUITE_P(Types, NarrowFloat, testing::ValuesIn(kSpecs),
                         [](const auto& info) { return std::string(DTypeName(info.param.type)); });

TEST(Numeric, KnownCodes) {
  EXPECT_EQ(EncodeFloat(DType::kFloat16, 1.0), 0x3c00u);
  EXPECT_EQ(EncodeFloat(DType::kBFloat16, -2.0), 0xc000u);
  EXPECT_EQ(EncodeFloat(DType::kFloat8E4M3, 448.0), 0x7eu);
  EXPECT_EQ(EncodeFloat(DType::kFloat8E4M3, 1e9), 0x7eu);
  EXPECT_EQ(EncodeFloat(DType::kFloat8E4M3, kInf), 0x7eu);
  EXPECT_EQ(EncodeFloat(DType::kFloat8E5M2, -1e9), 0xfbu);
  EXPECT_EQ(EncodeFloat(DType::kFloat8E5M2, -kInf), 0xfcu);
  EXPECT_EQ(EncodeFloat(DType::kFloat16, kInf), 0x7c00u);
  EXPECT_EQ(EncodeFloat(DType::kBFloat16, kNan), 0x7fffu);
  EXPECT_EQ(EncodeFloat(DType::kFloat32, -0.0), 0x80000000u);
}

TEST(Numeric, IntegersRoundOnceToFloats) {
  // 2^60 + 2^52 is the middle of two bfloat16 values; one more must go up, and does not if double rounds first.
  const int64_t middle = (int64_t{1} << 60) + (int64_t{1} << 52);
  EXPECT_EQ(IntToFloat(DType::kInt64, middle, DType::kBFloat16), 0x1p60);
  EXPECT_EQ(IntToFloat(DType::kInt64, middle + 1, DType::kBFloat16), 0x1p60 + 0x1p53);
  EXPECT_EQ(IntToFloat(DType::kInt64, -middle - 1, DType::kBFloat16), -(0x1p60 + 0x1p53));
  EXPECT_EQ(IntToFloat(DType::kUInt64, -1, DType::kFloat32), 0x1p64);
  EXPECT_EQ(IntToFloat(DType::kUInt64, -1, DType::kFloat16), kInf);
  EXPECT_EQ(IntToFloat(DType::kUInt64, -1, DType::kFloat8E5M2), 57344);
  EXPECT_EQ(IntToFloat(DType::kInt32, 16777217, DType::kFloat32), 16777216);
  EXPECT_EQ(IntToFloat(DType::kInt64, INT64_MIN, DType::kFloat64), -0x1p63);
}

TEST(Numeric, FloatsTruncateAndSaturateToIntegers) {
  EXPECT_EQ(FloatToInt(-1.9, DType::kInt32), -1);
  EXPECT_EQ(FloatToInt(kNan, DType::kInt64), 0);
  EXPECT_EQ(FloatToInt(1e30, DType::kInt64), INT64_MAX);
  EXPECT_EQ(FloatToInt(-kInf, DType::kInt8), -128);
  EXPECT_EQ(FloatToInt(300, DType::kUInt8), 255);
  EXPECT_EQ(FloatToInt(-5, DType::kUInt32), 0);
  EXPECT_EQ(FloatToInt(0x1p63, DType::kUInt64), INT64_MIN);
  EXPECT_EQ(FloatToInt(1e30, DType::kUInt64), -1);
  EXPECT_EQ(FloatToInt(kNan, DType::kBool), 1);
  EXPECT_EQ(FloatToInt(-0.0, DType::kBool), 0);
  EXPECT_EQ(FloatToInt(0.25, DType::kBool), 1);
}

TEST(Numeric, RangesOfIntegers) {
  EXPECT_EQ(MinInt(DType::kInt16), -32768);
  EXPECT_EQ(MaxInt(DType::kUInt16), 65535);
  EXPECT_EQ(MaxInt(DType::kInt64), INT64_MAX);
  EXPECT_EQ(MinInt(DType::kIndex), INT64_MIN);
  EXPECT_EQ(MaxInt(DType::kUInt64), -1);
  EXPECT_EQ(MaxInt(DType::kBool), 1);
}

TEST(Numeric, CastsBetweenEveryPairOfTypesAgreeOnSmallValues) {
  for (uint32_t from = 2; from <= 16; ++from) {
    for (uint32_t to = 2; to <= 16; ++to) {
      const DType a = static_cast<DType>(from), b = static_cast<DType>(to);
      Value v;
      if (IsFloat(a)) {
        v.f = 12;
      } else {
        v.i = 12;
      }
      const Value w = ConvertValue(v, a, b);
      EXPECT_EQ(IsFloat(b) ? w.f : static_cast<double>(w.i), 12.0) << DTypeName(a) << " to " << DTypeName(b);
    }
  }
  EXPECT_EQ(ConvertValue({.i = 300}, DType::kInt32, DType::kUInt8).i, 44);
  EXPECT_EQ(ConvertValue({.i = -1}, DType::kInt8, DType::kUInt16).i, 65535);
  EXPECT_EQ(ConvertValue({.i = 256}, DType::kInt32, DType::kBool).i, 1);
  EXPECT_EQ(ConvertValue({.f = kInf}, DType::kFloat32, DType::kFloat8E4M3).f, 448);
}

TEST(Numeric, RowsOfEveryTypeWithStrides) {
  for (uint32_t raw = 1; raw <= 16; ++raw) {
    const DType type = static_cast<DType>(raw);
    std::vector<char> memory(8 * 30, 0x55);
    Value in[5], out[5];
    for (int k = 0; k < 5; ++k) {
      if (IsFloat(type)) {
        in[k].f = k - 2;
      } else {
        in[k].i = WrapInt(type == DType::kBool ? k % 2 : k - 2, type);
      }
    }
    const int64_t size = DTypeBytes(type);
    StoreRow(type, in, 5, memory.data() + 12 * size, -3);
    LoadRow(type, memory.data() + 12 * size, -3, 5, out);
    for (int k = 0; k < 5; ++k) EXPECT_EQ(in[k].i, out[k].i) << DTypeName(type) << " " << k;
    for (int64_t k = 0; k < 240; ++k) {
      const bool written = k / size % 3 == 0 && k / size <= 12;
      ASSERT_TRUE(written || memory[static_cast<size_t>(k)] == 0x55) << DTypeName(type) << " " << k;
    }
  }
}

}  // namespace
}  // namespace tilert
