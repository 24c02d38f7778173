// NumPy's .npy files (numpy.lib.format, versions 1 to 3).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tools/array.h"

namespace tilert::tool {

// InvalidArgument names the file and what is wrong: not a .npy file, a header that is no such header, structured or big-endian
// types, a size that is not what the shape needs. Column-major arrays are brought to row-major order.
absl::StatusOr<Array> ReadNpy(const std::string& path);

// Bytes of a version 1 file. NumPy has no bfloat16 and float8: they become float32, which holds them exactly.
std::string NpyBytes(const Array& array);

}  // namespace tilert::tool
