// Copies: vector accesses with predicated tails, conversions in between, and cp.async.
#include <algorithm>
#include <optional>

#include "ir/status_util.h"
#include "lowering/emit_unroll.h"
#include "lowering/emit_walk.h"

namespace tilert {
namespace {

// Loads of a thread in flight before their stores, memory to memory; of guarded single elements, which are the most code and get
// no faster by more.
constexpr int64_t kStagedAccesses = 8, kStagedElements = 4;

// One side of a copy within the loops of a nest.
class Side {
 public:
  Side(EmitContext& c, const kir::TileAccess& access, const Nest& nest, int64_t rank)
      : c_(c),
        access_(access),
        buffer_(c.buffer(access.buffer)),
        name_(c.buffers[access.buffer]),
        skip_(buffer_.space == kir::Space::kShared ? 1 : 0) {
    if (skip_ == 1) version_ = EmitInt(c, access.start[0]);
    for (size_t d = skip_; d < access.start.size(); ++d) starts_.push_back(ReadOnce(c, access.start[d]));
    vector_ = nest.vector > 1 && IsContiguous(nest.vector, rank) ? nest.vector : 1;
    // What of a shared address depends on the thread is computed before the loops.
    if (skip_ == 1) {
      const CText thread = SharedByteOffset(buffer_, version_, At(nest, {})).thread;
      if (thread.precedence == CText::kPrimary) return;
      hoisted_ = c.names.Fresh(Cat(name_, "_at"));
      c.out.Optional(hoisted_, Cat("const int ", hoisted_, " = ", thread.text, ";"));
    }
  }

  const kir::Buffer& buffer() const { return buffer_; }
  bool in_memory() const { return buffer_.space != kir::Space::kRegister; }
  bool is_scalar() const { return !in_memory() && buffer_.layout.dims.empty(); }
  bool is_const() const { return buffer_.space == kir::Space::kGlobal && !buffer_.written; }
  int64_t vector() const { return vector_; }
  std::string type() const { return std::string(MemoryType(buffer_.dtype)); }

  // Coordinates of the point of the nest (plus element `e` of its vector).
  std::vector<Coordinate> At(const Nest& nest, const std::string& e) const {
    std::vector<Coordinate> at;
    for (size_t d = skip_; d < access_.start.size(); ++d) {
      Coordinate coordinate = starts_[d - skip_];
      if (const int follows = access_.follows[d]; follows >= 0) {
        coordinate = AddCoordinates(coordinate, nest.coordinates[static_cast<size_t>(follows)]);
        if (!e.empty() && static_cast<size_t>(follows) + 1 == nest.coordinates.size()) {
          Coordinate element;
          element.whole = {e};
          element.range = {0, nest.vector - 1, 1};
          element.terms.push_back({CText{e}, 1, nest.vector - 1, 1, false, true});
          coordinate = AddCoordinates(coordinate, element);
          coordinate.range.hi -= nest.vector - 1;  // the range of the nest's coordinate covers all elements
        }
      }
      at.push_back(coordinate);
    }
    return at;
  }

  CText SharedOffsetOf(absl::Span<const Coordinate> at) const {
    SharedOffset offset = SharedByteOffset(buffer_, version_, at);
    if (!hoisted_.empty()) offset.thread = {hoisted_};
    return offset.Whole();
  }
  // An element as an lvalue of the memory type.
  std::string Element(absl::Span<const Coordinate> at) const {
    if (buffer_.space == kir::Space::kShared) return Cat("*", SharedPointer(buffer_.dtype, SharedOffsetOf(at)).text);
    return Cat(name_, "[", GlobalOffset(c_, buffer_, at).text, "]");
  }
  // As Pointer, for an address that loop counters are part of: an unsigned offset is not taken apart into 64-bit sums.
  std::string LoopPointer(absl::Span<const Coordinate> at) const {
    const CText offset = GlobalOffset(c_, buffer_, at);
    if (!c_.kernel.index32 || offset.precedence == CText::kPrimary) return Pointer(at);
    return Cat(name_, " + (u32)(", offset.text, ")");
  }
  // The first element of a vector: in memory as a pointer to elements, in registers as one to words.
  std::string Pointer(absl::Span<const Coordinate> at) const {
    if (buffer_.space == kir::Space::kShared) return SharedPointer(buffer_.dtype, SharedOffsetOf(at)).text;
    const CText offset = in_memory() ? GlobalOffset(c_, buffer_, at) : WordIndex(buffer_.layout, at, PerWord(buffer_.dtype));
    return offset.text == "0" ? name_ : Cat(name_, " + ", offset.In(CText::kSum));
  }
  // A register element: as an expression, and the statement that writes it; `get`/`pick` and `set`/`place` for values and bits.
  std::string Read(std::string_view function, absl::Span<const Coordinate> at) const {
    const std::string index = RegisterIndex(buffer_.layout, at).text;
    return PerWord(buffer_.dtype) == 1 ? Cat(name_, "[", index, "]") : Cat(function, "<", type(), ">(", name_, ", ", index, ")");
  }
  std::string Write(std::string_view function, absl::Span<const Coordinate> at, const std::string& x) const {
    const std::string index = RegisterIndex(buffer_.layout, at).text;
    return PerWord(buffer_.dtype) == 1 ? Cat(name_, "[", index, "] = ", x, ";")
                                       : Cat(function, "<", type(), ">(", name_, ", ", index, ", ", x, ");");
  }
  const std::string& name() const { return name_; }

