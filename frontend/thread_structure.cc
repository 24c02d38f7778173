#include "frontend/thread_structure.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/printer.h"
#include "ir/status_util.h"
#include "ir/verify_context.h"

namespace tilert::frontend {

namespace {

constexpr int64_t kWarpThreads = 32;

bool IsTileOnly(const Program& p, const Stmt& stmt) {
  return !CanBeThreaded(p, stmt) || std::holds_alternative<BarrierOp>(stmt.op);
}

class Structurer {
 public:
  Structurer(Program& p, VarId tx, ThreadRange all) : p_(p), tx_(tx), all_(all) {}

  absl::Status Run(Block& body) {
    FindPrivate(body);
    const auto stays = [&](const Stmt& stmt) {  // what a region cannot hold and that is the block's anyway
      return std::holds_alternative<Annotate>(stmt.op) || std::holds_alternative<Alloc>(stmt.op);
    };
    const bool by_threads = std::all_of(body.begin(), body.end(), [&](const Stmt& stmt) {
      const auto* alloc = std::get_if<Alloc>(&stmt.op);
      if (alloc != nullptr) return p_.buffers[alloc->buffer].scope != Scope::kFragment;
      return stays(stmt) || Threadable(stmt);
    });
    if (absl::Status status = CheckDivided(body); !status.ok()) return status;
    if (by_threads) {
      Block outside;
      AddRegion(std::move(body), all_, &outside);
      body = std::move(outside);
    } else {
      absl::Status status = Structure(body, all_);
      if (!status.ok()) return status;
      JoinRoles(p_, body);
      SinkIntoRoles(p_, body);
    }
    Syncs(body, all_, 0);
    return absl::OkStatus();
  }

 private:
  bool Mentions(Expr e) const {
    bool found = false;
    ForEachNode(p_.exprs, e, [&](Expr, const ExprNode& node) {
      found |= node.op == ExprOp::kVar && (node.i == tx_ || varying_.contains(static_cast<VarId>(node.i)));
      found |= node.op == ExprOp::kLoad && private_.contains(static_cast<BufferId>(node.i));
    });
    return found;
  }

  // Private memory in which threads hold values of their own, and variables that differ from thread to thread.
  void FindPrivate(const Block& block) {
    for (size_t before = SIZE_MAX; before != private_.size() + varying_.size();) {
      before = private_.size() + varying_.size();
      Taint(block, false);
    }
  }
  void Taint(const Block& block, bool varies) {
    for (const Stmt& stmt : block) {
      bool own = false;
      ForEachExpr(stmt, [&](Expr e) { own |= Mentions(e); });
      const auto mark = [&](BufferId id) {
        const Scope scope = p_.buffers[id].scope;
        if ((own || varies) && (scope == Scope::kLocal || scope == Scope::kVar)) private_.insert(id);
      };
      const bool control =
          std::holds_alternative<If>(stmt.op) || std::holds_alternative<For>(stmt.op) || std::holds_alternative<While>(stmt.op);
      std::visit(Overloaded{
                     [](const auto&) {},
                     [&](const Store& s) { mark(s.buffer); },
                     [&](const Fill& s) { mark(s.dst.buffer); },
                     [&](const Copy& s) { mark(s.dst.buffer); },
                     [&](const Let& s) {
                       if (own) varying_.insert(s.var);
                     },
                     [&](const Shuffle& s) { varying_.insert(s.var); },
                     [&](const Atomic& s) {
                       if (s.prev != kNoId) varying_.insert(s.prev);
                     },
                     [&](const For& s) {
                       if (own) varying_.insert(s.var);
                     },
                 },
                 stmt.op);
      // A partition into roles holds nobody's own values: each role is in step.
      const bool splits = control && own && !(std::holds_alternative<If>(stmt.op) && RolesOf(stmt, all_));
      for (const Block* child : ChildBlocks(stmt)) Taint(*child, varies || splits);
    }
  }

  // Partitions that talk through barriers run beside each other: as code of single threads they would wait for each other.
  bool Threadable(const Stmt& root) const {
    bool talks = false;
    ForEachStmt(root, [&](const Stmt& stmt) {
      if (!std::holds_alternative<If>(stmt.op) || !RolesOf(stmt, all_)) return;
      ForEachStmt(stmt, [&](const Stmt& inner) { talks |= std::holds_alternative<BarrierOp>(inner.op); });
    });
    return !talks && CanBeThreaded(p_, root);
  }

