#include "lowering/tile_access.h"

#include <functional>

namespace tilert {
namespace {

void DirectReads(const Program& program, const Stmt& stmt, const std::function<void(BufferId)>& read) {
  ForEachExpr(stmt, [&](Expr e) {
    ForEachNode(program.exprs, e, [&](Expr, const ExprNode& node) {
      if (node.op == ExprOp::kLoad) read(static_cast<BufferId>(node.i));
    });
  });
  if (auto* copy = std::get_if<Copy>(&stmt.op)) read(copy->src.buffer);
  if (auto* reduce = std::get_if<Reduce>(&stmt.op)) read(reduce->src.buffer), read(reduce->dst.buffer);
  if (auto* scan = std::get_if<Scan>(&stmt.op)) read(scan->src.buffer);
  if (auto* atomic = std::get_if<AtomicTile>(&stmt.op)) read(atomic->src.buffer);
  if (auto* gemm = std::get_if<Gemm>(&stmt.op)) read(gemm->a.buffer), read(gemm->b.buffer), read(gemm->c.buffer);
}

BufferId DirectWrite(const Stmt& stmt) {
  if (auto* copy = std::get_if<Copy>(&stmt.op)) return copy->dst.buffer;
  if (auto* fill = std::get_if<Fill>(&stmt.op)) return fill->dst.buffer;
  if (auto* reduce = std::get_if<Reduce>(&stmt.op)) return reduce->dst.buffer;
  if (auto* scan = std::get_if<Scan>(&stmt.op)) return scan->dst.buffer;
  if (auto* gemm = std::get_if<Gemm>(&stmt.op)) return gemm->c.buffer;
  if (auto* store = std::get_if<Store>(&stmt.op)) return store->buffer;
  if (auto* atomic = std::get_if<Atomic>(&stmt.op)) return atomic->buffer;
  if (auto* atomic = std::get_if<AtomicTile>(&stmt.op)) return atomic->dst.buffer;
  return kNoId;
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
