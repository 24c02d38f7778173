// Tensor-core operands and products: ldmatrix and mma.m16n8k16.
#include <algorithm>

#include "ir/status_util.h"
#include "lowering/emit_place.h"

namespace tilert {
namespace {

// A register digit of an operand fragment above the 8×8 matrix: which matrix, along which dimension.
struct MatrixDigit {
  size_t dim;
  int64_t weight, size, stride;
};

// One ldmatrix statement loads `count` matrices: the two lowest bits of a matrix number come from two digits.
class MatrixLoader {
 public:
  MatrixLoader(EmitContext& c, const kir::Copy& copy)
      : c_(c), s_(copy), dst_(c.buffer(copy.dst.buffer)), src_(c.buffer(copy.src.buffer)) {
    for (size_t d = 0; d < 2; ++d) {
      int64_t weight = 1;
      for (const Factor& f : copy.layout.dims[d].factors) {
        if (f.owner == Owner::kReg && f.size > 1 && f.stride > 1) digits_.push_back({d, weight, f.size, f.stride});
        if (f.owner == Owner::kWarp && f.size > 1) warps_.push_back({d, weight, f.size, f.stride});
        weight *= f.size;
      }
    }
    std::stable_sort(digits_.begin(), digits_.end(),
                     [](const MatrixDigit& a, const MatrixDigit& b) { return a.stride < b.stride; });
    ChooseBits();
  }

  void Emit() {
    if (!Supported()) return c_.Fail(Cat("'", c_.buffers[s_.dst.buffer], "' is no operand fragment that ldmatrix could load"));
    c_.Open("{");
    // Loops over what the lanes do not choose.
    std::vector<std::string> vars;
    for (size_t i = loops_.size(); i-- > 0;)
      vars.push_back(c_.names.Fresh(std::string_view("rstuvw").substr(std::min<size_t>(loops_.size() - 1 - i, 5), 1)));
    std::reverse(vars.begin(), vars.end());
    const std::string at = c_.names.Fresh(Cat(c_.buffers[s_.src.buffer], "_at"));
    const SharedOffset hoisted = Offset(vars, bits_.size(), {});
    const bool split = hoisted.thread.precedence != CText::kPrimary;
    if (split) c_.out.Line(Cat("const int ", at, " = ", hoisted.thread.text, ";"));
    for (size_t i = loops_.size(); i-- > 0;) {
      if (loops_[i].size > 1) c_.OpenUnrolled(vars[i], 0, loops_[i].size);
    }
    LoadOne(vars, bits_.size(), split ? at : "", {});
    for (size_t i = loops_.size(); i-- > 0;) {
      if (loops_[i].size > 1) c_.Close();
    }
    if (tail_ >= 0) EmitTail(vars, split ? at : "");
    c_.Close();
  }

 private:
  bool trans() const { return s_.method == kir::CopyMethod::kLdmatrixTrans; }
  bool Supported() const {
    return s_.layout.dims.size() == 2 && DTypeBits(dst_.dtype) == 16 && !bits_.empty() && s_.src.start.size() >= 3;
  }

  // The digits whose lowest bits number the matrices of one ldmatrix; what remains of them, and the other digits, are loops.
  void ChooseBits() {
    loops_ = digits_;
    for (size_t i = 0; i < loops_.size() && bits_.size() < 2; ++i) {
      if (loops_[i].size % 2 == 0) Take(i);
    }
    // An odd number of atoms: pairs of them, and one by itself.
    for (size_t i = 0; i < loops_.size() && bits_.size() == 1; ++i) {
      if (loops_[i].size < 3) continue;
      tail_ = static_cast<int>(i);
      tail_index_ = loops_[i].size - 1;
      Take(i);
    }
  }
  void Take(size_t i) {
    bits_.push_back({loops_[i].dim, loops_[i].weight, 2, loops_[i].stride});
    loops_[i].weight *= 2;
    loops_[i].stride *= 2;
    loops_[i].size /= 2;
  }

