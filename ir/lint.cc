#include "ir/lint.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_join.h"
#include "ir/fold.h"
#include "ir/lint_context.h"

namespace tilert {
namespace {

// `program` with numbers for its constants, their first candidates, and its dims; nothing if these dims break an assumption.
std::optional<Program> WithNumbers(const Program& program, const std::vector<int64_t>& dims) {
  Program result = program;
  result.exprs = ExprArena();
  const std::vector<Expr> folded = FoldAll(program.exprs, result.exprs, [&](const ExprNode& node) {
    if (node.op == ExprOp::kDim) return result.exprs.Int(dims[static_cast<size_t>(node.i)]);
    if (node.op == ExprOp::kConstant) return result.exprs.Int(program.constants[static_cast<size_t>(node.i)].candidates[0]);
    return Expr{};
  });
  ForEachExpr(result, [&](Expr& e) { e = folded[e.id]; });
  for (const Expr assumption : result.assumptions) {
    if (!result.exprs.IsInt(assumption, 1)) return std::nullopt;
  }
  return result;
}

// Extents to try: large ones first, which have many tiles; smaller ones for programs that take no large ones.
std::vector<std::vector<int64_t>> Trials(size_t dims) {
  std::vector<std::vector<int64_t>> trials{std::vector<int64_t>(dims, 4096)};
  if (dims == 0) return trials;
  trials.emplace_back();
  for (size_t i = 0; i < dims; ++i) trials.back().push_back(4096 * static_cast<int64_t>(i + 2));
  for (const int64_t extent : {1024, 128, 16, 1}) trials.emplace_back(dims, extent);
  return trials;
}

std::string ExtentsText(const Program& program, const std::vector<int64_t>& dims) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < dims.size(); ++i) parts.push_back(Cat(program.dims[i].name, "=", dims[i]));
  return parts.empty() ? "" : Cat(" (with ", absl::StrJoin(parts, ", "), ")");
}

// What holds for all extents that were tried: of the first two that the program takes.
std::vector<LintWarning> BoundsWarnings(const Program& program) {
  std::vector<LintWarning> kept;
  int tried = 0;
  for (const std::vector<int64_t>& dims : Trials(program.dims.size())) {
    const std::optional<Program> bound = WithNumbers(program, dims);
    if (!bound) continue;
    std::vector<LintWarning> found;
    lint::Context c(*bound, &found);
    lint::CheckBounds(c);
    if (tried++ == 0) {
      kept = found;
      for (LintWarning& warning : kept) warning.message += ExtentsText(program, dims);
    }
    std::erase_if(kept, [&](const LintWarning& old) {
      return std::none_of(found.begin(), found.end(), [&](const LintWarning& w) { return w.path == old.path; });
    });
    if (tried == 2) break;
  }
  return kept;
}

}  // namespace

std::string LintWarning::ToString() const {
  return Cat(loc, loc.empty() ? "" : ": ", "warning: ", message, hint.empty() ? "" : Cat("\n  hint: ", hint));
}

std::vector<LintWarning> Lint(const VerifiedProgram& program) {
  std::vector<LintWarning> warnings;
  lint::Context c(*program, &warnings);
  lint::CheckUnwritten(c);
  lint::CheckNarrowing(c);
  const std::vector<LintWarning> bounds = BoundsWarnings(*program);
  warnings.insert(warnings.end(), bounds.begin(), bounds.end());
  return warnings;
}

}  // namespace tilert
