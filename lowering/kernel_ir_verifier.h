// Inside of VerifyKernel: one file for structure and scopes, one for expressions, one for the statements that move tiles.
#pragma once

#include <string>
#include <vector>

#include "ir/status_util.h"
#include "lowering/kernel_ir.h"

namespace tilert::kir {

class KernelVerifier {
 public:
  explicit KernelVerifier(const Kernel& kernel);
  // Empty, or the first fault with the path of its statement.
  std::string Run();

 private:
  // kernel_ir_verifier.cc: tables, structure, scopes.
  void Tables();
  void SharedBuffer(const Buffer& buffer);
  void Walk(const Block& block, const std::string& path);
  void Statement(const Stmt& stmt, const std::string& path);
  // Runs `body` in a scope of its own: what it declares and binds ends with it.
  void Nested(const Block& body, const std::string& path);
  void Bind(VarId var);
  void Check(const Declare& op);
  void Check(const For& op, const std::string& path);
  void Check(const Elementwise& op, const std::string& path);
  void Check(const Store& op);
  void Check(const Atomic& op);
  void CheckWrite(BufferId buffer, const std::vector<Expr>& indices);

  // kernel_ir_verifier_expr.cc
  void Value(Expr e);  // a well-typed expression over what is in scope
  void Cond(Expr e);   // of type bool
  void Integer(Expr e, const char* what);
  void Node(const ExprNode& node);
  void OperandTypes(const ExprNode& node);
  void Access(BufferId buffer, absl::Span<const Expr> indices, bool write);
  void HeldByThread(const Buffer& buffer, absl::Span<const Expr> indices, bool write);

  // kernel_ir_verifier_data.cc
  void Check(const Copy& op);
  void CheckSide(const Copy& op, const TileAccess& side, bool is_dst);
  void CheckRegisterSide(const Copy& op, const TileAccess& side, bool is_dst);
  void CheckVector(const Copy& op, const TileAccess& side);
  void CheckAsync(const Copy& op);
  void CheckLdmatrix(const Copy& op);
  void Check(const CpAsyncWait& op);
  void Check(const LaneReduce& op);
  void Check(const Mma& op);
  const Buffer* Register(BufferId id, const char* what);

  template <typename... Parts>
  void Fail(const Parts&... parts) {
    if (error_.empty()) error_ = Cat(path_, path_.empty() ? "" : ": ", parts...);
  }
  // Requires(ok, "message"…): Fail unless ok; returns ok.
  template <typename... Parts>
  bool Requires(bool ok, const Parts&... parts) {
    if (!ok) Fail(parts...);
    return ok;
  }
  bool failed() const { return !error_.empty(); }
  std::string Name(BufferId id) const;

  const Kernel& kernel_;
  std::string error_;
  std::string path_;                     // of the statement that is being checked
  std::vector<bool> bound_;              // variables in scope
  std::vector<bool> declared_;           // register buffers in scope
  const Elementwise* points_ = nullptr;  // the Elementwise around the statement
  int loops_ = 0;                        // loops around it, within the Elementwise if there is one
};

}  // namespace tilert::kir
