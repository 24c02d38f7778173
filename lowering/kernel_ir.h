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
#include "lowering/kernel_stmt.h"

namespace tilert::kir {

struct Kernel {
  // Defined in kernel_ir.cc: compiled once, not in each source that holds one by value.
  Kernel();
  Kernel(const Kernel&);
  Kernel(Kernel&&) noexcept;
  Kernel& operator=(const Kernel&);
  Kernel& operator=(Kernel&&) noexcept;
  ~Kernel();

  std::string name;                 // a C identifier
  ExprArena exprs;
  std::vector<Buffer> buffers;
  std::vector<Var> vars;
  std::vector<std::string> dims;    // names, as in the Program
  std::vector<ScalarParam> scalars;
  std::vector<std::string> files;
  // The grid is flattened: one launch dimension of Π grid blocks, x fastest; the kernel derives block_vars from blockIdx.x. With raster_panel > 0 blocks go in
  // panels of that many rows (or columns) of blocks, or clusters, of the first two grid dims, for L2 reuse (T.use_swizzle).
  std::vector<Expr> grid;
  std::vector<VarId> block_vars;
  int raster_panel = 0;
  bool raster_column = false;
  // Thread block clusters: CTAs along each grid dim, then CTAs that work on one block together (a reduction that is split); empty: none. A CTA's rank in its cluster
  // counts along the first axis first. Clusters take the place of blocks in the order of the grid. Where they stick out of it, the CTAs outside have no block of their
  // own: block_vars are those of the nearest block and has_block is 0.
  std::vector<int> cluster;
  VarId cluster_rank = kNoId;        // bound in the whole kernel
  VarId has_block = kNoId;           // bound with block_vars: 1, or 0 outside the grid
  // Given: ForTiles shares out the iterations 0 … shared_trips − 1 of a loop that each tile has, evenly over the blocks, or clusters, of the launch (SharesOf), and
  // binds share_begin and share_end with block_vars: the iterations of the tile that are this block's.
  Expr shared_trips;
  VarId share_begin = kNoId, share_end = kNoId;
  int64_t cluster_barrier = -1;      // bytes into the dynamic shared memory: an mbarrier for ClusterSync in a role
  std::vector<Ring> rings;
  std::vector<Barrier> barriers;
  std::vector<TensorMap> tensor_maps;
  int warps = 1;                    // of the launch: all roles
  int min_blocks_per_sm = 1;        // for __launch_bounds__
  int64_t shared_bytes = 0;         // dynamic
  bool index32 = false;             // every dim and every offset inside a tensor fits 31 bits (guarded at launch)
  bool fast_math = false;
  Block body;
  std::string schedule;             // human-readable lines for the header comment of the emitted source
};

// What a statement touches in shared memory, for barrier placement and for the simulator's region checks. `version` may use variables
// that are bound inside the statement. Each pair once, a write standing for a read. Of this block's memory: what PartAdd reads is another's.
// `async`: still going on after the statement, until a wait retires it; `proxy`: by the async proxy (TMA, wgmma).
struct SharedUse { BufferId buffer = kNoId; Expr version; bool write = false; bool async = false; bool proxy = false; };
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
// True when the kernel walks over its tiles (ForTiles) and so takes any number of blocks.
bool IsPersistent(const Kernel& kernel);
// CTAs of a cluster, and of them those that differ along `axes` only; 1 without clusters.
int ClusterSize(const Kernel& kernel);
int ClusterExtent(const Kernel& kernel, ClusterAxes axes);
// Extents of a part (PartStore) for `warps` warps that hold `registers` 4-byte registers a thread: chunks of 16 bytes, threads, elements of a chunk.
std::vector<int64_t> PartExtents(int64_t registers, int warps);
int64_t PartBytes(int64_t registers, int warps);
// Bytes of workspace for each block of a kernel with SumsGive, a multiple of 256; 0 without. A flag for each warp that gives, then the sums, each as a part
// (PartExtents), in the order of SumsGive.
int64_t GivenBytes(const Kernel& kernel);
inline constexpr int64_t kFlagBytes = 256, kFlagEachBytes = 8;
// What block, or cluster, number `worker` of `workers` does of `tiles` tiles of `trips` iterations each, in order. As many tiles as `workers` goes into are whole;
// of what is left each gets as many iterations as the others, one at most apart, the last first: what it leaves to the next worker comes before what it waits for.
// Where there are several workers for each tile that is left, all tiles get equally many if that leaves no more than an eighth of the workers without.
struct Share { int64_t tile = 0, begin = 0, end = 0; };
inline constexpr int64_t kMostShares = 8;  // blocks that a launch has for each tile, at most
int64_t Sharers(int64_t left, int64_t workers);  // that have a part of the `left` tiles which are not whole
std::vector<Share> SharesOf(int64_t tiles, int64_t trips, int64_t workers, int64_t worker);
// The axis of the CTAs that work on one block, as a set.
ClusterAxes SplitAxis(const Kernel& kernel);
// Ranks of the CTAs among which slots of `ring` are shared with CTA `rank`, itself included, ascending: it fills for them and they release to it.
std::vector<int> PeersOf(const Kernel& kernel, const Ring& ring, int rank);
// Subscripts that an access to `buffer` takes: its rank, and one more (the version) in shared memory.
size_t SubscriptCount(const Buffer& buffer);

}  // namespace tilert::kir
