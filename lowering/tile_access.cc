#include "lowering/tile_access.h"

#include <functional>
#include <type_traits>
#include <variant>

namespace tilert {
namespace {

void DirectReads(const Program& program, const Stmt& stmt, const std::function<void(BufferId)>& read) {
  ForEachExpr(stmt, [&](Expr e) {
    ForEachNode(program.exprs, e, [&](Expr, const ExprNode& node) {
      if (node.op == ExprOp::kLoad) read(static_cast<BufferId>(node.i));
    });
  });
  std::visit(
      [&](const auto& op) {
        if constexpr (requires { op.src.buffer; }) read(op.src.buffer);
        if constexpr (std::is_same_v<std::decay_t<decltype(op)>, Reduce>) read(op.dst.buffer);
        if constexpr (requires { op.a.buffer; }) read(op.a.buffer), read(op.b.buffer), read(op.c.buffer);
      },
      stmt.op);
}

// Whatever has a destination writes it: a new kind of statement cannot be forgotten here.
BufferId DirectWrite(const Stmt& stmt) {
  return std::visit(
      [](const auto& op) -> BufferId {
        if constexpr (requires { op.dst.buffer; }) return op.dst.buffer;
        if constexpr (requires { op.c.buffer; }) return op.c.buffer;
        if constexpr (requires { op.buffer, op.indices, op.value; }) return op.buffer;  // Store, Atomic
        return kNoId;
      },
      stmt.op);
}

}  // namespace

absl::flat_hash_set<BufferId> BuffersRead(const Program& program, const Stmt& root) {
  absl::flat_hash_set<BufferId> read;
  ForEachStmt(root, [&](const Stmt& stmt) { DirectReads(program, stmt, [&](BufferId id) { read.insert(id); }); });
  return read;
}

absl::flat_hash_set<BufferId> BuffersWritten(const Stmt& root) {
  absl::flat_hash_set<BufferId> written;
  ForEachStmt(root, [&](const Stmt& stmt) {
    if (const BufferId id = DirectWrite(stmt); id != kNoId) written.insert(id);
  });
  return written;
}

absl::flat_hash_set<BufferId> BuffersTouched(const Program& program, const Stmt& stmt) {
  absl::flat_hash_set<BufferId> touched = BuffersRead(program, stmt);
  touched.merge(BuffersWritten(stmt));
  return touched;
}

bool ReadsDirectly(const Program& program, const Stmt& stmt, BufferId buffer) {
  bool reads = false;
  DirectReads(program, stmt, [&](BufferId id) { reads |= id == buffer; });
  return reads;
}

bool WritesDirectly(const Stmt& stmt, BufferId buffer) { return DirectWrite(stmt) == buffer; }

bool IsJump(const Stmt& stmt) { return std::holds_alternative<Break>(stmt.op) || std::holds_alternative<Continue>(stmt.op); }

bool HasJump(const Block& body) {
  bool jump = false;
  ForEachStmt(body, [&](const Stmt& stmt) { jump |= IsJump(stmt); });
  return jump;
}

bool LoadsFrom(const Program& program, Expr e, Scope scope) {
  bool loads = false;
  ForEachNode(program.exprs, e, [&](Expr, const ExprNode& node) {
    loads |= node.op == ExprOp::kLoad && program.buffers[static_cast<BufferId>(node.i)].scope == scope;
  });
  return loads;
}

}  // namespace tilert
