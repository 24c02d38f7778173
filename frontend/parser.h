#pragma once

#include <memory>

#include "frontend/ast.h"
#include "frontend/diagnostics.h"

namespace tilert::frontend {

// Parses any Python 3 source (the grammar up to 3.12; patterns of `match` are checked, not kept). Syntax errors go to
// `diagnostics`; parsing goes on with the next statement, so several can be reported at once, and the tree holds what could be
// read. Time is linear in the text, stack depth is bounded whatever the text.
std::unique_ptr<ast::Module> ParseModule(Diagnostics* diagnostics);

}  // namespace tilert::frontend
