#include "ir/program.h"

#include <tuple>
#include <type_traits>

namespace tilert {

Program::Program() = default;
Program::Program(const Program&) = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(const Program&) = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;
namespace {

template <typename V>
void VisitRegion(V&& visit, auto& region) {
  for (auto& e : region.start) visit(e);
  for (auto& e : region.extent) visit(e);
}

// The expression operands of `stmt` in a fixed order; absent ones are skipped. S is Stmt or const Stmt.
template <typename S>
void VisitExprs(S& stmt, const std::function<void(std::conditional_t<std::is_const_v<S>, Expr, Expr&>)>& visit_any) {
  const auto visit = [&](auto& e) {
    if (e) visit_any(e);
  };
  const auto visit_all = [&](auto& list) {
    for (auto& e : list) visit(e);
  };
  std::visit(Overloaded{
                 [](auto&) {},
                 [&](std::conditional_t<std::is_const_v<S>, const Copy, Copy>& s) {
                   VisitRegion(visit, s.src);
                   VisitRegion(visit, s.dst);
                   visit(s.fill);
                   visit_all(s.barrier_indices);
                 },
                 [&](std::conditional_t<std::is_const_v<S>, const Gemm, Gemm>& s) {
                   VisitRegion(visit, s.a);
                   VisitRegion(visit, s.b);
                   VisitRegion(visit, s.c);
                 },
                 [&](std::conditional_t<std::is_const_v<S>, const Fill, Fill>& s) {
                   VisitRegion(visit, s.dst);
                   visit(s.value);
                 },
                 [&](std::conditional_t<std::is_const_v<S>, const Reduce, Reduce>& s) {
                   VisitRegion(visit, s.src);
                   VisitRegion(visit, s.dst);
                 },
                 [&](std::conditional_t<std::is_const_v<S>, const Scan, Scan>& s) {
                   VisitRegion(visit, s.src);
                   VisitRegion(visit, s.dst);
                 },
                 [&](std::conditional_t<std::is_const_v<S>, const Parallel, Parallel>& s) { visit_all(s.extents); },
                 [&](std::conditional_t<std::is_const_v<S>, const For, For>& s) {
                   visit(s.begin);
                   visit(s.end);
                   visit(s.step);
                   visit(s.num_stages);
                   if (s.split) visit(s.split);
                 },
                 [&](std::conditional_t<std::is_const_v<S>, const While, While>& s) { visit(s.cond); },
                 [&](std::conditional_t<std::is_const_v<S>, const If, If>& s) { visit(s.cond); },
                 [&](std::conditional_t<std::is_const_v<S>, const Let, Let>& s) { visit(s.value); },
                 [&](std::conditional_t<std::is_const_v<S>, const Store, Store>& s) {
                   visit_all(s.indices);
                   visit(s.value);
                 },
                 [&](std::conditional_t<std::is_const_v<S>, const Atomic, Atomic>& s) {
                   visit_all(s.indices);
                   visit(s.value);
                 },
                 [&](std::conditional_t<std::is_const_v<S>, const AtomicTile, AtomicTile>& s) {
                   VisitRegion(visit, s.src);
                   VisitRegion(visit, s.dst);
                 },
                 [&](std::conditional_t<std::is_const_v<S>, const Annotate, Annotate>& s) { visit_all(s.args); },
                 [&](std::conditional_t<std::is_const_v<S>, const Print, Print>& s) { visit_all(s.args); },
                 [&](std::conditional_t<std::is_const_v<S>, const Assert, Assert>& s) { visit(s.cond); },
                 [&](std::conditional_t<std::is_const_v<S>, const Roles, Roles>& s) {
                   for (auto& role : s.roles) {
                     visit(role.thread_begin);
                     visit(role.thread_end);
                   }
                 },
                 [&](std::conditional_t<std::is_const_v<S>, const Shuffle, Shuffle>& s) {
                   visit(s.value);
                   visit(s.lane);
                 },
                 [&](std::conditional_t<std::is_const_v<S>, const BarrierOp, BarrierOp>& s) {
                   visit_all(s.indices);
                   visit(s.operand);
                 },
             },
             stmt.op);
}

template <typename S, typename B>
std::vector<B*> Blocks(S& stmt) {
  std::vector<B*> blocks;
  std::visit(
      [&](auto& s) {
        if constexpr (requires { s.then_body; }) {
          blocks = {&s.then_body, &s.else_body};
        } else if constexpr (requires { s.roles; }) {
          for (auto& role : s.roles) blocks.push_back(&role.body);
        } else if constexpr (requires { s.body; }) {
          blocks = {&s.body};
        }
      },
      stmt.op);
  return blocks;
}

void VisitBlock(Block& block, const std::function<void(Expr&)>& visit) {
  for (Stmt& stmt : block) {
    ForEachExpr(stmt, visit);
    for (Block* child : ChildBlocks(stmt)) VisitBlock(*child, visit);
  }
}

// `p` with every expression moved into `arena`, where equal expressions have equal ids.
Program InArena(const Program& p, ExprArena& arena) {
  std::vector<Expr> moved;
  moved.reserve(p.exprs.size());
  for (ExprNode node : p.exprs.nodes()) {
    for (Expr& arg : node.args) arg = moved[arg.id];
    moved.push_back(arena.Intern(std::move(node)));
  }
  Program result = p;
  ForEachExpr(result, [&](Expr& e) { e = moved[e.id]; });
  return result;
}

// Everything but the arena.
auto Fields(const Program& p) {
  return std::tie(p.name, p.files, p.dims, p.constants, p.scalars, p.buffers, p.vars, p.params, p.assumptions, p.workspaces,
                  p.launches, p.fast_math);
}

}  // namespace

void ForEachStmt(const Block& block, const std::function<void(const Stmt&)>& visit) {
  for (const Stmt& stmt : block) ForEachStmt(stmt, visit);
}

void ForEachStmt(const Stmt& stmt, const std::function<void(const Stmt&)>& visit) {
  visit(stmt);
  for (const Block* child : ChildBlocks(stmt)) ForEachStmt(*child, visit);
}

void ForEachExpr(Stmt& stmt, const std::function<void(Expr&)>& visit) { VisitExprs<Stmt>(stmt, visit); }
void ForEachExpr(const Stmt& stmt, const std::function<void(Expr)>& visit) { VisitExprs<const Stmt>(stmt, visit); }

void ForEachExpr(Program& program, const std::function<void(Expr&)>& visit) {
  const auto visit_all = [&](std::vector<Expr>& list) {
    for (Expr& e : list) {
      if (e) visit(e);
    }
  };
  for (Buffer& buffer : program.buffers) {
    visit_all(buffer.shape);
    visit_all(buffer.strides);
  }
  visit_all(program.assumptions);
  for (Launch& launch : program.launches) {
    visit_all(launch.grid);
    visit_all(launch.cluster);
    if (launch.threads) visit(launch.threads);
    VisitBlock(launch.body, visit);
  }
}

void ForEachExpr(const Program& program, const std::function<void(Expr)>& visit) {
  ForEachExpr(const_cast<Program&>(program), [&](Expr& e) { visit(e); });  // which it does not change
}

int64_t NumStages(const ExprArena& arena, const For& loop) {
  int64_t stages = 0;
  return arena.AsInt(loop.num_stages, &stages) ? stages : 0;
}

VarId* BoundVar(Stmt& stmt) {
  if (auto* let = std::get_if<Let>(&stmt.op)) return &let->var;
  if (auto* shuffle = std::get_if<Shuffle>(&stmt.op)) return &shuffle->var;
  auto* atomic = std::get_if<Atomic>(&stmt.op);
  return atomic != nullptr && atomic->prev != kNoId ? &atomic->prev : nullptr;
}
const VarId* BoundVar(const Stmt& stmt) { return BoundVar(const_cast<Stmt&>(stmt)); }

std::vector<Block*> ChildBlocks(Stmt& stmt) { return Blocks<Stmt, Block>(stmt); }
std::vector<const Block*> ChildBlocks(const Stmt& stmt) { return Blocks<const Stmt, const Block>(stmt); }

bool operator==(const Program& a, const Program& b) {
  ExprArena arena;
  const Program x = InArena(a, arena), y = InArena(b, arena);
  return Fields(x) == Fields(y);
}

}  // namespace tilert
