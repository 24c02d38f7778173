// Statements of a tile program: a closed std::variant of small structs. Meaning: docs/ir_spec.md section "Statements".
//
// Three kinds of region (design: tile statements, thread regions, roles) share this vocabulary; the verifier says which
// statement may stand where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "ir/expr.h"

namespace tilert {

using BufferId = uint32_t;  // index into Program::buffers
using VarId = uint32_t;     // index into Program::vars
inline constexpr uint32_t kNoId = 0xffffffff;

struct SourceLoc {
  uint32_t file = kNoId;  // index into Program::files
  uint32_t line = 0;      // 1-based; 0: unknown
  uint32_t column = 0;    // 1-based
  bool operator==(const SourceLoc&) const = default;
};

// A box of a buffer, one start and one extent a dimension. A rank-0 buffer has neither.
struct Region {
  BufferId buffer = kNoId;
  std::vector<Expr> start;
  std::vector<Expr> extent;
  bool operator==(const Region&) const = default;
};

// The dims of an operand of gemm, of `rank`, that make its matrix: further ones of extent 1 are dropped, leading ones first.
template <typename IsOne>
std::vector<size_t> MatrixDims(size_t rank, const IsOne& is_one) {
  std::vector<size_t> dims;
  for (size_t d = 0, left = rank; d < rank; ++d) {
    if (left > 2 && is_one(d)) {
      --left;
    } else {
      dims.push_back(d);
    }
  }
  return dims;
}

struct Stmt;
using Block = std::vector<Stmt>;
// Not a template, so that the defaulted comparisons below need no complete Stmt.
bool operator==(const Block& a, const Block& b);

enum class GemmPolicy : uint8_t { kInvalid, kSquare, kFullRow, kFullCol };
enum class ReduceOp : uint8_t { kInvalid, kSum, kMax, kMin, kAbsSum, kAbsMax, kBitAnd, kBitOr, kBitXor };
enum class ForKind : uint8_t { kInvalid, kSerial, kUnrolled, kVectorized, kPipelined, kPersistent };
enum class AtomicOp : uint8_t { kInvalid, kAdd, kMax, kMin };
enum class MemoryOrder : uint8_t { kInvalid, kRelaxed, kAcquire, kRelease, kAcqRel };
enum class MemoryScope : uint8_t { kInvalid, kBlock, kDevice, kSystem };
enum class BarrierOpKind : uint8_t { kInvalid, kArrive, kWait, kExpectTx };
enum class AnnotationKind : uint8_t {
  kInvalid, kUseSwizzle, kLayoutSwizzled, kLayoutRowMajor, kNoWarpSpecialization, kSafeValue
};

// Makes `buffer` exist from here to the end of the enclosing block; its contents are unwritten.
struct Alloc { BufferId buffer = kNoId; bool operator==(const Alloc&) const = default; };

// dst[d] = src[s] element by element with conversion to dst's type. Dimensions of extent 1 are dropped on either side and the
// rest must agree in order. `is_async`: effect defined at the matching Wait / barrier.
struct Copy {
  Region src, dst;
  Expr fill = {};             // value of source elements outside their buffer; none: zero
  uint32_t coalesced_width = 0;  // elements a thread moves at once; 0: free
  bool disable_tma = false;
  bool is_async = false;
  BufferId barrier = kNoId;   // barrier that an asynchronous copy completes on, if any
  std::vector<Expr> barrier_indices = {};  // of `barrier`; none: its first
  bool operator==(const Copy&) const = default;
};

// c[M,N] (+)= op(a)[M,K] · op(b)[K,N], accumulated in c's type. a is [M,K], or [K,M] when transpose_a; b is [K,N], or [N,K].
struct Gemm {
  Region a, b, c;
  bool transpose_a = false, transpose_b = false;
  bool clear_accum = false;   // c is overwritten instead of added to
  GemmPolicy policy = GemmPolicy::kSquare;
  bool is_async = false;
  bool operator==(const Gemm&) const = default;
};

struct Fill { Region dst; Expr value; bool operator==(const Fill&) const = default; };

// dst = reduction of src over dimension `axis`; with !clear the old dst takes part.
struct Reduce {
  ReduceOp op = ReduceOp::kInvalid;
  Region src, dst;
  uint32_t axis = 0;
  bool clear = true;
  bool nan_propagate = true;
  bool operator==(const Reduce&) const = default;
};

// Inclusive prefix sum of src along `axis` into dst.
struct Scan { Region src, dst; uint32_t axis = 0; bool reverse = false; bool operator==(const Scan&) const = default; };

// Unordered loop over elements: body once for each point of the box [0, extents).
struct Parallel {
  std::vector<VarId> vars;
  std::vector<Expr> extents;
  Block body;
  uint32_t coalesced_width = 0;
  bool operator==(const Parallel&) const = default;
};

// for var in range(begin, end, step). kPipelined: same meaning as kSerial, with permission to overlap iterations.
struct For {
  ForKind kind = ForKind::kInvalid;
  VarId var = kNoId;
  Expr begin, end, step;
  Expr num_stages;                       // kPipelined: tile versions in flight, a number or of constants, 0: one; others: 0
  std::vector<int32_t> order, stage;     // kPipelined only: one a body statement, or empty
  Block body;
  Expr split = {};                       // kPipelined: blocks that may share the iterations, a number or of constants; none: 1
  bool operator==(const For&) const = default;
};

struct While { Expr cond; Block body; bool operator==(const While&) const = default; };
struct Break { bool operator==(const Break&) const = default; };
struct Continue { bool operator==(const Continue&) const = default; };
struct If { Expr cond; Block then_body, else_body; bool operator==(const If&) const = default; };
struct Let { VarId var = kNoId; Expr value; bool operator==(const Let&) const = default; };

// buffer[indices] = value, converted to the buffer's type; dropped when outside.
struct Store { BufferId buffer = kNoId; std::vector<Expr> indices; Expr value; bool operator==(const Store&) const = default; };

// `prev`, if given: the variable that has the element's value before; zero when outside.
struct Atomic {
  AtomicOp op = AtomicOp::kInvalid;
  BufferId buffer = kNoId;
  std::vector<Expr> indices;
  Expr value;
  MemoryOrder order = MemoryOrder::kRelaxed;
  MemoryScope scope = MemoryScope::kDevice;
  VarId prev = kNoId;
  bool operator==(const Atomic&) const = default;
};

// dst (op)= src element by element, each an atomic.
struct AtomicTile {
  AtomicOp op = AtomicOp::kInvalid;
  Region src, dst;
  MemoryOrder order = MemoryOrder::kRelaxed;
  bool operator==(const AtomicTile&) const = default;
};

// A hint or a layout request; never changes results. kUseSwizzle: args = {panel_size}, text = "row" | "col".
struct Annotate {
  AnnotationKind kind = AnnotationKind::kInvalid;
  BufferId buffer = kNoId;
  std::vector<Expr> args;
  std::string text;
  bool operator==(const Annotate&) const = default;
};

struct Print { std::string format; std::vector<Expr> args; bool operator==(const Print&) const = default; };
struct Assert { Expr cond; std::string message; bool operator==(const Assert&) const = default; };

// SIMT code: body runs once for each compute thread, `thread` is its number.
struct ThreadRegion { VarId thread = kNoId; Block body; bool operator==(const ThreadRegion&) const = default; };
// `count` other than 0: a group of so many threads meets, and `barrier` (1 … 15) tells it from other groups; 0: the whole block
// (or role).
struct SyncThreads { uint32_t barrier = 0, count = 0; bool operator==(const SyncThreads&) const = default; };
// var = what `value` is in the thread of lane `lane` % 32 of this thread's warp.
struct Shuffle { VarId var = kNoId; Expr value, lane; bool operator==(const Shuffle&) const = default; };

// One partition [thread_begin, thread_end) of the block's threads and what it does.
struct Role { Expr thread_begin, thread_end; Block body; bool operator==(const Role&) const = default; };
struct Roles { std::vector<Role> roles; bool operator==(const Roles&) const = default; };
struct BarrierOp {
  BarrierOpKind kind = BarrierOpKind::kInvalid;
  BufferId barrier = kNoId;
  std::vector<Expr> indices;
  Expr operand;  // kWait: parity; kExpectTx: bytes
  bool operator==(const BarrierOp&) const = default;
};
// Waits until at most `pending` groups of asynchronous copies (or gemms) are unfinished.
struct AsyncWait { bool gemm = false; uint32_t pending = 0; bool operator==(const AsyncWait&) const = default; };

using StmtOp = std::variant<Alloc, Copy, Gemm, Fill, Reduce, Scan, Parallel, For, While, Break, Continue, If, Let, Store, Atomic,
                            AtomicTile, Annotate, Print, Assert, ThreadRegion, SyncThreads, Roles, BarrierOp, AsyncWait, Shuffle>;

// Special members are defined in stmt.cc: compiled once, not in each source that holds one by value.
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
  bool operator==(const Stmt&) const = default;
};


// Builds a visitor out of lambdas: std::visit(Overloaded{…}, stmt.op) does not compile when a case is missing.
template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <typename... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace tilert
