// The safetensors format: an 8-byte little-endian header size, a JSON header, then the tensors.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "tools/array.h"

namespace tilert::tool {

// One tensor; only its bytes are read from the file. InvalidArgument: a malformed header, offsets outside the file or not what
// the shape needs, a type that tilert does not have. NotFound: no such tensor; lists some that exist.
absl::StatusOr<Array> ReadSafetensor(const std::string& path, const std::string& tensor);

// A file of these tensors.
std::string SafetensorsBytes(const std::map<std::string, Array>& tensors);

}  // namespace tilert::tool
