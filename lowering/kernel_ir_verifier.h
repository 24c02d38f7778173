// Inside of VerifyKernel: a file each for structure and scopes, for expressions, for statements that move tiles, for roles, rings
// and TMA, and for wgmma.
#pragma once

#include <string>
#include <vector>

#include "ir/limits.h"
#include "ir/status_util.h"
#include "lowering/kernel_ir.h"

namespace tilert::kir {

inline constexpr int kNamedBarriers = 15;            // of a block, besides that of __syncthreads

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
  void CheckStmatrix(const Copy& op);
  void Check(const CpAsyncWait& op);
  void Check(const LaneReduce& op);
  void Check(const Mma& op);
  const Buffer* Register(BufferId id, const char* what);

  // kernel_ir_verifier_roles.cc
  void Tables(const Ring& ring);
  void Tables(const TensorMap& map);
  void CheckPlacement(const Buffer& tile);  // as swizzles by hardware need it
  bool IsTopLevel() const { return nesting_ == 0; }
  void Check(const Roles& op, const std::string& path);
  void CheckRegisterBudget(const Roles& op);
  void CheckRole(const Role& role, int first_warp, const std::string& path);
  void Check(const ForTiles& op, const std::string& path);
  const Ring* RingOf(RingId id);
  const TensorMap* MapOf(MapId id, BufferId tile, const std::vector<Expr>& coords, int shares = 1);
  void Check(const Acquire& op);
  void Check(const ExpectTx& op);
  void Check(const Release& op);
  void Check(const Advance& op);
  void Check(const TmaLoad& op);
  void Check(const TmaStore& op);
  void Check(const StoreWait& op);
  void Check(const OrderWait& op);
  void Check(const OrderPass& op);
  // kernel_ir_verifier_threads.cc
  void Tables(const Barrier& barrier);
  void Check(const BarSync& op);
  void Check(const Shuffle& op);
  void BarrierAt(BarrierId id, Expr index);
  void BarrierByThread(BarrierId id, Expr index);
  void Check(const MbarArrive& op);
  void Check(const MbarWait& op);
  void Check(const MbarExpect& op);
  void Check(const MbarComplete& op);
  void Check(const ClusterSync& op);
  void Check(const PartStore& op) { CheckPart(op.part, op.src); }
  void Check(const PartAdd& op);
  void CheckPart(BufferId part, BufferId registers);
  void Check(const SumsGive& op) { CheckGiven(op.sums); }
  void Check(const SumsTake& op) { CheckGiven(op.sums); }
  void CheckGiven(const std::vector<BufferId>& sums);
  void ClusterTables();
  void Releases();  // rings count the arrivals that there are

  // kernel_ir_verifier_wgmma.cc
  bool NeedsWarpgroups();
  void Check(const Wgmma& op);
  void CheckTypes(const Wgmma& op, DType acc, DType a, DType b);
  void CheckOperand(const TileAccess& side, const char* what, int64_t rows, int64_t rows_each, int64_t k);
  void Check(const WgmmaFence& op);
  void Check(const WgmmaCommit&) { NeedsWarpgroups(); }
  void Check(const WgmmaWait& op);

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
  int nesting_ = 0;                      // blocks around it
  int warps_ = 1;                        // that run it: of the kernel or of one instance of a role
  int first_warp_ = 0;                   // of them, in the block
  const Role* role_ = nullptr;
  std::vector<int> releasing_warps_;  // per ring, of the roles before
  std::vector<bool> releases_;        // per ring: the role releases its slots
};

}  // namespace tilert::kir
