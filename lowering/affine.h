// Small facts about index expressions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/types/span.h"
#include "ir/program.h"
#include "lowering/lowered.h"

namespace tilert {

// Expressions of index arithmetic, folded as they are built.
Expr AddIndex(ExprArena& arena, Expr a, Expr b);
Expr AddIndex(ExprArena& arena, Expr a, int64_t b);

// True when `e` uses any of `vars`.
bool UsesAny(const ExprArena& arena, Expr e, absl::Span<const VarId> vars);

// True when `e` loads from `buffer`.
bool Loads(const ExprArena& arena, Expr e, BufferId buffer);

// index = base + vars[var], or index = base with var = −1; base free of `vars`. None for anything else.
struct UnitIndex {
  int var = -1;
  Expr base;
};
std::optional<UnitIndex> SplitUnit(ExprArena& arena, Expr index, absl::Span<const VarId> vars);

// c where e = c·var + what does not use var; none when e is not of that form.
std::optional<int64_t> Coefficient(const ExprArena& arena, Expr e, VarId var);

// Largest power of two (≤ 2^20) that is known to divide `e`, whatever its variables are, or where they are multiples of what `of_var` says.
int64_t KnownPowerOfTwoDivisor(const ExprArena& arena, Expr e, const ArgClass& args, const std::function<int64_t(VarId)>& of_var = {});

}  // namespace tilert
