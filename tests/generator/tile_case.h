// A tile program together with what a call of it needs: the values of its dims and scalars, and tensors made from a seed.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/bind_args.h"
#include "ir/program.h"

namespace tilert {

struct TileCase {
  Program program;
  std::vector<int64_t> dims;  // one an entry of Program::dims
  uint64_t data_seed = 1;
  std::vector<BufferId> hostile;  // tensors whose values break subscripts; where there is one, 64-bit scalars do too
};

// Memory for one call. Inputs are small integers in every type (floats −2 … 2, integers −9 … 9), so that sums and products are
// exact; outputs begin as bytes that are nobody's result. Padding of strided tensors is poisoned too.
struct CallData {
  struct Tensor {
    BufferId buffer = kNoId;
    Access access = Access::kInvalid;
    DType dtype = DType::kInvalid;
    std::vector<int64_t> shape, strides;
    std::vector<uint8_t> bytes;
    bool is_dense = false;  // its strides go without saying
  };
  std::vector<Tensor> tensors;  // one a tensor parameter, in order
  std::vector<ScalarArg> scalars;

  std::vector<TensorArg> Args();
};

// InvalidArgument where a shape cannot be had. ResourceExhausted: more than `max_bytes`.
absl::StatusOr<CallData> MakeCall(const TileCase& tile_case, int64_t max_bytes = int64_t{1} << 26);

// `call`, its tensors having the strides that `program` gives them.
absl::StatusOr<CallData> WithStridesOf(const Program& program, const TileCase& tile_case, const CallData& call);

// The first element in which two results of one call differ, in words; empty where none does. NaN equals NaN.
std::string FirstDifference(const Program& program, const CallData& got, const CallData& expected);

}  // namespace tilert
