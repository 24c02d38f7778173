#include "runtime/cache_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tilert {
namespace {

// The variable's value if it is an absolute path; empty when unset, relative, or hidden because of setuid.
std::string AbsolutePathFromEnvironment(const char* variable) {
  const char* value = secure_getenv(variable);
  return value != nullptr && value[0] == '/' ? value : "";
}

std::string HomeFromPasswd() {
  std::vector<char> buffer(16384);
  struct passwd entry;
  struct passwd* found = nullptr;
  const int result = getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found);
  if (result != 0 || found == nullptr || found->pw_dir == nullptr || found->pw_dir[0] != '/') return "";
  return found->pw_dir;
}

// mkdir -p; existing components may be anything, OpenCacheDirectory judges the last.
absl::Status MakeDirectories(const std::string& path) {
  std::string prefix;
  for (absl::string_view component : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    absl::StrAppend(&prefix, "/", component);
    if (mkdir(prefix.c_str(), 0700) != 0 && errno != EEXIST) {
      const int error = errno;
      // EACCES, EROFS and the like come before EEXIST on some file systems.
      struct stat status;
      if (stat(prefix.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) continue;
      return ErrnoStatus(error, absl::StrCat("mkdir ", prefix));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string DefaultCacheDirectory() {
  // A relative path is returned too: opening it says what is wrong with it, and no other directory is used in its place.
  if (const char* own = secure_getenv("TILERT_CACHE_DIR"); own != nullptr) return own;
  if (const std::string path = AbsolutePathFromEnvironment("XDG_CACHE_HOME"); !path.empty()) return path + "/tilert";
  std::string home = AbsolutePathFromEnvironment("HOME");
  if (home.empty()) home = HomeFromPasswd();
  return home.empty() ? "" : home + "/.cache/tilert";
}

absl::StatusOr<FileHandle> OpenCacheDirectory(const std::string& path) {
  if (path.empty() || path[0] != '/')
    return absl::FailedPreconditionError(absl::StrCat("cache directory '", path, "' is no absolute path"));
  if (absl::Status status = MakeDirectories(path); !status.ok()) return status;
  // Opened first, judged by descriptor: what is checked is what is used.
  int fd;
  do {
    fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  FileHandle handle(fd);
  if (!handle && (errno == ELOOP || errno == ENOTDIR)) {
    return absl::FailedPreconditionError(
        absl::StrCat("cache directory ", path, " is a symlink or no directory; name a real one"));
  }
  if (!handle) return ErrnoStatus(errno, absl::StrCat("open ", path));
  struct stat status;
  if (fstat(handle.get(), &status) != 0) return ErrnoStatus(errno, absl::StrCat("stat ", path));
  if (status.st_uid != geteuid()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cache directory ", path, " belongs to uid ", status.st_uid, ", not to ", geteuid(), "; it is not trusted"));
  }
  if ((status.st_mode & 022) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cache directory ", path, " can be written by others; it is not trusted (chmod 700 it)"));
  }
  return handle;
}

}  // namespace tilert
