#include "ir/dtype.h"

namespace tilert {

int DTypeBits(DType type) {
  switch (type) {
#define TILERT_DTYPE(name, id, text, bits, kind) \
  case DType::k##name:                           \
    return bits;
#include "ir/dtype.def"
    case DType::kInvalid:
      break;
  }
  return 0;
}

DTypeKind KindOf(DType type) {
  switch (type) {
#define TILERT_DTYPE(name, id, text, bits, kind) \
  case DType::k##name:                           \
    return DTypeKind::kind;
#include "ir/dtype.def"
    case DType::kInvalid:
      break;
  }
  return DTypeKind::kInvalid;
}

std::string_view DTypeName(DType type) {
  switch (type) {
#define TILERT_DTYPE(name, id, text, bits, kind) \
  case DType::k##name:                           \
    return text;
#include "ir/dtype.def"
    case DType::kInvalid:
      break;
  }
  return "invalid";
}

DType ParseDType(std::string_view text) {
#define TILERT_DTYPE(name, id, spelling, bits, kind) \
  if (text == spelling) return DType::k##name;
#include "ir/dtype.def"
  struct Alias {
    std::string_view text;
    DType type;
  };
  static constexpr Alias kAliases[] = {
      {"half", DType::kFloat16},      {"fp16", DType::kFloat16},
      {"bf16", DType::kBFloat16},     {"float", DType::kFloat32},
      {"fp32", DType::kFloat32},      {"double", DType::kFloat64},
      {"int", DType::kInt32},         {"uint", DType::kUInt32},
      {"float8_e4m3fn", DType::kFloat8E4M3}, {"e4m3_float8", DType::kFloat8E4M3},
      {"e5m2_float8", DType::kFloat8E5M2},
  };
  for (const Alias& alias : kAliases) {
    if (text == alias.text) return alias.type;
  }
  return DType::kInvalid;
}

bool IsValidDType(uint32_t raw) { return raw <= 0xff && DTypeBits(static_cast<DType>(raw)) != 0; }

}  // namespace tilert
