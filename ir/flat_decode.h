// One program of a bundle's FlatBuffer → Program. See ir/flat_reader.h for what is promised about untrusted input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/program.h"
#include "schemas/bundle_generated.h"

namespace tilert {

// Access to the vectors and strings of a verified FlatBuffer, with a budget: hostile arrays may lie on top of each other, so each
// is paid for as often as it is used and the work stays proportional to the size of the buffer. When it is spent, or an array is
// misaligned, everything reads as empty and status() says so.
class FlatAccess {
 public:
  FlatAccess(const flat::Bundle& bundle, uint64_t flat_bytes);

  template <typename T>
  absl::Span<const T> Structs(const flatbuffers::Vector<const T*>* vector) {
    return vector == nullptr ? absl::Span<const T>() : Array<T>(vector->Data(), vector->size());
  }
  template <typename T>
  absl::Span<const T> Scalars(const flatbuffers::Vector<T>* vector) {
    return vector == nullptr ? absl::Span<const T>() : Array<T>(vector->Data(), vector->size());
  }
  template <typename T>
  std::vector<const T*> Tables(const flatbuffers::Vector<flatbuffers::Offset<T>>* vector) {
    std::vector<const T*> tables;
    if (vector == nullptr || !Spend(uint64_t{vector->size()} * 4)) return tables;
    for (const T* table : *vector) tables.push_back(table);
    return tables;
  }
  // The string with the index; an error (see status) when there is none.
  std::string Text(uint32_t index);

  absl::Status status() const { return status_; }
  void Fail(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

 private:
  template <typename T>
  absl::Span<const T> Array(const void* data, size_t size) {
    if (size == 0) return {};
    if (reinterpret_cast<uintptr_t>(data) % alignof(T) != 0) Fail(absl::InvalidArgumentError("bundle: an array is misaligned"));
    if (!Spend(uint64_t{size} * sizeof(T))) return {};
    return absl::Span<const T>(static_cast<const T*>(data), size);
  }
  bool Spend(uint64_t bytes);

  const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* strings_;
  uint64_t bytes_left_, text_left_;
  absl::Status status_;
};

// The program at `path` ("programs[3]"). Its structure holds (ir/structure.h).
absl::StatusOr<Program> DecodeProgram(const flat::Program& flat, FlatAccess& access, const std::string& path);

}  // namespace tilert
