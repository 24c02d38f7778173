// Opens a shared library of the machine we run on, and says which paths were tried when there is none.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tilert {

// A handle to an opened library. It is never closed: libcuda and libnvrtc own threads and state that do not survive an
// unload, so the handle may be copied freely and lives as long as the process. Thread safe.
class DynamicLibrary {
 public:
  // Opens the file named by the environment variable `override_variable` if that is set (and the process is not
  // setuid), else the first of `candidates` that loads. Errors: NotFound, naming every path and why it failed.
  static absl::StatusOr<DynamicLibrary> Open(const char* what, const char* override_variable,
                                             const std::vector<std::string>& candidates);

  // Address of `symbol`, or null.
  void* Find(const char* symbol) const;

  // The name that loaded.
  const std::string& path() const { return path_; }

 private:
  DynamicLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

  void* handle_;
  std::string path_;
};

}  // namespace tilert
