// Statements of a block as what each of its threads does, and the barriers between them.
#include <algorithm>
#include <functional>
#include <utility>

#include "frontend/thread_structure.h"
#include "ir/uniformity.h"
#include "ir/verify_context.h"

namespace tilert::frontend {
namespace {

bool IsPrivate(Scope scope) { return scope == Scope::kLocal || scope == Scope::kVar; }

class ThreadCoder {
 public:
  ThreadCoder(Program& p, Expr tx, ThreadRange range, Block* outside) : p_(p), tx_(tx), range_(range), outside_(*outside) {}

  Block Code(Block block) {
    Block out;
    for (Stmt& stmt : block) Add(std::move(stmt), out);
    return out;
  }

 private:
  Expr Int(int64_t value) { return p_.exprs.Int(value); }
  Expr Op(ExprOp op, Expr a, Expr b) { return Fold(p_.exprs, p_.exprs.Binary(op, a, b)); }
  Expr VarExpr(VarId var) { return p_.exprs.Leaf(ExprOp::kVar, var, p_.vars[var].dtype); }
  VarId NewVar(std::string name) {
    p_.vars.push_back({std::move(name)});
    return static_cast<VarId>(p_.vars.size() - 1);
  }
  Scope ScopeOf(BufferId id) const { return p_.buffers[id].scope; }

  void Add(Stmt stmt, Block& out) {
    const SourceLoc loc = stmt.loc;
    if (auto* alloc = std::get_if<Alloc>(&stmt.op)) {
      (IsPrivate(ScopeOf(alloc->buffer)) ? out : outside_).push_back(std::move(stmt));
    } else if (std::holds_alternative<Annotate>(stmt.op)) {
      outside_.push_back(std::move(stmt));
    } else if (auto* fill = std::get_if<Fill>(&stmt.op)) {
      if (ScopeOf(fill->dst.buffer) == Scope::kLocal) return out.push_back(std::move(stmt));
      Elements(fill->dst.extent, IsDivided(p_, stmt), loc, out, [&](const std::vector<Expr>& at) -> StmtOp {
        return Store{fill->dst.buffer, Shifted(fill->dst, at), fill->value};
      });
    } else if (auto* copy = std::get_if<Copy>(&stmt.op)) {
      Elements(copy->dst.extent, IsDivided(p_, stmt), loc, out,
               [&](const std::vector<Expr>& at) -> StmtOp {
                 const std::vector<Expr> from = Shifted(copy->src, Matching(copy->dst, copy->src, at));
                 Expr value = p_.exprs.Load(copy->src.buffer, p_.buffers[copy->src.buffer].dtype, from);
                 if (copy->fill)
                   value = p_.exprs.Intern(
                       {ExprOp::kSelect, p_.exprs[value].dtype, 0, 0, {Inside(copy->src.buffer, from), value, copy->fill}});
                 return Store{copy->dst.buffer, Shifted(copy->dst, at), value};
               });
    } else if (auto* atomic = std::get_if<AtomicTile>(&stmt.op)) {
      Elements(atomic->dst.extent, true, loc, out, [&](const std::vector<Expr>& at) -> StmtOp {
        const std::vector<Expr> from = Shifted(atomic->src, Matching(atomic->dst, atomic->src, at));
        Expr value = p_.exprs.Load(atomic->src.buffer, p_.buffers[atomic->src.buffer].dtype, from);
        if (p_.buffers[atomic->src.buffer].dtype != p_.buffers[atomic->dst.buffer].dtype)
          value = p_.exprs.Cast(value, p_.buffers[atomic->dst.buffer].dtype);
        return Atomic{atomic->op, atomic->dst.buffer, Shifted(atomic->dst, at), value, atomic->order};
      });
    } else if (auto* loop = std::get_if<Parallel>(&stmt.op)) {
      const bool divided = IsDivided(p_, stmt);
      AddParallel(std::move(*loop), divided, loc, out);
    } else {
      if (auto* loop = std::get_if<For>(&stmt.op);
          loop != nullptr && (loop->kind == ForKind::kPipelined || loop->kind == ForKind::kPersistent)) {
        loop->kind = ForKind::kSerial;
        loop->num_stages = Int(0);
        loop->order.clear();
        loop->stage.clear();
      }
      if (auto* branch = std::get_if<If>(&stmt.op)) {
        AddBranches(*branch);
      } else {
        for (Block* child : ChildBlocks(stmt)) *child = Code(std::move(*child));
      }
      out.push_back(std::move(stmt));
    }
  }

  // Where only some threads come, these divide the work.
  void AddBranches(If& branch) {
    const ThreadRange all = range_;
    const auto code = [&](Block& block, ThreadRange range) {
      if (range.size() > 0) range_ = range;  // else nothing runs
      block = Code(std::move(block));
      range_ = all;
    };
    const auto some = ThreadsWhere(p_, branch.cond, static_cast<VarId>(p_.exprs[tx_].i), all);
    ThreadRange others = all;
    if (some && some->begin == all.begin) {
      others.begin = some->end;
    } else if (some && some->end == all.end) {
      others.end = some->begin;
    }
    code(branch.then_body, some.value_or(all));
    code(branch.else_body, others);
  }

