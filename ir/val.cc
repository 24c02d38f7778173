#include "ir/val.h"

#include <algorithm>

#include "ir/builder.h"
#include "ir/int_math.h"

namespace tilert {

DType CommonType(DType a, DType b) {
  if (a == b || b == DType::kBool) return a;
  if (a == DType::kBool) return b;
  if (IsFloat(a) != IsFloat(b)) return IsFloat(a) ? a : b;
  if (IsFloat(a)) {
    if (DTypeBits(a) == DTypeBits(b)) return DType::kFloat32;
    return DTypeBits(a) > DTypeBits(b) ? a : b;
  }
  if (a == DType::kIndex || b == DType::kIndex) return DType::kIndex;
  if (DTypeBits(a) != DTypeBits(b)) return DTypeBits(a) > DTypeBits(b) ? a : b;
  return KindOf(a) == DTypeKind::kUnsigned ? a : b;
}

DType Val::dtype() const {
  switch (form_) {
    case Form::kNone: return DType::kInvalid;
    case Form::kInt: return DType::kIndex;
    case Form::kFloat: return DType::kFloat32;
    case Form::kExpr: return builder_->exprs()[expr_].dtype;
  }
  return DType::kInvalid;
}

Val Val::In(ProgramBuilder* builder) const {
  Val result = *this;
  if (form_ == Form::kNone || form_ == Form::kExpr) return result;
  result.builder_ = builder;
  result.expr_ = form_ == Form::kInt ? builder->exprs().Int(int_) : builder->exprs().Float(float_);
  return result;
}

Val Val::As(ProgramBuilder* builder, DType type) const {
  if (!is_weak()) return *this;
  if (form_ == Form::kFloat) return builder->Float(float_, IsFloat(type) ? type : DType::kFloat32);
  if (IsFloat(type)) return builder->Float(static_cast<double>(int_), type);
  return builder->Int(int_, WrapInt(int_, type) == int_ ? type : DType::kIndex);
}

Val Call(ExprOp op, Val a) { return a.builder() != nullptr ? a.builder()->Apply(op, {a}) : Val(); }

Val Call(ExprOp op, Val a, Val b) {
  ProgramBuilder* builder = a.builder() != nullptr ? a.builder() : b.builder();
  return builder != nullptr ? builder->Apply(op, {a, b}) : Val();
}

Val operator+(Val a, Val b) { return Call(ExprOp::kAdd, a, b); }
Val operator-(Val a, Val b) { return Call(ExprOp::kSub, a, b); }
Val operator*(Val a, Val b) { return Call(ExprOp::kMul, a, b); }
Val operator/(Val a, Val b) { return Call(ExprOp::kDiv, a, b); }
Val operator%(Val a, Val b) { return Call(ExprOp::kFloorMod, a, b); }
Val operator&(Val a, Val b) { return Call(ExprOp::kBitAnd, a, b); }
Val operator|(Val a, Val b) { return Call(ExprOp::kBitOr, a, b); }
Val operator^(Val a, Val b) { return Call(ExprOp::kBitXor, a, b); }
Val operator<<(Val a, Val b) { return Call(ExprOp::kShl, a, b); }
Val operator>>(Val a, Val b) { return Call(ExprOp::kShr, a, b); }
Val operator<(Val a, Val b) { return Call(ExprOp::kLt, a, b); }
Val operator<=(Val a, Val b) { return Call(ExprOp::kLe, a, b); }
Val operator>(Val a, Val b) { return Call(ExprOp::kGt, a, b); }
Val operator>=(Val a, Val b) { return Call(ExprOp::kGe, a, b); }
Val operator==(Val a, Val b) { return Call(ExprOp::kEq, a, b); }
Val operator!=(Val a, Val b) { return Call(ExprOp::kNe, a, b); }
Val And(Val a, Val b) { return Call(ExprOp::kAnd, a, b); }
Val Or(Val a, Val b) { return Call(ExprOp::kOr, a, b); }
Val operator-(Val a) { return Call(ExprOp::kNeg, a); }
Val Not(Val a) { return Call(ExprOp::kNot, a); }
Val operator~(Val a) { return Call(ExprOp::kBitNot, a); }
Val FloorDiv(Val a, Val b) { return Call(ExprOp::kFloorDiv, a, b); }
Val CeilDiv(Val a, Val b) { return FloorDiv(a + b - 1, b); }
Val Min(Val a, Val b) { return Call(ExprOp::kMin, a, b); }
Val Max(Val a, Val b) { return Call(ExprOp::kMax, a, b); }

const Buffer& Buf::buffer() const { return builder_->program().buffers[id_]; }
Val Buf::operator()(const std::vector<Val>& indices) const { return builder_->Load(*this, indices); }
Tile Buf::At(std::vector<Val> start, std::vector<Val> extent) const { return Tile(*this, std::move(start), std::move(extent)); }

}  // namespace tilert