  // Condition for one element, or for the leading dims of a vector and, where the last dim cannot cut it, for that too. Where it
  // can, Rest says where: but that the vector begins in front of the buffer, as a whole, since both are multiples of its width.
  CText Inside(absl::Span<const Coordinate> at) const {
    CText all{""};
    for (size_t i = 0; i < at.size(); ++i) {
      if (access_.inside[i + skip_] || !in_memory()) continue;
      if (i + 1 == at.size() && Ragged(at)) {
        if (at[i].range.lo < 0) all = And(all, CBinary(at[i].whole, ">=", CText::kRelation, CNumber(0)));
        continue;
      }
      all = And(all, InsideDim(c_, buffer_, i, at[i], access_.follows[i + skip_] < 0 ? access_.start[i + skip_] : Expr{}));
    }
    return all;
  }
  // The buffer may end within a vector.
  bool Ragged(absl::Span<const Coordinate> at) const {
    if (vector_ == 1 || access_.inside.back() || InsideDim(c_, buffer_, at.size() - 1, at.back(), {}).text.empty()) return false;
    return at.back().range.align % vector_ != 0 || ExtentDivisor() % vector_ != 0;
  }
  std::optional<Walk> StartWalk(const Nest& nest) { return Walk::Start(c_, access_, nest, At(WithoutLoops(nest), "")); }
  // Elements from `at` to the end of the last dimension.
  CText Rest(absl::Span<const Coordinate> at) const {
    const CText extent =
        buffer_.space == kir::Space::kGlobal ? EmitExpr(c_, buffer_.shape.back()) : CNumber(buffer_.shared.extents.back());
    return CBinary(extent, "-", CText::kSum, at.back().whole);
  }

 private:
  bool IsContiguous(int64_t width, int64_t rank) const {
    const auto& follows = access_.follows;
    if (follows.empty() || follows.back() != rank - 1 ||
        std::count(follows.begin(), follows.end(), static_cast<int>(rank - 1)) != 1)
      return false;
    if (!in_memory())
      return HasVector(buffer_.layout, width) && width % PerWord(buffer_.dtype) == 0 && starts_.back().range.align % width == 0;
    const int64_t bytes = width * DTypeBytes(buffer_.dtype);
    return bytes >= 4 && bytes <= 16 &&
           (buffer_.space == kir::Space::kShared || c_.kernel.exprs.IsInt(buffer_.strides.back(), 1));
  }
  // A power of two that is known to divide the last extent.
  int64_t ExtentDivisor() const {
    if (buffer_.space == kir::Space::kShared) return ConstantRange(buffer_.shared.extents.back()).align;
    const Expr extent = buffer_.shape.back();
    int64_t divisor = c_.ranges.Of(extent).align;
    for (size_t d = 0; d + 1 < buffer_.strides.size(); ++d) {
      // A row stride is a multiple of the alignment.
      if (buffer_.strides[d] == extent) divisor = std::max<int64_t>(divisor, buffer_.alignment / DTypeBytes(buffer_.dtype));
    }
    return divisor;
  }

