// Tensor maps of launches (CUtensorMap, PTX ISA "tensor-map"): what TMA copies of a kernel know about a tensor. Encoded by the
// driver on the host, once for each tensor, and kept.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "lowering/lowered.h"
#include "runtime/arg_plan.h"
#include "runtime/driver.h"

namespace tilert {

// DataLoss unless the box, the swizzle and the type are such that a tensor can exist which the driver encodes.
absl::Status CheckTensorMap(const Program& program, const LoweredTensorMap& map);

// One tensor map of one kernel. Thread safe; Fill neither locks nor allocates.
class TensorMapEncoder {
 public:
  // Unimplemented: the driver cannot encode tensor maps.
  // REQUIRES: CheckTensorMap(plan.program(), map) is OK; `driver` outlives the encoder.
  static absl::StatusOr<std::unique_ptr<TensorMapEncoder>> Make(const cuda::Driver& driver, const ArgPlan& plan,
                                                                const LoweredTensorMap& map);

  // The map of the tensor that `values` has. False when TMA cannot work on it: the base is not a multiple of 16 bytes, a dim is
  // zero or 2^32 or more, a stride is no multiple of 16 bytes, not positive, or 2^40 bytes or more, the elements of the last dim
  // are not next to each other, or the driver refuses. (CUDA driver API, cuTensorMapEncodeTiled.)
  bool Fill(const ArgPlan& plan, const LaunchValues& values, cuda::TensorMap& out);

 private:
  static constexpr size_t kEntries = 64;  // a kernel is often called with the weights of many layers
  // Address; extents and then strides, innermost first, as the driver takes them.
  struct Key {
    uint64_t address = 0;  // zero: none
    std::array<uint64_t, kMaxMapRank> extents{};
    std::array<uint64_t, kMaxMapRank - 1> strides{};
  };
  static constexpr size_t kKeyWords = 2 * kMaxMapRank;
  // A map that was encoded, and for what. Readers take it when `version` is even and the same before and after; a writer makes it
  // odd first. Words are atomic only so that a torn read is defined.
  struct alignas(64) Entry {
    std::atomic<uint32_t> version{0};
    std::array<std::atomic<uint64_t>, kKeyWords> key{};
    std::array<std::atomic<uint64_t>, 16> map{};
  };

  TensorMapEncoder() = default;
  bool MakeKey(const ArgPlan& plan, const LaunchValues& values, Key& key) const;
  bool Encode(const Key& key, cuda::TensorMap& out) const;
  static size_t Slot(const Key& key);
  bool Find(const Entry& entry, const Key& key, cuda::TensorMap& out) const;
  static void Keep(Entry& entry, const Key& key, const cuda::TensorMap& map);

  const cuda::Driver* driver_ = nullptr;
  uint32_t tensor_ = 0;  // index into LaunchValues::tensors
  uint32_t rank_ = 0;
  int type_ = 0, swizzle_ = 0;  // as the driver numbers them
  std::array<uint32_t, kMaxMapRank> box_{};
  std::array<Entry, kEntries> entries_;
};

}  // namespace tilert
