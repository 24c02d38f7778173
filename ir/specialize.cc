#include "ir/specialize.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "ir/fold.h"
#include "ir/status_util.h"
#include "ir/verifier.h"

namespace tilert {
namespace {

// What each dim and constant becomes; nothing: stays.
struct Values {
  std::vector<std::optional<int64_t>> constants, dims;
};

template <typename Table>
std::string Names(const Table& table) {
  std::vector<std::string> names;
  for (const auto& entry : table) names.push_back(entry.name);
  return names.empty() ? "none" : absl::StrJoin(names, ", ");
}

// Position of `name` in a table; its size when missing.
template <typename Table>
size_t Find(const Table& table, const std::string& name) {
  return std::find_if(table.begin(), table.end(), [&](const auto& entry) { return entry.name == name; }) - table.begin();
}

absl::StatusOr<Values> Resolve(const Program& program, const std::map<std::string, int64_t>& constants,
                               const std::map<std::string, int64_t>& dims) {
  Values values;
  for (const Constant& constant : program.constants) {
    if (constant.candidates.empty()) return InvalidArgument(program.name, ": constant ", constant.name, " has no candidate");
    values.constants.push_back(constant.candidates[0]);
  }
  values.dims.resize(program.dims.size());
  for (const auto& [name, value] : constants) {
    const size_t i = Find(program.constants, name);
    if (i == program.constants.size()) {
      return InvalidArgument(program.name, ": no constant named ", name, "; it has: ", Names(program.constants));
    }
    const auto& candidates = program.constants[i].candidates;
    if (std::find(candidates.begin(), candidates.end(), value) == candidates.end()) {
      return InvalidArgument(program.name, ": ", value, " is no candidate of constant ", name,
                             "; choose one of: ", absl::StrJoin(candidates, ", "));
    }
    values.constants[i] = value;
  }
  for (const auto& [name, value] : dims) {
    const size_t i = Find(program.dims, name);
    if (i == program.dims.size())
      return InvalidArgument(program.name, ": no dim named ", name, "; it has: ", Names(program.dims));
    if (value < 0) return InvalidArgument(program.name, ": dim ", name, " cannot be negative, but is set to ", value);
    values.dims[i] = value;
  }
  return values;
}

bool IsDefault(const Program& program, const Values& values) {
  for (size_t i = 0; i < values.constants.size(); ++i) {
    if (values.constants[i] != program.constants[i].candidates[0]) return false;
  }
  return std::none_of(values.dims.begin(), values.dims.end(), [](const auto& value) { return value.has_value(); });
}

// " with block_M=64, M=4096".
std::string ValuesText(const Program& program, const Values& values) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < values.constants.size(); ++i) parts.push_back(Cat(program.constants[i].name, "=", *values.constants[i]));
  for (size_t i = 0; i < values.dims.size(); ++i) {
    if (values.dims[i]) parts.push_back(Cat(program.dims[i].name, "=", *values.dims[i]));
  }
  return Cat(" with ", absl::StrJoin(parts, ", "));
}

// The immediate that replaces `node`, if any.
Expr Replacement(const Program& program, const Values& values, ExprArena& arena, const ExprNode& node) {
  const auto index = static_cast<size_t>(node.i);
  std::optional<int64_t> value;
  if (node.op == ExprOp::kConstant) value = values.constants[index];
  if (node.op == ExprOp::kDim) value = values.dims[index];
  if (node.op == ExprOp::kScalar && program.scalars[index].dim != kNoId) value = values.dims[program.scalars[index].dim];
  return value ? arena.Int(*value, node.dtype) : Expr{};
}

// Replaces `If`s with immediate conditions by the statements of the branch taken. Where the parent orders its statements one by
// one (`keep_count`), the If stays and only loses its dead branch.
void Prune(const ExprArena& arena, Block& block, bool keep_count) {
  Block pruned;
  for (Stmt& stmt : block) {
    const auto* loop = std::get_if<For>(&stmt.op);
    const bool ordered = loop != nullptr && (!loop->order.empty() || !loop->stage.empty());
    for (Block* child : ChildBlocks(stmt)) Prune(arena, *child, ordered);
    auto* branch = std::get_if<If>(&stmt.op);
    int64_t taken = 0;
    if (branch == nullptr || !arena.AsInt(branch->cond, &taken)) {
      pruned.push_back(std::move(stmt));
      continue;
    }
    (taken != 0 ? branch->else_body : branch->then_body).clear();
    if (keep_count) {
      pruned.push_back(std::move(stmt));
      continue;
    }
    Block live = std::move(taken != 0 ? branch->then_body : branch->else_body);
    std::move(live.begin(), live.end(), std::back_inserter(pruned));
  }
  block = std::move(pruned);
}

}  // namespace

Program CompactExprs(Program program) {
  const ExprArena from = std::exchange(program.exprs, ExprArena());
  std::vector<Expr> moved(from.size());
  ForEachExpr(program, [&](Expr& e) {
    if (!moved[e.id]) {
      ForEachNode(from, e, [&](Expr id, ExprNode node) {
        if (moved[id.id]) return;
        for (Expr& arg : node.args) arg = moved[arg.id];
        moved[id.id] = program.exprs.Intern(std::move(node));
      });
    }
    e = moved[e.id];
  });
  return program;
}

absl::StatusOr<Program> Specialize(const Program& program, const std::map<std::string, int64_t>& constants,
                                   const std::map<std::string, int64_t>& dims) {
  TILERT_ASSIGN_OR_RETURN(const Values values, Resolve(program, constants, dims));
  Program result = program;
  result.exprs = ExprArena();
  for (size_t i = 0; i < values.constants.size(); ++i) result.constants[i].candidates = {*values.constants[i]};
  const std::vector<Expr> folded = FoldAll(
      program.exprs, result.exprs, [&](const ExprNode& node) { return Replacement(program, values, result.exprs, node); });
  ForEachExpr(result, [&](Expr& e) { e = folded[e.id]; });
  for (Launch& launch : result.launches) Prune(result.exprs, launch.body, false);
  result = CompactExprs(std::move(result));
  if (IsDefault(program, values)) return result;
  const std::vector<VerifyError> errors = FindErrors(result);
  if (errors.empty()) return result;
  return InvalidArgument(program.name, " is not valid", ValuesText(program, values), ": ", errors[0].ToString());
}

}  // namespace tilert