  EmitContext& c_;
  const kir::TileAccess& access_;
  const kir::Buffer& buffer_;
  const std::string& name_;
  const size_t skip_;  // subscripts before the coordinates: the version
  CText version_{"0"};
  std::vector<Coordinate> starts_;
  std::string hoisted_;
  int64_t vector_ = 1;
};

int64_t WordsOf(DType type, int64_t count) { return std::max<int64_t>(count / PerWord(type), 1); }

// The widest vector that suits a copy between registers: enough to fill words on both sides.
int64_t RegisterVector(const EmitContext& c, const kir::Copy& copy) {
  const int64_t width = std::max(PerWord(c.buffer(copy.dst.buffer).dtype), PerWord(c.buffer(copy.src.buffer).dtype));
  if (copy.layout.dims.empty()) return 1;
  return HasVector(copy.layout, width) && copy.layout.dims.back().extent % width == 0 ? width : 1;
}

class Copier {
 public:
  Copier(EmitContext& c, const kir::Copy& copy)
      : c_(c),
        s_(copy),
        nest_(MakeNest(c, copy)),
        src_(c, copy.src, nest_, static_cast<int64_t>(copy.layout.dims.size())),
        dst_(c, copy.dst, nest_, static_cast<int64_t>(copy.layout.dims.size())) {}

  void Emit() {
    if (dst_.in_memory() && !nest_.replica_zero.empty()) {
      c_.Open(Cat("if (", nest_.replica_zero, ") {"));
      guarded_ = true;
    }
    const bool async = s_.method == kir::CopyMethod::kCpAsync && CanBeAsync(), branches = !async && !c_.copies_if.empty();
    if (branches) c_.Open(Cat("if (", c_.copies_if, ") {"));
    if (async) {
      if (!src_.Ragged(src_.At(nest_, ""))) walk_ = src_.StartWalk(nest_);
      Loops(0, [this] { AsyncCopy(); });
    } else if (src_.in_memory() && dst_.in_memory()) {
      Staged();
    } else {
      const int64_t size = CodeSize(c_, s_, nest_.vector, src_.vector(), dst_.vector());
      LimitUnrolling(c_, nest_, size / nest_.vector, {RegisterUseOf(c_, s_.src), RegisterUseOf(c_, s_.dst)});
      OpenLoops(c_, nest_, 0, nest_.loops.size());
      DeclareCoordinates(c_, nest_, s_.layout);
      Move();
      CloseLoops(c_, nest_.loops.size());
    }
    if (branches) c_.Close();
    if (guarded_) c_.Close();
    c_.Close();
  }

 private:
  static Nest MakeNest(EmitContext& c, const kir::Copy& copy) {
    const size_t rank = copy.layout.dims.size();
    std::vector<std::string> names;
    for (size_t d = 0; d < rank; ++d) names.push_back(d + 1 == rank ? "col" : d + 2 == rank ? "row" : "outer");
    int64_t vector = copy.width;
    if (copy.method == kir::CopyMethod::kRegister) vector = RegisterVector(c, copy);
    // Registers are written for valid points only: no vector may reach into the padding.
    const bool cut =
        rank > 0 && copy.layout.dims.back().extent % vector != 0 && c.buffer(copy.dst.buffer).space == kir::Space::kRegister;
    return OpenNest(c, copy.layout, names, !cut && HasVector(copy.layout, vector) ? vector : 1);
  }

  template <typename Body>
  void Loops(size_t first, Body body) {
    OpenLoops(c_, nest_, first, nest_.loops.size());
    const bool alone = first == nest_.loops.size();  // no loop has braces of its own
    if (alone) c_.Open("{");
    DeclareCoordinates(c_, nest_, s_.layout);
    body();
    if (alone) c_.Close();
    CloseLoops(c_, nest_.loops.size() - first);
  }

  // cp.async writes whole vectors.
  bool CanBeAsync() const {
    const int64_t bytes = nest_.vector * DTypeBytes(src_.buffer().dtype);
    const bool whole = s_.layout.dims.empty() || s_.layout.dims.back().extent % nest_.vector == 0;
    return bytes >= 4 && whole && !dst_.Ragged(dst_.At(nest_, ""));
  }

  // ---- bounds