  std::vector<Expr> Shifted(const Region& region, const std::vector<Expr>& at) {
    std::vector<Expr> indices;
    for (size_t d = 0; d < at.size(); ++d) indices.push_back(Op(ExprOp::kAdd, region.start[d], at[d]));
    return indices;
  }
  // Subscripts of `to` for those of `from`: extents of 1 are dropped on either side.
  std::vector<Expr> Matching(const Region& from, const Region& to, const std::vector<Expr>& at) {
    std::vector<Expr> moving, indices;
    for (size_t d = 0; d < at.size(); ++d) {
      if (!p_.exprs.IsInt(from.extent[d], 1)) moving.push_back(at[d]);
    }
    size_t next = 0;
    for (Expr extent : to.extent) indices.push_back(p_.exprs.IsInt(extent, 1) || next >= moving.size() ? Int(0) : moving[next++]);
    return indices;
  }
  Expr Inside(BufferId id, const std::vector<Expr>& at) {
    Expr inside = p_.exprs.Int(1, DType::kBool);
    for (size_t d = 0; d < at.size(); ++d) {
      const auto compare = [&](ExprOp op, Expr a, Expr b) {
        inside = p_.exprs.Binary(ExprOp::kAnd, inside, p_.exprs.Intern({op, DType::kBool, 0, 0, {a, b}}));
      };
      compare(ExprOp::kGe, at[d], Int(0));
      compare(ExprOp::kLt, at[d], p_.buffers[id].shape[d]);
    }
    return inside;
  }

  // A loop over the points of a box, all of them in each thread, or divided among the threads; `body` fills it.
  void Points(const std::vector<Expr>& extents, bool divided, const SourceLoc& loc, Block& out,
              const std::function<void(const std::vector<Expr>&, Block&)>& body) {
    Expr total = Int(1);
    for (Expr e : extents) total = Op(ExprOp::kMul, total, e);
    std::vector<Expr> at(extents.size(), Int(0));
    if (!divided && p_.exprs.IsInt(total, 1)) return body(at, out);
    For loop{ForKind::kSerial, NewVar("p"), Int(0), total, Int(1), Int(0), {}, {}, {}};
    if (divided) {
      loop.begin = Op(ExprOp::kSub, tx_, Int(range_.begin));
      loop.step = Int(range_.size());
    }
    Expr rest = VarExpr(loop.var);
    for (size_t d = extents.size(); d-- > 0;) {
      if (p_.exprs.IsInt(extents[d], 1)) continue;
      bool first = true;
      for (size_t k = 0; k < d; ++k) first &= p_.exprs.IsInt(extents[k], 1);
      at[d] = first ? rest : Op(ExprOp::kFloorMod, rest, extents[d]);
      rest = Op(ExprOp::kFloorDiv, rest, extents[d]);
    }
    body(at, loop.body);
    out.push_back({std::move(loop), loc});
  }
  void Elements(const std::vector<Expr>& extents, bool divided, const SourceLoc& loc, Block& out,
                const std::function<StmtOp(const std::vector<Expr>&)>& make) {
    Points(extents, divided, loc, out, [&](const std::vector<Expr>& at, Block& body) { body.push_back({make(at), loc}); });
  }

  void AddParallel(Parallel loop, bool divided, const SourceLoc& loc, Block& out) {
    Points(loop.extents, divided, loc, out, [&](const std::vector<Expr>& at, Block& body) {
      for (size_t d = 0; d < at.size(); ++d) body.push_back({Let{loop.vars[d], at[d]}, loc});
      for (Stmt& stmt : Code(std::move(loop.body))) body.push_back(std::move(stmt));
    });
  }

  Program& p_;
  const Expr tx_;
  ThreadRange range_;
  Block& outside_;
};

// What statements do to shared memory, by buffer.
struct Use {
  bool read = false, written = false, added = false;
};
using Uses = absl::flat_hash_map<BufferId, Use>;

void Merge(const Uses& from, Uses* to) {
  for (const auto& [id, use] : from) {
    Use& u = (*to)[id];
    u.read |= use.read, u.written |= use.written, u.added |= use.added;
  }
}

bool Conflict(const Uses& before, const Uses& now) {
  return std::any_of(now.begin(), now.end(), [&](const auto& entry) {
    const auto it = before.find(entry.first);
    if (it == before.end()) return false;
    const Use &a = it->second, &b = entry.second;
    return (a.written && (b.read || b.written || b.added)) || (b.written && (a.read || a.added)) || (a.added && b.read) ||
           (a.read && b.added);
  });
}

class SyncPlacer {
 public:
  SyncPlacer(Program& p, ThreadRegion& region, ThreadRange range, uint32_t group)
      : p_(p),
        region_(region),
        uniform_(p, region),
        sync_(group == 0 ? SyncThreads{} : SyncThreads{group, static_cast<uint32_t>(range.size())}) {}

  void Run() {
    Uses pending;
    Find(region_.body, pending);
    region_.body = Rebuilt(std::move(region_.body));
  }

