// The arguments of a call → the dims they bind, and strides for every tensor, with every check that a call must pass.
//
// Used by the executor and by the runtime's launch. A BoundArgs that is used again keeps its memory: the second call with the
// same program allocates nothing unless it fails.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/numeric.h"
#include "ir/program.h"

namespace tilert {

// Memory of one tensor parameter. Owned by the caller. `data` may be null only when the tensor has no elements.
struct TensorArg {
  void* data = nullptr;
  DType dtype = DType::kInvalid;
  absl::Span<const int64_t> shape;
  absl::Span<const int64_t> strides;  // in elements; empty: contiguous, last dimension fastest
};

struct ScalarArg {
  DType dtype = DType::kInvalid;
  Value value = {};
  static ScalarArg Int(int64_t v, DType type) { return {type, {.i = v}}; }
  static ScalarArg Float(double v, DType type) { return {type, {.f = v}}; }
};

// What an array looks like once every dim is known.
struct BoundTensor {
  void* data = nullptr;
  absl::InlinedVector<int64_t, 4> shape, strides;  // strides in elements
};

struct BoundArgs {
  static constexpr int64_t kUnbound = INT64_MIN;
  std::vector<int64_t> dims;         // by index into Program::dims; kUnbound when the program never mentions it
  std::vector<Value> scalars;        // by index into Program::scalars
  std::vector<BoundTensor> tensors;  // one a tensor parameter, in order
};

// Binds dims by their first bare occurrence (scalars that name a dim, then shapes, then strides, in parameter order), then checks
// ranks, dtypes, shapes, strides, alignment to the element, null pointers and assumptions.
// `tensors`: one a tensor parameter, in order. `scalars`: one an entry of Program::scalars; integers must fit the declared type.
// InvalidArgument: the message names the parameter, what was given and what is required.
absl::Status BindArgs(const Program& program, absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars,
                      BoundArgs* bound);

// The value of an integer, index or bool expression over dims, scalars and constants (a constant counts as its first candidate).
// InvalidArgument: it mentions anything else, or a dim that is not bound. Index arithmetic saturates.
absl::StatusOr<int64_t> EvalBound(const Program& program, Expr e, const BoundArgs& bound);

// Shape and strides of a buffer whose shape is over bound dims. InvalidArgument: a negative extent, or 2^62 elements or more.
absl::Status BindShape(const Program& program, const Buffer& buffer, const BoundArgs& bound, BoundTensor* out);

}  // namespace tilert
