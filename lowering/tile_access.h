// What statements of a tile program read and write.
#pragma once

#include "absl/container/flat_hash_set.h"
#include "lowering/tile_state.h"

namespace tilert {

// Buffers of the program that `stmt` (with everything nested in it) reads or writes.
absl::flat_hash_set<BufferId> BuffersRead(const Program& program, const Stmt& stmt);
absl::flat_hash_set<BufferId> BuffersWritten(const Stmt& stmt);
// The same of the statement itself, nested ones aside.
bool ReadsDirectly(const Program& program, const Stmt& stmt, BufferId buffer);
bool WritesDirectly(const Stmt& stmt, BufferId buffer);

// True for a break or continue, and when `body` holds one.
bool IsJump(const Stmt& stmt);
bool HasJump(const Block& body);

// True when `e` loads from a buffer of that scope.
bool LoadsFrom(const Program& program, Expr e, Scope scope);

}  // namespace tilert
