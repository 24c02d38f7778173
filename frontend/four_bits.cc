#include "frontend/four_bits.h"

namespace tilert::frontend {

Expr FourBits::Decode(Packing packing, Expr byte, Expr half) {
  const Expr is_odd = Op(ExprOp::kEq, Op(ExprOp::kFloorMod, half, e_.Int(2)), e_.Int(1));
  const Expr shift = Choose(is_odd, U8(4), U8(0));
  const Expr nibble = Op(ExprOp::kBitAnd, Op(ExprOp::kShr, byte, shift), U8(15));
  if (packing == Packing::kUInt4) return nibble;
  return packing == Packing::kInt4 ? Signed(nibble) : DecodeFloat(nibble);
}

// The lower four bits as a number from -8 to 7, in int8.
Expr FourBits::Signed(Expr nibble) {
  const Expr high = Cast(Op(ExprOp::kShl, nibble, U8(4)), DType::kInt8);
  return Op(ExprOp::kShr, high, e_.Int(4, DType::kInt8));
}

// Sign, two bits of exponent, one of mantissa: 0, 0.5, then (1 + mantissa / 2) * 2^(exponent - 1).
Expr FourBits::DecodeFloat(Expr nibble) {
  const Expr exponent = Op(ExprOp::kBitAnd, Op(ExprOp::kShr, nibble, U8(1)), U8(3));
  const Expr half = Op(ExprOp::kMul, Cast(Op(ExprOp::kBitAnd, nibble, U8(1)), DType::kFloat32), F32(0.5));
  const auto is = [&](int64_t value) { return Op(ExprOp::kEq, exponent, U8(value)); };
  const Expr scale = Choose(is(3), F32(4), Choose(is(2), F32(2), F32(1)));
  const Expr magnitude = Choose(is(0), half, Op(ExprOp::kMul, Op(ExprOp::kAdd, F32(1), half), scale));
  const Expr is_negative = Op(ExprOp::kGe, nibble, U8(8));
  return Cast(Choose(is_negative, e_.Unary(ExprOp::kNeg, magnitude), magnitude), DType::kFloat8E4M3);
}

Expr FourBits::Encode(Packing packing, Expr value) {
  if (packing == Packing::kFloat4) return EncodeFloat(value);
  return Op(ExprOp::kBitAnd, Cast(value, DType::kUInt8), U8(15));
}

Expr FourBits::EncodeFloat(Expr value) {
  const Expr x = Cast(value, DType::kFloat32);
  const Expr magnitude = e_.Unary(ExprOp::kAbs, x);
  constexpr double kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  Expr code = U8(0);
  for (int64_t i = 1; i < 8; ++i) code = Choose(Op(ExprOp::kGe, magnitude, F32(kValues[i])), U8(i), code);
  // The sign of a zero is in its bits only.
  const Expr sign = Op(ExprOp::kBitAnd, Op(ExprOp::kShr, e_.Make(ExprOp::kReinterpret, DType::kUInt8, {value}), U8(4)), U8(8));
  return Op(ExprOp::kBitOr, code, sign);
}

Expr FourBits::Rounded(Packing packing, Expr value) {
  if (packing == Packing::kFloat4) return RoundedFloat(value);
  return packing == Packing::kInt4 ? Signed(Cast(value, DType::kUInt8)) : Op(ExprOp::kBitAnd, value, U8(15));
}

// The distance between neighbours is 0.5 below 2, 1 below 4, else 2; what lies between is rounded in units of it.
Expr FourBits::RoundedFloat(Expr value) {
  // From before its own conversion to float8, which would round once more.
  const ExprNode node = e_[value];
  const bool is_cast = node.op == ExprOp::kCast && IsFloat(e_[node.args[0]].dtype);
  const Expr x = Cast(is_cast ? node.args[0] : value, DType::kFloat32);
  const Expr magnitude = e_.Unary(ExprOp::kAbs, x);
  const auto below = [&](double limit) { return Op(ExprOp::kLt, magnitude, F32(limit)); };
  const Expr unit = Choose(below(2), F32(0.5), Choose(below(4), F32(1), F32(2)));
  const Expr per_unit = Choose(below(2), F32(2), Choose(below(4), F32(1), F32(0.5)));
  const Expr rounded = Op(ExprOp::kMul, e_.Unary(ExprOp::kRound, Op(ExprOp::kMul, x, per_unit)), unit);
  const Expr largest = Choose(Op(ExprOp::kLt, x, F32(0)), F32(-6), F32(6));
  return Cast(Choose(below(6), rounded, largest), DType::kFloat8E4M3);
}

}  // namespace tilert::frontend
