#include "runtime/file_util.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <system_error>

#include "absl/strings/str_cat.h"

namespace tilert {

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void FileHandle::Close() {
  // Not retried: Linux frees the descriptor even when close reports EINTR.
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

absl::Status ErrnoStatus(int error, std::string_view what) {
  absl::StatusCode code = absl::StatusCode::kUnavailable;
  if (error == ENOSPC || error == EDQUOT) code = absl::StatusCode::kResourceExhausted;
  if (error == EACCES || error == EPERM || error == EROFS) code = absl::StatusCode::kPermissionDenied;
  if (error == ENOENT) code = absl::StatusCode::kNotFound;
  return absl::Status(code, absl::StrCat(absl::string_view(what.data(), what.size()), ": ",
                                         std::error_code(error, std::generic_category()).message()));
}

absl::StatusOr<FileHandle> OpenAt(int directory, const std::string& name, int flags, mode_t mode) {
  int fd;
  do {
    fd = openat(directory, name.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("open ", name));
  return FileHandle(fd);
}

absl::Status WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, "write");
    if (written == 0) return ErrnoStatus(EIO, "write");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadExactly(int fd, size_t size) {
  std::string bytes(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t got = read(fd, bytes.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "read");
    if (got == 0) return absl::DataLossError("file ended early");
    done += static_cast<size_t>(got);
  }
  return bytes;
}

namespace {

// Open-file-description locks: unlike flock they cover single bytes, unlike POSIX record locks they exclude threads of
// one process from each other and do not vanish when some other descriptor of the file is closed.
int SetLock(int fd, short type, uint64_t offset) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(offset & 0x3fffffffffffffff);
  lock.l_len = 1;
  int result;
  do {
    result = fcntl(fd, F_OFD_SETLK, &lock);
  } while (result < 0 && errno == EINTR);
  return result < 0 ? errno : 0;
}

}  // namespace

LockResult TryLockByte(int fd, uint64_t offset) {
  const int error = SetLock(fd, F_WRLCK, offset);
  if (error == 0) return LockResult::kLocked;
  return error == EAGAIN || error == EACCES ? LockResult::kBusy : LockResult::kUnsupported;
}

void UnlockByte(int fd, uint64_t offset) { SetLock(fd, F_UNLCK, offset); }

}  // namespace tilert
