// Sets of integers that hold every value an index may take, and perhaps more. For analyses that must not cry wolf: what such a
// set leaves out is out for sure.
#pragma once

#include <cstdint>
#include <vector>

namespace tilert {

class IntSet {
 public:
  struct Interval {
    int64_t begin, end;  // end not included
    bool operator==(const Interval&) const = default;
  };

  IntSet() = default;  // of nothing
  static IntSet All();
  static IntSet Of(int64_t begin, int64_t end);
  // begin, begin + step, … below end. REQUIRES: step >= 1.
  static IntSet Steps(int64_t begin, int64_t end, int64_t step);

  // Any integer may be in it.
  bool is_all() const { return all_; }
  bool empty() const { return !all_ && parts_.empty(); }
  // In order, apart from each other. REQUIRES: !is_all().
  const std::vector<Interval>& parts() const { return parts_; }
  // REQUIRES: !is_all() && !empty().
  int64_t least() const { return parts_.front().begin; }
  int64_t greatest() const { return parts_.back().end - 1; }

  IntSet Plus(const IntSet& other) const;   // a + b for each a and b
  IntSet Times(int64_t factor) const;       // a · factor
  IntSet DividedBy(int64_t divisor) const;  // a // divisor. REQUIRES: divisor >= 1
  IntSet Modulo(int64_t divisor) const;     // a % divisor. REQUIRES: divisor >= 1
  IntSet With(const IntSet& other) const;   // either
  // What of [begin, end) is not in the set.
  std::vector<Interval> MissingFrom(int64_t begin, int64_t end) const;

 private:
  // Sorts and joins; what has too many parts becomes one.
  static IntSet Made(std::vector<Interval> parts);

  bool all_ = false;
  std::vector<Interval> parts_;
};

}  // namespace tilert
