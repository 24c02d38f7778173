// Folding of whole arenas; of one expression: Fold (ir/expr.h).
#pragma once

#include <functional>
#include <vector>

#include "ir/expr.h"

namespace tilert {

// What each node of `from` becomes in `to`, another arena: what `replace` returns for it (in `to`, folded), or none: itself, its
// operands having become what they do, folded.
std::vector<Expr> FoldAll(const ExprArena& from, ExprArena& to, const std::function<Expr(const ExprNode&)>& replace);

}  // namespace tilert
