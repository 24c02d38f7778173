// What the parts of the emitter share: the kernel, the text so far, names, ranges, and C++ for types and expressions.
// Internal to lowering/emit*.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lowering/emit_coordinate.h"
#include "lowering/emit_text.h"
#include "lowering/kernel_ir.h"
#include "lowering/ranges.h"
#include "lowering/target.h"

namespace tilert {

// A variable of the kernel as the emitted code spells it.
struct VarText {
  std::string name;
  bool wide = false;      // long long, else int (of index variables)
  bool fixed = false;     // of an unrolled loop
  bool thread = false;    // differs between threads
  Coordinate coordinate;  // bound by an Elementwise: its digits
  bool has_coordinate = false;
};

// A ring as the emitted code spells it: addresses of its first barriers, and the position of the role.
struct RingText {
  std::string full, empty, slot, phase;
  std::string peers;  // condition of lanes whose numbers are ranks of blocks that share its slots; empty: none
};

// The role that is being emitted; outside roles, the whole block.
struct RoleText {
  const kir::Role* role = nullptr;
  std::string instance = "0";  // number of this instance
  int by_warpgroup = 0;     // first named barrier of the warpgroups
  std::string writer = "threadIdx.x == 0";  // condition of the thread that writes for all; empty: there is only one
  int barrier = 0;             // named barrier of instance 0, the next ones of the others; 0: __syncthreads
  int order = 0;               // named barrier on which instance 0 waits for the order token
};

struct EmitContext {
  EmitContext(const kir::Kernel& kernel, const Target& target);

  const kir::Kernel& kernel;
  const Target& target;
  SourceWriter out;
  Names names;
  Ranges ranges;
  std::vector<std::string> buffers, dims, scalars;
  std::vector<VarText> vars;
  std::vector<std::string> maps;
  std::vector<std::string> policies;  // per buffer: its priority in the L2 cache; empty: none is given
  std::vector<RingText> rings;
  RoleText role;
  std::vector<bool> accumulators;  // per buffer: of a wgmma
  std::vector<bool> in_ptx;        // per buffer: an accumulator in registers of PTX (emit_wgmma.cc)
  std::vector<bool> operands;      // per buffer: in registers, of a wgmma, which reads them while others run on
  bool in_elementwise = false;
  int loops = 0;             // around what is being emitted, unrolled or not
  bool narrow = false;       // what is being emitted fits an int by kernel.index32 although its range does not show it
  std::string replica_zero;  // in an Elementwise: condition for memory writes; empty: always true
  // Elementwise, in its loop over a pair: stores to these register buffers go to the given place and are packed after it.
  absl::flat_hash_map<BufferId, std::string> deferred;
  std::string copies_if;                   // the condition that the copies by cp.async which are being emitted stand under; empty: none
  std::string lanes_here = "0xffffffffu";  // Elementwise: the lanes of this warp that have a point
  std::vector<std::string> barriers;       // per declared barrier: address of its first element
  std::string last_location;  // of the last comment
  int64_t most_unrolled = INT64_MAX;   // instructions that an element loop may become
  int64_t turns_around = 1;             // of the fully unrolled loops around what is being emitted
  std::vector<int64_t> unrolled_sizes;  // of the element loops so far: what they would become without that limit
  bool limited = false;                 // in an Elementwise that would be too much unrolled: neither are loops in its body
  bool rotates = false;                 // registers go round in a loop
  absl::Status status;                  // the first error

  const kir::Buffer& buffer(BufferId id) const { return kernel.buffers[id]; }
  const ExprNode& node(Expr e) const { return kernel.exprs[e]; }
  void Fail(std::string message);

