// The structure of a Program: every id in range, every required operand there, every expression well formed, everything within
// ir/limits.h. What holds after it: all of a program can be walked and printed without a further check.
#pragma once

#include <vector>

#include "ir/program.h"
#include "ir/verifier.h"

namespace tilert {

// Errors in order, at most kMaxVerifyErrors. Used by the verifier, the writer and the reader.
std::vector<VerifyError> FindStructureErrors(const Program& program);

}  // namespace tilert
