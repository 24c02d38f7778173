// Any bytes → ReadBundle → FindErrors: an error value or a bundle, within time and memory. What was read can be written, and what
// was written reads back the same. Each input is tried as it stands and, where its header is wrong, once more with a header
// that fits, so that mutations get past it.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ir/bundle.h"
#include "ir/container.h"
#include "ir/flat_reader.h"
#include "ir/flat_writer.h"
#include "ir/printer.h"
#include "ir/verifier.h"

namespace tilert {
namespace {

void Require(bool condition, std::string_view what) {
  if (condition) return;
  std::fprintf(stderr, "bundle_fuzz: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

void CheckRoundTrip(const Bundle& bundle) {
  const absl::StatusOr<std::string> bytes = WriteBundle(bundle);
  if (!bytes.ok()) return;  // a limit of the writer
  const absl::StatusOr<Bundle> again = ReadBundle(*bytes);
  Require(again.ok(), "what was written does not read: " + std::string(again.status().message()));
  const absl::StatusOr<std::string> same = WriteBundle(*again);
  Require(same.ok() && *same == *bytes, "writing what was read gives other bytes");
}

void CheckBytes(std::string_view bytes) {
  ReadOptions options;
  options.check_hash = false;
  const absl::StatusOr<Bundle> bundle = ReadBundle(bytes, options);
  if (!bundle.ok()) {
    Require(!bundle.status().message().empty(), "an error without a message");
    return;
  }
  for (const Program& program : bundle->programs) {
    if (FindErrors(program).empty()) PrintProgram(program);
  }
  for (const PrebuiltCubin& cubin : bundle->cubins) CodeMatchesHash(cubin);
  CheckRoundTrip(*bundle);
}

// `bytes` with a header that fits its size, if it has room for one; the FlatBuffer is all that follows.
std::string WithFittingHeader(std::string_view bytes) {
  BundleHeader header;
  header.fb_size = bytes.size() - kHeaderBytes;
  header.blob_offset = (bytes.size() + kBlobAlign - 1) / kBlobAlign * kBlobAlign;
  header.file_size = header.blob_offset;
  std::string file = EncodeHeader(header);
  file.append(bytes.substr(kHeaderBytes));
  file.resize(header.file_size);
  return file;
}

}  // namespace
}  // namespace tilert

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  tilert::CheckBytes(bytes);
  if (size > tilert::kHeaderBytes && !tilert::DecodeHeader(bytes).ok()) tilert::CheckBytes(tilert::WithFittingHeader(bytes));
  return 0;
}
