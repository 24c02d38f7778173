// Matrices of 8×8 16-bit elements between shared memory and registers: ldmatrix and stmatrix.
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

// One statement moves up to four matrices: the two bits of a matrix number come from two digits.
class MatrixMover {
 public:
  MatrixMover(EmitContext& c, const kir::Copy& copy)
      : c_(c),
        s_(copy),
        stores_(copy.method == kir::CopyMethod::kStmatrix),
        fragment_(stores_ ? copy.src : copy.dst),
        tile_(stores_ ? copy.dst : copy.src),
        registers_(c.buffer(fragment_.buffer)),
        shared_(c.buffer(tile_.buffer)) {
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
    if (!Supported())
      return c_.Fail(Cat("'", c_.buffers[fragment_.buffer], "' is no fragment that ldmatrix or stmatrix could move"));
    c_.Open("{");
    // Loops over what the lanes do not choose.
    std::vector<std::string> vars;
    for (size_t i = loops_.size(); i-- > 0;)
      vars.push_back(c_.names.Fresh(std::string_view("rstuvw").substr(std::min<size_t>(loops_.size() - 1 - i, 5), 1)));
    std::reverse(vars.begin(), vars.end());
    const std::string at = c_.names.Fresh(Cat(c_.buffers[tile_.buffer], "_at"));
    const SharedOffset hoisted = Offset(vars, bits_.size(), {});
    const bool split = hoisted.thread.precedence != CText::kPrimary;
    if (split) c_.out.Line(Cat("const int ", at, " = ", hoisted.thread.text, ";"));
    for (size_t i = loops_.size(); i-- > 0;) {
      if (loops_[i].size > 1) c_.OpenUnrolled(vars[i], 0, loops_[i].size);
    }
    MoveOne(vars, bits_.size(), split ? at : "", {});
    for (size_t i = loops_.size(); i-- > 0;) {
      if (loops_[i].size > 1) c_.Close();
    }
    if (tail_ >= 0) EmitTail(vars);
    c_.Close();
  }

 private:
  // Elements that a lane holds side by side are not side by side in shared memory.
  bool trans() const {
    if (!stores_) return s_.method == kir::CopyMethod::kLdmatrixTrans;
    const std::vector<Factor>& factors = s_.layout.dims[0].factors;
    return !factors.empty() && factors[0] == Factor{2, Owner::kReg, 1};
  }
  bool Supported() const {
    // Two bytes that lie side by side are moved as one element of 16 bits.
    const bool fits = DTypeBits(shared_.dtype) == 16 || (DTypeBits(shared_.dtype) == 8 && !stores_ && !trans());
    return s_.layout.dims.size() == 2 && fits && (stores_ || !bits_.empty()) && tile_.start.size() >= 3;
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
    // Row r of a matrix in shared memory is along the dimension that its last one does not follow.
    parts[tile_.follows.back() == 0 ? 1 : 0].terms.push_back({CModulo({"lane"}, 8), 1, 7, 1, true, false});
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
    for (size_t d = 1; d < tile_.start.size(); ++d) {
      Coordinate coordinate = EmitCoordinate(c_, tile_.start[d]);
      if (tile_.follows[d] >= 0) coordinate = AddCoordinates(coordinate, parts[tile_.follows[d]]);
      at.push_back(coordinate);
    }
    return SharedByteOffset(shared_, EmitInt(c_, tile_.start[0]), at);
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
  // The register that holds this lane's part of matrix `m` of the statement.
  std::string Register(const std::vector<std::string>& vars, size_t bits, const std::vector<Term>& fixed, int m) const {
    const std::string& name = c_.buffers[fragment_.buffer];
    if (registers_.dtype == shared_.dtype)
      return Cat(name, "[", WordIndex(registers_.layout, ElementOf(vars, bits, fixed, m, 0), PerWord(shared_.dtype)).text, "]");
    // Two neighbours, converted.
    const auto element = [&](int e) {
      return Cat(name, "[", RegisterIndex(registers_.layout, ElementOf(vars, bits, fixed, m, e)).text, "]");
    };
    return Cat("pair<", MemoryType(shared_.dtype), ">(", element(0), ", ", element(1), ")");
  }
  // Where in the fragment lane 0 has its first element of matrix `m`, or the one after it.
  std::vector<Coordinate> ElementOf(const std::vector<std::string>& vars, size_t bits, const std::vector<Term>& fixed, int m,
                                    int e) const {
    Coordinate parts[2];
    for (size_t i = 0; i < bits; ++i) {
      if (m >> i & 1) parts[bits_[i].dim] = AddCoordinates(parts[bits_[i].dim], ConstantCoordinate(bits_[i].weight));
    }
    if (e > 0) {
      Coordinate& pair = parts[trans() ? 0 : 1];
      pair = AddCoordinates(pair, ConstantCoordinate(e));
    }
    AddLoops(vars, fixed, parts);
    std::vector<Coordinate> at;
    for (size_t d = 0; d < fragment_.start.size(); ++d) {
      Coordinate coordinate = EmitCoordinate(c_, fragment_.start[d]);
      if (fragment_.follows[d] >= 0) coordinate = AddCoordinates(coordinate, parts[fragment_.follows[d]]);
      at.push_back(coordinate);
    }
    return at;
  }
  void MoveOne(const std::vector<std::string>& vars, size_t bits, const std::string& hoisted, const std::vector<Term>& fixed) {
    SharedOffset offset = Offset(vars, bits, fixed);
    if (!hoisted.empty()) offset.thread = {hoisted};
    const std::string address = Cat("smem_base + ", offset.Whole().In(CText::kSum));
    std::string registers;
    for (int m = 0; m < 1 << bits; ++m) registers += Cat(m == 0 ? "" : ", ", Register(vars, bits, fixed, m));
    const std::string_view suffix = trans() ? "_trans(" : "(";
    c_.out.Line(stores_ ? Cat("stmatrix", suffix, address, ", ", registers, ");")
                        : Cat("ldmatrix", suffix, registers, ", ", address, ");"));
  }
  // The last of an odd number of atoms: half a statement.
  void EmitTail(const std::vector<std::string>& vars) {
    const int64_t weight = bits_.back().weight;
    const Term last{CNumber(tail_index_), weight, tail_index_, 1, false, true};
    for (size_t i = loops_.size(); i-- > 0;) {
      if (static_cast<int>(i) != tail_ && loops_[i].size > 1) c_.OpenUnrolled(vars[i], 0, loops_[i].size);
    }
    // Lanes 16 to 31 point to rows that a statement of two matrices ignores.
    MoveOne(vars, 1, "", {last});
    for (size_t i = loops_.size(); i-- > 0;) {
      if (static_cast<int>(i) != tail_ && loops_[i].size > 1) c_.Close();
    }
  }

  EmitContext& c_;
  const kir::Copy& s_;
  const bool stores_;                // stmatrix
  const kir::TileAccess& fragment_;  // the side in registers
  const kir::TileAccess& tile_;      // the side in shared memory
  const kir::Buffer& registers_;
  const kir::Buffer& shared_;
  std::vector<MatrixDigit> digits_, warps_, bits_, loops_;
  int tail_ = -1;           // index into loops_ of the digit of odd size that is taken in pairs
  int64_t tail_index_ = 0;  // its last value
};

}  // namespace

void EmitMatrices(EmitContext& c, const kir::Copy& copy) { MatrixMover(c, copy).Emit(); }

}  // namespace tilert
