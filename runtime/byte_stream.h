// Little-endian fields in a byte string, for records inside cache entries. The reader distrusts its input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tilert {

class ByteWriter {
 public:
  void U64(uint64_t value) {
    for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
  }
  void I64(int64_t value) { U64(static_cast<uint64_t>(value)); }
  void Text(std::string_view text) {
    U64(text.size());
    bytes_.append(text);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Once a read fails, every later one gives zero or nothing and ok() stays false.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return bytes_.empty(); }
  uint64_t U64() {
    if (bytes_.size() < 8) return Fail();
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value |= uint64_t{static_cast<uint8_t>(bytes_[i])} << (8 * i);
    bytes_.remove_prefix(8);
    return value;
  }
  int64_t I64() { return static_cast<int64_t>(U64()); }
  // A count of things that take at least `bytes_each` bytes: never more than can follow.
  uint64_t Count(size_t bytes_each) {
    const uint64_t count = U64();
    return count <= bytes_.size() / bytes_each ? count : Fail();
  }
  std::string Text() {
    const uint64_t size = Count(1);
    std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }

 private:
  uint64_t Fail() {
    ok_ = false;
    bytes_ = {};
    return 0;
  }

  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace tilert
