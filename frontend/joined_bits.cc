#include "frontend/joined_bits.h"

namespace tilert::frontend {
namespace {

DType UnsignedOf(int bits) {
  return bits == 8 ? DType::kUInt8 : bits == 16 ? DType::kUInt16 : bits == 32 ? DType::kUInt32 : DType::kUInt64;
}

}  // namespace

// The bits of `value` as a number of type `as`, which is at least as wide.
Expr JoinedBits::Bits(Expr value, DType as) {
  const DType own = UnsignedOf(DTypeBits(e_[value].dtype));
  const Expr bits = e_[value].dtype == own ? value : e_.Make(ExprOp::kReinterpret, own, {value});
  return own == as ? bits : e_.Cast(bits, as);
}

// The lowest bits of a number as an element of `type`.
Expr JoinedBits::As(Expr bits, DType type) {
  const DType own = UnsignedOf(DTypeBits(type));
  if (e_[bits].dtype != own) bits = e_.Cast(bits, own);
  return own == type ? bits : e_.Make(ExprOp::kReinterpret, type, {bits});
}

Expr JoinedBits::Join(const std::vector<Expr>& neighbours, DType type) {
  const DType all = UnsignedOf(DTypeBits(type));
  Expr joined;
  int64_t shift = 0;
  for (const Expr neighbour : neighbours) {
    Expr bits = Bits(neighbour, all);
    if (shift > 0) bits = e_.Binary(ExprOp::kShl, bits, e_.Int(shift, all));
    joined = joined ? e_.Binary(ExprOp::kBitOr, joined, bits) : bits;
    shift += DTypeBits(e_[neighbour].dtype);
  }
  return As(joined, type);
}

std::vector<Expr> JoinedBits::Split(Expr value, DType type) {
  const int width = DTypeBits(e_[value].dtype);
  const DType all = UnsignedOf(width);
  std::vector<Expr> parts;
  for (int shift = 0; shift < width; shift += DTypeBits(type)) {
    const Expr bits = Bits(value, all);
    parts.push_back(As(shift == 0 ? bits : e_.Binary(ExprOp::kShr, bits, e_.Int(shift, all)), type));
  }
  return parts;
}

Expr JoinedBits::Part(Expr value, Expr place, DType type) {
  const DType all = UnsignedOf(DTypeBits(e_[value].dtype));
  const Expr shift = e_.Binary(ExprOp::kMul, e_.Cast(place, all), e_.Int(DTypeBits(type), all));
  return As(e_.Binary(ExprOp::kShr, Bits(value, all), shift), type);
}

}  // namespace tilert::frontend
