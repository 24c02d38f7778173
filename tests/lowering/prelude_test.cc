// The prelude's arithmetic that is plain C++, run on the host against the specification's numbers (ir/numeric.h, ir/int_math.h).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "ir/int_math.h"
#include "ir/numeric.h"

#define HOST_CUDA_ARITHMETIC_ONLY
namespace device {
#include "host_cuda.h"
using ::expf, ::fabsf, ::fmaxf, ::fminf;
using ::copysignf;
using std::fabs, std::fmax, std::fmin, std::exp;
#include "lowering/prelude/base.cuh"
#include "lowering/prelude/types.cuh"
#include "lowering/prelude/fp8.cuh"
#include "lowering/prelude/convert.cuh"
#include "lowering/prelude/math.cuh"
#include "lowering/prelude/grid.cuh"
}  // namespace device

namespace tilert {
namespace {

template <typename T>
std::vector<T> Integers(std::mt19937_64& random) {
  std::vector<T> values = {0, 1, 2, 3, 7, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
  for (int below_zero : {-1, -2, -7}) values.push_back(static_cast<T>(below_zero));
  for (int i = 0; i < 60; ++i) values.push_back(static_cast<T>(random() >> random() % 60));
  return values;
}

template <typename T>
void CheckDivisions(DType type) {
  std::mt19937_64 random(3);
  for (T a : Integers<T>(random)) {
    for (T b : Integers<T>(random)) {
      if constexpr (std::is_signed_v<T>) {
        EXPECT_EQ(device::floor_div(a, b), static_cast<T>(FloorDivInt(a, b))) << a << " // " << b;
        EXPECT_EQ(device::floor_mod(a, b), static_cast<T>(FloorModInt(a, b))) << a << " % " << b;
        EXPECT_EQ(device::wrap_mul(a, b),
                  static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) * static_cast<std::make_unsigned_t<T>>(b)));
      } else {
        EXPECT_EQ(device::floor_div(a, b), b == 0 ? 0 : a / b);
        EXPECT_EQ(device::floor_mod(a, b), b == 0 ? 0 : a % b);
      }
      constexpr int kBits = 8 * sizeof(T);
      const bool in_range = b >= 0 && static_cast<uint64_t>(b) < kBits;
      EXPECT_EQ(device::shift_left<kBits>(a, b), in_range ? static_cast<T>(static_cast<uint64_t>(a) << b) : 0)
          << a << " << " << b;
      EXPECT_EQ(device::shift_right<kBits>(a, b), in_range ? static_cast<T>(a >> b)
                                                  : a < 0  ? static_cast<T>(-1)
                                                           : 0)
          << a << " >> " << b;
    }
  }
  (void)type;
}

// Numbers of 64 bits that are known to fit 32 are kept in 32: they may still be shifted by more.
TEST(Prelude, WideShiftsOfNarrowRegisters) {
  for (const int a : {0, 1, 37, 100000, INT32_MAX, -1, -2, INT32_MIN}) {
    for (const int n : {0, 1, 5, 31, 32, 37, 63, 64, 1000, -1}) {
      EXPECT_EQ(device::shift_right<64>(a, n), n >= 0 && n < 64 ? static_cast<int>(static_cast<int64_t>(a) >> n) : a < 0 ? -1 : 0)
          << a << " >> " << n;
    }
  }
}

TEST(Prelude, IntegerArithmetic) {
  CheckDivisions<int>(DType::kInt32);
  CheckDivisions<long long>(DType::kInt64);
  CheckDivisions<unsigned>(DType::kUInt32);
  CheckDivisions<unsigned long long>(DType::kUInt64);
}

std::vector<float> Floats() {
  std::mt19937 random(5);
  std::vector<float> values = {0.f,     -0.f,    INFINITY, -INFINITY, NAN,     448.f,    449.f,      464.f,    465.f,
                               57344.f, 61439.f, 61440.f,  1e9f,      0x1p-9f, 0x1p-10f, 0x1.8p-10f, 0x1p-17f, 0x1.8p-17f};
  for (int i = 0; i < 20000; ++i) {
    const float mantissa = 1 + static_cast<float>(random() % 4096) / 4096;
    values.push_back(std::ldexp(random() & 1 ? mantissa : -mantissa, static_cast<int>(random() % 40) - 22));
  }
  return values;
}

bool IsNanCode(DType type, uint64_t code) { return std::isnan(DecodeFloat(type, code)); }

TEST(Prelude, SoftwareFp8) {
  for (float x : Floats()) {
    const uint32_t e4m3 = device::Packed<device::e4m3>::code(x),
                   e5m2 = device::Packed<device::e5m2>::code(device::cast<device::e5m2>(x));
    if (std::isnan(x)) {
      EXPECT_TRUE(IsNanCode(DType::kFloat8E4M3, e4m3));
      EXPECT_TRUE(IsNanCode(DType::kFloat8E5M2, e5m2));
      continue;
    }
    ASSERT_EQ(e4m3, EncodeFloat(DType::kFloat8E4M3, x)) << x;
    ASSERT_EQ(e5m2, EncodeFloat(DType::kFloat8E5M2, RoundToType(DType::kFloat8E5M2, x))) << x;
  }
  for (uint32_t code = 0; code < 256; ++code) {
    const double expected = DecodeFloat(DType::kFloat8E4M3, code);
    const float got = device::Packed<device::e4m3>::value(code | 0xabcdef00u);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got));
    } else {
      EXPECT_EQ(got, expected) << code;
    }
  }
}

