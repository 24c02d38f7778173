// Address and bounds of a tensor's elements in the loops of a nest, taken apart into what holds where the loops begin and what
// the loops add.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lowering/emit_place.h"

namespace tilert {

// `nest` where its loops begin.
Nest WithoutLoops(Nest nest);

// Little is left to do in each turn of the loops. What holds where they begin is computed right there, in each iteration of the
// loops around them: kept from one to the next, an offset and a condition for each turn would take the registers of fragments.
class Walk {
 public:
  // Declares what holds at `first`, where the loops of `nest` begin. None where offsets take 64 bits, there are no loops, or a
  // subscript may be negative.
  static std::optional<Walk> Start(EmitContext& c, const kir::TileAccess& access, const Nest& nest,
                                   const std::vector<Coordinate>& first);
  // In the loops: the element's address, and the condition for its being inside the tensor (empty: always).
  std::string Pointer() const;
  CText Inside() const;

 private:
  std::string name_, from_;             // the tensor; offset where the loops begin
  CText inside_{""};                    // condition that is the same in all turns
  std::vector<std::string> left_;       // per dim: elements from there to its end; empty: nothing to check in each turn
  std::vector<CText> added_, strides_;  // per dim: what the loops add to the subscript
};

}  // namespace tilert
