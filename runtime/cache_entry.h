// Bytes of one cubin cache entry. All integers little-endian:
//
//   offset size
//        0    8  magic "TILERTC\n"
//        8    4  format version (1)
//       12    4  header size (184)
//       16    8  file size
//       24   32  SHA-256 of the CUDA source that was compiled
//       56    8  key size
//       64    8  record size
//       72    8  code size
//       80   32  reserved, zero
//      112   32  SHA-256 of the payload
//      144    8  reserved, zero
//      152   32  SHA-256 of bytes 0 … 151
//      184       payload: key text, launch record, code
//
// The two hashes cover every byte, so any flip or truncation is seen. The key is stored in full: two keys that share a
// file name cannot be mistaken for each other. docs/cache_format.md says the same to users.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ir/sha256.h"

namespace tilert {

struct CacheEntry {
  Sha256Digest source_hash{};  // of the emitted CUDA source
  std::string record;          // launch record (runtime/launch_record.h)
  std::string code;            // cubin or PTX

  bool operator==(const CacheEntry&) const = default;
};

inline constexpr size_t kCacheHeaderSize = 184;
// Larger files are not entries; bounds what a read can allocate.
inline constexpr size_t kMaxCacheFileSize = size_t{256} << 20;

std::string EncodeCacheEntry(std::string_view key, const CacheEntry& entry);

// The entry in `bytes`, or nothing if they are not exactly what EncodeCacheEntry wrote for `key`.
std::optional<CacheEntry> DecodeCacheEntry(std::string_view key, std::string_view bytes);

// The key stored in `bytes`, if they are a whole and unharmed entry. For listings.
std::optional<std::string> DecodeCacheKey(std::string_view bytes);

}  // namespace tilert
