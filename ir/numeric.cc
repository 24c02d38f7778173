#include "ir/numeric.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace tilert {
namespace {

// A binary float format narrower than double. Codes are sign, exponent, mantissa from the top.
struct Format {
  int bits;
  int mantissa;   // explicit bits
  int min_exp;    // exponent of the smallest normal value
  double max;     // largest finite value
  bool saturate;  // overflow gives ±max instead of infinity
  bool infinity;  // the all-ones exponent means infinity and NaN; otherwise only the all-ones code is NaN
};
constexpr Format kHalf = {16, 10, -14, 65504, false, true};
constexpr Format kBrain = {16, 7, -126, 0x1.FEp127, false, true};
constexpr Format kE4M3 = {8, 3, -6, 448, true, false};
constexpr Format kE5M2 = {8, 2, -14, 57344, true, true};
constexpr double kInf = std::numeric_limits<double>::infinity();

int Exponent(double x) { return static_cast<int>(std::bit_cast<uint64_t>(x) >> 52 & 0x7ff) - 1023; }
double PowerOfTwo(int exponent) { return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52); }

double RoundTo(const Format& format, double x) {
  const double a = std::fabs(x);
  if (std::isnan(x)) return x;
  if (a >= 2 * format.max) return std::copysign(format.saturate ? format.max : kInf, x);
  // a + 2^52 quanta is rounded by the hardware to a whole number of quanta, ties to even.
  const int exponent = std::max(Exponent(a), format.min_exp);
  const double shift = PowerOfTwo(exponent - format.mantissa + 52);
  double rounded = (a + shift) - shift;
  if (rounded > format.max) rounded = format.saturate ? format.max : kInf;
  return std::copysign(rounded, x);
}

uint64_t Encode(const Format& format, double x) {
  const uint64_t exponent_ones = (uint64_t{1} << (format.bits - 1 - format.mantissa)) - 1;
  const uint64_t sign = std::signbit(x) ? uint64_t{1} << (format.bits - 1) : 0;
  if (std::isnan(x)) return (uint64_t{1} << (format.bits - 1)) - 1;
  const double r = std::isinf(x) && format.infinity ? kInf : std::fabs(RoundTo(format, x));
  if (r == kInf) return sign | exponent_ones << format.mantissa;
  if (r < PowerOfTwo(format.min_exp)) {
    return sign | static_cast<uint64_t>(r * PowerOfTwo(format.mantissa - format.min_exp));
  }
  const uint64_t bias = static_cast<uint64_t>(1023 + format.min_exp - 1) << format.mantissa;
  return sign | ((std::bit_cast<uint64_t>(r) >> (52 - format.mantissa)) - bias);
}

double Decode(const Format& format, uint64_t code) {
  const uint64_t mantissa_ones = (uint64_t{1} << format.mantissa) - 1;
  const uint64_t exponent_ones = (uint64_t{1} << (format.bits - 1 - format.mantissa)) - 1;
  const uint64_t mantissa = code & mantissa_ones;
  const uint64_t exponent = code >> format.mantissa & exponent_ones;
  const bool negative = code >> (format.bits - 1) & 1;
  double magnitude;
  if (exponent == exponent_ones && (format.infinity || mantissa == mantissa_ones)) {
    magnitude = format.infinity && mantissa == 0 ? kInf : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = static_cast<double>(mantissa) * PowerOfTwo(format.min_exp - format.mantissa);
  } else {
    const uint64_t biased = exponent + static_cast<uint64_t>(1023 + format.min_exp - 1);
    magnitude = std::bit_cast<double>(biased << 52 | mantissa << (52 - format.mantissa));
  }
  return negative ? -magnitude : magnitude;
}

// Decode of the formats of 8 bits, from a table.
double DecodeByte(DType type, uint64_t code) {
  static const auto tables = [] {
    std::array<std::array<double, 256>, 2> values;
    for (uint64_t c = 0; c < 256; ++c) values[0][c] = Decode(kE4M3, c), values[1][c] = Decode(kE5M2, c);
    return values;
  }();
  return tables[type == DType::kFloat8E5M2][code & 0xff];
}

// As Decode(kHalf, code): its exponent and mantissa as those of a double, then scaled by the difference of the biases.
double DecodeHalf(uint64_t code) {
  if ((code & 0x7c00) == 0x7c00) return Decode(kHalf, code);
  const double magnitude = std::bit_cast<double>((code & 0x7fff) << 42) * 0x1p1008;
  return code & 0x8000 ? -magnitude : magnitude;
}

