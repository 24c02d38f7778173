#include "ir/container.h"

#include <cstring>

#include "ir/limits.h"
#include "ir/sha256.h"
#include "ir/status_util.h"

namespace tilert {
namespace {

constexpr std::string_view kMagic("TILERT\x1a\n", 8);

void Put(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

uint64_t Get(std::string_view bytes, size_t offset, int size) {
  uint64_t value = 0;
  for (int i = 0; i < size; ++i) value |= uint64_t{static_cast<unsigned char>(bytes[offset + i])} << (8 * i);
  return value;
}

}  // namespace

uint64_t ContentHash(std::string_view flatbuffer) {
  const Sha256Digest digest = Sha256Of(flatbuffer);
  return Get(std::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()), 0, 8);
}

std::string EncodeHeader(const BundleHeader& header) {
  std::string out(kMagic);
  Put(out, kHeaderBytes, 4);
  Put(out, header.major, 2);
  Put(out, header.minor, 2);
  for (uint64_t field :
       {uint64_t{0}, header.fb_offset, header.fb_size, header.blob_offset, header.file_size, header.content_hash})
    Put(out, field, 8);
  return out;
}

absl::StatusOr<BundleHeader> DecodeHeader(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes || bytes.substr(0, kMagic.size()) != kMagic) {
    if (kMagic.substr(0, bytes.size()) == bytes.substr(0, kMagic.size())) {
      return InvalidArgument("bundle: truncated: ", bytes.size(), " bytes are less than the header of ", kHeaderBytes);
    }
    return InvalidArgument("bundle: not a tilert bundle (it does not begin with its magic number)");
  }
  BundleHeader h;
  const uint64_t header_size = Get(bytes, 8, 4), flags = Get(bytes, 16, 8);
  h.major = static_cast<uint16_t>(Get(bytes, 12, 2));
  h.minor = static_cast<uint16_t>(Get(bytes, 14, 2));
  h.fb_offset = Get(bytes, 24, 8);
  h.fb_size = Get(bytes, 32, 8);
  h.blob_offset = Get(bytes, 40, 8);
  h.file_size = Get(bytes, 48, 8);
  h.content_hash = Get(bytes, 56, 8);
  if (h.major == 0) return InvalidArgument("bundle: major version 0 does not exist");
  if (h.major > kBundleMajor || h.minor > kBundleMinor) {
    return absl::UnimplementedError(Cat("bundle: needs format ", h.major, ".", h.minor, "; this library reads up to ",
                                        kBundleMajor, ".", kBundleMinor,
                                        ": update it, or write the bundle for an older version"));
  }
  if (flags != 0) return absl::UnimplementedError(Cat("bundle: header flags ", flags, " are unknown to this library: update it"));
  if (header_size != kHeaderBytes) return InvalidArgument("bundle: header size is ", header_size, ", not ", kHeaderBytes);
  if (h.file_size != bytes.size() || h.file_size > kMaxBundleBytes) {
    return InvalidArgument("bundle: the header says ", h.file_size, " bytes, the file has ", bytes.size(), " (truncated?)");
  }
  if (h.fb_size > kMaxFlatBytes)
    return InvalidArgument("bundle: its FlatBuffer has ", h.fb_size, " bytes; at most ", kMaxFlatBytes, " are allowed");
  const bool in_order = h.fb_offset >= kHeaderBytes && h.fb_offset <= h.file_size && h.fb_size <= h.file_size - h.fb_offset &&
                        h.blob_offset >= h.fb_offset + h.fb_size && h.blob_offset <= h.file_size;
  if (!in_order) return InvalidArgument("bundle: the header's offsets do not lie in the file");
  return h;
}

}  // namespace tilert
