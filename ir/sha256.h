// SHA-256 (FIPS 180-4), used for blob hashes in bundles and for keys and payloads of the cubin cache.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tilert {

using Sha256Digest = std::array<uint8_t, 32>;

// Incremental hash. Not thread safe; copying forks the state.
class Sha256 {
 public:
  // kPortable: without the processor's instructions, where it has some.
  enum class Rounds { kFastest, kPortable };
  explicit Sha256(Rounds rounds = Rounds::kFastest);

  // Appends `size` bytes. `data` may be null when size is 0.
  void Update(const void* data, size_t size);
  void Update(std::string_view bytes) { Update(bytes.data(), bytes.size()); }

  // Appends a length-prefixed field, so that ("ab","c") and ("a","bc") hash differently.
  void UpdateField(std::string_view bytes);
  void UpdateField(uint64_t value);

  // Ends the message. The object must not be used afterwards.
  Sha256Digest Finish();

 private:
  void Blocks(const uint8_t* bytes, size_t count);  // of 64 bytes
  void Block(const uint8_t* block);

  Rounds rounds_;
  std::array<uint32_t, 8> state_;
  std::array<uint8_t, 64> pending_;
  uint64_t length_ = 0;  // bytes hashed so far
};

// Hash of one buffer.
Sha256Digest Sha256Of(const void* data, size_t size);
inline Sha256Digest Sha256Of(std::string_view bytes) { return Sha256Of(bytes.data(), bytes.size()); }

// 64 lower-case hexadecimal digits.
std::string Sha256Hex(const Sha256Digest& digest);

}  // namespace tilert
