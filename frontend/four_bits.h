#pragma once

#include "frontend/views.h"
#include "ir/program.h"

namespace tilert::frontend {

// Conversions of 4-bit elements, as expressions of a program.
class FourBits {
 public:
  explicit FourBits(Program& program) : e_(program.exprs) {}

  // The element in the lower half of `byte` (uint8) if `half` (index) is even, in the upper one if it is odd; of
  // ElementType(packing).
  Expr Decode(Packing packing, Expr byte, Expr half);
  // The code of `value`, of ElementType(packing): uint8, below 16. A float4 is rounded before (Rounded).
  Expr Encode(Packing packing, Expr value);
  // `value`, of ElementType(packing), as 4 bits hold it: integers modulo 16; floats to nearest, ties to even, too large ones and
  // NaN to the largest.
  Expr Rounded(Packing packing, Expr value);

 private:
  Expr U8(int64_t value) { return e_.Int(value, DType::kUInt8); }
  Expr F32(double value) { return e_.Float(value, DType::kFloat32); }
  Expr Op(ExprOp op, Expr a, Expr b) { return e_.Binary(op, a, b); }
  Expr Cast(Expr a, DType type) { return e_[a].dtype == type ? a : e_.Cast(a, type); }
  Expr Choose(Expr cond, Expr a, Expr b) { return e_.Make(ExprOp::kSelect, e_[a].dtype, {cond, a, b}); }
  Expr Signed(Expr nibble);
  Expr DecodeFloat(Expr nibble);
  Expr EncodeFloat(Expr value);
  Expr RoundedFloat(Expr value);

  ExprArena& e_;
};

}  // namespace tilert::frontend
