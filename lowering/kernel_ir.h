// KernelIr: a launch after planning. Every tile has a layout, every statement is for a definite set of threads, all
// synchronisation is explicit. Program (tiles) and KernelIr never mix; lowering/plan makes the one from the other.
//
// Expressions are ir/ expressions in this kernel's own arena: kDim and kScalar as in the Program, kVar and kLoad refer to the tables
// below. A load's subscripts are *logical* coordinates; emitter and simulator apply the layout. Accesses to shared
// buffers carry one leading subscript, the version (slot) of a multi-buffered tile; 0 when there is one version.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "ir/program.h"
#include "lowering/layout.h"

namespace tilert::kir {

enum class Space : uint8_t { kInvalid, kGlobal, kShared, kRegister };

struct Buffer {
  std::string name;
  DType dtype = DType::kInvalid;
  Space space = Space::kInvalid;
  // kGlobal: a pointer argument of the kernel.
  BufferId program_buffer = kNoId;
  std::vector<Expr> shape, strides;  // elements
  bool written = false;              // else `const … __restrict__`
  uint32_t alignment = 1;            // bytes, of the pointer and of every stride but the last (which is then 1)
  // kShared: byte offset of version 0 in the dynamic shared memory, a multiple of 128; versions lie shared.bytes() rounded up to 128 apart.
  SharedLayout shared;
  int64_t versions = 1;
  int64_t offset = -1;
  // kRegister: registers of each thread, layout.regs() elements. Rank 0: one scalar a thread (a mutable variable).
  FragmentLayout layout;
};

struct Var {
  std::string name;
  DType dtype = DType::kIndex;
};

struct Stmt;
using Block = std::vector<Stmt>;

// ---- structure ------------------------------------------------------------------------------------------------
// Makes a register buffer exist from here to the end of the enclosing block, zeroed only if `zero` is set.
struct Declare { BufferId buffer = kNoId; bool zero = false; };
enum class Unroll : uint8_t { kNo, kFull };
struct For { VarId var = kNoId; Expr begin, end, step; Unroll unroll = Unroll::kNo; Block body; };
struct While { Expr cond; Block body; };
// Outside Elementwise `cond` is the same in every thread of the block.
struct If { Expr cond; Block then_body, else_body; };
struct Break {};
struct Continue {};
struct Let { VarId var = kNoId; Expr value; };

// ---- data -----------------------------------------------------------------------------------------------------
// Each thread runs `body` once for each of its points of `layout` (registers ascending, valid extents only), with `vars` bound to the
// point's coordinates. body: Store, Let, If, For, While, Break, Continue, Atomic, Print, Assert and nothing else. Register buffers are read and written
// only where the thread holds the element. Stores to memory, atomics and prints happen in replica 0 only.
// Points are independent: any order, the compiler may interleave them.
struct Elementwise { FragmentLayout layout; std::vector<VarId> vars; Block body; };
struct Store { BufferId buffer = kNoId; std::vector<Expr> indices; Expr value; };
struct Atomic { AtomicOp op = AtomicOp::kInvalid; BufferId buffer = kNoId; std::vector<Expr> indices; Expr value; MemoryOrder order = MemoryOrder::kRelaxed; MemoryScope scope = MemoryScope::kDevice; };

// One side of a copy: the element of iteration point p is buffer[start[d] + (follows[d] < 0 ? 0 : p[follows[d]])] over its dims d
// (shared buffers: d = 0 is the version).
struct TileAccess {
  BufferId buffer = kNoId;
  std::vector<Expr> start;
  std::vector<int> follows;
  std::vector<bool> inside;  // proven in range for every point, no check needed; one a dim
};

// How a tile is moved. All mean: dst[p] = convert(src[p]) for every valid point p of `layout`; reading outside src gives `fill`
// (none: zero); writing outside dst is dropped; memory writes happen in replica 0 only.
enum class CopyMethod : uint8_t {
  kVector,   // through registers, `width` consecutive elements (of the last iteration dim) at once where a buffer is in memory
  kCpAsync,  // global → shared, `width`·size ∈ {4, 8, 16} bytes, same dtype, no conversion; complete at CpAsyncWait
  kLdmatrix,       // shared → register operand of Mma (16-bit), iteration dims (M or N, K), last buffer dim follows K
  kLdmatrixTrans,  // the same where the last buffer dim follows M or N (ldmatrix.trans)
  kRegister,       // register → register, same thread
};
struct Copy {
  CopyMethod method = CopyMethod::kVector;
  TileAccess dst, src;
  FragmentLayout layout;  // of the iteration space; a register side has the same ownership
  int64_t width = 1;      // elements
  Expr fill = {};
};
struct CpAsyncCommit {};
// Waits until at most `pending` groups of this thread are unfinished. `retires`: the (buffer, version) pairs whose copies are complete after
// it; other threads see them after the next BarSync.
struct Retired { BufferId buffer = kNoId; Expr version; };
struct CpAsyncWait { int pending = 0; std::vector<Retired> retires; };

// dst = reduction of src over dimension `axis` within each warp: first a thread's registers, then lanes by shuffles; dst has one
// dimension less, or keeps `axis` with only its warp factors when several warps own it (`keep_warps`). Result in all lanes.
struct LaneReduce { ReduceOp op = ReduceOp::kInvalid; BufferId dst = kNoId, src = kNoId; int axis = 0; bool keep_warps = false; bool accumulate = false; };

// acc[m,n] += a[m,k]·b[n,k], register fragments in the layouts of lowering/layout.h, accumulators fp32 (or fp16), operands fp16/bf16.
struct Mma { BufferId acc = kNoId, a = kNoId, b = kNoId; };

// ---- synchronisation ------------------------------------------------------------------------------------------
struct BarSync {};

struct Print { std::string format; std::vector<Expr> args; };
struct Assert { Expr cond; std::string message; };

using StmtOp = std::variant<Declare, For, While, If, Break, Continue, Let, Elementwise, Store, Atomic, Copy, CpAsyncCommit, CpAsyncWait,
                            LaneReduce, Mma, BarSync, Print, Assert>;

struct Stmt {
  StmtOp op;
  SourceLoc loc;
};

struct Kernel {
  std::string name;                 // a C identifier
  ExprArena exprs;
  std::vector<Buffer> buffers;
  std::vector<Var> vars;
  std::vector<std::string> dims;    // names, as in the Program
  std::vector<ScalarParam> scalars;
  std::vector<std::string> files;
  // The grid is flattened: one launch dimension of Π grid blocks, x fastest; the kernel derives block_vars from blockIdx.x. With raster_panel > 0 blocks go in
  // panels of that many rows (or columns) of the first two grid dims, for L2 reuse (T.use_swizzle).
  std::vector<Expr> grid;
  std::vector<VarId> block_vars;
  int raster_panel = 0;
  bool raster_column = false;
  int warps = 1;
  int min_blocks_per_sm = 1;        // for __launch_bounds__
  int64_t shared_bytes = 0;         // dynamic
  bool index32 = false;             // every dim and every offset inside a tensor fits 31 bits (guarded at launch)
  bool fast_math = false;
  Block body;
  std::string schedule;             // human-readable lines for the header comment of the emitted source
};

// What a statement touches in shared memory, for barrier placement and for the simulator's region checks. `version` may use variables
// that are bound inside the statement. Each pair once, a write standing for a read.
struct SharedUse { BufferId buffer = kNoId; Expr version; bool write = false; bool async = false; };
std::vector<SharedUse> SharedUses(const Kernel& kernel, const Stmt& stmt);  // of the statement itself and everything nested in it

// Structure, types, scopes and layouts of a kernel are consistent; Internal with the statement path otherwise. Run after every pass.
// (Returns an empty string when all is well, so that this header needs no abseil status.)
std::string VerifyKernel(const Kernel& kernel);

// Text for `tilert emit --kernel-ir`, --print-after and golden tests.
std::string ToText(const Kernel& kernel);

std::vector<Block*> ChildBlocks(Stmt& stmt);
std::vector<const Block*> ChildBlocks(const Stmt& stmt);
// Calls `visit` on each expression operand that `stmt` itself holds (not those of nested statements).
void ForEachExpr(Stmt& stmt, const std::function<void(Expr&)>& visit);
void ForEachExpr(const Stmt& stmt, const std::function<void(Expr)>& visit);
// Subscripts that an access to `buffer` takes: its rank, and one more (the version) in shared memory.
size_t SubscriptCount(const Buffer& buffer);

}  // namespace tilert::kir
