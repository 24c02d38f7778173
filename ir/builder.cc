#include "ir/builder.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "ir/status_util.h"

namespace tilert {

ProgramBuilder::ProgramBuilder(std::string name) { program_.name = std::move(name); }
ProgramBuilder::~ProgramBuilder() = default;

void ProgramBuilder::Add(StmtOp op) { AddAt(std::move(op), loc_); }

void ProgramBuilder::AddInFront(StmtOp op) {
  if (open_.empty()) return Error("a statement stands outside a launch");
  open_.front().body.insert(open_.front().body.begin(), {std::move(op), loc_});
}

void ProgramBuilder::Error(std::string message) {
  if (!error_.empty()) return;
  error_ = std::move(message);
  if (loc_.file < program_.files.size() && loc_.line > 0) {
    error_ = Cat(program_.files[loc_.file], ":", loc_.line, ":", loc_.column, ": ", error_);
  }
}

// --- Tables ---------------------------------------------------------------------------------------------------------------

Val ProgramBuilder::Dim(std::string name) {
  program_.dims.push_back({std::move(name)});
  return Wrap(program_.exprs.Leaf(ExprOp::kDim, static_cast<int64_t>(program_.dims.size()) - 1, DType::kIndex));
}

Val ProgramBuilder::Constant(std::string name, std::vector<int64_t> candidates) {
  program_.constants.push_back({std::move(name), std::move(candidates)});
  return Wrap(program_.exprs.Leaf(ExprOp::kConstant, static_cast<int64_t>(program_.constants.size()) - 1, DType::kIndex));
}

Val ProgramBuilder::Scalar(std::string name, DType type, Val dim) {
  ScalarParam scalar{std::move(name), type, kNoId};
  if (dim) {
    const ExprNode& node = program_.exprs[E(dim)];
    if (node.op == ExprOp::kDim) {
      scalar.dim = static_cast<uint32_t>(node.i);
    } else {
      Error(Cat("scalar ", scalar.name, " can only bind a dim"));
    }
  }
  const auto index = static_cast<uint32_t>(program_.scalars.size());
  program_.scalars.push_back(std::move(scalar));
  program_.params.push_back({Param::Kind::kScalar, index, Access::kInvalid});
  return Wrap(program_.exprs.Leaf(ExprOp::kScalar, index, type));
}

BufferId ProgramBuilder::NewBuffer(Buffer buffer) {
  buffer.loc = loc_;
  program_.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(program_.buffers.size()) - 1;
}

Buf ProgramBuilder::Tensor(std::string name, DType type, const std::vector<Val>& shape, Access access,
                           const std::vector<Val>& strides) {
  const BufferId id = NewBuffer({std::move(name), type, Scope::kGlobal, Es(shape), Es(strides)});
  program_.params.push_back({Param::Kind::kTensor, id, access});
  return Buf(this, id);
}

Buf ProgramBuilder::Workspace(std::string name, DType type, const std::vector<Val>& shape, bool zeroed) {
  const BufferId id = NewBuffer({std::move(name), type, Scope::kGlobal, Es(shape)});
  program_.workspaces.push_back({id, zeroed});
  return Buf(this, id);
}

void ProgramBuilder::Assume(Val cond) { program_.assumptions.push_back(E(cond)); }

uint32_t ProgramBuilder::File(const std::string& name) {
  for (size_t i = 0; i < program_.files.size(); ++i) {
    if (program_.files[i] == name) return static_cast<uint32_t>(i);
  }
  program_.files.push_back(name);
  return static_cast<uint32_t>(program_.files.size()) - 1;
}

VarId ProgramBuilder::NewVar(std::string name, DType type) {
  program_.vars.push_back({std::move(name), type});
  return static_cast<VarId>(program_.vars.size()) - 1;
}

// --- Blocks ---------------------------------------------------------------------------------------------------------------

void ProgramBuilder::Push(Kind kind, StmtOp head) { open_.push_back({kind, {}, std::move(head), loc_}); }

std::vector<Val> ProgramBuilder::OpenLaunch(std::string name, const std::vector<Val>& grid, Val threads,
                                            std::vector<std::string> vars) {
  static constexpr const char* kNames[] = {"bx", "by", "bz"};
  if (!open_.empty()) Error("a launch cannot stand inside another block");
  if (grid.empty() || grid.size() > 3) Error(Cat("a launch has 1 to 3 grid extents, not ", grid.size()));
  tilert::Launch launch{std::move(name), Es(grid), {}, Index(threads), false, {}, loc_};
  std::vector<Val> result;
  for (size_t i = 0; i < grid.size(); ++i) {
    launch.block_vars.push_back(NewVar(i < vars.size() ? vars[i] : i < 3 ? kNames[i] : "b"));
    result.push_back(VarVal(launch.block_vars.back()));
  }
  program_.launches.push_back(std::move(launch));
  Push(Kind::kLaunch, tilert::Break{});
  return result;
}

void ProgramBuilder::SetCooperative() {
  if (program_.launches.empty()) return Error("SetCooperative needs an open launch");
  program_.launches.back().cooperative = true;
}

void ProgramBuilder::SetCluster(const std::vector<Val>& extents) {
  if (program_.launches.empty()) return Error("SetCluster needs an open launch");
  program_.launches.back().cluster = Es(extents);
}

Val ProgramBuilder::OpenFor(ForKind kind, std::string var, Val begin, Val end, Val step, Val num_stages,
                            std::vector<int32_t> order, std::vector<int32_t> stage, Val split) {
  For loop{kind,        NewVar(std::move(var)), Index(begin),     Index(end),
           Index(step), Index(num_stages),      std::move(order), std::move(stage),
           {}};
  if (split) loop.split = Index(split);
  const VarId id = loop.var;
  Push(Kind::kStmt, std::move(loop));
  return VarVal(id);
}

std::vector<Val> ProgramBuilder::OpenParallel(const std::vector<std::string>& vars, const std::vector<Val>& extents,
                                              uint32_t width) {
  if (vars.size() != extents.size()) Error("a parallel loop needs one variable an extent");
  Parallel loop;
  loop.extents = Es(extents);
  loop.coalesced_width = width;
  std::vector<Val> result;
  for (const std::string& name : vars) {
    loop.vars.push_back(NewVar(name));
    result.push_back(VarVal(loop.vars.back()));
  }
  Push(Kind::kStmt, std::move(loop));
  return result;
}

void ProgramBuilder::OpenWhile(Val cond) { Push(Kind::kStmt, While{E(Cast(cond, DType::kBool)), {}}); }

void ProgramBuilder::OpenIf(Val cond) { Push(Kind::kThen, If{E(Cast(cond, DType::kBool)), {}, {}}); }

void ProgramBuilder::Else() {
  if (open_.empty() || open_.back().kind != Kind::kThen) return Error("Else without an open If");
  Open& open = open_.back();
  std::get<If>(open.head).then_body = std::move(open.body);
  open.body.clear();
  open.kind = Kind::kElse;
}

Val ProgramBuilder::OpenThreadRegion(std::string thread_var) {
  const VarId id = NewVar(std::move(thread_var));
  Push(Kind::kStmt, ThreadRegion{id, {}});
  return VarVal(id);
}

void ProgramBuilder::OpenRoles() { Push(Kind::kRoles, Roles{}); }

void ProgramBuilder::OpenRole(Val thread_begin, Val thread_end) {
  if (open_.empty() || open_.back().kind != Kind::kRoles) return Error("OpenRole outside OpenRoles");
  std::get<Roles>(open_.back().head).roles.push_back({Index(thread_begin), Index(thread_end), {}});
  Push(Kind::kRole, tilert::Break{});
}

void ProgramBuilder::Close() {
  if (open_.empty()) return Error("Close without an open block");
  Open open = std::move(open_.back());
  open_.pop_back();
  switch (open.kind) {
    case Kind::kLaunch: program_.launches.back().body = std::move(open.body); return;
    case Kind::kRole: std::get<Roles>(open_.back().head).roles.back().body = std::move(open.body); return;
    case Kind::kThen: std::get<If>(open.head).then_body = std::move(open.body); break;
    case Kind::kElse: std::get<If>(open.head).else_body = std::move(open.body); break;
    case Kind::kRoles: break;
    case Kind::kStmt:
      std::visit(
          [&](auto& s) {
            if constexpr (requires { s.body; }) s.body = std::move(open.body);
          },
          open.head);
  }
  AddAt(std::move(open.head), open.loc);
}

bool ProgramBuilder::InParallel() const {
  return std::any_of(open_.begin(), open_.end(), [](const Open& open) { return std::holds_alternative<Parallel>(open.head); });
}

Block ProgramBuilder::TakeFrom(size_t first) {
  if (Size() <= first) return {};
  Block& body = open_.back().body;
  Block taken(std::make_move_iterator(body.begin() + static_cast<ptrdiff_t>(first)), std::make_move_iterator(body.end()));
  body.resize(first);
  return taken;
}

void ProgramBuilder::Append(Block statements) {
  for (Stmt& stmt : statements) AddAt(std::move(stmt.op), stmt.loc);
}

void ProgramBuilder::AddAt(StmtOp op, SourceLoc loc) {
  if (open_.empty()) return Error("a statement must stand inside a launch");
  if (open_.back().kind == Kind::kRoles) return Error("only OpenRole may stand directly inside OpenRoles");
  open_.back().body.push_back({std::move(op), loc});
}

absl::StatusOr<Program> ProgramBuilder::Build() {
  if (!open_.empty()) Error(Cat(open_.size(), " block(s) are still open at the end of the program"));
  if (!error_.empty()) return InvalidArgument(program_.name, ": ", error_);
  return std::move(program_);
}

}  // namespace tilert
