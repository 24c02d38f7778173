// Typed values and tiles of a ProgramBuilder: what makes `acc[i, j] * scale + 1` pleasant to write in C++.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "ir/program.h"

namespace tilert {

class ProgramBuilder;

// The type in which an operator computes on operands of types a and b: the wider; float over integer; float32 for two different
// floats of one width; unsigned over signed of one width; index over every integer; bool gives way (docs/ir_spec.md "Types").
DType CommonType(DType a, DType b);

// An expression of a builder, or a plain number that becomes one when it meets a builder ("weak": it takes the type of the
// other operand). The default value means "none".
class Val {
 public:
  Val() = default;
  Val(int value) : Val(int64_t{value}) {}
  Val(unsigned value) : Val(int64_t{value}) {}
  Val(int64_t value) : form_(Form::kInt), int_(value) {}
  Val(double value) : form_(Form::kFloat), float_(value) {}
  Val(ProgramBuilder* builder, Expr expr) : form_(Form::kExpr), builder_(builder), expr_(expr) {}

  explicit operator bool() const { return form_ != Form::kNone; }
  // A number without a type of its own.
  bool is_weak() const { return form_ == Form::kInt || form_ == Form::kFloat; }
  bool is_weak_float() const { return form_ == Form::kFloat; }
  ProgramBuilder* builder() const { return builder_; }
  // REQUIRES: bound to a builder (In), or none.
  Expr expr() const { return expr_; }
  // Type of the value: of a weak one, index or float32.
  DType dtype() const;
  // This value as an expression of `builder`; still weak if it was.
  Val In(ProgramBuilder* builder) const;
  // The same, a weak value taking `type` (an integer meeting a float becomes a float).
  Val As(ProgramBuilder* builder, DType type) const;

 private:
  enum class Form : uint8_t { kNone, kInt, kFloat, kExpr };
  Form form_ = Form::kNone;
  ProgramBuilder* builder_ = nullptr;
  Expr expr_;
  int64_t int_ = 0;
  double float_ = 0;
};

Val operator+(Val a, Val b);
Val operator-(Val a, Val b);
Val operator*(Val a, Val b);
Val operator/(Val a, Val b);  // true division: integers become float32
Val operator%(Val a, Val b);  // sign of the divisor
Val operator&(Val a, Val b);
Val operator|(Val a, Val b);
Val operator^(Val a, Val b);
Val operator<<(Val a, Val b);
Val operator>>(Val a, Val b);
Val operator<(Val a, Val b);
Val operator<=(Val a, Val b);
Val operator>(Val a, Val b);
Val operator>=(Val a, Val b);
Val operator==(Val a, Val b);
Val operator!=(Val a, Val b);
Val operator-(Val a);
Val operator~(Val a);
Val And(Val a, Val b);  // not operators, so that `if (a && !b)` can only ask whether a Val is there
Val Or(Val a, Val b);
Val Not(Val a);
Val FloorDiv(Val a, Val b);
Val CeilDiv(Val a, Val b);  // (a + b − 1) // b
Val Min(Val a, Val b);
Val Max(Val a, Val b);
// A call of ir/expr_op.def: Call(ExprOp::kExp2, x).
Val Call(ExprOp op, Val a);
Val Call(ExprOp op, Val a, Val b);

struct Tile;

// A buffer of a builder.
class Buf {
 public:
  Buf() = default;
  Buf(ProgramBuilder* builder, BufferId id) : builder_(builder), id_(id) {}
  BufferId id() const { return id_; }
  ProgramBuilder* builder() const { return builder_; }
  const Buffer& buffer() const;
  // Element load.
  Val operator()(const std::vector<Val>& indices) const;
  template <typename... Index>
    requires(std::is_convertible_v<Index, Val> && ...)
  Val operator()(Index... index) const {
    return (*this)(std::vector<Val>{Val(index)...});
  }
  // The box that begins at `start` and has `extent` elements a dimension.
  Tile At(std::vector<Val> start, std::vector<Val> extent) const;

 private:
  ProgramBuilder* builder_ = nullptr;
  BufferId id_ = kNoId;
};

// A region operand: a whole buffer or a box of one.
struct Tile {
  Tile(const Buf& whole) : buf(whole), is_whole(true) {}
  Tile(const Buf& buf, std::vector<Val> start, std::vector<Val> extent)
      : buf(buf), start(std::move(start)), extent(std::move(extent)) {}
  Buf buf;
  std::vector<Val> start, extent;
  bool is_whole = false;
};

}  // namespace tilert
