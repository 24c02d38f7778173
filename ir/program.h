// A tile program: what one entry of a bundle means, before any decision about a GPU. See docs/ir_spec.md.
//
// Value type: copy, compare with ==, no pointers inside. Not synchronised: share const, or lock.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ir/expr.h"
#include "ir/stmt.h"

namespace tilert {

enum class Scope : uint8_t { kInvalid, kGlobal, kShared, kFragment, kLocal, kVar, kBarrier };

// A named multi-dimensional array. kGlobal buffers are parameters or workspaces; the others are made by Alloc.
// kVar: a mutable scalar (rank 0). kLocal: private to a thread. kBarrier: an array of mbarriers.
struct Buffer {
  std::string name;
  DType dtype = DType::kInvalid;
  Scope scope = Scope::kInvalid;
  std::vector<Expr> shape;    // elements a dimension; over dims, constants and immediates
  std::vector<Expr> strides;  // elements; global buffers only; empty: contiguous, last dimension fastest
  uint32_t arrive_count = 0;  // kBarrier only
  SourceLoc loc;
  bool operator==(const Buffer&) const = default;
};

struct Var {
  std::string name;
  DType dtype = DType::kIndex;
  bool operator==(const Var&) const = default;
};

// A runtime extent, type index. Bound at launch by the first bare occurrence in a tensor's shape (parameter order), or by a
// scalar.
struct Dim {
  std::string name;
  bool operator==(const Dim&) const = default;
};

// An integer fixed at specialisation. More than one candidate: a tuning knob; the first is the default.
struct Constant {
  std::string name;
  std::vector<int64_t> candidates;
  bool operator==(const Constant&) const = default;
};

struct ScalarParam {
  std::string name;
  DType dtype = DType::kInvalid;
  uint32_t dim = kNoId;  // the dim that this scalar binds, if any
  bool operator==(const ScalarParam&) const = default;
};

enum class Access : uint8_t { kInvalid, kIn, kOut, kInOut };

// One parameter in calling order: a tensor (buffer) or a scalar (index into scalars).
struct Param {
  enum class Kind : uint8_t { kInvalid, kTensor, kScalar };
  Kind kind = Kind::kInvalid;
  uint32_t index = kNoId;            // tensor: BufferId; scalar: index into Program::scalars
  Access access = Access::kInvalid;  // tensors only
  bool operator==(const Param&) const = default;
};

// Memory that the caller passes at launch; size = product of the buffer's shape.
struct Workspace {
  BufferId buffer = kNoId;
  bool zeroed = false;
  bool operator==(const Workspace&) const = default;
};

struct Launch {
  std::string name;
  std::vector<Expr> grid;         // 1 to 3 extents, x first
  std::vector<VarId> block_vars;  // one a grid extent
  Expr threads;                   // compute threads
  bool cooperative = false;
  Block body;
  SourceLoc loc;
  // Blocks of a thread block cluster along each grid dim, made of numbers and constants; empty: no clusters. A hint: it never
  // changes results.
  std::vector<Expr> cluster = {};
  bool operator==(const Launch&) const = default;
};

struct Program {
  // Defined in program.cc: compiled once, not in each source that holds one by value.
  Program();
  Program(const Program&);
  Program(Program&&) noexcept;
  Program& operator=(const Program&);
  Program& operator=(Program&&) noexcept;
  ~Program();

  std::string name;
  ExprArena exprs;
  std::vector<std::string> files;  // base names of sources; locations refer to them
  std::vector<Dim> dims;
  std::vector<Constant> constants;
  std::vector<ScalarParam> scalars;
  std::vector<Buffer> buffers;
  std::vector<Var> vars;
  std::vector<Param> params;
  std::vector<Expr> assumptions;  // bool over dims and constants; checked at launch
  std::vector<Workspace> workspaces;
  std::vector<Launch> launches;  // run in order
  bool fast_math = false;
};

// Structural equality: same names, tables, statements and locations, equal expressions (arenas may differ in order).
bool operator==(const Program& a, const Program& b);

// Calls `visit` on each statement of `block`, parents first.
void ForEachStmt(const Block& block, const std::function<void(const Stmt&)>& visit);
// The same for `stmt` and what is nested in it.
void ForEachStmt(const Stmt& stmt, const std::function<void(const Stmt&)>& visit);
// Calls `visit` on each expression operand that `stmt` itself holds (not those of nested statements).
void ForEachExpr(Stmt& stmt, const std::function<void(Expr&)>& visit);
void ForEachExpr(const Stmt& stmt, const std::function<void(Expr)>& visit);
// Calls `visit` on every expression of the program: shapes, strides, assumptions, grids, thread counts, statements.
void ForEachExpr(Program& program, const std::function<void(Expr&)>& visit);
void ForEachExpr(const Program& program, const std::function<void(Expr)>& visit);
// The variable that `stmt` binds for the statements after it (Let, Shuffle, Atomic with prev); nullptr: none.
VarId* BoundVar(Stmt& stmt);
const VarId* BoundVar(const Stmt& stmt);
// The num_stages of a loop of a specialised program; 0 where it is not known yet.
int64_t NumStages(const ExprArena& arena, const For& loop);
// The nested blocks of `stmt`, in order (then before else).
std::vector<Block*> ChildBlocks(Stmt& stmt);
std::vector<const Block*> ChildBlocks(const Stmt& stmt);

}  // namespace tilert