  bool NeedsThreads(const Stmt& root) const {
    if (std::holds_alternative<Alloc>(root.op)) return false;
    bool needs = false;
    for (BufferId id : TouchedBuffers(p_, root)) needs |= private_.contains(id);
    ForEachStmt(root, [&](const Stmt& stmt) { ForEachExpr(stmt, [&](Expr e) { needs |= Mentions(e); }); });
    return needs;
  }

  std::optional<ThreadRange> RangeOf(Expr cond, ThreadRange within) const { return ThreadsWhere(p_, cond, tx_, within); }

  // An if-chain over ranges of whole warps that holds tile statements: the roles, their bodies still as they were.
  std::optional<std::vector<std::pair<ThreadRange, const Block*>>> RolesOf(const Stmt& stmt, ThreadRange within) const {
    std::vector<std::pair<ThreadRange, const Block*>> roles;
    const auto* branch = std::get_if<If>(&stmt.op);
    bool tiles = false;
    while (branch != nullptr) {
      const auto range = RangeOf(branch->cond, within);
      if (!range || range->begin % kWarpThreads != 0 || range->end % kWarpThreads != 0) return std::nullopt;
      const bool front = range->begin == within.begin, back = range->end == within.end;
      const auto add = [&](ThreadRange r, const Block* body) {
        if (r.size() > 0 && !body->empty()) roles.push_back({r, body});
        ForEachStmt(*body, [&](const Stmt& inner) { tiles |= ChildBlocks(inner).empty() && IsTileOnly(p_, inner); });
      };
      add(*range, &branch->then_body);
      if (branch->else_body.empty()) break;
      if (!front && !back) return std::nullopt;  // what is left is no range
      within = front ? ThreadRange{range->end, within.end} : ThreadRange{within.begin, range->begin};
      const auto* next = branch->else_body.size() == 1 ? std::get_if<If>(&branch->else_body[0].op) : nullptr;
      if (next == nullptr || !RangeOf(next->cond, within)) {
        add(within, &branch->else_body);
        break;
      }
      branch = next;
    }
    if (branch == nullptr || !tiles) return std::nullopt;
    return roles;
  }

  absl::Status Structure(Block& block, ThreadRange range) {
    Block out, run;
    const auto flush = [&] {
      if (!run.empty()) AddRegion(std::exchange(run, {}), range, &out);
    };
    for (Stmt& stmt : block) {
      if (const auto roles = RolesOf(stmt, range)) {
        flush();
        Roles made;
        for (const auto& [part, body] : *roles) {
          Role role{p_.exprs.Int(part.begin), p_.exprs.Int(part.end), *body};
          absl::Status status = Structure(role.body, part);
          if (!status.ok()) return status;
          made.roles.push_back(std::move(role));
        }
        SortByThreads(p_, &made);
        if (!made.roles.empty()) out.push_back({std::move(made), stmt.loc});
      } else if (!NeedsThreads(stmt)) {
        flush();
        if (auto* loop = std::get_if<For>(&stmt.op); loop != nullptr || std::holds_alternative<If>(stmt.op)) {
          for (Block* child : ChildBlocks(stmt)) {
            absl::Status status = Structure(*child, range);
            if (!status.ok()) return status;
          }
          ForgetOrder(stmt);
        }
        out.push_back(std::move(stmt));
      } else if (Threadable(stmt)) {
        run.push_back(std::move(stmt));
      } else {
        flush();
        absl::Status status = Descend(stmt, range);
        if (!status.ok()) return status;
        out.push_back(std::move(stmt));
      }
    }
    flush();
    block = std::move(out);
    return absl::OkStatus();
  }
  // What a body's statements were told to be: they are others now.
  static void ForgetOrder(Stmt& stmt) {
    auto* loop = std::get_if<For>(&stmt.op);
    if (loop == nullptr || (loop->order.size() == loop->body.size() && loop->stage.size() == loop->body.size())) return;
    loop->order.clear();
    loop->stage.clear();
  }

