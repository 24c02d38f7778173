// Partitions into roles that nothing separates run on beside each other.
#include <algorithm>
#include <utility>

#include "frontend/thread_structure.h"

namespace tilert::frontend {
namespace {

bool Fit(const Program& p, const Roles& a, const Roles& b) {
  return std::all_of(a.roles.begin(), a.roles.end(), [&](const Role& x) {
    return std::all_of(b.roles.begin(), b.roles.end(), [&](const Role& y) {
      const ThreadRange r = ThreadsOf(p, x), s = ThreadsOf(p, y);
      return r == s || r.end <= s.begin || s.end <= r.begin;
    });
  });
}

// Appends what the roles of `more` do to those of `roles`.
void Append(const Program& p, Roles more, Roles* roles) {
  for (Role& role : more.roles) {
    const ThreadRange range = ThreadsOf(p, role);
    const auto known =
        std::find_if(roles->roles.begin(), roles->roles.end(), [&](const Role& r) { return ThreadsOf(p, r) == range; });
    if (known == roles->roles.end()) {
      roles->roles.push_back(std::move(role));
    } else {
      for (Stmt& stmt : role.body) known->body.push_back(std::move(stmt));
    }
  }
  SortByThreads(p, roles);
}

bool Loads(const Program& p, Expr e) {
  bool loads = false;
  ForEachNode(p.exprs, e, [&](Expr, const ExprNode& node) { loads |= node.op == ExprOp::kLoad; });
  return loads;
}

Roles* OnlyRoles(Block& block) { return block.size() == 1 ? std::get_if<Roles>(&block[0].op) : nullptr; }

// for …: roles{a, b}  →  roles{for …: a, for …: b}
bool TakeLoop(Program& p, Stmt& stmt) {
  auto* loop = std::get_if<For>(&stmt.op);
  if (loop == nullptr || Loads(p, loop->begin) || Loads(p, loop->end) || OnlyRoles(loop->body) == nullptr) return false;
  Roles roles = std::move(*OnlyRoles(loop->body));
  const SourceLoc loc = stmt.loc;
  For shell = *loop;
  shell.body.clear();
  if (shell.kind == ForKind::kPipelined || shell.kind == ForKind::kPersistent) {
    // The roles are the pipeline.
    shell.kind = ForKind::kSerial;
    shell.num_stages = p.exprs.Int(0);
    shell.order.clear();
    shell.stage.clear();
  }
  for (Role& role : roles.roles) {
    For own = shell;
    own.body = std::move(role.body);
    own.var = FreshVar(p, shell.var);
    SubstituteVar(p, own.body, shell.var, p.exprs.Leaf(ExprOp::kVar, own.var, p.vars[own.var].dtype));
    role.body = {{std::move(own), loc}};
  }
  stmt = {std::move(roles), loc};
  return true;
}

// The same for a condition.
bool TakeBranch(Program& p, Stmt& stmt) {
  auto* branch = std::get_if<If>(&stmt.op);
  if (branch == nullptr || Loads(p, branch->cond)) return false;
  Roles *yes = OnlyRoles(branch->then_body), *no = OnlyRoles(branch->else_body);
  if ((yes == nullptr && !branch->then_body.empty()) || (no == nullptr && !branch->else_body.empty())) return false;
  if ((yes == nullptr && no == nullptr) || (yes != nullptr && no != nullptr && !Fit(p, *yes, *no))) return false;
  const Expr cond = branch->cond;
  const SourceLoc loc = stmt.loc;
  Roles roles;
  for (auto [part, is_then] : {std::pair(yes, true), std::pair(no, false)}) {
    if (part == nullptr) continue;
    Roles wrapped;
    for (Role& role : part->roles) {
      If own{cond, {}, {}};
      (is_then ? own.then_body : own.else_body) = std::move(role.body);
      wrapped.roles.push_back({role.thread_begin, role.thread_end, {{std::move(own), loc}}});
    }
    Append(p, std::move(wrapped), &roles);
  }
  stmt = {std::move(roles), loc};
  return true;
}

}  // namespace

ThreadRange ThreadsOf(const Program& p, const Role& role) {
  ThreadRange range;
  p.exprs.AsInt(role.thread_begin, &range.begin);
  p.exprs.AsInt(role.thread_end, &range.end);
  return range;
}

void SortByThreads(const Program& p, Roles* roles) {
  std::sort(roles->roles.begin(), roles->roles.end(),
            [&](const Role& a, const Role& b) { return ThreadsOf(p, a).begin < ThreadsOf(p, b).begin; });
}

void JoinRoles(Program& p, Block& block) {
  Block out;
  for (Stmt& stmt : block) {
    if (!std::holds_alternative<Roles>(stmt.op)) {
      for (Block* child : ChildBlocks(stmt)) JoinRoles(p, *child);
      TakeLoop(p, stmt) || TakeBranch(p, stmt);
    }
    auto* last = out.empty() ? nullptr : std::get_if<Roles>(&out.back().op);
    auto* roles = std::get_if<Roles>(&stmt.op);
    if (last != nullptr && roles != nullptr && Fit(p, *last, *roles)) {
      Append(p, std::move(*roles), last);
    } else if (last != nullptr && (std::holds_alternative<Alloc>(stmt.op) || std::holds_alternative<Annotate>(stmt.op))) {
      out.insert(out.end() - 1, std::move(stmt));  // nothing that runs: it separates nothing
    } else {
      out.push_back(std::move(stmt));
    }
  }
  block = std::move(out);
}

void SinkIntoRoles(Program& p, Block& block) {
  for (size_t i = 0; i < block.size();) {
    const auto* alloc = std::get_if<Alloc>(&block[i].op);
    const Scope scope = alloc == nullptr ? Scope::kInvalid : p.buffers[alloc->buffer].scope;
    Role* home = nullptr;
    bool elsewhere = scope != Scope::kFragment && scope != Scope::kLocal && scope != Scope::kVar;
    for (size_t j = i + 1; j < block.size() && !elsewhere; ++j) {
      auto* roles = std::get_if<Roles>(&block[j].op);
      if (roles == nullptr) {
        elsewhere = TouchedBuffers(p, block[j]).contains(alloc->buffer);
        continue;
      }
      for (Role& role : roles->roles) {
        const bool touches = std::any_of(role.body.begin(), role.body.end(),
                                         [&](const Stmt& s) { return TouchedBuffers(p, s).contains(alloc->buffer); });
        elsewhere |= touches && home != nullptr;
        if (touches) home = &role;
      }
    }
    if (elsewhere || home == nullptr) {
      ++i;
      continue;
    }
    home->body.insert(home->body.begin(), std::move(block[i]));
    block.erase(block.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace tilert::frontend
