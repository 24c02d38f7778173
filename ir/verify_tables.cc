// docs/ir_spec.md section 1: what surrounds the statements.
#include <algorithm>
#include <map>
#include <set>

#include "ir/limits.h"
#include "ir/names.h"
#include "ir/printer_expr.h"
#include "ir/verify_context.h"

namespace tilert::verify {

bool IsLaunchTime(const Program& p, Expr e, bool scalars) {
  bool is_launch_time = true;
  ForEachNode(p.exprs, e, [&](Expr, const ExprNode& node) {
    is_launch_time &= node.op != ExprOp::kVar && node.op != ExprOp::kLoad && (scalars || node.op != ExprOp::kScalar);
  });
  return is_launch_time;
}

namespace {

class TableChecker {
 public:
  explicit TableChecker(Context& c) : c_(c), p_(c.p) {}
  void Run();

 private:
  void CheckName(std::string_view what, const std::string& name);
  void Claim(std::string_view what, const std::string& name);
  void CheckNames();
  void CheckConstants();
  void CheckParams();
  void CheckShape(const Buffer& buffer);
  void CheckBuffers();
  void CheckDims();
  SourceLoc FirstUse(size_t dim) const;
  void CheckCluster(const Launch& launch);
  void CheckLaunches();

  Context& c_;
  const Program& p_;
  std::map<std::string, std::string> names_;  // to what bears it
  std::vector<int> owners_;                   // of each buffer: params, workspaces and allocations that name it
};

void TableChecker::CheckName(std::string_view what, const std::string& name) {
  if (!IsIdentifier(name)) {
    c_.Error(what, " cannot be named ", QuotedText(name), ": names are letters, digits and _, at most ", kMaxNameLength,
             ", and no word of Python");
  }
}

void TableChecker::Claim(std::string_view what, const std::string& name) {
  CheckName(what, name);
  const auto [it, is_new] = names_.try_emplace(name, what);
  if (!is_new) c_.Error(what, " '", name, "' has the name of a ", it->second, ": rename one of them");
}

void TableChecker::CheckNames() {
  CheckName("a program", p_.name);
  // Reports show these names as they are.
  const auto has_control = [](const std::string& name) {
    return std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  };
  for (const std::string& file : p_.files) {
    if (file.size() > 255 || has_control(file)) c_.Error("file name ", QuotedText(file), " is not one");
  }
  for (const Buffer& buffer : p_.buffers) {
    if (has_control(buffer.name)) c_.Error("a buffer cannot be named ", QuotedText(buffer.name));
  }
  for (const Var& var : p_.vars) {
    if (has_control(var.name)) c_.Error("a variable cannot be named ", QuotedText(var.name));
  }
  for (const Dim& dim : p_.dims) Claim("dim", dim.name);
  for (const Constant& constant : p_.constants) Claim("constant", constant.name);
  for (const ScalarParam& scalar : p_.scalars) {
    // A scalar that binds a dim may bear its name.
    if (scalar.dim == kNoId || p_.dims[scalar.dim].name != scalar.name) Claim("scalar", scalar.name);
  }
  for (const Buffer& buffer : p_.buffers) {
    c_.loc = buffer.loc;
    if (buffer.scope == Scope::kGlobal) Claim("tensor", buffer.name);
  }
  c_.loc = {};
  std::set<std::string_view> launches;
  for (const Launch& launch : p_.launches) {
    CheckName("a launch", launch.name);
    if (!launches.insert(launch.name).second) c_.Error("two launches are named '", launch.name, "': rename one of them");
  }
}

void TableChecker::CheckConstants() {
  for (size_t i = 0; i < p_.constants.size(); ++i) {
    auto scope = c_.path.Enter("constants", i);
    std::vector<int64_t> values = p_.constants[i].candidates;
    if (values.empty()) c_.Error("constant '", p_.constants[i].name, "' has no candidate: list at least one value");
    std::sort(values.begin(), values.end());
    if (std::adjacent_find(values.begin(), values.end()) != values.end())
      c_.Error("constant '", p_.constants[i].name, "' lists a candidate twice: list each once");
  }
}

void TableChecker::CheckParams() {
  std::vector<int> scalar_params(p_.scalars.size());
  for (size_t i = 0; i < p_.params.size(); ++i) {
    auto scope = c_.path.Enter("params", i);
    const Param& param = p_.params[i];
    if (param.kind == Param::Kind::kScalar) {
      if (++scalar_params[param.index] > 1)
        c_.Error("scalar '", p_.scalars[param.index].name, "' is a parameter twice: list it once");
      continue;
    }
    ++owners_[param.index];
    if (p_.buffers[param.index].scope != Scope::kGlobal)
      c_.Error(c_.Name(param.index), " is no global buffer and cannot be a parameter: describe it as a T.Tensor");
  }
  for (size_t i = 0; i < p_.scalars.size(); ++i) {
    auto scope = c_.path.Enter("scalars", i);
    const ScalarParam& scalar = p_.scalars[i];
    if (scalar_params[i] == 0) c_.Error("scalar '", scalar.name, "' is not among the parameters: list it there");
    if (scalar.dim != kNoId && !IsInteger(scalar.dtype))
      c_.Error("scalar '", scalar.name, "' binds a dim and must be an integer, not ", DTypeName(scalar.dtype));
  }
  for (size_t i = 0; i < p_.workspaces.size(); ++i) {
    auto scope = c_.path.Enter("workspaces", i);
    const Buffer& buffer = p_.buffers[p_.workspaces[i].buffer];
    ++owners_[p_.workspaces[i].buffer];
    if (buffer.scope != Scope::kGlobal)
      c_.Error("'", buffer.name, "' is no global buffer and cannot be a workspace: make it with T.workspace");
    if (!buffer.strides.empty())
      c_.Error("workspace '", buffer.name, "' has strides, and workspaces are contiguous: leave them out");
  }
}

void TableChecker::CheckShape(const Buffer& b) {
  const bool is_global = b.scope == Scope::kGlobal;
  for (Expr e : b.shape) {
    int64_t extent = 0;
    if (!IsLaunchTime(p_, e))
      c_.Error("'", b.name, "' has extent ", c_.Text(e), ": extents are made of dims, constants and numbers");
    if (p_.exprs.AsInt(e, &extent) && extent < (is_global ? 0 : 1))
      c_.Error("'", b.name, "' has an extent of ", extent, ": it must be at least ", is_global ? 0 : 1);
  }
  for (Expr e : b.strides) {
    if (!IsLaunchTime(p_, e))
      c_.Error("'", b.name, "' has stride ", c_.Text(e), ": strides are made of dims, constants and numbers");
  }
  if (!b.strides.empty() && !is_global) c_.Error("'", b.name, "' has strides, which only tensors may have: leave them out");
  if (!b.strides.empty() && b.strides.size() != b.shape.size()) {
    c_.Error("'", b.name, "' has ", b.shape.size(), " dimensions and ", b.strides.size(), " strides: give one for each");
  }
  if (b.scope == Scope::kVar && !b.shape.empty()) c_.Error("alloc_var '", b.name, "' has dimensions: use alloc_local");
  if ((b.scope == Scope::kShared || b.scope == Scope::kFragment || b.scope == Scope::kLocal) && b.shape.empty()) {
    c_.Error("'", b.name, "' has no dimension: use alloc_var");
  }
  if ((b.scope == Scope::kBarrier) != (b.arrive_count > 0))
    c_.Error("'", b.name, "': barriers, and nothing else, have an arrive count of at least 1");
  if (b.scope == Scope::kBarrier && b.dtype != DType::kUInt64)
    c_.Error("barrier '", b.name, "' must be uint64, not ", DTypeName(b.dtype));
  if (b.arrive_count > kMaxPhaseCount) {
    c_.Error("barrier '", b.name, "' waits for ", b.arrive_count, " arrivals: at most ", kMaxPhaseCount, " are possible");
  }
}

void TableChecker::CheckBuffers() {
  c_.ForEachStmt([&](const Stmt& stmt) {
    const auto* alloc = std::get_if<Alloc>(&stmt.op);
    if (alloc == nullptr) return;
    if (p_.buffers[alloc->buffer].scope == Scope::kGlobal)
      return c_.Error(c_.Name(alloc->buffer), " is a global buffer: pass it as a parameter or workspace");
    if (++owners_[alloc->buffer] > 1) c_.Error(c_.Name(alloc->buffer), " is allocated twice");
  });
  for (size_t i = 0; i < p_.buffers.size(); ++i) {
    auto scope = c_.path.Enter("buffers", i);
    c_.loc = p_.buffers[i].loc;
    CheckShape(p_.buffers[i]);
    if (p_.buffers[i].scope == Scope::kGlobal && owners_[i] != 1)
      c_.Error(c_.Name(i), " must be one parameter or one workspace; it is ", owners_[i], ": list it once");
  }
  c_.loc = {};
}

void TableChecker::CheckDims() {
  std::vector<bool> bound(p_.dims.size()), used(p_.dims.size());
  for (const Param& param : p_.params) {
    if (param.kind == Param::Kind::kScalar) {
      if (p_.scalars[param.index].dim != kNoId) bound[p_.scalars[param.index].dim] = true;
      continue;
    }
    const Buffer& tensor = p_.buffers[param.index];
    for (const std::vector<Expr>* exprs : {&tensor.shape, &tensor.strides}) {
      for (Expr e : *exprs) {
        if (p_.exprs[e].op == ExprOp::kDim) bound[p_.exprs[e].i] = true;
      }
    }
  }
  std::vector<bool> seen(p_.exprs.size());
  ForEachExpr(p_, [&](Expr root) {
    if (seen[root.id]) return;
    ForEachNode(p_.exprs, root, [&](Expr e, const ExprNode& node) {
      seen[e.id] = true;
      if (node.op == ExprOp::kDim) used[node.i] = true;
    });
  });
  for (size_t i = 0; i < p_.dims.size(); ++i) {
    auto scope = c_.path.Enter("dims", i);
    if (!used[i] || bound[i]) continue;
    c_.loc = FirstUse(i);
    c_.Error("dim '", p_.dims[i].name, "' is used but is no tensor's bare extent or stride: nothing says what it is at ",
             "launch; fix it, or make it a scalar parameter");
  }
  c_.loc = {};
}

// The buffer in whose shape it is, or else a launch.
SourceLoc TableChecker::FirstUse(size_t dim) const {
  const auto uses = [&](Expr root) {
    bool found = false;
    ForEachNode(p_.exprs, root, [&](Expr, const ExprNode& node) {
      found |= node.op == ExprOp::kDim && static_cast<size_t>(node.i) == dim;
    });
    return found;
  };
  for (const Buffer& buffer : p_.buffers) {
    if (std::ranges::any_of(buffer.shape, uses) || std::ranges::any_of(buffer.strides, uses)) return buffer.loc;
  }
  return p_.launches.empty() ? SourceLoc{} : p_.launches.front().loc;
}

void TableChecker::CheckCluster(const Launch& launch) {
  if (launch.cluster.empty()) return;
  if (launch.cluster.size() != launch.grid.size())
    return c_.Error("the cluster has ", launch.cluster.size(), " extents and the grid ", launch.grid.size(),
                    "; give one for each");
  int64_t blocks = 1;
  for (Expr e : launch.cluster) {
    int64_t extent = 1;
    ForEachNode(p_.exprs, e, [&](Expr, const ExprNode& node) {
      if (node.op == ExprOp::kDim) c_.Error("cluster extent ", c_.Text(e), " is known at launch only; use numbers and constants");
    });
    if (!IsLaunchTime(p_, e)) c_.Error("cluster extent ", c_.Text(e), " must be made of constants and numbers only");
    if (p_.exprs.AsInt(e, &extent) && (extent < 1 || extent > kMaxClusterBlocks))
      return c_.Error("cluster extent ", extent, ": a cluster has 1 to ", kMaxClusterBlocks, " blocks along a dimension");
    blocks *= extent;
  }
  if (blocks > kMaxClusterBlocks)
    c_.Error("a cluster of ", blocks, " blocks; ", kMaxClusterBlocks, " is the most that every GPU with clusters takes");
}

void TableChecker::CheckLaunches() {
  if (p_.launches.empty()) c_.Error("the program launches nothing: give it a T.Kernel");
  for (size_t i = 0; i < p_.launches.size(); ++i) {
    auto scope = c_.path.Enter("launches", i);
    const Launch& launch = p_.launches[i];
    c_.loc = launch.loc;
    if (launch.grid.empty() || launch.grid.size() > 3) c_.Error("a launch has 1 to 3 grid extents, not ", launch.grid.size());
    if (launch.block_vars.size() != launch.grid.size())
      c_.Error(launch.grid.size(), " grid extents and ", launch.block_vars.size(), " block variables: give one for each");
    for (Expr e : launch.grid) {
      int64_t extent = 0;
      if (!IsLaunchTime(p_, e, /*scalars=*/true))
        c_.Error("grid extent ", c_.Text(e), " is not known at launch: make it of dims, constants, scalars and numbers");
      if (p_.exprs.AsInt(e, &extent) && extent < 0) c_.Error("grid extent ", extent, " is negative: it must be at least 0");
    }
    CheckCluster(launch);
    int64_t threads = 0;
    if (!IsLaunchTime(p_, launch.threads)) c_.Error("the number of threads must be made of dims, constants and numbers");
    if (p_.exprs.AsInt(launch.threads, &threads) && (threads < 1 || threads > 1024))
      c_.Error(threads, " threads: a block has 1 to 1024");
  }
  c_.loc = {};
}

void TableChecker::Run() {
  owners_.resize(p_.buffers.size());
  CheckNames();
  CheckConstants();
  CheckParams();
  CheckBuffers();
  CheckDims();
  for (size_t i = 0; i < p_.assumptions.size(); ++i) {
    auto scope = c_.path.Enter("assumptions", i);
    if (!IsLaunchTime(p_, p_.assumptions[i]))
      c_.Error(c_.Text(p_.assumptions[i]), ": assumptions are made of dims, constants and numbers");
  }
  CheckLaunches();
}

}  // namespace

void CheckTables(Context& c) { TableChecker(c).Run(); }

}  // namespace tilert::verify