  std::string Masks() const {
    std::string all;
    for (const std::string& mask : nest_.masks) all += Cat(all.empty() ? "" : " && ", mask);
    return all;
  }
  // Condition for an access of `side` at the point.
  CText Guard(const Side& side, absl::Span<const Coordinate> at) const {
    const CText mask{dst_.in_memory() ? Masks() : "", CText::kAnd};  // else they are around the whole move
    return And(mask, side.Inside(at));
  }
  // Elements of the vector that exist; empty when the guard alone decides.
  CText Count(const Side& side, absl::Span<const Coordinate> at) const {
    CText count{""};
    if (nest_.vector == 1) return count;
    const int64_t extent = s_.layout.dims.back().extent;
    if (side.Ragged(at)) count = side.Rest(at);
    if (extent % nest_.vector != 0) {
      const CText padding = CBinary(CNumber(extent), "-", CText::kSum, nest_.coordinates.back().whole);
      count = count.text.empty() ? padding : CText{Cat("clip(", count.text, ", ", padding.text, ")")};
    }
    return count;
  }
  // Guard and count as one number of elements.
  static std::string Number(const CText& guard, const CText& count, int64_t vector) {
    const std::string n = Cat("clip(", count.text, ", ", vector, ")");
    return guard.text.empty() ? n : Cat(guard.In(CText::kOr), " ? ", n, " : 0");
  }
  std::string Fill() const {
    const DType type = src_.buffer().dtype;
    if (s_.fill) return ConvertedValue(c_, s_.fill, type).text;
    return type == DType::kBool ? "false" : IsFloat(type) && type != DType::kFloat64 ? "0.0f" : "0";
  }
  std::string Template(const Side& side, int64_t count, bool constant) const {
    return Cat("<", side.type(), ", ", count, constant ? ", true>" : ">");
  }

  // ---- vectors

  // Loads the vector of the source into words at `to` (a pointer).
  void LoadVector(const std::string& to) {
    if (src_.vector() == 1) {
      const std::string e = c_.names.Fresh("e");
      c_.OpenUnrolled(e, 0, nest_.vector);
      c_.out.Line(Cat("place<", src_.type(), ">(", to, ", ", e, ", ", RawElement(src_.At(nest_, e)), ");"));
      c_.Close();
      return;
    }
    const std::vector<Coordinate> at = src_.At(nest_, "");
    const CText guard = Guard(src_, at), count = Count(src_, at);
    const std::string types = Template(src_, nest_.vector, src_.is_const()), places = Cat(to, ", ", src_.Pointer(at));
    if (!count.text.empty()) {
      c_.out.Line(Cat("load_first", types, "(", Number(guard, count, nest_.vector), ", ", places, ", ", Fill(), ");"));
    } else if (!guard.text.empty()) {
      c_.out.Line(Cat("load_if", types, "(", guard.text, ", ", places, ", ", Fill(), ");"));
    } else {
      c_.out.Line(Cat("load", types, "(", places, ");"));
    }
  }
  void StoreVector(const std::string& from) {
    if (dst_.vector() == 1) {
      const std::string e = c_.names.Fresh("e");
      c_.OpenUnrolled(e, 0, nest_.vector);
      StoreRaw(dst_.At(nest_, e), Cat("pick<", dst_.type(), ">(", from, ", ", e, ")"), e);
      c_.Close();
      return;
    }
    const std::vector<Coordinate> at = dst_.At(nest_, "");
    const CText guard = Guard(dst_, at), count = Count(dst_, at);
    const std::string types = Template(dst_, nest_.vector, false), places = Cat(dst_.Pointer(at), ", ", from);
    if (!count.text.empty()) {
      c_.out.Line(Cat("store_first", types, "(", Number(guard, count, nest_.vector), ", ", places, ");"));
    } else {
      c_.out.Line(Cat(guard.text.empty() ? "" : Cat("if (", guard.text, ") "), "store", types, "(", places, ");"));
    }
  }
  std::string Temporary(std::string_view wanted, DType type) {
    const std::string name = c_.names.Fresh(wanted);
    c_.out.Line(Cat(RegisterType(type), " ", name, "[", WordsOf(type, nest_.vector), "];"));
    return name;
  }
  // From the words at `from`, of the source's type, to the destination.
  void FinishVector(const std::string& from) {
    const bool same = src_.buffer().dtype == dst_.buffer().dtype;
    std::string converted = from;
    const bool direct = !dst_.in_memory() && dst_.vector() > 1;
    if (!same || direct) {
      if (!same || dst_.Pointer(dst_.At(nest_, "")) != from) {
        converted = direct ? dst_.Pointer(dst_.At(nest_, "")) : Temporary("out", dst_.buffer().dtype);
        c_.out.Line(Cat("convert<", dst_.type(), ", ", src_.type(), ", ", nest_.vector, ">(", converted, ", ", from, ");"));
      }
    }
    if (!direct) StoreVector(converted);
  }
  void MoveVector() {
    if (!src_.in_memory() && src_.vector() > 1) return FinishVector(src_.Pointer(src_.At(nest_, "")));
    // A load may go to where the values are wanted, unless it is of another type.
    const bool direct = !dst_.in_memory() && dst_.vector() > 1 && src_.buffer().dtype == dst_.buffer().dtype;
    const std::string to = direct ? dst_.Pointer(dst_.At(nest_, "")) : Temporary("in", src_.buffer().dtype);
    LoadVector(to);
    FinishVector(to);
  }

