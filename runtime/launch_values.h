// What a launch learns from its arguments, and the compares that decide which variant it may use.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/fixed_array.h"
#include "runtime/dim_expr.h"

namespace tilert {

class ArgPlan;

// Everything a launch knows about its arguments. Lives on the stack of the launch; small programs need no heap.
struct LaunchValues {
  explicit LaunchValues(const ArgPlan& plan);

  // A tensor parameter or workspace.
  struct Tensor {
    char* data = nullptr;
    const char* first = nullptr;  // lowest byte that the tensor covers
    int64_t bytes = 0;            // from first to one past the highest; 0: empty
    uint64_t align_bits = 0;      // data | bytes of every stride but the innermost: trailing zeros are common alignment
    bool inner_is_dense = true;   // the innermost stride is one element
  };

  absl::FixedArray<int64_t, 32> dims;
  absl::FixedArray<Value, 16> scalars;
  absl::FixedArray<Tensor, 24> tensors;  // tensor parameters in order, then workspaces
  int64_t max_index = 0;                 // the greatest dim or tensor reach in elements

  DimValues values() const { return {dims, scalars}; }
};

// The compares that decide whether arguments belong to an ArgClass.
struct ClassGuard {
  struct Aligned {
    uint32_t tensor;
    uint64_t mask;
  };
  struct Divisible {
    uint32_t dim;
    int64_t divisor;
  };
  int64_t max_index = INT64_MAX;
  std::vector<Aligned> aligned;  // these tensors' innermost dimensions are dense, too
  std::vector<Divisible> divisible;
};

}  // namespace tilert
