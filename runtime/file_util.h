// Small wrappers over POSIX file calls, as the cubin cache needs them: retried on EINTR, errors as Status.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tilert {

// Owns a file descriptor. Movable, not copyable.
class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int fd) : fd_(fd) {}
  FileHandle(FileHandle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept;
  ~FileHandle() { Close(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void Close();

 private:
  int fd_ = -1;
};

// Unavailable (or ResourceExhausted for a full disk or quota, PermissionDenied, NotFound) with "what: strerror".
absl::Status ErrnoStatus(int error, std::string_view what);

// openat with O_CLOEXEC.
absl::StatusOr<FileHandle> OpenAt(int directory, const std::string& name, int flags, mode_t mode = 0);

// Writes all of `bytes`.
absl::Status WriteAll(int fd, std::string_view bytes);

// Reads exactly `size` bytes; an earlier end of file is an error.
absl::StatusOr<std::string> ReadExactly(int fd, size_t size);

// Tries to take an exclusive lock on one byte of an open file. The lock belongs to this open file description and ends
// with UnlockByte or when every descriptor of it is closed, hence when the process dies.
// kUnsupported: this file system has no locks.
enum class LockResult { kLocked, kBusy, kUnsupported };
LockResult TryLockByte(int fd, uint64_t offset);
void UnlockByte(int fd, uint64_t offset);

}  // namespace tilert
