#include "runtime/tensor_map.h"

#include <algorithm>
#include <cstring>

#include "ir/status_util.h"

namespace tilert {
namespace {

constexpr uint64_t kMaxExtent = uint64_t{1} << 32, kMaxStride = uint64_t{1} << 40;
constexpr uint64_t kGranule = 16;  // bytes that everything TMA touches is a multiple of
constexpr int64_t kMaxBox = 256;   // elements a dim

// CUtensorMapDataType; −1: none.
int MapType(DType type) {
  switch (type) {
    case DType::kBool:
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2: return cuda::kMapUInt8;
    case DType::kInt16:
    case DType::kUInt16: return cuda::kMapUInt16;
    case DType::kInt32: return cuda::kMapInt32;
    case DType::kUInt32: return cuda::kMapUInt32;
    case DType::kInt64: return cuda::kMapInt64;
    case DType::kUInt64: return cuda::kMapUInt64;
    case DType::kFloat16: return cuda::kMapFloat16;
    case DType::kBFloat16: return cuda::kMapBFloat16;
    case DType::kFloat32: return cuda::kMapFloat32;
    case DType::kFloat64: return cuda::kMapFloat64;
    default: return -1;
  }
}

// CUtensorMapSwizzle; −1: none.
int MapSwizzle(int bytes) {
  switch (bytes) {
    case 0: return cuda::kMapSwizzleNone;
    case 32: return cuda::kMapSwizzle32B;
    case 64: return cuda::kMapSwizzle64B;
    case 128: return cuda::kMapSwizzle128B;
    default: return -1;
  }
}

}  // namespace

absl::Status CheckTensorMap(const Program& program, const LoweredTensorMap& map) {
  const auto impossible = [] { return absl::DataLossError("a launch record has an impossible tensor map"); };
  if (map.buffer >= program.buffers.size() || program.buffers[map.buffer].scope != Scope::kGlobal) return impossible();
  const Buffer& buffer = program.buffers[map.buffer];
  const size_t rank = buffer.shape.size();
  if (map.dtype != buffer.dtype || MapType(map.dtype) < 0 || MapSwizzle(map.swizzle) < 0) return impossible();
  if (rank < 1 || rank > kMaxMapRank || map.box.size() != rank) return impossible();
  if (std::any_of(map.box.begin(), map.box.end(), [](int64_t extent) { return extent < 1 || extent > kMaxBox; }))
    return impossible();
  const int64_t row = map.box.back() * DTypeBytes(map.dtype);
  if (row % static_cast<int64_t>(kGranule) != 0 || (map.swizzle != 0 && row > map.swizzle)) return impossible();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TensorMapEncoder>> TensorMapEncoder::Make(const cuda::Driver& driver, const ArgPlan& plan,
                                                                         const LoweredTensorMap& map) {
  if (driver.raw().TensorMapEncodeTiled == nullptr) {
    return absl::UnimplementedError(
        Cat(driver.path(), " lacks cuTensorMapEncodeTiled, which kernels with TMA copies need: install a newer NVIDIA driver"));
  }
  const int tensor = plan.TensorIndex(map.buffer);
  if (tensor < 0) return Internal("a tensor map of '", plan.program().name, "' is for a buffer that is no argument");
  std::unique_ptr<TensorMapEncoder> encoder(new TensorMapEncoder);
  encoder->driver_ = &driver;
  encoder->tensor_ = static_cast<uint32_t>(tensor);
  encoder->rank_ = static_cast<uint32_t>(map.box.size());
  encoder->type_ = MapType(map.dtype);
  encoder->swizzle_ = MapSwizzle(map.swizzle);
  std::transform(map.box.rbegin(), map.box.rend(), encoder->box_.begin(), [](int64_t n) { return static_cast<uint32_t>(n); });
  return encoder;
}

bool TensorMapEncoder::MakeKey(const ArgPlan& plan, const LaunchValues& values, Key& key) const {
  const LaunchValues::Tensor& tensor = values.tensors[tensor_];
  key.address = reinterpret_cast<uintptr_t>(tensor.data);
  if (key.address == 0 || key.address % kGranule != 0 || !tensor.inner_is_dense) return false;
  plan.MapGeometry(tensor_, values, key.extents.data(), key.strides.data());
  bool fits = true;
  for (uint32_t d = 0; d < rank_; ++d) {
    fits &= key.extents[d] - 1 < kMaxExtent - 1;  // 1 … 2^32 − 1
    if (d == 0) continue;
    uint64_t& stride = key.strides[d - 1];  // negative ones are beyond every limit
    const bool is_legal = stride % kGranule == 0 && stride - 1 < kMaxStride - 1;
    if (key.extents[d] == 1 && !is_legal) stride = kGranule;  // never taken
    fits &= is_legal || key.extents[d] == 1;
  }
  return fits;
}

bool TensorMapEncoder::Encode(const Key& key, cuda::TensorMap& out) const {
  static constexpr uint32_t kOnes[kMaxMapRank] = {1, 1, 1, 1, 1};
  return driver_->raw().TensorMapEncodeTiled(&out, type_, rank_, reinterpret_cast<void*>(key.address), key.extents.data(),
                                             key.strides.data(), box_.data(), kOnes, cuda::kMapInterleaveNone, swizzle_,
                                             cuda::kMapL2Promotion128B, cuda::kMapFillZero) == cuda::kSuccess;
}

size_t TensorMapEncoder::Slot(const Key& key) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio: spreads neighbours
  const uint64_t mixed = ((key.address >> 4) + key.extents[0] * 31 + key.extents[1] * 1031) * kOdd;
  static_assert(kEntries == 64);
  return mixed >> 58;
}

// Acquire loads keep the last look at the version behind them; together with the release stores of Keep, whoever sees a word of a
// later map sees a later version too.
bool TensorMapEncoder::Find(const Entry& entry, const Key& key, cuda::TensorMap& out) const {
  constexpr auto kAcquire = std::memory_order_acquire;
  const uint32_t version = entry.version.load(kAcquire);
  if (version % 2 != 0 || entry.key[0].load(kAcquire) != key.address) return false;
  bool same = true;
  for (uint32_t d = 0; d < rank_; ++d) same &= entry.key[1 + d].load(kAcquire) == key.extents[d];
  for (uint32_t d = 0; d + 1 < rank_; ++d) same &= entry.key[1 + kMaxMapRank + d].load(kAcquire) == key.strides[d];
  if (!same) return false;
  for (size_t i = 0; i < entry.map.size(); ++i) out.words[i] = entry.map[i].load(kAcquire);
  return entry.version.load(std::memory_order_relaxed) == version;
}

void TensorMapEncoder::Keep(Entry& entry, const Key& key, const cuda::TensorMap& map) {
  constexpr auto kRelease = std::memory_order_release;
  uint32_t version = entry.version.load(std::memory_order_relaxed);
  // Somebody else is at it: what they keep is as good.
  if (version % 2 != 0 || !entry.version.compare_exchange_strong(version, version + 1, std::memory_order_acq_rel)) return;
  entry.key[0].store(key.address, kRelease);
  for (size_t d = 0; d < kMaxMapRank; ++d) entry.key[1 + d].store(key.extents[d], kRelease);
  for (size_t d = 0; d + 1 < kMaxMapRank; ++d) entry.key[1 + kMaxMapRank + d].store(key.strides[d], kRelease);
  for (size_t i = 0; i < entry.map.size(); ++i) entry.map[i].store(map.words[i], kRelease);
  entry.version.store(version + 2, kRelease);
}

bool TensorMapEncoder::Fill(const ArgPlan& plan, const LaunchValues& values, cuda::TensorMap& out) {
  Key key;
  if (!MakeKey(plan, values, key)) return false;
  Entry& entry = entries_[Slot(key)];
  if (Find(entry, key, out)) return true;
  if (!Encode(key, out)) return false;
  Keep(entry, key, out);
  return true;
}

}  // namespace tilert
