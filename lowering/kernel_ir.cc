#include "lowering/kernel_ir.h"

#include <algorithm>
#include <type_traits>

#include "ir/stmt.h"

namespace tilert::kir {
namespace {

// The nested blocks of a statement, for const and mutable statements alike.
template <typename BlockPtr, typename AnyStmt>
std::vector<BlockPtr> Children(AnyStmt& stmt) {
  return std::visit(
      [](auto& op) -> std::vector<BlockPtr> {
        using Op = std::remove_cvref_t<decltype(op)>;
        if constexpr (std::is_same_v<Op, If>) {
          return {&op.then_body, &op.else_body};
        } else if constexpr (requires { op.body; }) {
          return {&op.body};
        } else {
          return {};
        }
      },
      stmt.op);
}

template <typename Exprs, typename Visit>
void VisitAll(Exprs& exprs, const Visit& visit) {
  for (auto& e : exprs) visit(e);
}

// The visitor of ForEachExpr; `visit` takes Expr& or const Expr&.
template <typename AnyStmt, typename Visit>
void VisitExprs(AnyStmt& stmt, const Visit& visit) {
  const auto maybe = [&visit](auto& e) {
    if (e) visit(e);
  };
  std::visit(Overloaded{
                 [](auto& op) {
    using Op = std::remove_cvref_t<decltype(op)>;
    static_assert(std::is_same_v<Op, Declare> || std::is_same_v<Op, Break> || std::is_same_v<Op, Continue> ||
                      std::is_same_v<Op, Elementwise> || std::is_same_v<Op, CpAsyncCommit> || std::is_same_v<Op, LaneReduce> ||
                      std::is_same_v<Op, Mma> || std::is_same_v<Op, BarSync>,
                  "a statement with expressions needs its own case");
                 },
                 [&](auto& op) requires requires { op.begin;
}
{
  maybe(op.begin);
  maybe(op.end);
  maybe(op.step);
}
, [&](auto& op) requires requires { op.cond; }
{ maybe(op.cond); }
, [&](auto& op) requires(
      requires { op.value; } && !requires { op.indices; }) {
  maybe(op.value);
}
, [&](auto& op) requires requires { op.indices; }
{
  VisitAll(op.indices, visit);
  maybe(op.value);
}
, [&](auto& op) requires requires { op.dst.start; }
{
  VisitAll(op.dst.start, visit);
  VisitAll(op.src.start, visit);
  maybe(op.fill);
}
, [&](auto& op) requires requires { op.retires; }
{
  for (auto& r : op.retires) maybe(r.version);
}
, [&](auto& op) requires requires { op.args; }
{ VisitAll(op.args, visit); }
,
}  // namespace
,
             stmt.op);
}  // namespace tilert::kir

void AddUse(const SharedUse& use, std::vector<SharedUse>* uses) {
  for (SharedUse& u : *uses) {
    if (u.buffer == use.buffer && u.version == use.version && u.async == use.async) {
      u.write = u.write || use.write;
      return;
    }
  }
  uses->push_back(use);
}

void AddUses(const Kernel& kernel, const Stmt& stmt, std::vector<SharedUse>* uses) {
  const auto is_shared = [&kernel](BufferId id) { return kernel.buffers[id].space == Space::kShared; };
  ForEachExpr(stmt, [&](Expr e) {
    ForEachNode(kernel.exprs, e, [&](Expr, const ExprNode& node) {
      const auto id = static_cast<BufferId>(node.i);
      if (node.op == ExprOp::kLoad && is_shared(id)) AddUse({id, node.args[0], false, false}, uses);
    });
  });
  if (const auto* store = std::get_if<Store>(&stmt.op)) {
    if (is_shared(store->buffer)) AddUse({store->buffer, store->indices[0], true, false}, uses);
  } else if (const auto* atomic = std::get_if<Atomic>(&stmt.op)) {
    if (is_shared(atomic->buffer)) AddUse({atomic->buffer, atomic->indices[0], true, false}, uses);
  } else if (const auto* copy = std::get_if<Copy>(&stmt.op)) {
    if (is_shared(copy->src.buffer)) AddUse({copy->src.buffer, copy->src.start[0], false, false}, uses);
    if (is_shared(copy->dst.buffer))
      AddUse({copy->dst.buffer, copy->dst.start[0], true, copy->method == CopyMethod::kCpAsync}, uses);
  }
  for (const Block* block : ChildBlocks(stmt)) {
    for (const Stmt& child : *block) AddUses(kernel, child, uses);
  }
}

}  // namespace

std::vector<Block*> ChildBlocks(Stmt& stmt) { return Children<Block*>(stmt); }
std::vector<const Block*> ChildBlocks(const Stmt& stmt) { return Children<const Block*>(stmt); }

void ForEachExpr(Stmt& stmt, const std::function<void(Expr&)>& visit) { VisitExprs(stmt, visit); }
void ForEachExpr(const Stmt& stmt, const std::function<void(Expr)>& visit) { VisitExprs(stmt, visit); }

size_t SubscriptCount(const Buffer& buffer) {
  switch (buffer.space) {
    case Space::kGlobal:
      return buffer.shape.size();
    case Space::kShared:
      return buffer.shared.extents.size() + 1;
    case Space::kRegister:
      return buffer.layout.dims.size();
    case Space::kInvalid:
      break;
  }
  return 0;
}

std::vector<SharedUse> SharedUses(const Kernel& kernel, const Stmt& stmt) {
  std::vector<SharedUse> uses;
  AddUses(kernel, stmt, &uses);
  return uses;
}

}  // namespace tilert::kir
