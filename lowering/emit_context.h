// What the parts of the emitter share: the kernel, the text so far, names, ranges, and C++ for types, expressions and places.
// Internal to lowering/emit*.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lowering/emit_text.h"
#include "lowering/kernel_ir.h"
#include "lowering/ranges.h"
#include "lowering/target.h"

namespace tilert {

// One addend text·scale of a coordinate, 0 ≤ text ≤ hi; text is a multiple of `align` (a power of two).
struct Term {
  CText text;
  int64_t scale = 1;
  int64_t hi = 0;
  int64_t align = 1;
  bool thread = false;  // differs between threads; else the same in all of them
  bool fixed = false;   // a constant once loops are unrolled
};
// A coordinate as the sum of its terms; `known` is false when some term may be negative or unbounded, and then `whole` is all there is.
struct Coordinate {
  std::vector<Term> terms;
  CText whole;
  Range range;
  bool known = true;
};
Coordinate ConstantCoordinate(int64_t value);

// A variable of the kernel as the emitted code spells it.
struct VarText {
  std::string name;
  bool wide = false;      // long long, else int (of index variables)
  bool fixed = false;     // of an unrolled loop
  bool thread = false;    // differs between threads
  Coordinate coordinate;  // bound by an Elementwise: its digits
  bool has_coordinate = false;
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
  bool in_elementwise = false;
  bool narrow = false;        // what is being emitted fits an int by kernel.index32 although its range does not show it
  std::string replica_zero;   // in an Elementwise: condition for memory writes; empty: always true
  // Elementwise, in its loop over a pair: stores to these register buffers go to the given place and are packed after it.
  absl::flat_hash_map<BufferId, std::string> deferred;
  absl::Status status;        // the first error

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
CText ConvertedValue(EmitContext& c, Expr value, DType to);                    // emit_stmt.cc
CText EmitInt(EmitContext& c, Expr e);      // an index that must fit an int (versions, grid extents)
// `e` as a coordinate of a tile.
Coordinate EmitCoordinate(EmitContext& c, Expr e);
Coordinate AddCoordinates(const Coordinate& a, const Coordinate& b);

// ---- places (emit_place.cc)
// Digit (coordinate / weight) % size.
CText Digit(const Coordinate& coordinate, int64_t weight, int64_t size);
// Register index of an element of a register buffer.
CText RegisterIndex(const FragmentLayout& layout, absl::Span<const Coordinate> coordinates);
// The same in words of `per_word` elements; REQUIRES: the element is the first of its word.
CText WordIndex(const FragmentLayout& layout, absl::Span<const Coordinate> coordinates, int per_word);
// Offset in elements within a global tensor.
CText GlobalOffset(EmitContext& c, const kir::Buffer& buffer, absl::Span<const Coordinate> coordinates);
// Byte offset in shared memory of (version, coordinates…), split so that `thread` can be computed once: the offset is
// ((thread) ^ flip) + rest. Empty texts are "0".
struct SharedOffset {
  CText thread, flip, rest;
  CText Whole() const;
};
SharedOffset SharedByteOffset(const kir::Buffer& buffer, const CText& version, absl::Span<const Coordinate> coordinates);
// Condition under which a coordinate is inside dimension `d`; empty when that is proven. `e`: it as an expression, or none.
CText InsideDim(EmitContext& c, const kir::Buffer& buffer, size_t d, const Coordinate& coordinate, Expr e);
// The same for all dimensions (without the version), subscripts `e`.
CText InsideCondition(EmitContext& c, const kir::Buffer& buffer, absl::Span<const Coordinate> coordinates, absl::Span<const Expr> e);
// a && b; an empty text is true.
CText And(const CText& a, const CText& b);
// A typed pointer to a byte offset in shared memory.
CText SharedPointer(DType type, const CText& offset);
// An element of memory as an lvalue.
CText ElementAt(DType type, const CText& pointer, const CText& offset);

// ---- the registers of a layout as nested loops (emit_nest.cc)
struct Nest {
  struct Loop {
    std::string var;
    int64_t size = 1, weight = 1;  // the loop adds var·weight to coordinate `dim`
    size_t dim = 0;
  };
  std::vector<Loop> loops;              // outermost first
  std::vector<Coordinate> coordinates;  // one a dim; of the first element of a vector
  std::vector<std::string> names;       // C variables that DeclareCoordinates makes
  std::vector<std::string> thread_parts;
  std::vector<std::string> masks;       // conditions that leave out padding
  std::string replica_zero;             // condition; empty: always true
  int64_t vector = 1;
};
// Opens a scope and computes the thread's part of the coordinates. The lowest `vector` elements of the last dimension are not looped over;
// REQUIRES: they are consecutive registers of `layout`.
Nest OpenNest(EmitContext& c, const FragmentLayout& layout, const std::vector<std::string>& dim_names, int64_t vector);
// Cuts loop `i` into itself and, within it, one of `inner_size`, a divisor of its size.
void SplitLoop(EmitContext& c, Nest& nest, size_t i, int64_t inner_size);
void OpenLoops(EmitContext& c, const Nest& nest, size_t first, size_t last);
void CloseLoops(EmitContext& c, size_t count);
// Declares nest.names in the innermost scope and states the masks.
void DeclareCoordinates(EmitContext& c, Nest& nest, const FragmentLayout& layout);
// Whether `vector` consecutive elements of the last dimension are consecutive registers, starting on a multiple of `vector`.
bool HasVector(const FragmentLayout& layout, int64_t vector);
// Condition under which this thread is replica 0; empty when there are no replicas.
std::string ReplicaZero(const FragmentLayout& layout);

// ---- statements
void EmitBlock(EmitContext& c, const kir::Block& block);                       // emit_stmt.cc
void Emit(EmitContext& c, const kir::Store& store);                            // emit_stmt.cc
void Emit(EmitContext& c, const kir::Atomic& atomic);                          // emit_stmt.cc
void Emit(EmitContext& c, const kir::Elementwise& loop);                       // emit_tile.cc
void Emit(EmitContext& c, const kir::LaneReduce& reduce);                      // emit_tile.cc
void Emit(EmitContext& c, const kir::Copy& copy);                              // emit_copy.cc
void EmitLdmatrix(EmitContext& c, const kir::Copy& copy);                      // emit_mma.cc
void Emit(EmitContext& c, const kir::Mma& mma);                                // emit_mma.cc
// What a statement does, for its comment.
std::string Describe(const EmitContext& c, const kir::StmtOp& op);             // emit_stmt.cc

}  // namespace tilert
