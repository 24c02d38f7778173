#include "ir/int_set.h"

#include <algorithm>

#include "ir/int_math.h"

namespace tilert {
namespace {

constexpr size_t kMaxParts = 4096;
// Beyond this nothing is told apart, so that sums and products of bounds fit 64 bits.
constexpr int64_t kFar = int64_t{1} << 60;

bool IsFar(int64_t value) { return value < -kFar || value > kFar; }

}  // namespace

IntSet IntSet::All() {
  IntSet set;
  set.all_ = true;
  return set;
}

IntSet IntSet::Of(int64_t begin, int64_t end) { return Made({{begin, end}}); }

IntSet IntSet::Steps(int64_t begin, int64_t end, int64_t step) {
  if (step == 1 || begin >= end) return Of(begin, end);
  if (IsFar(begin) || IsFar(end)) return All();
  const int64_t count = (end - 1 - begin) / step + 1;
  if (count > static_cast<int64_t>(kMaxParts)) return Of(begin, begin + (count - 1) * step + 1);
  std::vector<Interval> parts;
  for (int64_t i = 0; i < count; ++i) parts.push_back({begin + i * step, begin + i * step + 1});
  return Made(std::move(parts));
}

IntSet IntSet::Made(std::vector<Interval> parts) {
  std::erase_if(parts, [](const Interval& part) { return part.begin >= part.end; });
  std::sort(parts.begin(), parts.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  IntSet set;
  for (const Interval& part : parts) {
    if (IsFar(part.begin) || IsFar(part.end)) return All();
    if (!set.parts_.empty() && part.begin <= set.parts_.back().end) {
      set.parts_.back().end = std::max(set.parts_.back().end, part.end);
    } else {
      set.parts_.push_back(part);
    }
  }
  if (set.parts_.size() > kMaxParts) set.parts_ = {{set.parts_.front().begin, set.parts_.back().end}};
  return set;
}

IntSet IntSet::Plus(const IntSet& other) const {
  if (empty() || other.empty()) return {};
  if (all_ || other.all_) return All();
  if (parts_.size() * other.parts_.size() > kMaxParts * 16) return Of(least() + other.least(), greatest() + other.greatest() + 1);
  std::vector<Interval> sums;
  for (const Interval& a : parts_) {
    for (const Interval& b : other.parts_) sums.push_back({a.begin + b.begin, a.end + b.end - 1});
  }
  return Made(std::move(sums));
}

IntSet IntSet::Times(int64_t factor) const {
  if (all_ || empty() || factor == 1) return *this;
  if (factor == 0) return Of(0, 1);
  int64_t ends[] = {0, 0};
  if (IsFar(factor) || __builtin_mul_overflow(least(), factor, &ends[0]) ||
      __builtin_mul_overflow(greatest(), factor, &ends[1]) || IsFar(ends[0]) || IsFar(ends[1]))
    return All();
  int64_t count = 0;
  for (const Interval& part : parts_) count += part.end - part.begin;
  if (count > static_cast<int64_t>(kMaxParts)) return Of(std::min(ends[0], ends[1]), std::max(ends[0], ends[1]) + 1);
  std::vector<Interval> products;
  for (const Interval& part : parts_) {
    for (int64_t value = part.begin; value < part.end; ++value) products.push_back({value * factor, value * factor + 1});
  }
  return Made(std::move(products));
}

IntSet IntSet::DividedBy(int64_t divisor) const {
  if (all_) return *this;
  std::vector<Interval> quotients;
  for (const Interval& part : parts_)
    quotients.push_back({FloorDivInt(part.begin, divisor), FloorDivInt(part.end - 1, divisor) + 1});
  return Made(std::move(quotients));
}

IntSet IntSet::Modulo(int64_t divisor) const {
  if (all_) return Of(0, divisor);
  std::vector<Interval> rests;
  for (const Interval& part : parts_) {
    const int64_t turn = FloorDivInt(part.begin, divisor);
    if (FloorDivInt(part.end - 1, divisor) != turn) return Of(0, divisor);
    rests.push_back({part.begin - turn * divisor, part.end - turn * divisor});
  }
  return Made(std::move(rests));
}

IntSet IntSet::With(const IntSet& other) const {
  if (all_ || other.all_) return All();
  std::vector<Interval> both = parts_;
  both.insert(both.end(), other.parts_.begin(), other.parts_.end());
  return Made(std::move(both));
}

std::vector<IntSet::Interval> IntSet::MissingFrom(int64_t begin, int64_t end) const {
  std::vector<Interval> missing;
  if (all_) return missing;
  for (const Interval& part : parts_) {
    if (part.begin > begin) missing.push_back({begin, std::min(part.begin, end)});
    begin = std::max(begin, part.end);
    if (begin >= end) break;
  }
  if (begin < end) missing.push_back({begin, end});
  std::erase_if(missing, [](const Interval& part) { return part.begin >= part.end; });
  return missing;
}

}  // namespace tilert
