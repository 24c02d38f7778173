// Where elements are: register indices, offsets in global and shared memory, bounds; and the registers of a layout as nested
// loops. Internal to lowering/emit*.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "lowering/emit_context.h"

namespace tilert {

// ---- places (emit_place.cc)
// Register index of an element of a register buffer.
CText RegisterIndex(const FragmentLayout& layout, absl::Span<const Coordinate> coordinates);
// The same in words of `per_word` elements; REQUIRES: the element is the first of its word.
CText WordIndex(const FragmentLayout& layout, absl::Span<const Coordinate> coordinates, int per_word);
// True when `e` loads what may be written meanwhile: read twice, for a guard and for the access, it may be two values.
bool MayChange(const EmitContext& c, Expr e);
// The coordinate under another name, of a value that was read once.
Coordinate Named(Coordinate coordinate, const std::string& name);
// A subscript, read once: what may change gets a C variable here.
Coordinate ReadOnce(EmitContext& c, Expr e);
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
CText InsideCondition(EmitContext& c, const kir::Buffer& buffer, absl::Span<const Coordinate> coordinates,
                      absl::Span<const Expr> e);
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
    bool unrolled = true;
    std::string advance = "";  // where it is not: its step
  };
  std::vector<Loop> loops;              // outermost first
  std::vector<Coordinate> coordinates;  // one a dim; of the first element of a vector
  std::vector<std::string> names;       // C variables that DeclareCoordinates makes
  std::vector<std::string> thread_parts;
  std::vector<std::string> masks;  // conditions that leave out padding
  std::string replica_zero;        // condition; empty: always true
  int64_t vector = 1;
};
// Opens a scope and computes the thread's part of the coordinates. The lowest `vector` elements of the last dimension are not
// looped over; REQUIRES: they are consecutive registers of `layout`.
Nest OpenNest(EmitContext& c, const FragmentLayout& layout, const std::vector<std::string>& dim_names, int64_t vector);
// Cuts loop `i` into itself and, within it, one of `inner_size`, a divisor of its size.
void SplitLoop(EmitContext& c, Nest& nest, size_t i, int64_t inner_size);
// Loop `i` is not unrolled: what goes along it is at its first turn's register index, and `rotations` come after each turn.
void KeepLoop(Nest& nest, size_t i, const std::vector<std::string>& rotations);
void OpenLoops(EmitContext& c, const Nest& nest, size_t first, size_t last);
void CloseLoops(EmitContext& c, size_t count);
// Declares nest.names in the innermost scope and states the masks.
void DeclareCoordinates(EmitContext& c, Nest& nest, const FragmentLayout& layout);
// Whether `vector` consecutive elements of the last dimension are consecutive registers, starting on a multiple of `vector`.
bool HasVector(const FragmentLayout& layout, int64_t vector);
// Condition under which this thread is replica 0; empty when there are no replicas.
std::string ReplicaZero(const FragmentLayout& layout);

}  // namespace tilert
