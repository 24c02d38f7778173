#pragma once

#include <vector>

#include "frontend/evaluator.h"
#include "frontend/thread_structure.h"
#include "frontend/views.h"
#include "ir/program.h"

// T.sum(A[i, :]) and the like: reductions that are part of an expression.
namespace tilert::frontend {

// The type of the result, in which it is accumulated: sums of what is narrower than 32 bits are float32, int32 or uint32.
DType ReductionType(ReduceOp op, DType src);

// `part`, a region of a buffer, reduced over all its dimensions to one number, by the call `args`.
Value ReductionExpression(Evaluator& e, const Args& args, ReduceOp op, const Value& part, SourceRange range);

// Until the source is read such a reduction is a Reduce over all dimensions into a variable. Makes of each
//  * reductions of a tile: of all rows in front of the parallel loop, where its points reduce different rows (A[i, :], A[:, j],
//    A[i + 1, 0:n]) of a shared buffer or fragment that the loop does not write;
//  * else loops over the elements where it stands.
void LowerReductionExpressions(const std::vector<View>& views, const std::vector<ThreadUse>& threads, Program* program);

}  // namespace tilert::frontend
