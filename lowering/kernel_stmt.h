// The statements of KernelIr.
#pragma once

#include <variant>

#include "lowering/kernel_async.h"

namespace tilert::kir {

struct Stmt;
using Block = std::vector<Stmt>;

// ---- structure ------------------------------------------------------------------------------------------------
// Makes a register buffer exist from here to the end of the enclosing block, zeroed only if `zero` is set.
struct Declare { BufferId buffer = kNoId; bool zero = false; };
enum class Unroll : uint8_t { kNo, kFull };
struct For { VarId var = kNoId; Expr begin, end, step; Unroll unroll = Unroll::kNo; Block body; };
struct While { Expr cond; Block body; };
// Outside Elementwise `cond` is the same in every thread of the block; `by_warp`: of each warp at least, and its statements are for those warps that come here.
struct If { Expr cond; Block then_body, else_body; bool by_warp = false; };
struct Break {};
struct Continue {};
struct Let { VarId var = kNoId; Expr value; };

// Partitions of the block that run concurrently, each its own body, until all have ended: at the top of a kernel's body (after declarations of values
// that all share), once. Warps are numbered through: role 0 has the first instances·warps. Inside a role, layouts, BarSync and warp numbers mean the
// warps of one instance; register buffers and variables declared in it are its own.
// `instances` > 1 (ping-pong): as many copies of the role, each taking every instances-th tile of the enclosed ForTiles, instance i the i-th first.
struct Role {
  std::string name;
  int warps = 1;
  int instances = 1;
  VarId instance = kNoId;   // if given: bound in the body to the instance's number, 0 … instances − 1 (to skip the tiles before its first: Advance)
  bool one_thread = false;  // a single elected thread runs the body (it issues TMA loads); the others wait at the end
  // Its TMA stores are issued, committed and waited for by the first thread of each warpgroup, for that warpgroup's share of the tile's rows (the first dim of
  // the box that is not 1 is so much smaller), instead of by one thread for all.
  bool stores_by_warpgroup = false;
  int max_registers = 0;    // setmaxnreg for its warps, a multiple of 8 (24 … 240); 0: none. Needs whole warpgroups
  Block body;
};
struct Roles { std::vector<Role> roles; };

// Runs `body` for one tile (a block of the program's grid: binds block_vars) after the other: tile blockIdx.x, blockIdx.x + gridDim.x, … of Π grid tiles.
// Only directly in a Role's body or the kernel's. Without one, each block of the launch is one tile.
struct ForTiles { Block body; };

// ---- data -----------------------------------------------------------------------------------------------------
// Each thread runs `body` once for each of its points of `layout` (registers ascending, valid extents only), with `vars` bound to the
// point's coordinates. body: Store, Let, If, For, While, Break, Continue, Atomic, Print, Assert, Shuffle, MbarArrive, MbarWait, MbarExpect, ProxyFence and nothing else.
// Register buffers are read and written only where the thread holds the element. Stores to memory, atomics and prints happen in replica 0 only.
// Points are independent: any order, the compiler may interleave them.
struct Elementwise { FragmentLayout layout; std::vector<VarId> vars; Block body; };
struct Store { BufferId buffer = kNoId; std::vector<Expr> indices; Expr value; };
// `prev`, if given (in an Elementwise without replicas): bound to the element's value before, 0 outside.
struct Atomic { AtomicOp op = AtomicOp::kInvalid; BufferId buffer = kNoId; std::vector<Expr> indices; Expr value; MemoryOrder order = MemoryOrder::kRelaxed; MemoryScope scope = MemoryScope::kDevice; VarId prev = kNoId; };

// In an Elementwise of one point a thread: var = what `value` is at the point of lane `lane` % 32 of the warp. All lanes with a point get here together.
struct Shuffle { VarId var = kNoId; Expr value, lane; };

// How a tile is moved. All mean: dst[p] = convert(src[p]) for every valid point p of `layout`; reading outside src gives `fill`
// (none: zero); writing outside dst is dropped; memory writes happen in replica 0 only.
enum class CopyMethod : uint8_t {
  kVector,   // through registers, `width` consecutive elements (of the last iteration dim) at once where a buffer is in memory
  kCpAsync,  // global → shared, `width`·size ∈ {4, 8, 16} bytes, same dtype, no conversion; complete at CpAsyncWait
  kLdmatrix,       // shared → register operand of Mma (16-bit), iteration dims (M or N, K), last buffer dim follows K
  kLdmatrixTrans,  // the same where the last buffer dim follows M or N (ldmatrix.trans)
  kStmatrix,       // registers in mma/wgmma accumulator order → shared, two dims, 16-bit in shared (converted), last buffer dim follows the last iteration dim
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
struct CpAsyncWait { int pending = 0; std::vector<Retired> retires; };

// dst = reduction of src over dimension `axis` within each warp: first a thread's registers, then lanes by shuffles; dst has one
// dimension less, or keeps `axis` with only its warp factors when several warps own it (`keep_warps`). Result in all lanes.
struct LaneReduce { ReduceOp op = ReduceOp::kInvalid; BufferId dst = kNoId, src = kNoId; int axis = 0; bool keep_warps = false; bool accumulate = false; };

// Sums that the CTAs of a cluster have a part of each. `part`: shared, of 4-byte elements, extents PartExtents: a place for each thread that runs this.
// PartStore: all registers of src go to the thread's place. PartAdd: acc += what the same thread of the CTA of rank `peer` has stored in its part.
struct PartStore { BufferId part = kNoId, src = kNoId; };
struct PartAdd { BufferId acc = kNoId, part = kNoId; Expr peer; };

// Sums of a tile that several blocks of the launch share (Kernel::shared_trips). SumsGive: this block did not come to the tile's last iteration; all registers of
// `sums` go to its place in the workspace (GivenBytes), once a launch, and a flag says so. SumsTake: it did; added to `sums` is what each block that had iterations
// of the tile before it has given, from the nearest to the farthest: always in this order. Each warp takes from the warp of its number.
struct SumsGive { std::vector<BufferId> sums; };
struct SumsTake { std::vector<BufferId> sums; };

// acc[m,n] += a[m,k]·b[n,k], register fragments in the layouts of lowering/layout.h, accumulators fp32 (or fp16), operands fp16/bf16.
struct Mma { BufferId acc = kNoId, a = kNoId, b = kNoId; };

// ---- synchronisation
struct BarSync { bool by_warpgroup = false; int number = 0, warps = 0; };  // all warps of the role (instance), or of the block outside Roles; or those of each warpgroup of the role.
// number > 0: `warps` warps of the block, whatever roles they have, that come to a BarSync of that number.

struct Print { std::string format; std::vector<Expr> args; };
struct Assert { Expr cond; std::string message; };

using StmtOp = std::variant<Declare, For, While, If, Break, Continue, Let, Elementwise, Store, Atomic, Copy, CpAsyncCommit, CpAsyncWait,
                            LaneReduce, Mma, BarSync, Print, Assert, Roles, ForTiles, Wgmma, WgmmaFence, WgmmaCommit, WgmmaWait, TmaLoad, TmaStore,
                            StoreCommit, StoreWait, ProxyFence, Acquire, ExpectTx, Release, Advance, OrderWait, OrderPass,
                            ClusterSync, PartStore, PartAdd, SumsGive, SumsTake, Shuffle, MbarArrive, MbarWait, MbarExpect, MbarComplete>;

// Special members are defined in kernel_ir.cc: compiled once, not in each source that holds one by value.
struct Stmt {
  Stmt(StmtOp operation, SourceLoc location = {});
  Stmt();
  Stmt(const Stmt&);
  Stmt(Stmt&&) noexcept;
  Stmt& operator=(const Stmt&);
  Stmt& operator=(Stmt&&) noexcept;
  ~Stmt();

  StmtOp op;
  SourceLoc loc;
};

}  // namespace tilert::kir
