#pragma once

#include <string>
#include <vector>

#include "frontend/ast.h"
#include "frontend/frontend.h"
#include "frontend/source.h"

// Sources that import from others of their folder: one text and one tree of all of them, in which an import of such a module is
// nothing but another mention of its names.
namespace tilert::frontend {

// The modules that `text` imports from and `read` has, directly or not, each before what imports it; `text` itself last. Modules
// that are no valid source are left out.
std::vector<SourcePart> WithSiblings(const std::string& text, const std::string& name, const ModuleReader& read);

// Takes the statements out of `module` that belong to siblings and that nothing imported needs, and notes which siblings are
// left. One whose names would hide others is taken out as a whole: what is imported from it then belongs to the host program.
void KeepImported(const SourceFile& source, ast::Module* module);

}  // namespace tilert::frontend