  // ---- single elements

  bool SameBits() const { return src_.buffer().dtype == dst_.buffer().dtype && !src_.is_scalar() && !dst_.is_scalar(); }
  // Loads of elements that `guard` stands before need no branch.
  bool IsPredicated(const CText& guard) const { return !guard.text.empty() && src_.is_const() && !s_.fill; }
  std::string PredicatedLoad(const CText& guard, absl::Span<const Coordinate> at) const {
    return Cat("load_or_zero(", guard.text, ", ", src_.Pointer(at), ")");
  }
  // The source element in its memory type; `fill` where it is outside.
  std::string RawElement(absl::Span<const Coordinate> at) const {
    const std::string type = src_.type();
    if (!src_.in_memory()) return src_.Read("pick", at);
    const CText guard = Guard(src_, at);
    if (guard.text.empty()) return src_.Element(at);
    if (IsPredicated(guard)) return PredicatedLoad(guard, at);
    return Cat(guard.In(CText::kOr), " ? ", src_.Element(at), " : ",
               s_.fill ? Cat("make<", type, ">(", Fill(), ")") : Cat(type, "{}"));
  }
  void StoreRaw(absl::Span<const Coordinate> at, const std::string& raw, const std::string& e = "") {
    if (!dst_.in_memory()) return c_.out.Line(dst_.Write("place", at, raw));
    CText guard = Guard(dst_, at);
    const int64_t extent = e.empty() ? 0 : s_.layout.dims.back().extent;
    if (!e.empty() && extent % nest_.vector != 0)
      guard = And(guard, {Cat(nest_.coordinates.back().whole.In(CText::kSum), " + ", e, " < ", extent), CText::kRelation});
    c_.out.Line(Cat(guard.text.empty() ? "" : Cat("if (", guard.text, ") "), dst_.Element(at), " = ", raw, ";"));
  }
  std::string SourceValue(absl::Span<const Coordinate> at) const {
    if (src_.is_scalar()) return src_.name();
    if (!src_.in_memory()) return src_.Read("get", at);
    const CText guard = Guard(src_, at);
    const bool is_predicated = IsPredicated(guard);
    const std::string loaded = is_predicated ? PredicatedLoad(guard, at) : src_.Element(at);
    const std::string element = PerWord(src_.buffer().dtype) == 1 ? loaded : Cat("value(", loaded, ")");
    return guard.text.empty() || is_predicated ? element : Cat(guard.In(CText::kOr), " ? ", element, " : ", Fill());
  }
  void StoreValue(absl::Span<const Coordinate> at, const std::string& source_value) {
    const DType from = src_.buffer().dtype, to = dst_.buffer().dtype;
    const std::string value = SameValue(from, to) ? source_value : Cat("cast<", dst_.type(), ">(", source_value, ")");
    if (dst_.is_scalar()) {
      c_.out.Line(Cat(dst_.name(), " = ", IsNarrowFloat(to) ? Cat("rounded<", dst_.type(), ">(", value, ")") : value, ";"));
    } else if (!dst_.in_memory()) {
      c_.out.Line(dst_.Write("set", at, value));
    } else {
      const CText guard = Guard(dst_, at);
      c_.out.Line(
          Cat(guard.text.empty() ? "" : Cat("if (", guard.text, ") "),
              PerWord(to) == 1 ? Cat(dst_.Element(at), " = ", value, ";") : Cat("put(", dst_.Element(at), ", ", value, ");")));
    }
  }
  void MoveElement() {
    const std::vector<Coordinate> from = src_.At(nest_, ""), to = dst_.At(nest_, "");
    SameBits() ? StoreRaw(to, RawElement(from)) : StoreValue(to, SourceValue(from));
  }
  void Move() {
    const std::string masks = dst_.in_memory() ? "" : Masks();
    if (!masks.empty()) c_.Open(Cat("if (", masks, ") {"));
    nest_.vector > 1 ? MoveVector() : MoveElement();
    if (!masks.empty()) c_.Close();
  }

