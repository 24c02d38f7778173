// Expressions of a kernel as text, for its printer and for messages about it.
#pragma once

#include <string>
#include <vector>

#include "lowering/kernel_ir.h"

namespace tilert::kir {

// Names of a kernel's variables and buffers, made distinct by numbering: i, i_1, i_2. Borrows the kernel.
class KernelNames {
 public:
  explicit KernelNames(const Kernel& kernel);
  const std::string& var(VarId id) const { return vars_[id]; }
  const std::string& buffer(BufferId id) const { return buffers_[id]; }
  // `e` in Python's notation, with no more parentheses than its precedences ask for.
  std::string Text(Expr e) const { return Text(e, 0); }
  // "name[i, j]", or "name" without subscripts.
  std::string Element(BufferId id, const std::vector<std::string>& subscripts) const;

 private:
  std::string Text(Expr e, int outer) const;
  std::string Leaf(const ExprNode& node) const;

  const Kernel& kernel_;
  std::vector<std::string> vars_, buffers_;
};

}  // namespace tilert::kir
