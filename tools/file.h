// Whole files, and parts of large ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tilert::tool {

// NotFound and the like name the file. ResourceExhausted when it is larger than `max_bytes`.
absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes = uint64_t{1} << 36);

// A regular file opened for reading at offsets.
class InputFile {
 public:
  static absl::StatusOr<InputFile> Open(const std::string& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  // Fills `size` bytes at `out`. InvalidArgument when the file ends before.
  absl::Status Read(uint64_t offset, void* out, size_t size) const;

 private:
  InputFile(std::string path, int fd, uint64_t size) : path_(std::move(path)), fd_(fd), size_(size) {}
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

// Are both there, and one regular file, whatever they are called?
bool IsSameFile(const std::string& a, const std::string& b);

// Replaces `path` by `bytes` in one step: other readers see the old file or the whole new one. "-" is standard output.
absl::Status WriteFile(const std::string& path, std::string_view bytes);

}  // namespace tilert::tool