// Rounding the odd float gives what rounding once would.
TEST(Prelude, RoundingToOddComposes) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 100000; ++i) {
    const int64_t wide = static_cast<int64_t>(random()) >> random() % 63;
    const int narrow = static_cast<int>(random()) >> random() % 31;
    ASSERT_EQ(RoundToType(DType::kBFloat16, device::odd(static_cast<long long>(wide))),
              IntToFloat(DType::kInt64, wide, DType::kBFloat16))
        << wide;
    ASSERT_EQ(RoundToType(DType::kBFloat16, device::odd(narrow)), IntToFloat(DType::kInt32, narrow, DType::kBFloat16)) << narrow;
    const double x = std::ldexp(static_cast<double>(static_cast<int64_t>(random())), static_cast<int>(random() % 80) - 100);
    ASSERT_EQ(RoundToType(DType::kFloat16, device::odd(x)), RoundToType(DType::kFloat16, x)) << x;
    ASSERT_EQ(RoundToType(DType::kBFloat16, device::odd(x)), RoundToType(DType::kBFloat16, x)) << x;
  }
}

template <typename T, typename F>
void CheckSaturation(DType type, F x) {
  EXPECT_EQ(static_cast<int64_t>(device::saturated<T>(x)), FloatToInt(x, type)) << x;
}
TEST(Prelude, FloatToInteger) {
  constexpr double kNan = NAN, kInfinity = INFINITY;
  for (double x : {0.0, 0.9, -0.9, 127.5, 128.0, -128.9, -129.0, 255.9, 256.0, 65535.5, 70000.0, -70000.0, 2147483647.0,
                   2147483648.0, -2147483649.0, 4294967295.0, 4294967296.0, 1e30, -1e30, kNan, kInfinity}) {
    CheckSaturation<device::i8>(DType::kInt8, x);
    CheckSaturation<device::u8>(DType::kUInt8, x);
    CheckSaturation<device::i16>(DType::kInt16, x);
    CheckSaturation<device::u16>(DType::kUInt16, x);
    CheckSaturation<int>(DType::kInt32, x);
    CheckSaturation<device::u32>(DType::kUInt32, x);
    CheckSaturation<long long>(DType::kInt64, x);
    CheckSaturation<unsigned long long>(DType::kUInt64, x);
    CheckSaturation<device::u8>(DType::kUInt8, static_cast<float>(x));
    CheckSaturation<int>(DType::kInt32, static_cast<float>(x));
  }
}

template <typename T, typename Word>
void CheckPacking() {
  constexpr int kEach = device::Packed<T>::kEach;
  std::mt19937 random(1);
  unsigned words[2] = {static_cast<unsigned>(random()), static_cast<unsigned>(random())};
  Word expected[2 * kEach];
  std::memcpy(expected, words, 8);
  for (int r = 0; r < 2 * kEach; ++r) {
    const Word bits = static_cast<Word>(random());
    T x;
    std::memcpy(&x, &bits, sizeof x);
    device::place<T>(words, r, x);
    expected[r] = bits;
    EXPECT_EQ(std::memcmp(expected, words, 8), 0) << r;
    const T back = device::pick<T>(words, r);
    EXPECT_EQ(std::memcmp(&back, &bits, sizeof x), 0) << r;
  }
}
TEST(Prelude, Packing) {
  CheckPacking<device::bf16, uint16_t>();
  CheckPacking<device::i16, uint16_t>();
  CheckPacking<device::u8, uint8_t>();
  CheckPacking<device::e4m3, uint8_t>();
  unsigned words[1] = {0};
  device::set<device::i8>(words, 2, -5);
  EXPECT_EQ(words[0], 0xfb0000u);
  EXPECT_EQ(device::get<device::i8>(words, 2), -5);
}

// Down a column of the panel, then the next; panels alternate in direction.
TEST(Prelude, RasterOrder) {
  for (uint32_t panel : {1u, 2u, 4u, 16u}) {
    for (uint32_t height = 1; height <= 36; ++height) {
      for (uint32_t width : {1u, 2u, 3u, 7u, 16u}) {
        uint32_t block = 0;
        for (uint32_t first = 0; first < height; first += panel) {
          const uint32_t rows = std::min(panel, height - first);
          for (uint32_t column = 0; column < width; ++column) {
            for (uint32_t row = 0; row < rows; ++row) {
              int x = -1, y = -1;
              device::raster(block++, width, height, panel, x, y);
              const uint32_t from_left = first / panel % 2 == 0 ? column : width - 1 - column;
              ASSERT_EQ(x, static_cast<int>(from_left)) << panel << " " << height << " " << width << " " << block;
              ASSERT_EQ(y, static_cast<int>(first + row)) << panel << " " << height << " " << width << " " << block;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilert
