// Loads, stores and conversions of many values at once: the inner loops of the executor.
#include <cstring>

#include "ir/int_math.h"
#include "ir/numeric.h"

namespace tilert {
namespace {

template <typename T, typename F>
void LoadAs(const void* memory, int64_t stride, int64_t n, Value* out, F decode) {
  const char* p = static_cast<const char*>(memory);
  const int64_t step = stride * static_cast<int64_t>(sizeof(T));
  for (int64_t k = 0; k < n; ++k) {
    T raw;
    std::memcpy(&raw, p + k * step, sizeof raw);
    decode(raw, out[k]);
  }
}

template <typename T, typename F>
void StoreAs(const Value* values, int64_t n, void* memory, int64_t stride, F encode) {
  char* p = static_cast<char*>(memory);
  const int64_t step = stride * static_cast<int64_t>(sizeof(T));
  for (int64_t k = 0; k < n; ++k) {
    const T raw = encode(values[k]);
    std::memcpy(p + k * step, &raw, sizeof raw);
  }
}

template <typename T>
void LoadInts(const void* memory, int64_t stride, int64_t n, Value* out) {
  LoadAs<T>(memory, stride, n, out, [](T raw, Value& v) { v.i = static_cast<int64_t>(raw); });
}

template <typename T>
void StoreInts(const Value* values, int64_t n, void* memory, int64_t stride) {
  StoreAs<T>(values, n, memory, stride, [](Value v) { return static_cast<T>(v.i); });
}

}  // namespace

void LoadRow(DType type, const void* memory, int64_t stride, int64_t n, Value* out) {
  switch (type) {
    case DType::kBool: return LoadAs<uint8_t>(memory, stride, n, out, [](uint8_t raw, Value& v) { v.i = raw != 0; });
    case DType::kInt8: return LoadInts<int8_t>(memory, stride, n, out);
    case DType::kUInt8: return LoadInts<uint8_t>(memory, stride, n, out);
    case DType::kInt16: return LoadInts<int16_t>(memory, stride, n, out);
    case DType::kUInt16: return LoadInts<uint16_t>(memory, stride, n, out);
    case DType::kInt32: return LoadInts<int32_t>(memory, stride, n, out);
    case DType::kUInt32: return LoadInts<uint32_t>(memory, stride, n, out);
    case DType::kInt64:
    case DType::kIndex: return LoadInts<int64_t>(memory, stride, n, out);
    case DType::kUInt64: return LoadInts<uint64_t>(memory, stride, n, out);
    case DType::kFloat16:
      return LoadAs<uint16_t>(memory, stride, n, out, [](uint16_t raw, Value& v) { v.f = DecodeFloat(DType::kFloat16, raw); });
    case DType::kBFloat16:
      return LoadAs<uint16_t>(memory, stride, n, out, [](uint16_t raw, Value& v) {
        const uint32_t wide = static_cast<uint32_t>(raw) << 16;
        float f;
        std::memcpy(&f, &wide, sizeof f);
        v.f = static_cast<double>(f);
      });
    case DType::kFloat32:
      return LoadAs<float>(memory, stride, n, out, [](float raw, Value& v) { v.f = static_cast<double>(raw); });
    case DType::kFloat64: return LoadAs<double>(memory, stride, n, out, [](double raw, Value& v) { v.f = raw; });
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      return LoadAs<uint8_t>(memory, stride, n, out, [type](uint8_t raw, Value& v) { v.f = DecodeFloat(type, raw); });
    case DType::kInvalid: return;
  }
}

void StoreRow(DType type, const Value* values, int64_t n, void* memory, int64_t stride) {
  switch (type) {
    case DType::kFloat16:
    case DType::kBFloat16:
      return StoreAs<uint16_t>(values, n, memory, stride,
                               [type](Value v) { return static_cast<uint16_t>(EncodeFloat(type, v.f)); });
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      return StoreAs<uint8_t>(values, n, memory, stride,
                              [type](Value v) { return static_cast<uint8_t>(EncodeFloat(type, v.f)); });
    case DType::kFloat32: return StoreAs<float>(values, n, memory, stride, [](Value v) { return static_cast<float>(v.f); });
    case DType::kFloat64: return StoreAs<double>(values, n, memory, stride, [](Value v) { return v.f; });
    case DType::kInvalid: return;
    default: break;
  }
  switch (DTypeBits(type)) {
    case 8: return StoreInts<uint8_t>(values, n, memory, stride);
    case 16: return StoreInts<uint16_t>(values, n, memory, stride);
    case 32: return StoreInts<uint32_t>(values, n, memory, stride);
    default: return StoreInts<uint64_t>(values, n, memory, stride);
  }
}

void ConvertRow(DType from, DType to, Value* values, int64_t n) {
  if (from == to) return;
  if (IsFloat(from) && IsFloat(to)) {
    if (to == DType::kFloat64) return;
    for (int64_t k = 0; k < n; ++k) values[k].f = RoundToType(to, values[k].f);
  } else if (IsFloat(to)) {
    for (int64_t k = 0; k < n; ++k) values[k].f = IntToFloat(from, values[k].i, to);
  } else if (IsFloat(from)) {
    for (int64_t k = 0; k < n; ++k) values[k].i = FloatToInt(values[k].f, to);
  } else {
    for (int64_t k = 0; k < n; ++k) values[k].i = WrapInt(values[k].i, to);
  }
}

}  // namespace tilert
