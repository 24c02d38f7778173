#pragma once

#include <vector>

#include "frontend/interpreter.h"
#include "ir/program.h"

namespace tilert::frontend {

// Puts the tensor parameters of `program` into calling order and infers, where the source does not say, which are read, written
// or both from the statements.
void FinishParams(const std::vector<Interpreter::TensorParam>& tensors, Program* program);

}  // namespace tilert::frontend
