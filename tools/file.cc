#include "tools/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "ir/status_util.h"

namespace tilert::tool {
namespace {

absl::Status FileError(const std::string& path, const char* what, int error) {
  const std::string message = Cat(path, ": ", what, ": ", std::strerror(error));
  if (error == ENOENT) return absl::NotFoundError(message);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(message);
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(message);
  return absl::UnavailableError(message);
}

absl::Status WriteAll(int fd, const std::string& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError(path, "cannot write", errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

// A device or pipe stays what it is.
absl::Status WriteInto(const std::string& path, std::string_view bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return FileError(path, "cannot open", errno);
  absl::Status status = WriteAll(fd, path, bytes);
  if (close(fd) != 0 && status.ok()) status = FileError(path, "cannot write", errno);
  return status;
}

}  // namespace

absl::StatusOr<InputFile> InputFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // to open a pipe does not wait for a writer
  if (fd < 0) return FileError(path, "cannot open", errno);
  InputFile file(path, fd, 0);
  struct stat info;
  if (fstat(fd, &info) != 0) return FileError(path, "cannot read", errno);
  if (!S_ISREG(info.st_mode)) return InvalidArgument(path, ": not a regular file");
  file.size_ = static_cast<uint64_t>(info.st_size);
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

InputFile::~InputFile() {
  if (fd_ >= 0) close(fd_);
}

absl::Status InputFile::Read(uint64_t offset, void* out, size_t size) const {
  char* to = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t n = pread(fd_, to, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError(path_, "cannot read", errno);
    if (n == 0) return InvalidArgument(path_, ": the file ends before byte ", offset + size);
    to += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes) {
  TILERT_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  if (file.size() > max_bytes)
    return absl::ResourceExhaustedError(Cat(path, ": ", file.size(), " bytes; ", max_bytes, " can be read"));
  std::string bytes(file.size(), '\0');
  TILERT_RETURN_IF_ERROR(file.Read(0, bytes.data(), bytes.size()));
  return bytes;
}

bool IsSameFile(const std::string& a, const std::string& b) {
  struct stat first, second;
  return stat(a.c_str(), &first) == 0 && stat(b.c_str(), &second) == 0 && S_ISREG(first.st_mode) &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

absl::Status WriteFile(const std::string& path, std::string_view bytes) {
  if (path == "-") return WriteAll(STDOUT_FILENO, "standard output", bytes);
  struct stat info;
  const bool exists = stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return FileError(path, "cannot create", EISDIR);
  if (exists && !S_ISREG(info.st_mode)) return WriteInto(path, bytes);
  std::string temporary = Cat(path, ".XXXXXX");
  const int fd = mkstemp(temporary.data());
  if (fd < 0) return FileError(path, "cannot create", errno);
  const mode_t mask = umask(0);
  umask(mask);
  absl::Status status = WriteAll(fd, path, bytes);
  if (status.ok() && fchmod(fd, 0666 & ~mask) != 0) status = FileError(path, "cannot write", errno);
  if (close(fd) != 0 && status.ok()) status = FileError(path, "cannot write", errno);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) status = FileError(path, "cannot create", errno);
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

}  // namespace tilert::tool
