// Evaluates compiled expressions for all lanes of a statement at once.
#pragma once

#include "ir/executor_code.h"
#include "ir/executor_memory.h"

namespace tilert::exec {

// Where an evaluation finds its variables and puts its registers.
struct EvalFrame {
  Lanes lanes;
  Memory* memory = nullptr;
  const Value* block_vars = nullptr;  // by VarId
  const Value* lane_vars = nullptr;   // lanes.n values a slot
  Value* regs = nullptr;              // lanes.n values a register: at least Code::regs registers
};

// After this, register r of lane k is frame.regs[r · lanes.n + k]. Lanes that are not active hold unspecified values.
void Evaluate(const Code& code, const EvalFrame& frame);

}  // namespace tilert::exec