  // Offset in shared memory of the row that a lane points to. `fixed`: a term that replaces the loop of the tail.
  SharedOffset Offset(const std::vector<std::string>& vars, size_t bits, const std::vector<Term>& fixed) const {
    Coordinate parts[2];
    // Row r of a matrix is along dimension 0, or along K when it is transposed on the way.
    parts[trans() ? 1 : 0].terms.push_back({CModulo({"lane"}, 8), 1, 7, 1, true, false});
    for (size_t i = 0; i < bits; ++i) {
      const CText bit = i == 1      ? CDivided({"lane"}, 16)
                        : bits == 1 ? CModulo(CDivided({"lane"}, 8), 2)
                                    : CModulo(CDivided({"lane"}, 8), 2);
      parts[bits_[i].dim].terms.push_back({bit, bits_[i].weight, 1, 1, true, false});
    }
    for (const MatrixDigit& w : warps_) {
      CText digit = CDivided({"warp"}, w.stride);
      if (w.stride * w.size < s_.layout.warps) digit = CModulo(digit, w.size);
      parts[w.dim].terms.push_back({digit, w.weight, w.size - 1, 1, true, false});
    }
    AddLoops(vars, fixed, parts);
    std::vector<Coordinate> at;
    for (size_t d = 1; d < s_.src.start.size(); ++d) {
      Coordinate coordinate = EmitCoordinate(c_, s_.src.start[d]);
      if (s_.src.follows[d] >= 0) coordinate = AddCoordinates(coordinate, parts[s_.src.follows[d]]);
      at.push_back(coordinate);
    }
    return SharedByteOffset(src_, EmitInt(c_, s_.src.start[0]), at);
  }
  void AddLoops(const std::vector<std::string>& vars, const std::vector<Term>& fixed, Coordinate (&parts)[2]) const {
    for (size_t i = 0; i < loops_.size(); ++i) {
      const bool replaced = static_cast<int>(i) == tail_ && !fixed.empty();
      if (replaced) parts[loops_[i].dim].terms.push_back(fixed[0]);
      if (!replaced && loops_[i].size > 1)
        parts[loops_[i].dim].terms.push_back({CText{vars[i]}, loops_[i].weight, loops_[i].size - 1, 1, false, true});
    }
    for (Coordinate& part : parts) {
      std::vector<CText> sum;
      for (const Term& t : part.terms) sum.push_back(CScaled(t.text, t.scale));
      part.whole = CSum(sum);
      part.range = {0, INT32_MAX, 1};
    }
  }
  // The register that holds matrix `m` of the statement.
  std::string Register(const std::vector<std::string>& vars, size_t bits, const std::vector<Term>& fixed, int m) const {
    Coordinate parts[2];
    for (size_t i = 0; i < bits; ++i) {
      if (m >> i & 1) parts[bits_[i].dim] = AddCoordinates(parts[bits_[i].dim], ConstantCoordinate(bits_[i].weight));
    }
    AddLoops(vars, fixed, parts);
    std::vector<Coordinate> at;
    for (size_t d = 0; d < s_.dst.start.size(); ++d) {
      Coordinate coordinate = EmitCoordinate(c_, s_.dst.start[d]);
      if (s_.dst.follows[d] >= 0) coordinate = AddCoordinates(coordinate, parts[s_.dst.follows[d]]);
      at.push_back(coordinate);
    }
    return Cat(c_.buffers[s_.dst.buffer], "[", WordIndex(dst_.layout, at, 2).text, "]");
  }
  void LoadOne(const std::vector<std::string>& vars, size_t bits, const std::string& hoisted, const std::vector<Term>& fixed) {
    SharedOffset offset = Offset(vars, bits, fixed);
    if (!hoisted.empty()) offset.thread = {hoisted};
    std::string call = trans() ? "ldmatrix_trans(" : "ldmatrix(";
    for (int m = 0; m < 1 << bits; ++m) call += Cat(Register(vars, bits, fixed, m), ", ");
    c_.out.Line(Cat(call, "smem_base + ", offset.Whole().In(CText::kSum), ");"));
  }
  // The last of an odd number of atoms: half a statement.
  void EmitTail(const std::vector<std::string>& vars, const std::string& hoisted) {
    const MatrixDigit& digit = loops_[static_cast<size_t>(tail_)];
    const int64_t weight = bits_.back().weight;
    const Term last{CNumber(tail_index_), weight, tail_index_, 1, false, true};
    for (size_t i = loops_.size(); i-- > 0;) {
      if (static_cast<int>(i) != tail_ && loops_[i].size > 1) c_.OpenUnrolled(vars[i], 0, loops_[i].size);
    }
    (void)digit;
    // Lanes 16 to 31 point to rows that a statement of two matrices ignores.
    LoadOne(vars, 1, "", {last});
    (void)hoisted;
    for (size_t i = loops_.size(); i-- > 0;) {
      if (static_cast<int>(i) != tail_ && loops_[i].size > 1) c_.Close();
    }
  }

  EmitContext& c_;
  const kir::Copy& s_;
  const kir::Buffer& dst_;
  const kir::Buffer& src_;
  std::vector<MatrixDigit> digits_, warps_, bits_, loops_;
  int tail_ = -1;           // index into loops_ of the digit of odd size that is taken in pairs
  int64_t tail_index_ = 0;  // its last value
};

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

std::string At(const std::string& name, const CText& index) {
  return index.text == "0" ? name : Cat(name, " + ", index.In(CText::kSum));
}

}  // namespace

void EmitLdmatrix(EmitContext& c, const kir::Copy& copy) { MatrixLoader(c, copy).Emit(); }

void Emit(EmitContext& c, const kir::Mma& mma) {
  const kir::Buffer &acc = c.buffer(mma.acc), &a = c.buffer(mma.a), &b = c.buffer(mma.b);
  const int64_t m = Atoms(acc.layout.dims[0], 16), n = Atoms(acc.layout.dims[1], 8), k = Atoms(a.layout.dims[1], 16);
  c.Open("{");
  // Column atoms go back and forth, so that neighbouring products share an operand.
  const auto loop = [&c](std::string_view wanted, int64_t count) {
    if (count == 1) return CText{"0"};
    const std::string var = c.names.Fresh(wanted);
    c.OpenUnrolled(var, 0, count);
    return CText{var};
  };
  const CText kk = loop("kk", k), i = loop("i", m), s = loop(m > 1 ? "s" : "j", n);
  CText j = s;
  if (m > 1 && n > 1) {
    j = {c.names.Fresh("j")};
    c.out.Line(Cat("const int ", j.text, " = i & 1 ? ", n - 1, " - ", s.text, " : ", s.text, ";"));
  }
  const Coordinate row = AtomCoordinate(i, 16, m), column = AtomCoordinate(j, 8, n), depth = AtomCoordinate(kk, 16, k);
  const CText acc_at = WordIndex(acc.layout, {row, column}, PerWord(acc.dtype));
  c.out.Line(Cat("mma_", MemoryType(a.dtype), "(", At(c.buffers[mma.acc], acc_at), ", ",
                 At(c.buffers[mma.a], WordIndex(a.layout, {row, depth}, 2)), ", ",
                 At(c.buffers[mma.b], WordIndex(b.layout, {column, depth}, 2)), ");"));
  for (const CText& var : {kk, i, s}) {
    if (var.text != "0") c.Close();
  }
  c.Close();
}

}  // namespace tilert
