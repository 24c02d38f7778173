#include "ir/structure.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/flat_fields.h"
#include "ir/int_math.h"
#include "ir/limits.h"
#include "ir/printer.h"
#include "ir/stmt_path.h"

namespace tilert {
namespace {

class Checker {
 public:
  explicit Checker(const Program& p) : p_(p) {}
  std::vector<VerifyError> Run();

 private:
  friend class FieldChecker;
  template <typename... Parts>
  void Error(const Parts&... parts) {
    if (errors_.size() < kMaxVerifyErrors)
      errors_.push_back({path_.ToString(), PrintLoc(p_, loc_), Cat(parts...).substr(0, 600)});
  }
  template <typename Table>
  void CheckSize(std::string_view name, const Table& table, size_t limit = kMaxTableEntries) {
    if (table.size() > limit) Error("the program has ", table.size(), " ", name, "; at most ", limit, " are allowed");
  }
  void CheckNode(uint32_t id);
  void CheckLeaf(const ExprNode& node, std::string_view what, size_t size);
  void CheckExpr(Expr e, std::string_view what);
  void CheckExprs(const std::vector<Expr>& list, std::string_view what, size_t limit = kMaxRank);
  void CheckTables();
  void CheckBuffer(const Buffer& buffer);
  void CheckBlock(const Block& block, size_t depth);

  const Program& p_;
  StmtPath path_;
  SourceLoc loc_;
  std::vector<uint32_t> depth_;  // of each node
  std::vector<uint64_t> tree_;   // nodes below and with each, saturated
  uint64_t program_tree_ = 0;
  size_t statements_ = 0, operands_ = 0;
  std::vector<VerifyError> errors_;
};

// FlatFields archive: checks the ids of one statement.
class FieldChecker {
 public:
  FieldChecker(Checker& c) : c_(c) {}
  void Buffer(BufferId id) { Id(id, c_.p_.buffers.size(), "buffer"); }
  void OptBuffer(BufferId id) {
    if (id != kNoId) Buffer(id);
  }
  void Var(VarId id) { Id(id, c_.p_.vars.size(), "variable"); }
  void Vars(const std::vector<VarId>& ids) {
    Count(ids.size(), kMaxRank, "variables");
    for (VarId id : ids) Var(id);
  }
  void E(Expr e) { ++c_.operands_, c_.CheckExpr(e, "an operand"); }
  void OptE(Expr e) {
    if (e) E(e);
  }
  void Es(const std::vector<Expr>& list) {
    Count(list.size(), 64, "operands");
    for (Expr e : list) E(e);
  }
  void Rgn(const Region& r) {
    Buffer(r.buffer);
    if (r.start.size() != r.extent.size()) c_.Error("a region has ", r.start.size(), " starts and ", r.extent.size(), " extents");
    Count(r.start.size(), kMaxRank, "dimensions");
    if (r.buffer < c_.p_.buffers.size() && r.start.size() != c_.p_.buffers[r.buffer].shape.size()) {
      c_.Error("a region of ", c_.p_.buffers[r.buffer].name, " has ", r.start.size(), " dimensions, the buffer ",
               c_.p_.buffers[r.buffer].shape.size());
    }
    for (Expr e : r.start) E(e);
    for (Expr e : r.extent) E(e);
  }
  void U32(uint32_t) {}
  void Bool(bool) {}
  void Ints(const std::vector<int32_t>& list) { c_.operands_ += list.size(); }
  void Stages(Expr e, Expr) { E(e); }
  void Split(Expr e) { OptE(e); }
  void Slot(const std::vector<Expr>& indices) { Es(indices); }
  void Group(uint32_t, uint32_t) {}
  void Prev(VarId id) {
    if (id != kNoId) Var(id);
  }
  void Text(const std::string& text) { Count(text.size(), kMaxStringBytes, "bytes of text"); }
  template <typename Value>
  void Enum(Value value, Value last) {
    if (value == Value::kInvalid || value > last) c_.Error("value ", static_cast<int>(value), " is none of its enumeration");
  }

