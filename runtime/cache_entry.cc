#include "runtime/cache_entry.h"

#include <cstring>

namespace tilert {
namespace {

constexpr std::string_view kMagic = "TILERTC\n";
constexpr uint32_t kFormatVersion = 1;

void AppendLittleEndian(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t LittleEndianAt(std::string_view bytes, size_t offset, int count) {
  uint64_t value = 0;
  for (int i = 0; i < count; ++i) value |= uint64_t{static_cast<uint8_t>(bytes[offset + i])} << (8 * i);
  return value;
}

void AppendDigest(std::string& out, const Sha256Digest& digest) {
  out.append(reinterpret_cast<const char*>(digest.data()), digest.size());
}

bool DigestIs(std::string_view bytes, size_t offset, const Sha256Digest& digest) {
  return std::memcmp(bytes.data() + offset, digest.data(), digest.size()) == 0;
}

struct Sections {
  std::string_view key, record, code;
};

// The payload's parts, if header, sizes and hashes are right.
std::optional<Sections> Split(std::string_view bytes) {
  if (bytes.size() < kCacheHeaderSize || bytes.size() > kMaxCacheFileSize) return std::nullopt;
  if (bytes.substr(0, kMagic.size()) != kMagic) return std::nullopt;
  if (LittleEndianAt(bytes, 8, 4) != kFormatVersion || LittleEndianAt(bytes, 12, 4) != kCacheHeaderSize) return std::nullopt;
  if (LittleEndianAt(bytes, 16, 8) != bytes.size()) return std::nullopt;
  if (!DigestIs(bytes, 152, Sha256Of(bytes.substr(0, 152)))) return std::nullopt;
  const uint64_t key = LittleEndianAt(bytes, 56, 8), record = LittleEndianAt(bytes, 64, 8), code = LittleEndianAt(bytes, 72, 8);
  const std::string_view payload = bytes.substr(kCacheHeaderSize);
  // One at a time: the sum of three untrusted sizes may wrap.
  if (key > payload.size() || record > payload.size() - key || code != payload.size() - key - record) return std::nullopt;
  if (!DigestIs(bytes, 112, Sha256Of(payload))) return std::nullopt;
  return Sections{payload.substr(0, key), payload.substr(key, record), payload.substr(key + record)};
}

}  // namespace

std::string EncodeCacheEntry(std::string_view key, const CacheEntry& entry) {
  Sha256 payload_hash;
  for (const std::string_view part : {key, std::string_view(entry.record), std::string_view(entry.code)})
    payload_hash.Update(part);
  std::string out(kMagic);
  out.reserve(kCacheHeaderSize + key.size() + entry.record.size() + entry.code.size());
  AppendLittleEndian(out, kFormatVersion, 4);
  AppendLittleEndian(out, kCacheHeaderSize, 4);
  AppendLittleEndian(out, kCacheHeaderSize + key.size() + entry.record.size() + entry.code.size(), 8);
  AppendDigest(out, entry.source_hash);
  AppendLittleEndian(out, key.size(), 8);
  AppendLittleEndian(out, entry.record.size(), 8);
  AppendLittleEndian(out, entry.code.size(), 8);
  out.append(32, '\0');
  AppendDigest(out, payload_hash.Finish());
  out.append(8, '\0');
  AppendDigest(out, Sha256Of(out));
  out.append(key).append(entry.record).append(entry.code);
  return out;
}

std::optional<CacheEntry> DecodeCacheEntry(std::string_view key, std::string_view bytes) {
  const std::optional<Sections> sections = Split(bytes);
  if (!sections || sections->key != key || sections->code.empty()) return std::nullopt;
  CacheEntry entry;
  std::memcpy(entry.source_hash.data(), bytes.data() + 24, entry.source_hash.size());
  entry.record = sections->record;
  entry.code = sections->code;
  return entry;
}

std::optional<std::string> DecodeCacheKey(std::string_view bytes) {
  const std::optional<Sections> sections = Split(bytes);
  if (!sections) return std::nullopt;
  return std::string(sections->key);
}

}  // namespace tilert
