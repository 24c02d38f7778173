// The file around a bundle's FlatBuffer (docs/bundle_format.md): a 64-byte header, the FlatBuffer, 64-byte-aligned blobs.
//
//   offset size  little-endian
//        0    8  magic "TILERT\x1a\n"
//        8    4  header size: 64
//       12    2  major version: 1
//       14    2  minor version: the lowest that the content needs
//       16    8  flags: 0
//       24    8  offset of the FlatBuffer
//       32    8  size of the FlatBuffer
//       40    8  offset of the blobs; blob offsets are relative to it
//       48    8  size of the file
//       56    8  content hash: the first 8 bytes of the SHA-256 of the FlatBuffer, which holds the hashes of the blobs
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tilert {

inline constexpr uint16_t kBundleMajor = 1;
inline constexpr uint16_t kBundleMinor = 3;  // the newest minor version that this library knows
inline constexpr size_t kHeaderBytes = 64;
inline constexpr size_t kBlobAlign = 64;

struct BundleHeader {
  uint16_t major = kBundleMajor, minor = 0;
  uint64_t fb_offset = kHeaderBytes, fb_size = 0;
  uint64_t blob_offset = 0;
  uint64_t file_size = 0;
  uint64_t content_hash = 0;
};

std::string EncodeHeader(const BundleHeader& header);

// The header at the start of `bytes`, whose ranges lie in `bytes` and do not overlap. InvalidArgument: not a bundle, truncated,
// corrupt. Unimplemented: a version or flag beyond this library. The content hash is not compared.
absl::StatusOr<BundleHeader> DecodeHeader(std::string_view bytes);

uint64_t ContentHash(std::string_view flatbuffer);

}  // namespace tilert
