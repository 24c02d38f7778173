// Products of mma.sync.
#include <algorithm>

#include "ir/status_util.h"
#include "lowering/emit_place.h"
#include "lowering/layout_mma.h"

namespace tilert {
namespace {

// Atoms of `size` along a dimension that one warp owns.
int64_t Atoms(const LayoutDim& dim, int64_t size) {
  int64_t own = 1;
  for (const Factor& f : dim.factors) own *= f.owner == Owner::kWarp ? 1 : f.size;
  return own / size;
}

Coordinate AtomCoordinate(const CText& var, int64_t size, int64_t count) {
  Coordinate coordinate;
  coordinate.terms.push_back({var, size, std::max<int64_t>(count - 1, 0), 1, false, true});
  coordinate.whole = CScaled(var, size);
  coordinate.range = {0, size * count, 1};
  return coordinate;
}

// The prelude's name for the products: "mma_f16", "mma_s8_u8".
std::string Function(DType a, DType b) {
  const auto type = [](DType t) -> std::string_view {
    switch (t) {
      case DType::kFloat8E4M3: return "e4m3";
      case DType::kFloat8E5M2: return "e5m2";
      case DType::kInt8: return "s8";
      case DType::kUInt8: return "u8";
      default: return "";
    }
  };
  if (a == DType::kFloat32) return "mma_tf32";
  return DTypeBytes(a) == 1 ? Cat("mma_", type(a), "_", type(b)) : Cat("mma_", MemoryType(a));
}

std::string At(const std::string& name, const CText& index) {
  return index.text == "0" ? name : Cat(name, " + ", index.In(CText::kSum));
}

}  // namespace

void Emit(EmitContext& c, const kir::Mma& mma) {
  const kir::Buffer &acc = c.buffer(mma.acc), &a = c.buffer(mma.a), &b = c.buffer(mma.b);
  const int64_t m = Atoms(acc.layout.dims[0], 16), n = Atoms(acc.layout.dims[1], 8),
                depth_of_step = MmaDepth(DTypeBytes(a.dtype)), k = Atoms(a.layout.dims[1], depth_of_step);
  c.Open("{");
  const auto loop = [&c](std::string_view wanted, int64_t count) {
    if (count == 1) return CText{"0"};
    const std::string var = c.names.Fresh(wanted);
    c.OpenUnrolled(var, 0, count);
    return CText{var};
  };
  const auto let = [&c](std::string_view wanted, const std::string& value) {
    const std::string var = c.names.Fresh(wanted);
    c.out.Line(Cat("const int ", var, " = ", value, ";"));
    return CText{var};
  };
  // Column atoms go back and forth, so that neighbouring products share an operand. Where many of them pass many rows, two rows go together: what a
  // column needs is soon done with, and its registers are free for the next step's.
  const bool in_pairs = m > 2 && m % 2 == 0 && n > m;
  const CText kk = loop("kk", k), outer = loop(in_pairs ? "h" : "i", in_pairs ? m / 2 : m), s = loop(m > 1 ? "s" : "j", in_pairs ? 2 * n : n);
  CText i = outer, j = s;
  if (in_pairs) {
    i = let("i", Cat(outer.text, " * 2 + ((", s.text, " + (", s.text, " >> 1)) & 1)"));
    j = let("j", Cat(outer.text, " & 1 ? ", n - 1, " - (", s.text, " >> 1) : ", s.text, " >> 1"));
  } else if (m > 1 && n > 1) {
    j = let("j", Cat(outer.text, " & 1 ? ", n - 1, " - ", s.text, " : ", s.text));
  }
  const Coordinate row = AtomCoordinate(i, 16, m), column = AtomCoordinate(j, 8, n), depth = AtomCoordinate(kk, depth_of_step, k);
  const CText acc_at = WordIndex(acc.layout, {row, column}, PerWord(acc.dtype));
  c.out.Line(Cat(Function(a.dtype, b.dtype), "(", At(c.buffers[mma.acc], acc_at), ", ",
                 At(c.buffers[mma.a], WordIndex(a.layout, {row, depth}, PerWord(a.dtype))), ", ",
                 At(c.buffers[mma.b], WordIndex(b.layout, {column, depth}, PerWord(b.dtype))), ");"));
  for (const CText& var : {kk, outer, s}) {
    if (var.text != "0") c.Close();
  }
  c.Close();
}

}  // namespace tilert
