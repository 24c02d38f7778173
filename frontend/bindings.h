// Which names the statements of a module bind.
#pragma once

#include <algorithm>
#include <string>

#include "frontend/ast.h"

namespace tilert::frontend {

template <typename Visit>
void ForEachTargetName(ast::ExprPtr target, const Visit& visit) {
  if (const auto* name = target->As<ast::Name>()) return visit(name->id);
  if (const auto* starred = target->As<ast::Starred>()) return ForEachTargetName(starred->value, visit);
  if (const auto* sequence = target->As<ast::Sequence>()) {
    for (const ast::ExprPtr item : sequence->items) ForEachTargetName(item, visit);
  }
}

inline std::string BoundName(const ast::Import& import, const ast::ImportName& name) {
  if (!name.alias.empty()) return name.alias;
  return import.is_from ? name.path : name.path.substr(0, name.path.find('.'));
}

// The module that `from … import` takes names from, without the dots in front.
inline std::string ModuleName(const ast::Import& import) {
  return import.from.substr(std::min(import.from.find_first_not_of('.'), import.from.size()));
}

// Calls `visit` on each name that `stmt` binds; statements with bodies bind none themselves, functions and classes aside. That of
// `from … import *` is "*".
template <typename Visit>
void ForEachBoundName(const ast::Stmt& stmt, const Visit& visit) {
  if (const auto* assign = stmt.As<ast::Assign>()) {
    for (const ast::ExprPtr target : assign->targets) ForEachTargetName(target, visit);
  } else if (const auto* annotated = stmt.As<ast::AnnAssign>()) {
    ForEachTargetName(annotated->target, visit);
  } else if (const auto* augmented = stmt.As<ast::AugAssign>()) {
    ForEachTargetName(augmented->target, visit);
  } else if (const auto* function = stmt.As<ast::FunctionDef>()) {
    visit(function->name);
  } else if (const auto* definition = stmt.As<ast::ClassDef>()) {
    visit(definition->name);
  } else if (const auto* import = stmt.As<ast::Import>()) {
    for (const ast::ImportName& name : import->names) visit(BoundName(*import, name));
  }
}

}  // namespace tilert::frontend
