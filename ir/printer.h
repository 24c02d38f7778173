// Program → text in TileLang syntax (docs/ir_spec.md section "Text form"). The frontend reads it back.
#pragma once

#include <string>
#include <string_view>

#include "ir/program.h"

namespace tilert {

// The whole program, ready to stand in a file of its own. REQUIRES: ids and operands in range (what the reader checks).
std::string PrintProgram(const Program& program);

// One expression, for messages and comments: names as in the tables, not made unique.
std::string PrintExpr(const Program& program, Expr e);

// The first line of a statement, for messages and comments, without its body and without a colon: `T.copy(A[…], As)`.
std::string PrintStmtHead(const Program& program, const Stmt& stmt);

// "name.py:12:5", or "" when unknown.
std::string PrintLoc(const Program& program, const SourceLoc& loc);

}  // namespace tilert
