// Element types. The list is ir/dtype.def; docs/ir_spec.md section "Types" says what each means.
#pragma once

#include <cstdint>
#include <string_view>

namespace tilert {

enum class DType : uint8_t {
  kInvalid = 0,
#define TILERT_DTYPE(name, id, text, bits, kind) k##name = id,
#include "ir/dtype.def"
};

enum class DTypeKind : uint8_t { kInvalid, kBoolean, kSigned, kUnsigned, kFloat };

// Size of one element in memory, in bits; 0 for kInvalid.
int DTypeBits(DType type);
// Size of one element in memory, in bytes (every type of version 1 fills whole bytes).
inline int DTypeBytes(DType type) { return DTypeBits(type) / 8; }
DTypeKind KindOf(DType type);
// The spelling in sources, e.g. "bfloat16"; "invalid" for kInvalid or an out-of-range value.
std::string_view DTypeName(DType type);
// Inverse of DTypeName, accepting TileLang's aliases ("half", "float", "float8_e4m3fn", …); kInvalid when unknown.
DType ParseDType(std::string_view text);
// True when `raw` is the id of a type other than kInvalid: check untrusted bytes with it before casting.
bool IsValidDType(uint32_t raw);

inline bool IsFloat(DType type) { return KindOf(type) == DTypeKind::kFloat; }
inline bool Is16BitFloat(DType type) { return type == DType::kFloat16 || type == DType::kBFloat16; }
inline bool IsInteger(DType type) { return KindOf(type) == DTypeKind::kSigned || KindOf(type) == DTypeKind::kUnsigned; }

}  // namespace tilert
