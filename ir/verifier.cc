#include "ir/verifier.h"

#include <optional>

#include "absl/strings/str_join.h"
#include "ir/fold.h"
#include "ir/status_util.h"
#include "ir/structure.h"
#include "ir/verify_context.h"

namespace tilert {

std::string VerifyError::ToString() const {
  std::string text;
  for (const std::string& part : {loc, path}) {
    if (!part.empty()) text += part + ": ";
  }
  return text + message;
}

namespace {

// `program` with each constant at its first candidate, so that shapes have numbers; statements stay where they are. None: that is
// what it is already.
std::optional<Program> WithDefaults(const Program& program) {
  ExprArena exprs;
  const std::vector<Expr> folded = FoldAll(program.exprs, exprs, [&](const ExprNode& node) {
    if (node.op != ExprOp::kConstant || program.constants[node.i].candidates.empty()) return Expr{};
    return exprs.Int(program.constants[node.i].candidates[0]);
  });
  if (exprs.nodes() == program.exprs.nodes()) return std::nullopt;
  Program result = program;
  result.exprs = std::move(exprs);
  ForEachExpr(result, [&](Expr& e) { e = folded[e.id]; });
  return result;
}

std::string DefaultsText(const Program& program) {
  std::vector<std::string> parts;
  for (const Constant& c : program.constants) {
    if (!c.candidates.empty()) parts.push_back(Cat(c.name, "=", c.candidates[0]));
  }
  return parts.empty() ? "" : Cat(" (with ", absl::StrJoin(parts, ", "), ")");
}

}  // namespace

std::vector<VerifyError> FindErrors(const Program& program) {
  std::vector<VerifyError> errors = FindStructureErrors(program);
  if (!errors.empty()) return errors;
  {
    verify::Context c(program, errors);
    verify::CheckTables(c);
    verify::CheckTypes(c);
    verify::CheckScopes(c);
  }
  // The rest looks at operands and bounds, which must first be sound by themselves.
  if (!errors.empty()) return errors;
  const std::optional<Program> bound = WithDefaults(program);
  verify::Context c(bound ? *bound : program, errors);
  if (bound) verify::CheckTables(c);
  verify::CheckRegions(c);
  verify::CheckControl(c);
  verify::CheckLimits(c);
  for (VerifyError& error : errors) error.message += DefaultsText(program);
  return errors;
}

absl::StatusOr<VerifiedProgram> Verify(Program program) {
  const std::vector<VerifyError> errors = FindErrors(program);
  if (errors.empty()) return VerifiedProgram(std::move(program));
  std::vector<std::string> lines;
  for (const VerifyError& error : errors) lines.push_back(error.ToString());
  return InvalidArgument(program.name, " is not a valid program:\n", absl::StrJoin(lines, "\n"));
}

}  // namespace tilert
