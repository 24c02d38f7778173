// Printing of expressions, regions and strings; shared by the program printer and by messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/names.h"
#include "ir/program.h"

namespace tilert {

// A string literal in double quotes (docs/ir_spec.md section "Text form").
std::string QuotedText(std::string_view bytes);

class ExprPrinter {
 public:
  // `names` may lack entries (or be null): the table's own name is used then.
  ExprPrinter(const Program& program, const NameScopes* names) : p_(program), names_(names) {}

  std::string Name(NameKind kind, uint32_t id) const;
  // `e` where the reader gives a bare number the type `expected`; kInvalid: it would not know, so numbers are written with a
  // type.
  std::string Value(Expr e, DType expected = DType::kInvalid) const;
  std::string Index(Expr e) const { return Value(e, DType::kIndex); }
  // "(a, b)", "(a,)", "()".
  std::string Tuple(const std::vector<Expr>& list) const;
  std::string Region(const tilert::Region& region) const;
  // A[i, j]; x for an alloc_var; A[()] for another buffer of rank 0.
  template <typename List>
  std::string Element(BufferId buffer, const List& indices) const;

 private:
  std::string Number(const ExprNode& node, bool typed) const;
  std::string Node(const ExprNode& node) const;
  std::string Operand(Expr e, bool bare, bool parens_infix) const;
  bool IsImm(Expr e) const;
  bool IsCeilDiv(const ExprNode& node, Expr* a, Expr* b) const;

  const Program& p_;
  const NameScopes* names_;
};

}  // namespace tilert
