// A dense array in memory, as files hold it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/dtype.h"

namespace tilert::tool {

// Row-major, contiguous; `bytes` has exactly ByteSize(dtype, shape) elements.
struct Array {
  DType dtype = DType::kInvalid;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;

  int64_t elements() const;
};

// Bytes of a dense array. InvalidArgument: a negative extent, more than 8 of them, or 2^46 bytes or more.
absl::StatusOr<int64_t> ByteSize(DType dtype, const std::vector<int64_t>& shape);

// An array of zeros. ResourceExhausted: more than the machine's memory.
absl::StatusOr<Array> MakeArray(DType dtype, std::vector<int64_t> shape);

// Element by element by the rules of docs/ir_spec.md.
Array Converted(const Array& array, DType dtype);

// "float32 [3, 4]".
std::string Describe(const Array& array);
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace tilert::tool
