#include "tools/random_array.h"

#include <algorithm>
#include <cmath>

#include "ir/numeric.h"

namespace tilert::tool {
namespace {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // In (0, 1].
  double Unit() { return static_cast<double>((Next() >> 11) + 1) * 0x1p-53; }
  // Box and Muller, one of the pair.
  double Normal() {
    const double radius = std::sqrt(-2 * std::log(Unit()));
    return radius * std::cos(2 * M_PI * Unit());
  }

 private:
  uint64_t state_;
};

}  // namespace

void FillRandom(uint64_t seed, Array* array) {
  constexpr int64_t kRow = 4096;
  Random random(seed);
  const int64_t n = array->elements();
  std::vector<Value> row(static_cast<size_t>(std::min(n, kRow)));
  for (int64_t begin = 0; begin < n; begin += kRow) {
    const int64_t count = std::min(kRow, n - begin);
    for (int64_t i = 0; i < count; ++i) {
      if (IsFloat(array->dtype)) {
        row[static_cast<size_t>(i)].f = RoundToType(array->dtype, random.Normal());
      } else {
        row[static_cast<size_t>(i)].i = static_cast<int64_t>(random.Next() >> (array->dtype == DType::kBool ? 63 : 60));
      }
    }
    StoreRow(array->dtype, row.data(), count, array->bytes.data() + begin * DTypeBytes(array->dtype), 1);
  }
}

void FillPoison(Array* array) {
  // 0xff… is a NaN in float8_e4m3, float8_e5m2 and every wider type. A bool must stay 0 or 1.
  std::fill(array->bytes.begin(), array->bytes.end(), static_cast<uint8_t>(array->dtype == DType::kBool ? 1 : 0xff));
}

}  // namespace tilert::tool
