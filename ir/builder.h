// Builds a Program in C++: declares its tables, makes typed expressions, opens and closes blocks. Used by the frontend and tests.
//
//   ProgramBuilder b("scale");
//   Val N = b.Dim("N");
//   Buf X = b.Tensor("X", DType::kFloat32, {N}), Y = b.Tensor("Y", DType::kFloat32, {N}, Access::kOut);
//   auto [bx] = b.Launch<1>("main", {CeilDiv(N, 256)}, 128);
//   auto i = b.OpenParallel({"i"}, {256})[0];
//   b.Store(Y, {bx * 256 + i}, X(bx * 256 + i) * 2.0);
//   b.Close();
//   b.Close();
//   absl::StatusOr<Program> program = b.Build();
//
// Mistakes (subscripts of another rank, a Close too many) are remembered and Build returns the first; types and meaning are the
// verifier's business. Not thread safe. Vals and Bufs are handles into their builder and must not outlive it.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/program.h"
#include "ir/val.h"

namespace tilert {

class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string name);
  ProgramBuilder(const ProgramBuilder&) = delete;
  ~ProgramBuilder();

  // Tables.
  Val Dim(std::string name);
  Val Constant(std::string name, std::vector<int64_t> candidates);
  Val Scalar(std::string name, DType type, Val dim = {});  // binds `dim` (made with Dim) when given
  Buf Tensor(std::string name, DType type, const std::vector<Val>& shape, Access access = Access::kIn,
             const std::vector<Val>& strides = {});
  Buf Workspace(std::string name, DType type, const std::vector<Val>& shape, bool zeroed = false);
  void Assume(Val cond);
  void SetFastMath(bool on) { program_.fast_math = on; }
  uint32_t File(const std::string& name);     // index of `name` in Program::files, for SourceLoc::file
  void SetLoc(SourceLoc loc) { loc_ = loc; }  // the location of everything made from now on
  VarId NewVar(std::string name, DType type = DType::kIndex);

  // Expressions. Lit: a number that takes the type of what it meets (else index or float32).
  Val Lit(int64_t value) { return Val(value).In(this); }
  Val Lit(double value) { return Val(value).In(this); }
  Val Int(int64_t value, DType type) { return Wrap(program_.exprs.Int(value, type)); }
  Val Float(double value, DType type) { return Wrap(program_.exprs.Float(value, type)); }
  Val Load(const Buf& buffer, const std::vector<Val>& indices);
  Val Wrap(Expr e) { return Val(this, e); }
  Val VarVal(VarId id) { return Wrap(program_.exprs.Leaf(ExprOp::kVar, id, program_.vars[id].dtype)); }
  // `op` on the operands brought to the type in which it computes (docs/ir_spec.md "Types").
  Val Apply(ExprOp op, std::vector<Val> operands);
  Val Cast(Val value, DType type);
  Val Reinterpret(Val value, DType type);
  Val Select(Val cond, Val if_true, Val if_false);
  Expr E(Val value) { return value.In(this).expr(); }
  Expr Index(Val value);                                 // an extent, subscript or bound: integers become index
  std::vector<Expr> Es(const std::vector<Val>& values);  // Index of each
  Region R(const Tile& tile);

  // Blocks: each Open… (and Launch) needs a Close.
  std::vector<Val> OpenLaunch(std::string name, const std::vector<Val>& grid, Val threads,
                              std::vector<std::string> block_vars = {});
  template <size_t kRank>
  std::array<Val, kRank> Launch(std::string name, const std::vector<Val>& grid, Val threads) {
    const std::vector<Val> vars = OpenLaunch(std::move(name), grid, threads);
    std::array<Val, kRank> result;
    for (size_t i = 0; i < kRank && i < vars.size(); ++i) result[i] = vars[i];
    return result;
  }
  void SetCooperative();                             // of the open launch
  void SetCluster(const std::vector<Val>& extents);  // of the open launch: blocks along each grid dim
  Val OpenFor(ForKind kind, std::string var, Val begin, Val end, Val step = Val(1), Val num_stages = Val(0),
              std::vector<int32_t> order = {}, std::vector<int32_t> stage = {}, Val split = {});
  std::vector<Val> OpenParallel(const std::vector<std::string>& vars, const std::vector<Val>& extents,
                                uint32_t coalesced_width = 0);
  void OpenWhile(Val cond);
  void OpenIf(Val cond);
  void Else();  // ends the then part of the innermost If and begins its else part
  Val OpenThreadRegion(std::string thread_var);
  void OpenRoles();  // holds OpenRole blocks only
  void OpenRole(Val thread_begin, Val thread_end);
  void Close();
  // Does a parallel loop stand around what is made now?
  bool InParallel() const;
  // How many statements the innermost open block holds; takes those from `first` on out of it; adds statements made before.
  size_t Size() const { return open_.empty() ? 0 : open_.back().body.size(); }
  Block TakeFrom(size_t first);
  void Append(Block statements);

  // Statements. Values convert to the type of the buffer they go to; plain numbers take that type.
  Buf Alloc(std::string name, DType type, Scope scope, const std::vector<Val>& shape, uint32_t arrive_count = 0);
  // A buffer that nothing makes exist yet: who declares one takes it out of the program again, or allocates it.
  Buf Declare(std::string name, DType type, Scope scope, const std::vector<Val>& shape);
  Buf Shared(std::string name, DType type, const std::vector<Val>& shape) { return Alloc(name, type, Scope::kShared, shape); }
  Buf Fragment(std::string name, DType type, const std::vector<Val>& shape) { return Alloc(name, type, Scope::kFragment, shape); }
  Buf Mutable(std::string name, DType type) { return Alloc(name, type, Scope::kVar, {}); }
  void Copy(const Tile& src, const Tile& dst);
  void Gemm(const Tile& a, const Tile& b, const Tile& c, bool transpose_a = false, bool transpose_b = false,
            bool clear_accum = false, GemmPolicy policy = GemmPolicy::kSquare);
  void Fill(const Tile& dst, Val value);
  void Reduce(ReduceOp op, const Tile& src, const Tile& dst, uint32_t axis, bool clear = true);
  void Scan(const Tile& src, const Tile& dst, uint32_t axis, bool reverse = false);
  void Store(const Buf& buffer, const std::vector<Val>& indices, Val value);
  Val Let(std::string name, Val value);
  void Atomic(AtomicOp op, const Buf& buffer, const std::vector<Val>& indices, Val value);
  void AtomicTile(AtomicOp op, const Tile& src, const Tile& dst);
  // In front of all statements of the open launch.
  void AddInFront(StmtOp op);
  // Any statement without shorthand (Break, Annotate, Print, …); its expressions come from E, Es and R.
  void Add(StmtOp op);

  const Program& program() const { return program_; }
  ExprArena& exprs() { return program_.exprs; }
  void Error(std::string message);  // remembered; Build fails
  // The program; the builder is used up. Fails with the first mistake made, or when a block is still open.
  absl::StatusOr<Program> Build();

 private:
  enum class Kind : uint8_t { kLaunch, kStmt, kThen, kElse, kRoles, kRole };
  struct Open {
    Kind kind;
    Block body;   // what has been added so far
    StmtOp head;  // the statement being built; unused by kLaunch and kRole
    SourceLoc loc;
  };
  void Push(Kind kind, StmtOp head);
  void AddAt(StmtOp op, SourceLoc loc);
  BufferId NewBuffer(Buffer buffer);
  DType Common(const std::vector<Val>& operands);

  Program program_;
  std::vector<Open> open_;
  SourceLoc loc_;
  std::string error_;
};

}  // namespace tilert
