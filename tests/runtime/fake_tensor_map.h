// The tensor maps of fake_libcuda.so: readable, and as strict as the driver's.
#pragma once

#include <cstdint>
#include <cstring>

#include "runtime/driver_api.h"

namespace tilert {

// What cuTensorMapEncodeTiled was given, which is also the map it made: word by word, so that a launch shows what it passes on.
struct FakeTensorMap {
  uint64_t address = 0;
  uint32_t type = 0, rank = 0;
  uint64_t extents[5] = {};  // innermost first
  uint64_t strides[4] = {};
  uint16_t box[5] = {};
  uint8_t swizzle = 0, promotion = 0, fill = 0, interleave = 0;
  uint32_t element_strides = 0;  // their product
  uint64_t check = 0;            // over all of the above
};
static_assert(sizeof(FakeTensorMap) <= sizeof(cuda::TensorMap));
// What FakeTensorMap::check must be.
inline uint64_t FakeMapCheck(const FakeTensorMap& map) {
  uint64_t sum = map.type * 3 + map.rank * 5 + map.swizzle * 7 + map.address;
  for (const uint64_t extent : map.extents) sum = sum * 1000003 + extent;
  for (const uint64_t stride : map.strides) sum = sum * 1000003 + stride;
  for (const uint16_t extent : map.box) sum = sum * 1000003 + extent;
  return sum;
}

// CUDA driver API, cuTensorMapEncodeTiled: what the parameters are bound to. False when any is not.
inline bool EncodeFakeMap(cuda::TensorMap* out, int type, unsigned rank, void* address, const uint64_t* extents,
                          const uint64_t* strides, const uint32_t* box, const uint32_t* element_strides, int interleave,
                          int swizzle, int promotion, int fill) {
  static constexpr uint64_t kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
  const auto base = reinterpret_cast<uint64_t>(address);
  if (type < 0 || type > cuda::kMapBFloat16 || rank < 1 || rank > 5 || base == 0 || base % 16 != 0) return false;
  if (reinterpret_cast<uintptr_t>(out) % 64 != 0 || interleave != 0 || swizzle < 0 || swizzle > 3) return false;
  FakeTensorMap map;
  map.address = base, map.type = static_cast<uint32_t>(type), map.rank = rank, map.element_strides = 1;
  for (unsigned d = 0; d < rank; ++d) {
    if (extents[d] < 1 || extents[d] > uint64_t{1} << 32 || box[d] < 1 || box[d] > 256) return false;
    map.extents[d] = extents[d], map.box[d] = static_cast<uint16_t>(box[d]), map.element_strides *= element_strides[d];
    if (d + 1 == rank) continue;
    if (strides[d] % 16 != 0 || strides[d] == 0 || strides[d] >= uint64_t{1} << 40) return false;
    map.strides[d] = strides[d];
  }
  const uint64_t row = box[0] * kBytes[type];
  if (row % 16 != 0 || (swizzle != 0 && row > uint64_t{16} << swizzle)) return false;
  map.swizzle = static_cast<uint8_t>(swizzle), map.promotion = static_cast<uint8_t>(promotion);
  map.fill = static_cast<uint8_t>(fill), map.interleave = static_cast<uint8_t>(interleave);
  map.check = FakeMapCheck(map);
  std::memset(out->words, 0, sizeof out->words);
  std::memcpy(static_cast<void*>(out), &map, sizeof map);
  return true;
}

}  // namespace tilert