// Bits of a wide integer that no narrow format can keep are folded into one sticky bit, so that rounding to double first
// does not change how the second rounding falls.
double StickyDouble(DType from, int64_t v) {
  const bool negative = KindOf(from) == DTypeKind::kSigned && v < 0;
  uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
  if (magnitude >> 53) magnitude = (magnitude >> 11 | ((magnitude & 0x7ff) != 0)) << 11;
  const double d = static_cast<double>(magnitude);
  return negative ? -d : d;
}

}  // namespace

double RoundToType(DType type, double x) {
  switch (type) {
    case DType::kFloat16: return RoundTo(kHalf, x);
    case DType::kBFloat16: return RoundTo(kBrain, x);
    case DType::kFloat32: return static_cast<double>(static_cast<float>(x));
    case DType::kFloat8E4M3: return RoundTo(kE4M3, x);
    case DType::kFloat8E5M2: return RoundTo(kE5M2, x);
    default: return x;
  }
}

uint64_t EncodeFloat(DType type, double x) {
  switch (type) {
    case DType::kFloat16: return Encode(kHalf, x);
    case DType::kBFloat16: return Encode(kBrain, x);
    case DType::kFloat32: return std::bit_cast<uint32_t>(static_cast<float>(x));
    case DType::kFloat8E4M3: return Encode(kE4M3, x);
    case DType::kFloat8E5M2: return Encode(kE5M2, x);
    default: return std::bit_cast<uint64_t>(x);
  }
}

double DecodeFloat(DType type, uint64_t code) {
  switch (type) {
    case DType::kFloat16: return DecodeHalf(code);
    case DType::kBFloat16: return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(code & 0xffff) << 16));
    case DType::kFloat32: return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(code)));
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2: return DecodeByte(type, code);
    default: return std::bit_cast<double>(code);
  }
}

double MaxFinite(DType type) {
  switch (type) {
    case DType::kFloat16: return kHalf.max;
    case DType::kBFloat16: return kBrain.max;
    case DType::kFloat32: return std::numeric_limits<float>::max();
    case DType::kFloat8E4M3: return kE4M3.max;
    case DType::kFloat8E5M2: return kE5M2.max;
    default: return std::numeric_limits<double>::max();
  }
}

bool HasInfinity(DType type) { return type != DType::kFloat8E4M3; }

int64_t MinInt(DType type) {
  if (KindOf(type) != DTypeKind::kSigned) return 0;
  return std::numeric_limits<int64_t>::min() >> (64 - DTypeBits(type));
}

int64_t MaxInt(DType type) {
  if (type == DType::kBool) return 1;
  if (KindOf(type) == DTypeKind::kSigned) return std::numeric_limits<int64_t>::max() >> (64 - DTypeBits(type));
  return static_cast<int64_t>(~uint64_t{0} >> (64 - DTypeBits(type)));
}

double IntToFloat(DType from, int64_t v, DType to) {
  const bool is_unsigned = KindOf(from) == DTypeKind::kUnsigned;
  switch (to) {
    case DType::kFloat64: return is_unsigned ? static_cast<double>(static_cast<uint64_t>(v)) : static_cast<double>(v);
    case DType::kFloat32: return is_unsigned ? static_cast<float>(static_cast<uint64_t>(v)) : static_cast<float>(v);
    default: return RoundToType(to, StickyDouble(from, v));
  }
}

int64_t FloatToInt(double x, DType to) {
  if (to == DType::kBool) return x != 0;  // also true for NaN
  if (std::isnan(x)) return 0;
  const double t = std::trunc(x);
  if (to == DType::kUInt64) {
    if (t <= 0) return 0;
    return static_cast<int64_t>(t >= 0x1p64 ? ~uint64_t{0} : static_cast<uint64_t>(t));
  }
  if (t <= static_cast<double>(MinInt(to))) return MinInt(to);
  if (t >= static_cast<double>(MaxInt(to))) return MaxInt(to);
  return static_cast<int64_t>(t);
}

Value ConvertValue(Value v, DType from, DType to) {
  ConvertRow(from, to, &v, 1);
  return v;
}

}  // namespace tilert
