#include "ir/stmt.h"

#include <algorithm>
#include <utility>

namespace tilert {

Stmt::Stmt(StmtOp operation, SourceLoc location) : op(std::move(operation)), loc(location) {}
Stmt::Stmt() = default;
Stmt::Stmt(const Stmt&) = default;
Stmt::Stmt(Stmt&&) noexcept = default;
Stmt& Stmt::operator=(const Stmt&) = default;
Stmt& Stmt::operator=(Stmt&&) noexcept = default;
Stmt::~Stmt() = default;

bool operator==(const Block& a, const Block& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

}  // namespace tilert
