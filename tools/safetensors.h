// The safetensors format: an 8-byte little-endian header size, a JSON header, then the tensors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/array.h"

namespace tilert::tool {

// One tensor; only its bytes are read from the file. InvalidArgument: a malformed header, offsets outside the file or not what
// the shape needs, a type that tilert does not have. NotFound: no such tensor; lists some that exist.
absl::StatusOr<Array> ReadSafetensor(const std::string& path, const std::string& tensor);

// The tensors of the file other than these, quoted and in words; the empty string when there are none. Errors as above.
absl::StatusOr<std::string> OtherSafetensors(const std::string& path, const std::vector<std::string>& tensors);

// A file of these tensors.
std::string SafetensorsBytes(const std::map<std::string, Array>& tensors);

}  // namespace tilert::tool
