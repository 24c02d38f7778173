// The disk cache of compiled kernels. See docs/cache_format.md.
//
// Costs time when it fails, never a launch: Find answers "nothing", Publish a Status that callers log and forget.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cache_entry.h"
#include "runtime/file_util.h"

namespace tilert {

struct CacheOptions {
  std::string directory;                       // absolute; empty: no cache
  uint64_t max_bytes = uint64_t{1} << 30;      // of all entries together; least recently used ones go first
  std::chrono::milliseconds lock_wait{10000};  // how long to wait for another process that builds the same entry
};

struct CacheStats {
  uint64_t hits = 0, misses = 0, healed = 0, builds = 0, publish_failures = 0;
};

struct CacheListing {
  std::string file;  // name inside the directory
  std::string key;   // empty: the entry is damaged
  uint64_t bytes = 0;
  int64_t last_used = 0;  // seconds since the epoch
};

// Thread safe; any number of processes may share a directory, over NFS too.
class CubinCache {
 public:
  using Build = std::function<absl::StatusOr<CacheEntry>()>;

  // Opens nothing yet: the directory is created at first use.
  explicit CubinCache(CacheOptions options) : options_(std::move(options)) {}

  // The entry of `key`, checked byte by byte. Anything unexpected is removed and counts as a miss. With
  // `source_hash`, an entry made from another source is a miss too.
  std::optional<CacheEntry> Find(const std::string& key, const Sha256Digest* source_hash = nullptr);

  // Writes the entry atomically (temporary file, fsync, rename) and trims the directory to its size.
  absl::Status Publish(const std::string& key, const CacheEntry& entry);

  // Find, else `build` and Publish. Concurrent callers of one key build once: threads wait for each other, processes
  // for up to lock_wait. Errors: only those of `build`. `publish_status`, if given, receives what Publish said.
  absl::StatusOr<CacheEntry> FindOrBuild(const std::string& key, const Build& build, absl::Status* publish_status = nullptr);

  // OK, or why there is no cache.
  absl::Status status();
  const std::string& directory() const { return options_.directory; }
  CacheStats stats() const;

  std::vector<CacheListing> List();
  // Removes every entry and temporary file; returns how many bytes were freed.
  absl::StatusOr<uint64_t> Clear();

  // File name of a key's entry: the hex SHA-256 of the key and ".cubin".
  static std::string FileName(const std::string& key);

 private:
  struct Flight;  // one build in progress

  int Directory();  // descriptor, or −1
  absl::StatusOr<CacheEntry> BuildLocked(const std::string& key, const Build& build, absl::Status* publish_status);
  absl::StatusOr<CacheEntry> BuildAndPublish(const std::string& key, const Build& build, absl::Status* publish_status);
  void Trim(int directory);

  const CacheOptions options_;
  std::mutex mutex_;  // guards directory_ and flights_
  FileHandle directory_;
  absl::Status directory_status_;
  bool opened_ = false;
  std::map<std::string, std::shared_ptr<Flight>> flights_;
  std::atomic<uint64_t> hits_{0}, misses_{0}, healed_{0}, builds_{0}, publish_failures_{0};
};

}  // namespace tilert
