// Interval analysis of integer expressions of a kernel: what the emitter needs to choose 32-bit arithmetic, to prove
// that a subscript is inside its buffer, and to know which bits of a coordinate can be set.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lowering/kernel_ir.h"

namespace tilert {

// All values of an expression, as 64 signed bits, lie in [lo, hi] and are multiples of `align`, a power of two. What may leave 64
// bits wraps there, as it does on a GPU, and so has every value: nothing that is proven relies on an index that does not.
struct Range {
  int64_t lo = 0, hi = 0;
  int64_t align = 1;
  bool FitsInt() const { return lo >= INT32_MIN && hi <= INT32_MAX; }
  bool IsConstant() const { return lo == hi; }
  bool operator==(const Range&) const = default;
};

Range ConstantRange(int64_t value);
// Every value of an integer type (bool: 0 or 1; index: everything; uint64: everything, the upper half being negative here).
Range TypeRange(DType type);
// Of a + b in 64 bits.
Range Sum(const Range& a, const Range& b);
Range Union(const Range& a, const Range& b);
// Of the variable of a loop that counts up by a `step`, from a `begin` while it is below an `end`. REQUIRES: step.lo > 0.
Range LoopRange(const Range& begin, const Range& end, const Range& step);

// Ranges of the variables in scope, and of what is computed from them. Not thread safe.
class Ranges {
 public:
  // `kernel` must outlive this. With kernel.index32 dims are below 2^30.
  explicit Ranges(const kir::Kernel& kernel)
      : kernel_(kernel), positive_(kernel.dims.size(), false), vars_(kernel.vars.size()), bound_(kernel.vars.size(), false), below_(kernel.vars.size()) {}
  // A dim that is not zero.
  void AssumePositive(size_t dim) { positive_[dim] = true, memo_.clear(); }
  // `below`: an expression that the variable is less than, if one is known.
  void Bind(VarId var, const Range& range, Expr below = {});
  // Range of an integer, index or bool expression; of a float one it is meaningless. Unbound variables: any value of their type.
  Range Of(Expr e) const;
  // False for a sum, difference, product or the like of index type whose exact value may not fit 64 bits.
  bool Fits64(Expr e) const;

  // While it lives, `cond` is known to be true (If bodies, guarded operands).
  class Assume {
   public:
    Assume(Ranges& ranges, Expr cond);
    ~Assume();
    Assume(const Assume&) = delete;

   private:
    Ranges& ranges_;
    size_t facts_;
  };
  // True when a < b holds for all values the variables can take here.
  bool ProveLess(Expr a, Expr b) const;
  // True when a subscript with values in `at` is inside dimension `d` of the buffer (shared memory: but for the version), so that
  // the access needs no guard. `e`: the subscript as an expression, if it is one.
  bool ProveInside(const kir::Buffer& buffer, size_t d, const Range& at, Expr e) const;

 private:
  Range Compute(const ExprNode& node) const;
  Range Unsigned64(const ExprNode& node) const;
  Range Leaf(const ExprNode& node) const;

  const kir::Kernel& kernel_;
  std::vector<bool> positive_;  // per dim
  std::vector<Range> vars_;
  std::vector<bool> bound_;
  std::vector<Expr> below_;
  std::vector<Expr> facts_;
  mutable absl::flat_hash_map<uint32_t, Range> memo_;
};

}  // namespace tilert
