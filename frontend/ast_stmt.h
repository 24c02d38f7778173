#pragma once

#include <string>
#include <vector>

#include "frontend/ast_expr.h"

// Statements of the syntax tree; see frontend/ast.h.
namespace tilert::frontend::ast {

struct ExprStmt {
  ExprPtr value;
};
// a = b = value
struct Assign {
  std::vector<ExprPtr> targets;
  ExprPtr value;
};
struct AugAssign {
  ExprPtr target;
  BinaryOp op;
  ExprPtr value;
};
struct AnnAssign {
  ExprPtr target, annotation;
  ExprPtr value;  // may be null
};
struct For {
  ExprPtr target, iterable;
  Body body, otherwise;
  bool is_async = false;
};
struct While {
  ExprPtr condition;
  Body body, otherwise;
};
struct If {
  ExprPtr condition;
  Body then, otherwise;  // elif is an If in `otherwise`
};
struct WithItem {
  ExprPtr context;
  ExprPtr target;  // may be null
};
struct With {
  std::vector<WithItem> items;
  Body body;
  bool is_async = false;
};
struct FunctionDef {
  std::string name;
  SourceRange name_range;
  std::vector<ExprPtr> decorators;
  std::vector<Param> params;
  ExprPtr returns = nullptr;
  Body body;
  bool is_async = false;
};
struct ClassDef {
  std::string name;
  std::vector<ExprPtr> decorators;
  std::vector<ExprPtr> bases;
  std::vector<Keyword> keywords;
  Body body;
};
struct Return {
  ExprPtr value;  // may be null
};
struct Delete {
  std::vector<ExprPtr> targets;
};
struct Raise {
  ExprPtr value, cause;  // may be null
};
struct Handler {
  ExprPtr type = nullptr;
  std::string name;
  Body body;
};
struct Try {
  Body body;
  std::vector<Handler> handlers;
  Body otherwise, finally;
};
struct Assert {
  ExprPtr condition, message;
};
struct ImportName {
  std::string path;   // dotted
  std::string alias;  // empty if none
};
struct Import {
  std::string from;  // the module of `from … import`, with leading dots; empty for a plain import
  bool is_from = false;
  std::vector<ImportName> names;  // `*` for all
};
struct ScopeDecl {
  bool is_global;
  std::vector<std::string> names;
};
struct Pass {};
struct Break {};
struct Continue {};
// Patterns are checked for syntax and not kept: matching is host code.
struct Case {
  ExprPtr guard = nullptr;
  Body body;
};
struct Match {
  ExprPtr subject;
  std::vector<Case> cases;
};

}  // namespace tilert::frontend::ast
