#include "ir/verifier.h"

#include "absl/strings/str_join.h"
#include "ir/status_util.h"
#include "ir/structure.h"

namespace tilert {

std::string VerifyError::ToString() const {
  std::string text;
  for (const std::string& part : {loc, path}) {
    if (!part.empty()) text += part + ": ";
  }
  return text + message;
}

std::vector<VerifyError> FindErrors(const Program& program) { return FindStructureErrors(program); }

absl::StatusOr<VerifiedProgram> Verify(Program program) {
  const std::vector<VerifyError> errors = FindErrors(program);
  if (errors.empty()) return VerifiedProgram(std::move(program));
  std::vector<std::string> lines;
  for (const VerifyError& error : errors) lines.push_back(error.ToString());
  return InvalidArgument(program.name, " is not a valid program:\n", absl::StrJoin(lines, "\n"));
}

}  // namespace tilert