  // ---- memory to memory: loads first, so that they overlap, then stores

  void Staged() {
    const DType type = src_.buffer().dtype;
    const int64_t words = nest_.vector > 1 ? WordsOf(type, nest_.vector) : 1;
    const bool is_predicated = nest_.vector == 1 && IsPredicated(Guard(src_, src_.At(nest_, "")));
    const int64_t most = is_predicated ? kStagedElements : kStagedAccesses;
    size_t split = nest_.loops.size();
    int64_t count = 1;
    while (split > 0 && count < most) {
      int64_t part = std::min(nest_.loops[split - 1].size, most / count);
      while (nest_.loops[split - 1].size % part != 0) --part;
      if (part == 1) break;
      if (part < nest_.loops[split - 1].size) SplitLoop(c_, nest_, split++ - 1, part);
      count *= part;
      --split;
    }
    // Loops around the staging index no registers: unrolled, they would only keep addresses alive.
    for (size_t i = 0; i < split; ++i) KeepLoop(nest_, i, {});
    OpenLoops(c_, nest_, 0, split);
    const std::string staged = c_.names.Fresh("staged");
    std::vector<CText> index;
    for (size_t i = nest_.loops.size(), weight = 1; i-- > split;) {
      index.push_back(CScaled({nest_.loops[i].var}, static_cast<int64_t>(weight)));
      weight *= static_cast<size_t>(nest_.loops[i].size);
    }
    std::reverse(index.begin(), index.end());
    const std::string at = Cat(staged, "[", CSum(index).text, "]");
    if (nest_.vector > 1) {
      c_.out.Line(Cat(RegisterType(type), " ", staged, "[", count, "][", words, "];"));
      Loops(split, [&] { LoadVector(at); });
      Loops(split, [&] { FinishVector(at); });
    } else {
      c_.out.Line(Cat(SameBits() ? MemoryType(type) : ValueType(type), " ", staged, "[", count, "];"));
      Loops(split, [&] {
        const std::vector<Coordinate> from = src_.At(nest_, "");
        c_.out.Line(Cat(at, " = ", SameBits() ? RawElement(from) : SourceValue(from), ";"));
      });
      Loops(split, [&] {
        const std::vector<Coordinate> to = dst_.At(nest_, "");
        SameBits() ? StoreRaw(to, at) : StoreValue(to, at);
      });
    }
    CloseLoops(c_, split);
  }

  void AsyncCopy() {
    const int64_t bytes = nest_.vector * DTypeBytes(src_.buffer().dtype);
    const std::vector<Coordinate> from = src_.At(nest_, ""), to = dst_.At(nest_, "");
    const CText guard = walk_ ? walk_->Inside() : src_.Inside(from), count = Count(src_, from);
    std::string size;
    if (!count.text.empty()) {
      size = Cat(", (", Number(guard, count, nest_.vector), ") * ", DTypeBytes(src_.buffer().dtype));
    } else if (!guard.text.empty()) {
      size = Cat(", ", guard.In(CText::kOr), " ? ", bytes, " : 0");
    }
    const CText writes = Guard(dst_, to);
    const std::string function = c_.copies_if.empty() ? Cat("cp_async<", bytes, ">(") : Cat("cp_async_if<", bytes, ">(", c_.copies_if, ", ");
    c_.out.Line(Cat(writes.text.empty() ? "" : Cat("if (", writes.text, ") "), function, "smem_base + ",
                    dst_.SharedOffsetOf(to).In(CText::kSum), ", ", walk_ ? walk_->Pointer() : src_.LoopPointer(from), size, ");"));
  }

  EmitContext& c_;
  const kir::Copy& s_;
  Nest nest_;
  Side src_, dst_;
  std::optional<Walk> walk_;  // of the source of an asynchronous copy
  bool guarded_ = false;
};

}  // namespace

void Emit(EmitContext& c, const kir::Copy& copy) {
  switch (copy.method) {
    case kir::CopyMethod::kLdmatrix:
    case kir::CopyMethod::kLdmatrixTrans:
    case kir::CopyMethod::kStmatrix: return EmitMatrices(c, copy);
    default: return Copier(c, copy).Emit();
  }
}

}  // namespace tilert
