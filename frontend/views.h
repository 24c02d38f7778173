#pragma once

#include <string_view>
#include <vector>

#include "frontend/source.h"
#include "frontend/value.h"
#include "ir/program.h"

// Buffers that are other ways to speak of the memory of a buffer: T.reshape, T.view, T.Tensor(shape, dtype, A.data), and tensors
// whose elements lie in an order of their own (T.annotate_layout). Programs know no such thing: statements name a view while the
// source is evaluated, and Legalize writes them in terms of the buffers that exist.
namespace tilert::frontend {

class Context;

// Elements of 4 bits: two in a byte of a tensor, the first in the lower half, and one in a byte on the chip.
enum class Packing : uint8_t {
  kNone,
  kInt4,    // seen as int8
  kUInt4,   // seen as uint8
  kFloat4,  // e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; seen as float8_e4m3, in which they are exact
};
// The type in which the elements are seen. T.int4, T.uint4 and T.float4_e2m1fn are symbols of these paths.
DType ElementType(Packing packing);
Packing PackingNamed(std::string_view path);
// kNone for what is no 4-bit type.
Packing PackingOf(const Value& value);

// Element [x0, x1, …] of `buffer` is element `map` of `base`; what is outside `buffer` is outside `base`.
struct View {
  BufferId buffer = kNoId;
  BufferId base = kNoId;      // may be a view itself; `buffer`: its own elements in another order, in one launch
  std::vector<Expr> map;      // an index expression a dimension of `base`, over ViewSubscript(0), ViewSubscript(1), …
  std::vector<bool> guarded;  // the dimensions of `buffer` outside of which `map` alone would not be outside `base`
  uint32_t launch = kNoId;    // where it holds; kNoId: everywhere
  Packing packing = Packing::kNone;
  // Of a view of another dtype; `map` is the subscripts then. One of its elements is `joins` neighbours along the last dimension,
  // one more, of `base`; or 1/`splits` of an element of `base`, along the last dimension.
  int64_t joins = 0, splits = 0;
  Expr half = {};  // of a packed tensor: the subscript whose parity tells the half of the byte; none: only rounded when stored
};

// Stands for a subscript in View::map.
Expr ViewSubscript(ExprArena& arena, size_t dim);

// `buffer` under another shape, element by element in row-major order. Reports, and returns poison, if the numbers of elements
// are known to differ.
Value MakeReshaped(Context& context, const Buf& buffer, const std::vector<Val>& shape, std::string name, SourceRange range);

// The same under another dtype, bit by bit; the last dimension of the shape counts elements of that type. Reports likewise.
Value MakeReinterpreted(Context& context, const Buf& buffer, std::vector<Val> shape, DType type, std::string name,
                        SourceRange range);

// `base`, a tensor of bytes whose last dimension is half as long as that of `shape`, as one of 4-bit elements.
Buf MakePacked(Context& context, const Buf& base, const std::vector<Val>& shape, Packing packing);
// A buffer on the chip whose elements are rounded to 4 bits when they are stored.
Buf MakeRounded(Context& context, const Buf& base, Packing packing);

// From here on in this launch, element [x…] of `buffer` lies where position `order`[x…] of a row-major array does whose extents
// are one more than the greatest positions. `order` is over ViewSubscripts. Reports if those extents cannot be told, or have
// another size.
bool AddElementOrder(Context& context, const Buf& buffer, const std::vector<Val>& order, SourceRange range);

}  // namespace tilert::frontend
