// Remembers what was found out for the dims of recent launches, without locks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace tilert {

// Maps tuples of dims to small numbers; forgets at will. Thread safe: a reader never waits, and sees only what was put whole
// (each entry is a sequence lock). A writer that meets another one gives up.
class DimMemo {
 public:
  static constexpr size_t kMaxDims = 8;  // longer tuples are not kept

  // −1: not there.
  int Find(absl::Span<const int64_t> dims) const {
    if (dims.size() > kMaxDims) return -1;
    const Entry& entry = entries_[Slot(dims)];
    const uint32_t before = entry.sequence.load(std::memory_order_acquire);
    if (before == 0 || before % 2 != 0) return -1;
    bool same = true;
    for (size_t i = 0; i < dims.size(); ++i) same &= entry.dims[i].load(std::memory_order_acquire) == dims[i];
    const int value = entry.value.load(std::memory_order_acquire);
    return same && entry.sequence.load(std::memory_order_relaxed) == before ? value : -1;
  }

  // All tuples of one memo have the same length. `value` is not negative.
  void Put(absl::Span<const int64_t> dims, int value) {
    if (dims.size() > kMaxDims) return;
    Entry& entry = entries_[Slot(dims)];
    uint32_t before = entry.sequence.load(std::memory_order_relaxed);
    if (before % 2 != 0 || !entry.sequence.compare_exchange_strong(before, before + 1, std::memory_order_acquire)) return;
    // Whoever reads one of these sees the odd number, too, when it looks again. (No fences: thread sanitizers do not know them.)
    for (size_t i = 0; i < dims.size(); ++i) entry.dims[i].store(dims[i], std::memory_order_release);
    entry.value.store(value, std::memory_order_release);
    entry.sequence.store(before + 2, std::memory_order_release);
  }

 private:
  static constexpr size_t kEntries = 16;  // a model calls a kernel with a handful of shapes
  struct Entry {
    std::atomic<uint32_t> sequence{0};  // odd while being written; 0: never was
    std::atomic<int> value{0};
    std::atomic<int64_t> dims[kMaxDims] = {};
  };
  static size_t Slot(absl::Span<const int64_t> dims) {
    uint64_t hash = 0;
    for (const int64_t dim : dims) hash = (hash ^ static_cast<uint64_t>(dim)) * 0x9e3779b97f4a7c15u;
    return hash >> 60;
  }

  Entry entries_[kEntries];
};

}  // namespace tilert
