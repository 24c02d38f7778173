// How much code the loops over registers become when they are unrolled, and which of them stay loops where that is too much: it
// takes a compiler half a millisecond for an instruction. Internal to lowering/emit*.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "lowering/emit_place.h"

namespace tilert {

// What the element loops of a kernel may become together, in instructions; what is more is taken from the largest.
inline constexpr int64_t kMostUnrolled = 8000;
// Instructions of a point from which on few points hide what latency there is, and what those may become.
inline constexpr int64_t kLongPoint = 64, kMostOfLongPoints = 1024;

// Turns of a loop in the body of an Elementwise that become one, where nothing else is asked for.
inline constexpr int64_t kUnrolledTurns = 2;

// The size that none of several parts, of these sizes, may exceed so that they are `most` together.
int64_t LargestPart(std::vector<int64_t> sizes, int64_t most);

// Instructions that `body` becomes, roughly, at one point of an Elementwise. REQUIRES: its variables are bound.
int64_t CodeSize(const EmitContext& c, const kir::Block& body);  // emit_code_size.cc

// The same for a copy of `vector` elements by accesses of so many elements each (emit_code_size.cc).
int64_t CodeSize(const EmitContext& c, const kir::Copy& copy, int64_t vector, int64_t src_vector, int64_t dst_vector);

// Turns of a loop that are known, `most` at most; 1 where they are not.
int64_t TurnsOf(const EmitContext& c, const kir::For& loop, int64_t most);  // emit_code_size.cc

// A register buffer in the body of a nest: the dimension of the nest that its subscripts are, one each.
struct RegisterUse {
  static constexpr int kNone = -1;   // none of them
  static constexpr int kOther = -2;  // something that is computed from them
  BufferId buffer = kNoId;
  std::vector<int> follows;
  bool operator==(const RegisterUse&) const = default;
};
std::vector<RegisterUse> RegisterUses(const EmitContext& c, const kir::Elementwise& loop);
RegisterUse RegisterUseOf(const EmitContext& c, const kir::TileAccess& access);

// Lets loops of `nest`, the outer ones first, stay loops, or cuts them into such and others, where what they become would be too
// much; a point has `size` instructions. The registers that such a loop goes along go round (prelude/rotate.cuh).
void LimitUnrolling(EmitContext& c, Nest& nest, int64_t size, const std::vector<RegisterUse>& uses);

}  // namespace tilert
