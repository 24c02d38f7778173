// What is a valid program and still, very likely, not what its author meant. A warning is given only where the program does what
// it says for every block and every iteration that might matter; what cannot be told is left alone.
#pragma once

#include <string>
#include <vector>

#include "ir/verifier.h"

namespace tilert {

struct LintWarning {
  std::string path;  // "launches[0].body[3]", or "buffers[2]"
  std::string loc;   // "gemm.py:12:5", or empty when unknown
  std::string message;
  std::string hint;  // what to write instead
  // "gemm.py:12:5: warning: message", and the hint on a line of its own.
  std::string ToString() const;
  bool operator==(const LintWarning&) const = default;
};

// Warns of
//  * a part of an output that nothing writes;
//  * a copy that lies outside its tensor, whichever block runs it (a tile that sticks out is padding, which many want);
//  * a gemm, reduction or expression that takes a tile or variable to which nothing has been written;
//  * scores narrowed to 16 bits, or computed in them, before an exp; differences of what a gemm summed up in 16 bits.
// Constants stand for their first candidates.
std::vector<LintWarning> Lint(const VerifiedProgram& program);

}  // namespace tilert
