// What statements of a tile program read and write.
#pragma once

#include <variant>

#include "absl/container/flat_hash_set.h"
#include "lowering/tile_state.h"

namespace tilert {

// Buffers of the program that `stmt` (with everything nested in it) reads or writes.
absl::flat_hash_set<BufferId> BuffersRead(const Program& program, const Stmt& stmt);
absl::flat_hash_set<BufferId> BuffersWritten(const Stmt& stmt);
absl::flat_hash_set<BufferId> BuffersTouched(const Program& program, const Stmt& stmt);  // either
// The same of the statement itself, nested ones aside.
bool ReadsDirectly(const Program& program, const Stmt& stmt, BufferId buffer);
bool WritesDirectly(const Stmt& stmt, BufferId buffer);

// Calls `visit` on the regions of the statement itself, or the coordinates where they begin.
template <typename StmtType, typename Visit>
void ForEachRegion(StmtType& stmt, const Visit& visit) {
  std::visit(
      [&](auto& op) {
        if constexpr (requires { op.src.start; }) visit(op.src);
        if constexpr (requires { op.dst.start; }) visit(op.dst);
        if constexpr (requires { op.a.start; }) visit(op.a), visit(op.b), visit(op.c);
      },
      stmt.op);
}
template <typename StmtType, typename Visit>
void ForEachRegionStart(StmtType& stmt, const Visit& visit) {
  ForEachRegion(stmt, [&](auto& region) {
    for (auto& e : region.start) visit(e);
  });
}

// True for a break or continue, and when `body` holds one.
bool IsJump(const Stmt& stmt);
bool HasJump(const Block& body);

// True when `e` loads from a buffer of that scope.
bool LoadsFrom(const Program& program, Expr e, Scope scope);

}  // namespace tilert
