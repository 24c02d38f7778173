#pragma once

#include <vector>

#include "ir/program.h"

namespace tilert::frontend {

// The bits of elements of one type as elements of another, as expressions of a program. Lower bits come first in memory.
class JoinedBits {
 public:
  explicit JoinedBits(Program& program) : e_(program.exprs) {}

  // Neighbours, all of one type, as one element of `type`. REQUIRES: their bits together are those of `type`.
  Expr Join(const std::vector<Expr>& neighbours, DType type);
  // The other way round: `value` as elements of `type`.
  std::vector<Expr> Split(Expr value, DType type);
  // The element `place` (index) of those that Split gives, where it is not known which.
  Expr Part(Expr value, Expr place, DType type);

 private:
  Expr Bits(Expr value, DType as);
  Expr As(Expr bits, DType type);

  ExprArena& e_;
};

}  // namespace tilert::frontend
