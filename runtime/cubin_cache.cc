#include "runtime/cubin_cache.h"

#include <fcntl.h>

#include <condition_variable>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/cache_directory.h"
#include "runtime/cache_files.h"

namespace tilert {
namespace {

using Clock = std::chrono::steady_clock;

// One file whose bytes are the locks of all keys. It is never removed, which is what makes locking it free of races.
constexpr char kLockFile[] = "lock";

// The byte of the lock file that stands for `key`. Two keys that share one merely wait for each other.
uint64_t LockOffset(const std::string& key) {
  const Sha256Digest digest = Sha256Of(key);
  uint64_t offset = 0;
  for (int i = 0; i < 7; ++i) offset = offset << 8 | digest[i];
  return offset;
}

// Holds the lock of one key among processes, if the file system has locks.
class KeyLock {
 public:
  KeyLock(int directory, const std::string& key) : offset_(LockOffset(key)) {
    absl::StatusOr<FileHandle> file = OpenAt(directory, kLockFile, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (file.ok()) file_ = *std::move(file);
  }
  ~KeyLock() {
    // Explicit: a child that the host forked meanwhile holds a copy of the descriptor.
    if (held_) UnlockByte(file_.get(), offset_);
  }
  KeyLock(const KeyLock&) = delete;
  KeyLock& operator=(const KeyLock&) = delete;

  LockResult Try() {
    const LockResult result = file_ ? TryLockByte(file_.get(), offset_) : LockResult::kUnsupported;
    held_ = result == LockResult::kLocked;
    return result;
  }

 private:
  const uint64_t offset_;
  FileHandle file_;
  bool held_ = false;
};

}  // namespace

// What the threads of this process that want one key share.
struct CubinCache::Flight {
  std::mutex mutex;
  std::condition_variable landed;
  std::optional<absl::StatusOr<CacheEntry>> result;
  bool is_over = false;

  void Land(const absl::StatusOr<CacheEntry>& value) {
    const std::lock_guard<std::mutex> lock(mutex);
    result = value;
  }
  void End() {
    const std::lock_guard<std::mutex> lock(mutex);
    is_over = true;
    landed.notify_all();
  }
  absl::StatusOr<CacheEntry> Wait() {
    std::unique_lock<std::mutex> lock(mutex);
    landed.wait(lock, [this] { return is_over; });
    return result ? *result : absl::InternalError("the build of this kernel was abandoned");
  }
};

std::string CubinCache::FileName(const std::string& key) { return Sha256Hex(Sha256Of(key)) + ".cubin"; }

int CubinCache::Directory() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!std::exchange(opened_, true)) {
    absl::StatusOr<FileHandle> handle = options_.directory.empty()
                                            ? absl::StatusOr<FileHandle>(absl::NotFoundError("no cache directory is configured"))
                                            : OpenCacheDirectory(options_.directory);
    directory_status_ = handle.status();
    if (handle.ok()) directory_ = *std::move(handle);
  }
  return directory_.get();
}

absl::Status CubinCache::status() {
  Directory();
  return directory_status_;
}

CacheStats CubinCache::stats() const { return {hits_, misses_, healed_, builds_, publish_failures_}; }

std::optional<CacheEntry> CubinCache::Find(const std::string& key, const Sha256Digest* source_hash) {
  const int directory = Directory();
  if (directory < 0) return std::nullopt;
  const std::string name = FileName(key);
  const absl::StatusOr<std::string> bytes = ReadCacheFile(directory, name);
  std::optional<CacheEntry> entry;
  if (bytes.ok()) entry = DecodeCacheEntry(key, *bytes);
  if (entry && source_hash != nullptr && entry->source_hash != *source_hash) entry.reset();
  if (entry) {
    ++hits_;
    TouchCacheFile(directory, name);
    return entry;
  }
  ++misses_;
  if (bytes.ok() || absl::IsDataLoss(bytes.status())) {
    ++healed_;
    RemoveCacheFile(directory, name);
  }
  return std::nullopt;
}

absl::Status CubinCache::Publish(const std::string& key, const CacheEntry& entry) {
  const int directory = Directory();
  if (directory < 0) return directory_status_;
  const std::string bytes = EncodeCacheEntry(key, entry);
  if (bytes.size() > kMaxCacheFileSize || bytes.size() > options_.max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("an entry of ", bytes.size(), " bytes does not fit into the cache"));
  }
  absl::Status status = ReplaceCacheFile(directory, FileName(key), bytes);
  if (!status.ok()) ++publish_failures_;
  Trim(directory);
  return status;
}

