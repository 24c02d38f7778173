#pragma once

#include <deque>
#include <variant>

#include "frontend/ast_stmt.h"

// The syntax tree of a Python source. Nodes live in the arena of their Module and point at each other with plain pointers, so
// that deep trees are freed without recursion. Host code (torch, main, argparse) has a tree too; nobody evaluates it.
namespace tilert::frontend::ast {

struct Stmt {
  SourceRange range;  // of the statement's first line for those with a body
  std::variant<Pass, ExprStmt, Assign, AugAssign, AnnAssign, For, While, If, With, FunctionDef, ClassDef, Return, Delete, Raise,
               Try, Assert, Import, ScopeDecl, Break, Continue, Match>
      node;

  template <typename T>
  const T* As() const {
    return std::get_if<T>(&node);
  }
};

struct Module {
  Body body;
  std::vector<std::string> siblings;  // modules whose statements stand in `body` (frontend/siblings.h)
  std::deque<Expr> exprs;
  std::deque<Stmt> stmts;
};

}  // namespace tilert::frontend::ast
