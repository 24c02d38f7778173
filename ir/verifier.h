// Program → VerifiedProgram: the meaning of docs/ir_spec.md, checked. Errors are collected, not stopped at.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/program.h"

namespace tilert {

struct VerifyError {
  std::string path;     // "launches[0].body[3].then[1]", "buffers[2]", …
  std::string loc;      // "gemm.py:12:5", or empty when unknown
  std::string message;  // what is wrong and what to do about it
  // "gemm.py:12:5: launches[0].body[3]: message".
  std::string ToString() const;
  bool operator==(const VerifyError&) const = default;
};

// A program that passed Verify. What the executor and the lowering take for granted is what Verify checks. Immutable.
class VerifiedProgram {
 public:
  const Program& program() const { return program_; }
  const Program& operator*() const { return program_; }
  const Program* operator->() const { return &program_; }

 private:
  friend absl::StatusOr<VerifiedProgram> Verify(Program program);
  explicit VerifiedProgram(Program program) : program_(std::move(program)) {}
  Program program_;
};

// All errors of `program` in order, at most kMaxVerifyErrors. Safe on any Program, whoever made it: ids and operands need not be
// in range.
std::vector<VerifyError> FindErrors(const Program& program);
inline constexpr size_t kMaxVerifyErrors = 50;

// InvalidArgument with one line an error, after the program's name.
absl::StatusOr<VerifiedProgram> Verify(Program program);

}  // namespace tilert
