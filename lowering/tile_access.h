// What statements of a tile program read and write.
#pragma once

#include <variant>

#include "absl/container/flat_hash_set.h"
#include "lowering/tile_state.h"

namespace tilert {

// Buffers of the program that `stmt` (with everything nested in it) reads or writes.
absl::flat_hash_set<BufferId> BuffersRead(const Program& program, const Stmt& stmt);
absl::flat_hash_set<BufferId> BuffersWritten(const Stmt& stmt);
// The same of the statement itself, nested ones aside.
bool ReadsDirectly(const Program& program, const Stmt& stmt, BufferId buffer);
bool WritesDirectly(const Stmt& stmt, BufferId buffer);

// Calls `visit` on the coordinates where the regions of the statement itself begin.
template <typename StmtType, typename Visit>
void ForEachRegionStart(StmtType& stmt, const Visit& visit) {
  const auto region = [&](auto& r) {
    for (auto& e : r.start) visit(e);
  };
  std::visit(
      [&](auto& op) {
        if constexpr (requires { op.src.start; }) region(op.src);
        if constexpr (requires { op.dst.start; }) region(op.dst);
        if constexpr (requires { op.a.start; }) region(op.a), region(op.b), region(op.c);
      },
      stmt.op);
}

// True for a break or continue, and when `body` holds one.
bool IsJump(const Stmt& stmt);
bool HasJump(const Block& body);

// True when `e` loads from a buffer of that scope.
bool LoadsFrom(const Program& program, Expr e, Scope scope);

}  // namespace tilert