void CubinCache::Trim(int directory) {
  SweepTemporaryFiles(directory);
  const std::vector<CacheFile> files = ListCacheFiles(directory);
  uint64_t total = 0;
  for (const CacheFile& file : files) total += file.bytes;
  if (total <= options_.max_bytes) return;
  // Down to 7/8, so that a full cache is not trimmed at each publish.
  const uint64_t goal = options_.max_bytes - options_.max_bytes / 8;
  for (size_t i = 0; i + 1 < files.size() && total > goal; ++i) {
    RemoveCacheFile(directory, files[i].name);
    total -= files[i].bytes;
  }
}

absl::StatusOr<CacheEntry> CubinCache::FindOrBuild(const std::string& key, const Build& build, absl::Status* publish_status) {
  if (std::optional<CacheEntry> entry = Find(key)) return *std::move(entry);
  std::shared_ptr<Flight> flight;
  bool is_pilot = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<Flight>& slot = flights_[key];
    if (slot == nullptr) {
      slot = std::make_shared<Flight>();
      is_pilot = true;
    }
    flight = slot;
  }
  if (!is_pilot) return flight->Wait();
  // Whatever happens, waiting threads are released and the next caller starts anew.
  struct Landing {
    CubinCache& cache;
    const std::string& key;
    Flight& flight;
    ~Landing() {
      flight.End();
      const std::lock_guard<std::mutex> lock(cache.mutex_);
      cache.flights_.erase(key);
    }
  } landing{*this, key, *flight};
  absl::StatusOr<CacheEntry> entry = BuildLocked(key, build, publish_status);
  flight->Land(entry);
  return entry;
}

absl::StatusOr<CacheEntry> CubinCache::BuildLocked(const std::string& key, const Build& build, absl::Status* publish_status) {
  const int directory = Directory();
  if (directory < 0) return BuildAndPublish(key, build, publish_status);
  KeyLock lock(directory, key);
  const auto deadline = Clock::now() + options_.lock_wait;
  for (auto pause = std::chrono::milliseconds(2);; pause = std::min(2 * pause, std::chrono::milliseconds(50))) {
    const LockResult result = lock.Try();
    // Whoever held the lock may have published; a holder that died has not, and we take over.
    if (const std::string name = FileName(key); result != LockResult::kUnsupported) {
      const absl::StatusOr<std::string> bytes = ReadCacheFile(directory, name);
      if (std::optional<CacheEntry> entry = bytes.ok() ? DecodeCacheEntry(key, *bytes) : std::nullopt) return *std::move(entry);
    }
    if (result != LockResult::kBusy || Clock::now() >= deadline) break;
    std::this_thread::sleep_for(pause);
  }
  return BuildAndPublish(key, build, publish_status);
}

absl::StatusOr<CacheEntry> CubinCache::BuildAndPublish(const std::string& key, const Build& build, absl::Status* publish_status) {
  ++builds_;
  absl::StatusOr<CacheEntry> entry = build();
  if (!entry.ok() || entry->code.empty()) {
    return entry.ok() ? absl::InternalError("the compiler returned no code") : entry;
  }
  const absl::Status published = Publish(key, *entry);
  if (publish_status != nullptr) *publish_status = published;
  return entry;
}

std::vector<CacheListing> CubinCache::List() {
  const int directory = Directory();
  std::vector<CacheListing> listings;
  if (directory < 0) return listings;
  for (const CacheFile& file : ListCacheFiles(directory)) {
    const absl::StatusOr<std::string> bytes = ReadCacheFile(directory, file.name);
    const std::optional<std::string> key = bytes.ok() ? DecodeCacheKey(*bytes) : std::nullopt;
    listings.push_back({file.name, key.value_or(""), file.bytes, file.modified_ns / 1000000000});
  }
  return listings;
}

absl::StatusOr<uint64_t> CubinCache::Clear() {
  const int directory = Directory();
  if (directory < 0) return directory_status_;
  uint64_t freed = SweepTemporaryFiles(directory);
  for (const CacheFile& file : ListCacheFiles(directory)) {
    RemoveCacheFile(directory, file.name);
    freed += file.bytes;
  }
  return freed;
}

}  // namespace tilert
