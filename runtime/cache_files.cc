#include "runtime/cache_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/cache_entry.h"
#include "runtime/file_util.h"

namespace tilert {
namespace {

constexpr absl::string_view kTemporaryPrefix = "tmp.";
constexpr absl::string_view kEntrySuffix = ".cubin";
// Where locks do not work, a temporary file this old has no living writer.
constexpr int64_t kAbandonedSeconds = 3600;

bool IsEntryName(absl::string_view name) {
  return name.size() == 64 + kEntrySuffix.size() && absl::EndsWith(name, kEntrySuffix) &&
         name.find_first_not_of("0123456789abcdef") == 64;
}

int64_t Nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec; }

// A name that no other writer picks: random, so neither pid reuse nor another host on NFS can collide.
std::string TemporaryName() {
  uint64_t random[2] = {};
  if (getrandom(random, sizeof random, GRND_NONBLOCK) != sizeof random) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    random[0] = static_cast<uint64_t>(Nanoseconds(now)) ^ reinterpret_cast<uintptr_t>(&random);
    random[1] = static_cast<uint64_t>(getpid());
  }
  return absl::StrCat(kTemporaryPrefix, absl::Hex(random[0], absl::kZeroPad16), absl::Hex(random[1], absl::kZeroPad16));
}

// A temporary file, locked as a sign of life for sweepers. O_EXCL: never somebody else's file or symlink.
absl::StatusOr<FileHandle> CreateTemporary(int directory, std::string& name) {
  absl::Status last;
  for (int attempt = 0; attempt < 3; ++attempt) {
    name = TemporaryName();
    absl::StatusOr<FileHandle> file = OpenAt(directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (!file.ok()) {
      last = file.status();
      continue;
    }
    // A sweeper may have caught the file between its creation and our lock; then it is gone, and we try again.
    const LockResult lock = TryLockByte(file->get(), 0);
    struct stat status;
    if (lock != LockResult::kBusy && fstat(file->get(), &status) == 0 && status.st_nlink > 0) return file;
    last = absl::UnavailableError("temporary file was removed");
  }
  return last;
}

absl::Status Fsync(int fd) {
  int result;
  do {
    result = fsync(fd);
  } while (result != 0 && errno == EINTR);
  return result == 0 ? absl::OkStatus() : ErrnoStatus(errno, "fsync");
}

absl::Status Rename(int directory, const std::string& from, const std::string& to) {
  if (renameat(directory, from.c_str(), directory, to.c_str()) == 0) return absl::OkStatus();
  if (errno != EISDIR && errno != ENOTEMPTY && errno != EEXIST) return ErrnoStatus(errno, "rename");
  // A directory stands there. Move it aside, keeping what it holds: it is not ours to judge.
  if (renameat(directory, to.c_str(), directory, absl::StrCat("aside.", TemporaryName()).c_str()) != 0)
    return ErrnoStatus(errno, "rename");
  return renameat(directory, from.c_str(), directory, to.c_str()) == 0 ? absl::OkStatus() : ErrnoStatus(errno, "rename");
}

// Calls `visit(name)` for each name in the directory. Reads through a descriptor of its own.
void ForEachName(int directory, const std::function<void(const char*)>& visit) {
  absl::StatusOr<FileHandle> handle = OpenAt(directory, ".", O_RDONLY | O_DIRECTORY);
  if (!handle.ok()) return;
  const int duplicate = fcntl(handle->get(), F_DUPFD_CLOEXEC, 0);
  if (duplicate < 0) return;
  DIR* stream = fdopendir(duplicate);
  if (stream == nullptr) {
    close(duplicate);
    return;
  }
  while (const dirent* entry = readdir(stream)) visit(entry->d_name);
  closedir(stream);
}

// True when the temporary file has no living writer. On true the lock is still held by `file`.
bool IsAbandoned(int fd, const struct stat& status) {
  switch (TryLockByte(fd, 0)) {
    case LockResult::kLocked:
      return true;
    case LockResult::kBusy:
      return false;
    case LockResult::kUnsupported:
      break;
  }
  return time(nullptr) - status.st_mtim.tv_sec > kAbandonedSeconds;
}

}  // namespace

absl::StatusOr<std::string> ReadCacheFile(int directory, const std::string& name) {
  // O_NONBLOCK: a FIFO must not hang us; O_NOFOLLOW: a symlink is no entry.
  absl::StatusOr<FileHandle> file = OpenAt(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file.ok()) return file.status();
  struct stat status;
  if (fstat(file->get(), &status) != 0) return ErrnoStatus(errno, "stat");
  if (!S_ISREG(status.st_mode)) return absl::DataLossError("not a regular file");
  if (status.st_uid != geteuid() || (status.st_mode & 022) != 0) return absl::DataLossError("not private");
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size < kCacheHeaderSize || size > kMaxCacheFileSize) return absl::DataLossError("no possible size");
  return ReadExactly(file->get(), size);
}

void TouchCacheFile(int directory, const std::string& name) { utimensat(directory, name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW); }

absl::Status ReplaceCacheFile(int directory, const std::string& name, std::string_view bytes) {
  std::string temporary;
  absl::StatusOr<FileHandle> file = CreateTemporary(directory, temporary);
  if (!file.ok()) return file.status();
  absl::Status status = WriteAll(file->get(), bytes);
  if (status.ok()) status = Fsync(file->get());
  if (status.ok()) status = Rename(directory, temporary, name);
  if (!status.ok()) {
    unlinkat(directory, temporary.c_str(), 0);
    return status;
  }
  fsync(directory);  // Best effort: makes the name durable; readers do not rely on it.
  return absl::OkStatus();
}

void RemoveCacheFile(int directory, const std::string& name) {
  if (unlinkat(directory, name.c_str(), 0) != 0) unlinkat(directory, name.c_str(), AT_REMOVEDIR);
}

std::vector<CacheFile> ListCacheFiles(int directory) {
  std::vector<CacheFile> files;
  ForEachName(directory, [&](const char* name) {
    struct stat status;
    if (!IsEntryName(name) || fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) return;
    files.push_back({name, static_cast<uint64_t>(status.st_size), Nanoseconds(status.st_mtim)});
  });
  std::sort(files.begin(), files.end(), [](const CacheFile& a, const CacheFile& b) {
    return a.modified_ns != b.modified_ns ? a.modified_ns < b.modified_ns : a.name < b.name;
  });
  return files;
}

uint64_t SweepTemporaryFiles(int directory) {
  uint64_t freed = 0;
  ForEachName(directory, [&](const char* name) {
    if (!absl::StartsWith(name, kTemporaryPrefix)) return;
    absl::StatusOr<FileHandle> file = OpenAt(directory, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    struct stat status;
    if (!file.ok() || fstat(file->get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    if (IsAbandoned(file->get(), status) && unlinkat(directory, name, 0) == 0) freed += static_cast<uint64_t>(status.st_size);
  });
  return freed;
}

}  // namespace tilert