 private:
  void Id(uint32_t id, size_t size, std::string_view what) {
    ++c_.operands_;
    if (id >= size) c_.Error(what, " ", id, " does not exist; the program has ", size);
  }
  void Count(size_t count, size_t limit, std::string_view what) {
    if (count > limit) c_.Error(count, " ", what, "; at most ", limit, " are allowed");
  }
  Checker& c_;
};

void Checker::CheckLeaf(const ExprNode& node, std::string_view what, size_t size) {
  if (node.i < 0 || static_cast<uint64_t>(node.i) >= size) Error(what, " ", node.i, " does not exist; the program has ", size);
}

void Checker::CheckNode(uint32_t id) {
  const ExprNode& node = p_.exprs[Expr{id}];
  const int arity = ExprArity(node.op);
  if (arity < -1) return Error("expression ", id, ": operator ", static_cast<int>(node.op), " is unknown");
  if (!IsValidDType(static_cast<uint32_t>(node.dtype)))
    return Error("expression ", id, ": type ", static_cast<int>(node.dtype), " is unknown");
  if (arity >= 0 ? node.args.size() != static_cast<size_t>(arity) : node.args.size() > kMaxRank) {
    return Error("expression ", id, " (", ExprOpText(node.op), ") has ", node.args.size(), " operands");
  }
  for (Expr arg : node.args) {
    if (arg.id >= id) return Error("expression ", id, " has operand ", arg.id, ", which is not an earlier one");
    depth_[id] = std::max(depth_[id], depth_[arg.id] + 1);
    tree_[id] = std::min(tree_[id] + tree_[arg.id], kMaxProgramTree + 1);
  }
  if (depth_[id] > kMaxExprDepth) Error("expression ", id, " is nested deeper than ", kMaxExprDepth);
  switch (node.op) {
    case ExprOp::kIntImm:
      if (IsFloat(node.dtype) || WrapInt(node.i, node.dtype) != node.i)
        Error("number ", node.i, " does not fit ", DTypeName(node.dtype));
      break;
    case ExprOp::kFloatImm:
      if (!IsFloat(node.dtype)) Error("a float number cannot have type ", DTypeName(node.dtype));
      if (std::isnan(node.f) && std::signbit(node.f)) Error("expression ", id, ": NaN must be the positive quiet one");
      break;
    case ExprOp::kDim: CheckLeaf(node, "dim", p_.dims.size()); break;
    case ExprOp::kConstant: CheckLeaf(node, "constant", p_.constants.size()); break;
    case ExprOp::kScalar: CheckLeaf(node, "scalar", p_.scalars.size()); break;
    case ExprOp::kVar: CheckLeaf(node, "variable", p_.vars.size()); break;
    case ExprOp::kLoad: CheckLeaf(node, "buffer", p_.buffers.size()); break;
    default: break;
  }
}

void Checker::CheckExpr(Expr e, std::string_view what) {
  if (!e) return Error(what, " has no value");
  if (e.id >= p_.exprs.size()) return Error(what, " is expression ", e.id, "; the program has ", p_.exprs.size());
  if (tree_[e.id] > kMaxExprTree) Error(what, " has more than ", kMaxExprTree, " nodes");
  program_tree_ = std::min(program_tree_ + tree_[e.id], kMaxProgramTree + 1);
}

void Checker::CheckExprs(const std::vector<Expr>& list, std::string_view what, size_t limit) {
  if (list.size() > limit) Error(list.size(), " times ", what, "; at most ", limit, " are allowed");
  for (Expr e : list) CheckExpr(e, what);
}

void Checker::CheckBuffer(const Buffer& buffer) {
  loc_ = buffer.loc;
  if (buffer.scope == Scope::kInvalid || buffer.scope > Scope::kBarrier)
    Error("scope ", static_cast<int>(buffer.scope), " is unknown");
  if (!IsValidDType(static_cast<uint32_t>(buffer.dtype))) Error("type ", static_cast<int>(buffer.dtype), " is unknown");
  CheckExprs(buffer.shape, "an extent");
  CheckExprs(buffer.strides, "a stride");
  loc_ = {};
}

void Checker::CheckTables() {
  const auto each = [&](std::string_view name, const auto& table, auto check) {
    CheckSize(name, table);
    for (size_t i = 0; i < table.size(); ++i) {
      auto scope = path_.Enter(name, i);
      check(table[i]);
    }
  };
  each("constants", p_.constants, [&](const Constant& c) { CheckSize("candidates", c.candidates, kMaxCandidates); });
  each("dims", p_.dims, [](const Dim&) {});
  each("scalars", p_.scalars, [&](const ScalarParam& s) {
    if (!IsValidDType(static_cast<uint32_t>(s.dtype))) Error("type ", static_cast<int>(s.dtype), " is unknown");
    if (s.dim != kNoId && s.dim >= p_.dims.size()) Error("dim ", s.dim, " does not exist; the program has ", p_.dims.size());
  });
  each("buffers", p_.buffers, [&](const Buffer& b) { CheckBuffer(b); });
  each("vars", p_.vars, [&](const Var& v) {
    if (!IsValidDType(static_cast<uint32_t>(v.dtype))) Error("type ", static_cast<int>(v.dtype), " is unknown");
  });
  each("params", p_.params, [&](const Param& param) {
    const bool is_tensor = param.kind == Param::Kind::kTensor;
    if (!is_tensor && param.kind != Param::Kind::kScalar) return Error("kind ", static_cast<int>(param.kind), " is unknown");
    const size_t size = is_tensor ? p_.buffers.size() : p_.scalars.size();
    if (param.index >= size) Error(is_tensor ? "buffer " : "scalar ", param.index, " does not exist; the program has ", size);
    if (param.access > Access::kInOut || (is_tensor && param.access == Access::kInvalid))
      Error("access ", static_cast<int>(param.access), " is unknown");
  });
  each("assumptions", p_.assumptions, [&](Expr e) { CheckExpr(e, "an assumption"); });
  each("workspaces", p_.workspaces, [&](const Workspace& w) {
    if (w.buffer >= p_.buffers.size()) Error("buffer ", w.buffer, " does not exist; the program has ", p_.buffers.size());
  });
}

void Checker::CheckBlock(const Block& block, size_t depth) {
  if (depth > kMaxStatementDepth) return Error("statements are nested deeper than ", kMaxStatementDepth);
  for (size_t i = 0; i < block.size() && errors_.size() < kMaxVerifyErrors; ++i) {
    const Stmt& stmt = block[i];
    auto scope = path_.Enter("", i);
    loc_ = stmt.loc;
    if (++statements_ > kMaxStatements) return;
    FieldChecker fields(*this);
    std::visit([&](const auto& s) { FlatFields(fields, s); }, stmt.op);
    const auto* roles = std::get_if<Roles>(&stmt.op);
    if (roles != nullptr) {
      for (const Role& role : roles->roles) FlatFields(fields, role);
    }
    const std::vector<const Block*> children = ChildBlocks(stmt);
    for (size_t child = 0; child < children.size(); ++child) {
      auto part = path_.EnterPart(stmt, child);
      CheckBlock(*children[child], depth + 1);
    }
  }
}

std::vector<VerifyError> Checker::Run() {
  CheckSize("expressions", p_.exprs.nodes(), kMaxExprs);
  CheckSize("files", p_.files);
  CheckSize("launches", p_.launches);
  if (!errors_.empty()) return errors_;
  depth_.assign(p_.exprs.size(), 1);
  tree_.assign(p_.exprs.size(), 1);
  for (uint32_t id = 0; id < p_.exprs.size() && errors_.empty(); ++id) CheckNode(id);
  if (!errors_.empty()) return errors_;
  CheckTables();
  for (size_t i = 0; i < p_.launches.size(); ++i) {
    const Launch& launch = p_.launches[i];
    auto scope = path_.Enter("launches", i);
    loc_ = launch.loc;
    CheckExprs(launch.grid, "a grid extent");
    CheckExprs(launch.cluster, "a cluster extent");
    CheckExpr(launch.threads, "the number of threads");
    for (VarId var : launch.block_vars) {
      if (var >= p_.vars.size()) Error("variable ", var, " does not exist; the program has ", p_.vars.size());
    }
    auto body = path_.Enter("body");
    CheckBlock(launch.body, 1);
  }
  if (statements_ > kMaxStatements) Error("the program has more than ", kMaxStatements, " statements");
  if (operands_ > kMaxOperands / 2) Error("the program has more than ", kMaxOperands / 2, " operands");
  if (program_tree_ > kMaxProgramTree) Error("the program has more than ", kMaxProgramTree, " nodes of expressions");
  return std::move(errors_);
}

}  // namespace

std::vector<VerifyError> FindStructureErrors(const Program& program) { return Checker(program).Run(); }

}  // namespace tilert
