// What the passes over a finished program share (legalize.h, thread_structure.h).
#pragma once

#include <concepts>
#include <string>
#include <variant>

#include "absl/container/flat_hash_set.h"
#include "ir/program.h"

namespace tilert::frontend {

// Calls `visit` on each buffer that `stmt` (Stmt or const Stmt) names outside its expressions, nested statements aside.
template <typename S, typename Visit>
  requires std::same_as<std::remove_const_t<S>, Stmt>
void ForEachBuffer(S& stmt, const Visit& visit) {
  const auto each = [&](auto&... ids) {
    const auto one = [&](auto& id) {
      if (id != kNoId) visit(id);
    };
    (one(ids), ...);
  };
  std::visit(
      [&](auto& s) {
        if constexpr (requires { s.src.buffer; }) each(s.src.buffer);
        if constexpr (requires { s.dst.buffer; }) each(s.dst.buffer);
        if constexpr (requires { s.a.buffer; }) each(s.a.buffer, s.b.buffer, s.c.buffer);
        if constexpr (requires { s.buffer; }) each(s.buffer);
        if constexpr (requires { s.barrier_indices; }) each(s.barrier);
      },
      stmt.op);
  if (auto* barrier = std::get_if<BarrierOp>(&stmt.op)) each(barrier->barrier);
}

// The buffers that `stmt` and what is nested in it name, in expressions too.
absl::flat_hash_set<BufferId> TouchedBuffers(const Program& p, const Stmt& stmt);
// Replaces a variable in all expressions of `block`.
void SubstituteVar(Program& p, Block& block, VarId var, Expr value);
// A variable like `var`.
VarId FreshVar(Program& p, VarId var);
std::string PlaceOf(const Program& p, const SourceLoc& loc);  // "file:line:column: "

}  // namespace tilert::frontend