 private:
  Uses UsesOf(const Stmt& root) const {
    Uses uses;
    ForEachStmt(root, [&](const Stmt& stmt) { Merge(OwnUses(stmt), &uses); });
    return uses;
  }
  Uses OwnUses(const Stmt& stmt) const {
    Uses uses;
    const auto shared = [&](BufferId id) { return p_.buffers[id].scope == Scope::kShared; };
    ForEachExpr(stmt, [&](Expr e) {
      ForEachNode(p_.exprs, e, [&](Expr, const ExprNode& node) {
        if (node.op == ExprOp::kLoad && shared(static_cast<BufferId>(node.i))) uses[static_cast<BufferId>(node.i)].read = true;
      });
    });
    if (const auto* store = std::get_if<Store>(&stmt.op); store != nullptr && shared(store->buffer))
      uses[store->buffer].written = true;
    if (const auto* atomic = std::get_if<Atomic>(&stmt.op); atomic != nullptr && shared(atomic->buffer))
      uses[atomic->buffer].added = true;
    return uses;
  }
  bool CanSync(const Stmt& stmt) const { return uniform_.ControlOf(stmt) == Uniformity::kBlock; }

  // Notes the statements that need a barrier before them; `pending`: what has happened since the last one.
  void Find(const Block& block, Uses& pending) {
    for (const Stmt& stmt : block) {
      const auto* sync = std::get_if<SyncThreads>(&stmt.op);
      if (sync != nullptr && sync->count == sync_.count) {
        pending.clear();
        continue;
      }
      const std::vector<const Block*> children = ChildBlocks(stmt);
      const bool inside = std::any_of(children.begin(), children.end(),
                                      [&](const Block* child) { return !child->empty() && CanSync(child->front()); });
      const Uses now = inside ? OwnUses(stmt) : UsesOf(stmt);
      if (CanSync(stmt) && (marked_.contains(&stmt) || Conflict(pending, now))) {
        marked_.insert(&stmt);
        pending.clear();
      }
      Merge(now, &pending);
      if (!inside) continue;
      if (std::holds_alternative<If>(stmt.op)) {
        const Uses before = pending;
        for (const Block* child : children) {
          Uses branch = before;
          Find(*child, branch);
          Merge(branch, &pending);
        }
      } else {
        for (int round = 0; round < 2; ++round) {  // the second: behind an iteration before
          Uses body = pending;
          Find(*children[0], body);
          Merge(body, &pending);
        }
      }
    }
  }

  Block Rebuilt(Block block) {
    Block out;
    for (Stmt& stmt : block) {
      const bool marked = marked_.contains(&stmt);
      for (Block* child : ChildBlocks(stmt)) *child = Rebuilt(std::move(*child));
      if (marked) out.push_back({sync_, stmt.loc});
      out.push_back(std::move(stmt));
    }
    return out;
  }

  Program& p_;
  ThreadRegion& region_;
  const ThreadUniformity uniform_;
  const SyncThreads sync_;
  absl::flat_hash_set<const Stmt*> marked_;
};

}  // namespace

bool IsDivided(const Program& p, const Stmt& stmt) {
  const auto is_shared = [&](BufferId id) { return !IsPrivate(p.buffers[id].scope); };
  if (const auto* copy = std::get_if<Copy>(&stmt.op)) return is_shared(copy->src.buffer) && is_shared(copy->dst.buffer);
  if (const auto* fill = std::get_if<Fill>(&stmt.op)) return is_shared(fill->dst.buffer);
  if (std::holds_alternative<AtomicTile>(stmt.op)) return true;
  if (!std::holds_alternative<Parallel>(stmt.op)) return false;
  bool own = false;
  ForEachStmt(stmt, [&](const Stmt& inner) {
    const auto* store = std::get_if<Store>(&inner.op);
    own |= store != nullptr && p.buffers[store->buffer].scope == Scope::kLocal;
  });
  return !own;
}

bool CanBeThreaded(const Program& p, const Stmt& root) {
  bool can = true;
  ForEachStmt(root, [&](const Stmt& stmt) {
    std::visit(Overloaded{
                   [](const auto&) {},
                   [&](const Copy& s) { can &= !s.is_async; },
                   [&](const Gemm&) { can = false; },
                   [&](const Reduce&) { can = false; },
                   [&](const Scan&) { can = false; },
                   [&](const ThreadRegion&) { can = false; },
                   [&](const Roles&) { can = false; },
                   [&](const AsyncWait&) { can = false; },
               },
               stmt.op);
  });
  for (BufferId id : TouchedBuffers(p, root)) can &= p.buffers[id].scope != Scope::kFragment;
  return can;
}

Block ThreadCode(Program& p, Block block, Expr tx, ThreadRange range, Block* outside) {
  return ThreadCoder(p, tx, range, outside).Code(std::move(block));
}

void InsertSyncs(Program& p, Stmt& region, ThreadRange range, uint32_t group) {
  SyncPlacer(p, std::get<ThreadRegion>(region.op), range, group).Run();
}

}  // namespace tilert::frontend
