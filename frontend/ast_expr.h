#pragma once

#include <string>
#include <variant>
#include <vector>

#include "frontend/ast_literal.h"

// Expressions of the syntax tree; see frontend/ast.h.
namespace tilert::frontend::ast {

// a < b <= c
struct Compare {
  ExprPtr left;
  std::vector<CompareOp> ops;
  std::vector<ExprPtr> rights;
};
struct IfExp {
  ExprPtr condition, then, otherwise;
};
struct Keyword {
  std::string name;  // empty for **value
  ExprPtr value;
  SourceRange range;
};
struct Call {
  ExprPtr callee;
  std::vector<ExprPtr> args;  // may hold Starred
  std::vector<Keyword> keywords;
};
struct Attribute {
  ExprPtr value;
  std::string name;
  SourceRange name_range;
};
struct Subscript {
  ExprPtr value;
  ExprPtr index;  // a Tuple for several
};
struct SliceExpr {
  ExprPtr lower, upper, step;  // null if left out
};
struct Starred {
  ExprPtr value;
};
enum class SequenceKind : uint8_t { kTuple, kList, kSet };
struct Sequence {
  SequenceKind kind;
  std::vector<ExprPtr> items;
};
struct DictItem {
  ExprPtr key;  // null for **value
  ExprPtr value;
};
struct Dict {
  std::vector<DictItem> items;
};
struct Generator {
  ExprPtr target, iterable;
  std::vector<ExprPtr> conditions;
  bool is_async = false;
};
enum class ComprehensionKind : uint8_t { kList, kSet, kDict, kGenerator };
struct Comprehension {
  ComprehensionKind kind;
  ExprPtr element;
  ExprPtr value;  // of a dict; else null
  std::vector<Generator> generators;
};
struct NamedExpr {
  ExprPtr target, value;
};
struct Await {
  ExprPtr value;
};
struct Yield {
  ExprPtr value;  // may be null
  bool from = false;
};
// Stands for what could not be read; an error about it has been reported.
struct ErrorExpr {};

enum class ParamKind : uint8_t { kPositionalOnly, kNormal, kVarArgs, kKeywordOnly, kVarKeywords };
struct Param {
  std::string name;
  ParamKind kind = ParamKind::kNormal;
  ExprPtr annotation = nullptr;
  ExprPtr default_value = nullptr;
  SourceRange range;
};
struct Lambda {
  std::vector<Param> params;
  ExprPtr body;
};

struct Expr {
  SourceRange range;
  std::variant<ErrorExpr, Name, IntLit, FloatLit, StringLit, BoolLit, NoneLit, EllipsisLit, FString, Unary, Binary, BoolOp,
               Compare, IfExp, Call, Attribute, Subscript, SliceExpr, Starred, Sequence, Dict, Comprehension, NamedExpr, Await,
               Yield, Lambda>
      node;

  template <typename T>
  const T* As() const {
    return std::get_if<T>(&node);
  }
};

}  // namespace tilert::frontend::ast
