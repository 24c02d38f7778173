// The files of a cache directory, below the policy of cubin_cache.h: read, replace, list, trim.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tilert {

struct CacheFile {
  std::string name;
  uint64_t bytes = 0;
  int64_t modified_ns = 0;  // since the epoch; entries are touched when used
};

// The whole content of a regular file that is ours and nobody else can write. NotFound when there is none; any other
// error says that something stands there that cannot be an entry.
absl::StatusOr<std::string> ReadCacheFile(int directory, const std::string& name);

// Marks `name` as just used. Best effort.
void TouchCacheFile(int directory, const std::string& name);

// Replaces `name` by `bytes` atomically: a reader sees the old content, the new, or none; a crash leaves at most a
// temporary file, which Trim sweeps. A directory in the place of `name` is moved aside.
absl::Status ReplaceCacheFile(int directory, const std::string& name, std::string_view bytes);

// Removes whatever stands at `name`. Best effort.
void RemoveCacheFile(int directory, const std::string& name);

// Entries, oldest first. Foreign files are not listed and never touched.
std::vector<CacheFile> ListCacheFiles(int directory);

// Removes temporary files that no living process is writing. Returns the bytes freed.
uint64_t SweepTemporaryFiles(int directory);

}  // namespace tilert
