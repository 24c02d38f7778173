// docs/ir_spec.md section 5, "Scopes": variables and buffers are used only where they exist, and tensors as their access allows.
#include "ir/verify_context.h"

namespace tilert::verify {

void ForEachRegion(const Stmt& stmt, const std::function<void(const Region&, bool, bool)>& visit) {
  std::visit(Overloaded{
                 [](const auto&) {},
                 [&](const Copy& s) { visit(s.src, false, true), visit(s.dst, true, false); },
                 [&](const Gemm& s) { visit(s.a, false, true), visit(s.b, false, true), visit(s.c, true, !s.clear_accum); },
                 [&](const Fill& s) { visit(s.dst, true, false); },
                 [&](const Reduce& s) { visit(s.src, false, true), visit(s.dst, true, !s.clear); },
                 [&](const Scan& s) { visit(s.src, false, true), visit(s.dst, true, false); },
                 [&](const AtomicTile& s) { visit(s.src, false, true), visit(s.dst, true, true); },
             },
             stmt.op);
}

namespace {

class ScopeChecker {
 public:
  explicit ScopeChecker(Context& c);
  void Run();

 private:
  void Bind(VarId var);
  void Use(Expr e);
  void UseBuffer(BufferId id, bool is_written, bool is_read);
  void UseOperands(const Stmt& stmt);
  void WalkBlock(const Block& block);
  void WalkStmt(const Stmt& stmt);

  Context& c_;
  std::vector<Access> access_;  // of each buffer; kInOut for what is no tensor parameter
  std::vector<bool> buffer_visible_, var_visible_, var_bound_;
  std::vector<BufferId> buffers_;  // visible local ones, innermost last
  std::vector<VarId> vars_;
};

ScopeChecker::ScopeChecker(Context& c)
    : c_(c), access_(c.p.buffers.size(), Access::kInOut), var_visible_(c.p.vars.size()), var_bound_(c.p.vars.size()) {
  for (const Buffer& buffer : c.p.buffers) buffer_visible_.push_back(buffer.scope == Scope::kGlobal);
  for (const Param& param : c.p.params) {
    if (param.kind == Param::Kind::kTensor) access_[param.index] = param.access;
  }
}

void ScopeChecker::Bind(VarId var) {
  if (var_bound_[var]) c_.Error("variable '", c_.p.vars[var].name, "' is bound twice: give each binding a variable of its own");
  var_bound_[var] = var_visible_[var] = true;
  vars_.push_back(var);
}

void ScopeChecker::UseBuffer(BufferId id, bool is_written, bool is_read) {
  if (!buffer_visible_[id])
    c_.Error(c_.Name(id), " does not exist here: allocate it in this block or one around it, before its use");
  if (is_written && access_[id] == Access::kIn)
    c_.Error(c_.Name(id), " is written but declared access=\"in\": declare it \"inout\" or \"out\"");
  if (is_read && access_[id] == Access::kOut) c_.Error(c_.Name(id), " is read but declared access=\"out\": declare it \"inout\"");
}

void ScopeChecker::Use(Expr e) {
  ForEachNode(c_.p.exprs, e, [&](Expr, const ExprNode& node) {
    if (node.op == ExprOp::kLoad) UseBuffer(static_cast<BufferId>(node.i), false, true);
    if (node.op == ExprOp::kVar && !var_visible_[node.i]) {
      c_.Error("variable '", c_.p.vars[node.i].name, "' has no value here: it is bound in another block, or later");
    }
  });
}

void ScopeChecker::UseOperands(const Stmt& stmt) {
  ForEachExpr(stmt, [&](Expr e) { Use(e); });
  ForEachRegion(stmt, [&](const Region& r, bool is_written, bool is_read) { UseBuffer(r.buffer, is_written, is_read); });
  std::visit(Overloaded{
                 [](const auto&) {},
                 [&](const Copy& s) {
                   if (s.barrier != kNoId) UseBuffer(s.barrier, false, false);
                 },
                 [&](const Store& s) { UseBuffer(s.buffer, true, false); },
                 [&](const Atomic& s) { UseBuffer(s.buffer, true, true); },
                 [&](const Annotate& s) {
                   if (s.buffer != kNoId) UseBuffer(s.buffer, false, false);
                 },
                 [&](const BarrierOp& s) { UseBuffer(s.barrier, false, false); },
             },
             stmt.op);
}

void ScopeChecker::WalkStmt(const Stmt& stmt) {
  UseOperands(stmt);
  const size_t first_var = vars_.size();
  if (const VarId* var = BoundVar(stmt)) Bind(*var);
  std::visit(Overloaded{
                 [](const auto&) {},
                 [&](const Alloc& s) {
                   for (Expr e : c_.p.buffers[s.buffer].shape) Use(e);
                   buffer_visible_[s.buffer] = true;
                   buffers_.push_back(s.buffer);
                 },
                 [&](const Parallel& s) {
                   for (VarId var : s.vars) Bind(var);
                 },
                 [&](const For& s) { Bind(s.var); },
                 [&](const ThreadRegion& s) { Bind(s.thread); },
             },
             stmt.op);
  const std::vector<const Block*> children = ChildBlocks(stmt);
  for (size_t part = 0; part < children.size(); ++part) {
    auto scope = c_.path.EnterPart(stmt, part);
    WalkBlock(*children[part]);
  }
  if (children.empty()) return;  // what a Let binds lives on
  for (; vars_.size() > first_var; vars_.pop_back()) var_visible_[vars_.back()] = false;
}

void ScopeChecker::WalkBlock(const Block& block) {
  const size_t first_buffer = buffers_.size(), first_var = vars_.size();
  for (size_t i = 0; i < block.size() && !c_.full(); ++i) {
    auto scope = c_.path.Enter("", i);
    c_.loc = block[i].loc;
    WalkStmt(block[i]);
  }
  for (; buffers_.size() > first_buffer; buffers_.pop_back()) buffer_visible_[buffers_.back()] = false;
  for (; vars_.size() > first_var; vars_.pop_back()) var_visible_[vars_.back()] = false;
}

void ScopeChecker::Run() {
  for (size_t i = 0; i < c_.p.launches.size(); ++i) {
    const Launch& launch = c_.p.launches[i];
    auto scope = c_.path.Enter("launches", i);
    c_.loc = launch.loc;
    for (VarId var : launch.block_vars) Bind(var);
    auto body = c_.path.Enter("body");
    WalkBlock(launch.body);
    for (; !vars_.empty(); vars_.pop_back()) var_visible_[vars_.back()] = false;
  }
  c_.loc = {};
}

}  // namespace

void CheckScopes(Context& c) { ScopeChecker(c).Run(); }

}  // namespace tilert::verify