  // What threads divide among themselves, they all come to.
  absl::Status CheckDivided(const Block& block) const {
    for (const Stmt& stmt : block) {
      const auto* branch = std::get_if<If>(&stmt.op);
      bool by_thread = false, divided = false;
      if (branch != nullptr && !RangeOf(branch->cond, all_)) {
        ForEachNode(p_.exprs, branch->cond,
                    [&](Expr, const ExprNode& node) { by_thread |= node.op == ExprOp::kVar && node.i == tx_; });
        ForEachStmt(stmt, [&](const Stmt& inner) { divided |= IsDivided(p_, inner); });
      }
      if (by_thread && divided) return OnlySomeThreads(stmt);
      for (const Block* child : ChildBlocks(stmt)) {
        if (absl::Status status = CheckDivided(*child); !status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  absl::Status OnlySomeThreads(const Stmt& stmt) const {
    return InvalidArgument(
        PlaceOf(p_, stmt.loc), "error: ", PrintStmtHead(p_, stmt),
        " holds a tile statement and depends on the number of the thread, on which no two threads agree\n"
        "  hint: write element code, or `if tx < 128:` with a multiple of 32 for a partition of the threads");
  }

  // Control around tile statements and thread code: all threads must agree on it.
  absl::Status Descend(Stmt& stmt, ThreadRange range) {
    bool own = false;
    ForEachExpr(stmt, [&](Expr e) { own |= Mentions(e); });
    if (own || ChildBlocks(stmt).empty()) return OnlySomeThreads(stmt);
    for (Block* child : ChildBlocks(stmt)) {
      absl::Status status = Structure(*child, range);
      if (!status.ok()) return status;
    }
    ForgetOrder(stmt);
    return absl::OkStatus();
  }

  void AddRegion(Block body, ThreadRange range, Block* out) {
    ThreadRegion region;
    p_.vars.push_back({"tx"});
    region.thread = static_cast<VarId>(p_.vars.size() - 1);
    const SourceLoc loc = body.front().loc;
    const Expr tx = p_.exprs.Leaf(ExprOp::kVar, region.thread, DType::kIndex);
    SubstituteVar(p_, body, tx_, tx);
    region.body = ThreadCode(p_, std::move(body), tx, range, out);
    if (!region.body.empty()) out->push_back({std::move(region), loc});
  }

  void Syncs(Block& block, ThreadRange range, uint32_t group) {
    for (Stmt& stmt : block) {
      if (std::holds_alternative<ThreadRegion>(stmt.op)) {
        InsertSyncs(p_, stmt, range, group);
      } else if (auto* roles = std::get_if<Roles>(&stmt.op)) {
        for (size_t i = 0; i < roles->roles.size(); ++i) {
          Role& role = roles->roles[i];
          Syncs(role.body, ThreadsOf(p_, role), static_cast<uint32_t>(i + 1));
        }
      } else {
        for (Block* child : ChildBlocks(stmt)) Syncs(*child, range, group);
      }
    }
  }

  Program& p_;
  const VarId tx_;
  const ThreadRange all_;
  absl::flat_hash_set<BufferId> private_;
  absl::flat_hash_set<VarId> varying_;
};

}  // namespace

std::optional<ThreadRange> ThreadsWhere(const Program& p, Expr cond, VarId tx, ThreadRange within) {
  const ExprNode& node = p.exprs[cond];
  if (node.op == ExprOp::kAnd) {
    const auto first = ThreadsWhere(p, node.args[0], tx, within);
    return first ? ThreadsWhere(p, node.args[1], tx, *first) : std::nullopt;
  }
  if (node.args.size() != 2) return std::nullopt;
  const auto is_thread = [&](Expr e) {
    const ExprNode& n = p.exprs[e];
    return n.op == ExprOp::kVar && n.i == tx;
  };
  int64_t bound = 0;
  ExprOp op = node.op;
  if (is_thread(node.args[0]) && p.exprs.AsInt(node.args[1], &bound)) {
  } else if (is_thread(node.args[1]) && p.exprs.AsInt(node.args[0], &bound)) {
    op = op == ExprOp::kLt   ? ExprOp::kGt
         : op == ExprOp::kGt ? ExprOp::kLt
         : op == ExprOp::kLe ? ExprOp::kGe
         : op == ExprOp::kGe ? ExprOp::kLe
                             : op;
  } else {
    return std::nullopt;
  }
  ThreadRange r = within;
  switch (op) {
    case ExprOp::kEq: r = {std::max(r.begin, bound), std::min(r.end, bound + 1)}; break;
    case ExprOp::kLt: r.end = std::min(r.end, bound); break;
    case ExprOp::kLe: r.end = std::min(r.end, bound + 1); break;
    case ExprOp::kGe: r.begin = std::max(r.begin, bound); break;
    case ExprOp::kGt: r.begin = std::max(r.begin, bound + 1); break;
    default: return std::nullopt;
  }
  return r;
}

absl::Status StructureThreads(const std::vector<ThreadUse>& uses, Program* program) {
  for (const ThreadUse& use : uses) {
    Launch& launch = program->launches[use.launch];
    ThreadRange all;
    if (!program->exprs.AsInt(launch.threads, &all.end)) {
      return InvalidArgument(PlaceOf(*program, launch.loc),
                             "error: code by thread needs a number of threads that is known\n"
                             "  hint: give threads= a number, or fix it with --set");
    }
    absl::Status status = Structurer(*program, use.thread, all).Run(launch.body);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace tilert::frontend
