// Where the cubin cache lives, and whether that place can be trusted.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/file_util.h"

namespace tilert {

// The directory the environment asks for: $TILERT_CACHE_DIR, else $XDG_CACHE_HOME/tilert, else $HOME/.cache/tilert,
// else the home of the passwd entry. Empty: no cache ($TILERT_CACHE_DIR set to nothing, or no home at all).
// A relative $TILERT_CACHE_DIR comes back as it is, and OpenCacheDirectory refuses it.
// A setuid or setgid process ignores the environment. Relative paths count as unset.
std::string DefaultCacheDirectory();

// Opens `path`, creating it and its parents with mode 0700. Refuses (FailedPrecondition) a last component that is a
// symlink or no directory, belongs to another user, or can be written by group or others.
absl::StatusOr<FileHandle> OpenCacheDirectory(const std::string& path);

}  // namespace tilert
