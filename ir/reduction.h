// What reductions start from.
#pragma once

#include "ir/expr.h"
#include "ir/numeric.h"
#include "ir/stmt.h"

namespace tilert {

// What a reduction of nothing gives, in type `type`; taking it in changes no result (docs/ir_spec.md section 8).
Value IdentityOf(ReduceOp op, DType type);

// The same as an expression of `arena`.
Expr IdentityOf(ReduceOp op, DType type, ExprArena& arena);

}  // namespace tilert
