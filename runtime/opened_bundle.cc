#include "runtime/opened_bundle.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "ir/flat_reader.h"
#include "ir/limits.h"
#include "ir/status_util.h"
#include "runtime/file_util.h"

namespace tilert {

absl::StatusOr<std::shared_ptr<const OpenedBundle>> OpenedBundle::FromMemory(std::string_view bytes, bool copy) {
  auto opened = std::make_shared<OpenedBundle>();
  if (copy) {
    opened->owned_ = std::string(bytes);
    bytes = opened->owned_;
  }
  TILERT_ASSIGN_OR_RETURN(opened->bundle_, ReadBundle(bytes));
  return opened;
}

absl::StatusOr<std::shared_ptr<const OpenedBundle>> OpenedBundle::FromFile(const std::string& path) {
  // Not blocking, so that a FIFO is an error and no hang.
  TILERT_ASSIGN_OR_RETURN(const FileHandle file, OpenAt(AT_FDCWD, path, O_RDONLY | O_NONBLOCK));
  struct stat status;
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return InvalidArgument(path, " is no regular file");
  if (static_cast<uint64_t>(status.st_size) > kMaxBundleBytes) return InvalidArgument(path, " is too large for a bundle");
  auto opened = std::make_shared<OpenedBundle>();
  absl::StatusOr<std::string> bytes = ReadExactly(file.get(), static_cast<size_t>(status.st_size));
  if (!bytes.ok()) return absl::Status(bytes.status().code(), Cat(path, ": ", std::string(bytes.status().message())));
  opened->owned_ = *std::move(bytes);
  absl::StatusOr<Bundle> bundle = ReadBundle(opened->owned_);
  if (!bundle.ok()) return absl::Status(bundle.status().code(), Cat(path, ": ", std::string(bundle.status().message())));
  opened->bundle_ = *std::move(bundle);
  return opened;
}

absl::StatusOr<const Program*> OpenedBundle::Entry(std::string_view name) const {
  if (const Program* program = bundle_.Find(name)) return program;
  std::string known;
  for (const Program& program : bundle_.programs) absl::StrAppend(&known, known.empty() ? "" : ", ", program.name);
  return absl::NotFoundError(Cat("the bundle has no entry '", name, "'; it has: ", known.empty() ? "none" : known));
}

}  // namespace tilert
