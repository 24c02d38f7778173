#pragma once

#include <string>
#include <string_view>

#include "frontend/ast.h"
#include "frontend/source.h"

namespace tilert::frontend {

// `message` with the line of the source, and a caret, below each of its lines that begins with a place in the source
// (`file:line:column: `).
std::string WithSourceLines(const SourceFile& source, const ast::Module& module, std::string_view message);

}  // namespace tilert::frontend