  // A brace-enclosed block with its own names.
  void Open(std::string_view head);
  void Close(std::string_view tail = "}");
  // Opens `head` as a fully unrolled loop.
  void OpenUnrolled(const std::string& var, int64_t begin, int64_t end, int64_t step = 1);
};

// ---- types (emit_expr.cc)
std::string_view MemoryType(DType type);    // of an element in memory: "bf16"
std::string_view RegisterType(DType type);  // of a word of a register array: "u32"
std::string_view ValueType(DType type);     // of a value in an expression: "float"
int PerWord(DType type);                    // elements in such a word
bool IsNarrowFloat(DType type);             // values are floats that are rounded

// Whether the C++ value of one type is, or rounds to, the value of the other.
bool SameValue(DType from, DType to);

// ---- expressions (emit_expr.cc)
// How an index is computed: int where it provably fits, else long long.
bool IsWide(const EmitContext& c, Expr e);
CText EmitExpr(EmitContext& c, Expr e);
// As EmitExpr, but a narrow float may still be unrounded: for a consumer that rounds.
CText EmitUnrounded(EmitContext& c, Expr e);
// `value` converted to type `to`; a narrow float may be unrounded.
CText ConvertedValue(EmitContext& c, Expr value, DType to);  // emit_stmt.cc
CText EmitInt(EmitContext& c, Expr e);                       // an index that must fit an int (versions, grid extents)
// `e` as a coordinate of a tile.
Coordinate EmitCoordinate(EmitContext& c, Expr e);

// ---- statements
void EmitBlock(EmitContext& c, const kir::Block& block);   // emit_stmt.cc
void Emit(EmitContext& c, const kir::Store& store);        // emit_stmt.cc
void Emit(EmitContext& c, const kir::Atomic& atomic);      // emit_stmt.cc
// A sum of float32 into global memory, of the two neighbours that the array `pair` holds.
void EmitPairSum(EmitContext& c, const kir::Atomic& sum, const std::string& pair);  // emit_stmt.cc
void Emit(EmitContext& c, const kir::Elementwise& loop);   // emit_tile.cc
void Emit(EmitContext& c, const kir::LaneReduce& reduce);  // emit_tile.cc
void Emit(EmitContext& c, const kir::Copy& copy);          // emit_copy.cc
void EmitMatrices(EmitContext& c, const kir::Copy& copy);  // emit_matrix.cc: ldmatrix, stmatrix
void Emit(EmitContext& c, const kir::Mma& mma);            // emit_mma.cc
void Emit(EmitContext& c, const kir::Wgmma& wgmma);        // emit_wgmma.cc
void Emit(EmitContext& c, const kir::WgmmaWait& wait);     // emit_wgmma.cc
void Emit(EmitContext& c, const kir::Roles& roles);        // emit_roles.cc
void Emit(EmitContext& c, const kir::ForTiles& loop);      // emit_roles.cc
void Emit(EmitContext& c, const kir::BarSync&);            // emit_roles.cc
void Emit(EmitContext& c, const kir::OrderWait&);          // emit_roles.cc
void Emit(EmitContext& c, const kir::OrderPass&);          // emit_roles.cc
void Emit(EmitContext& c, const kir::Shuffle& s);          // emit_threads.cc
void Emit(EmitContext& c, const kir::MbarArrive& s);       // emit_threads.cc
void Emit(EmitContext& c, const kir::MbarWait& s);         // emit_threads.cc
void Emit(EmitContext& c, const kir::MbarExpect& s);       // emit_threads.cc
void Emit(EmitContext& c, const kir::MbarComplete& s);     // emit_threads.cc
void Emit(EmitContext& c, const kir::ClusterSync&);        // emit_roles.cc
void Emit(EmitContext& c, const kir::PartStore& s);        // emit_roles.cc
void Emit(EmitContext& c, const kir::PartAdd& s);          // emit_roles.cc
void Emit(EmitContext& c, const kir::SumsGive& s);         // emit_shares.cc
void Emit(EmitContext& c, const kir::SumsTake& s);         // emit_shares.cc
// The loop over this block's shares of tiles; returns the number of the tile, a C expression.
std::string OpenShares(EmitContext& c, const std::string& worker, const std::string& workers, const std::string& tiles);  // emit_shares.cc
void Emit(EmitContext& c, const kir::Acquire& s);          // emit_ring.cc
void Emit(EmitContext& c, const kir::ExpectTx& s);         // emit_ring.cc
void Emit(EmitContext& c, const kir::Release& s);          // emit_ring.cc
void Emit(EmitContext& c, const kir::Advance& s);          // emit_ring.cc
void Emit(EmitContext& c, const kir::TmaLoad& s);          // emit_ring.cc
void Emit(EmitContext& c, const kir::TmaStore& s);         // emit_ring.cc
void Emit(EmitContext& c, const kir::StoreWait& s);        // emit_ring.cc
// What the kernel has once: addresses of barriers, their initialisation.
void EmitRingSetup(EmitContext& c);  // emit_ring.cc
// Names and zeroed positions of all rings, in the scope of a role.
void EmitRingPositions(EmitContext& c);  // emit_ring.cc
// Whether `is` holds for a statement of the block or one nested in it.
bool AnyStmt(const kir::Block& block, bool (*is)(const kir::StmtOp& op));  // emit.cc
// Priorities in the L2 cache, as constants of the kernel.
void EmitPolicies(EmitContext& c);  // emit_place.cc
// Binds block_vars from the number of the block, or of the cluster where there are any, a C expression.
void EmitBlockVars(EmitContext& c, const std::string& block);  // emit.cc
// Of clusters (emit.cc), all but the last of blocks where there are none: the number of the cluster that a block, or of clusters that blocks belong to; extents of
// the grid in clusters; the place of this block along an axis.
std::string ClusterNumber(const EmitContext& c, const std::string& block);
std::vector<std::string> ClusterGrid(EmitContext& c);
std::string ClusterDigit(const EmitContext& c, kir::ClusterAxes axis);
// Of the blocks that differ from this one along `axes` only: which of them it is, and the bits of their ranks.
std::string ClusterIndex(const EmitContext& c, kir::ClusterAxes axes);
CText ClusterMask(const EmitContext& c, kir::ClusterAxes axes);
// True for what one thread does for its role: TMA and the counting of its bytes.
bool IsOneThreads(const kir::StmtOp& op);  // emit_ring.cc

// ---- instructions written out for a kernel (emit_wgmma.cc)
// Names of the functions and macros, and their definitions, each guarded against a second kernel of the same source.
std::vector<std::string> WgmmaNames(const kir::Kernel& kernel);
std::string WgmmaDefinitions(const kir::Kernel& kernel);
std::vector<bool> WgmmaAccumulators(const kir::Kernel& kernel);  // per buffer
std::vector<bool> PtxAccumulators(const kir::Kernel& kernel);    // per buffer: those that may lie in registers of PTX
std::vector<bool> WgmmaOperands(const kir::Kernel& kernel);      // per buffer: A, in registers
// Of accumulators in registers of PTX: declares all, at the start of the kernel; the values of one are not needed from here on. Without that they would be kept
// for a wgmma that may add to them.
void DeclareAccumulators(EmitContext& c);
void ForgetAccumulator(EmitContext& c, BufferId id);

// What a statement does, for its comment.
std::string Describe(const EmitContext& c, const kir::StmtOp& op);  // emit_stmt.cc

}  // namespace tilert
