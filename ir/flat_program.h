// Program → the flat arrays of a bundle (schemas/bundle.fbs): expressions and statements as arrays of fixed-size records, their
// operands in arrays of words beside them. The way back is ir/flat_decode.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/program.h"
#include "schemas/bundle_generated.h"

namespace tilert {

// Strings by index, each once, in order of first use.
class StringTable {
 public:
  uint32_t Index(std::string_view text);
  const std::vector<std::string>& strings() const { return strings_; }

 private:
  std::vector<std::string> strings_;
  absl::flat_hash_map<std::string, uint32_t> index_;
};

// The arrays of one program. Expressions appear in the order in which the program uses them, so that equal programs give equal
// arrays. Words: ir/flat_fields.h.
class FlatProgram {
 public:
  // REQUIRES: FindStructureErrors(program) is empty. `with_locs` false leaves locations out.
  FlatProgram(const Program& program, StringTable& strings, bool with_locs = true);

  flat::Loc Loc(const SourceLoc& loc) const;

  std::vector<flat::Expr> exprs;
  std::vector<uint32_t> expr_args;
  std::vector<flat::Stmt> stmts;
  std::vector<uint32_t> operands;
  std::vector<std::vector<uint32_t>> shapes, strides;  // one a buffer
  std::vector<uint32_t> assumptions;
  std::vector<std::vector<uint32_t>> grids, clusters;  // one a launch
  std::vector<uint32_t> threads, stmt_counts;  // one a launch

 private:
  friend class OperandEncoder;
  uint32_t ExprIndex(Expr e);
  std::vector<uint32_t> ExprIndices(const std::vector<Expr>& list);
  void AddBlock(const Block& block);
  void AddStmt(const Stmt& stmt);
  // Appends a record with the operands that `encode` writes, followed by the statements that `children` adds.
  template <typename Encode, typename Children>
  void AddRecord(flat::StmtOp op, const SourceLoc& loc, Encode encode, Children children);

  const Program& p_;
  StringTable& strings_;
  const bool with_locs_;
  std::vector<uint32_t> expr_index_;  // by arena id
};

}  // namespace tilert
