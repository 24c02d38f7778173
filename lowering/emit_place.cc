// Where an element is: coordinates as sums of digits, register indices, offsets in global and shared memory, bounds.
#include "lowering/emit_place.h"

#include <algorithm>
#include <bit>

#include "ir/status_util.h"

namespace tilert {
namespace {

constexpr int64_t kChunk = 16;  // bytes that a swizzle moves as one

// Smallest non-zero value of the term divides all its values; its greatest value.
int64_t Grain(const Term& t) { return t.scale * t.align; }
int64_t Greatest(const Term& t) { return t.scale * t.hi; }
CText ValueOf(const Term& t) { return CScaled(t.text, t.scale); }

// Sorted by grain, each term greater than all smaller ones together: no sum of terms carries from one into another.
bool Separable(std::vector<Term>& terms) {
  std::stable_sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return Grain(a) < Grain(b); });
  int64_t below = 0;
  for (const Term& t : terms) {
    if (below >= Grain(t)) return false;
    below += Greatest(t);
  }
  return true;
}

// The terms of a separable sum have no bits in common, so that their sum is also their exclusive or.
bool BitsDisjoint(const std::vector<Term>& terms) {
  int64_t below = 0;
  for (const Term& t : terms) {
    if (below >= (Grain(t) & -Grain(t))) return false;
    below += Greatest(t);
  }
  return true;
}

// (value of the term / weight) % size, as part of a separable sum. False when a boundary falls within the term's grain.
bool TermDigit(const Term& t, int64_t weight, int64_t size, std::vector<CText>* parts) {
  const int64_t grain = Grain(t), greatest = Greatest(t);
  if (greatest < weight) return true;  // all of it is below
  if (grain < weight ? weight % grain != 0 : grain % weight != 0) return false;
  const int64_t unit = std::max(grain / weight, int64_t{1});
  if (size <= unit) return unit % size == 0;  // all of it is above
  if (size % unit != 0) return false;
  CText digit;
  if (t.scale % weight == 0) {
    digit = CScaled(t.text, t.scale / weight);
  } else if (weight % t.scale == 0) {
    digit = CDivided(t.text, weight / t.scale);
  } else {
    digit = CDivided(ValueOf(t), weight);
  }
  if (greatest / weight >= size) digit = CModulo(digit, size);
  parts->push_back(digit);
  return true;
}

CText PlainDigit(const Coordinate& coordinate, int64_t weight, int64_t size) {
  return CModulo(CDivided(coordinate.whole, weight), size);
}

// The part of a term's values below and from `cut` (a power of two) on, as terms.
bool SplitTerm(const Term& t, int64_t cut, std::vector<Term>* low, std::vector<Term>* high) {
  if (Greatest(t) < cut) {
    low->push_back(t);
    return true;
  }
  if (Grain(t) % cut == 0) {
    high->push_back(t);
    return true;
  }
  std::vector<CText> low_text, high_text;
  if (cut % Grain(t) != 0 || !TermDigit(t, 1, cut, &low_text) || !TermDigit(t, cut, Greatest(t) + 1, &high_text)) return false;
  Term below = t, above = t;
  below.text = CSum(low_text);
  below.scale = 1;
  below.hi = cut - 1;
  below.align = Grain(t);
  above.text = CSum(high_text);
  above.scale = cut;
  above.hi = Greatest(t) / cut;
  above.align = 1;
  low->push_back(below);
  high->push_back(above);
  return true;
}

CText Joined(const std::vector<Term>& terms, bool thread, int64_t factor) {
  std::vector<CText> parts;
  for (Term t : terms) {
    if (t.thread != thread) continue;
    t.scale *= factor;
    parts.push_back(ValueOf(t));
  }
  return CSum(parts);
}

void Append(std::vector<Term>* to, const std::vector<Term>& terms, int64_t factor) {
  for (Term t : terms) {
    t.scale *= factor;
    to->push_back(t);
  }
}

// Swizzle of a row whose low bits are those of its thread part: rows in all other terms come in multiples of eight.
CText ChunkFlip(int64_t panel, const CText& row) {
  if (panel == 128) return CModulo(row, 8);
  return CModulo(CDivided(row, panel == 64 ? 2 : 4), panel == 64 ? 4 : 2);
}

// Nothing on the way to the value of `e` is larger than it.
bool Grows(const EmitContext& c, Expr e) {
  const ExprNode& node = c.node(e);
  if (node.op == ExprOp::kMul || node.op == ExprOp::kAdd) return Grows(c, node.args[0]) && Grows(c, node.args[1]);
  const Range range = c.ranges.Of(e);
  return range.lo >= 0 && range.FitsInt();
}

// Where loops that are kept begin.
std::vector<Coordinate> FirstTurns(absl::Span<const Coordinate> coordinates) {
  std::vector<Coordinate> first(coordinates.begin(), coordinates.end());
  for (Coordinate& coordinate : first) {
    if (std::erase_if(coordinate.terms, [](const Term& t) { return t.kept; }) == 0) continue;
    std::vector<CText> sum;
    for (const Term& t : coordinate.terms) sum.push_back(ValueOf(t));
    coordinate.whole = CSum(sum);
  }
  return first;
}

CText Xor(const CText& a, const CText& b) {
  if (b.text == "0") return a;
  if (a.text == "0") return b;
  return CBinary(a, "^", CText::kBitXor, b);
}

}  // namespace

Coordinate ConstantCoordinate(int64_t value) {
  Coordinate c;
  c.whole = CNumber(value);
  c.range = ConstantRange(value);
  c.known = value >= 0;
  if (value > 0) c.terms.push_back({CNumber(value / c.range.align), c.range.align, value / c.range.align, 1, false, true});
  return c;
}

Coordinate AddCoordinates(const Coordinate& a, const Coordinate& b) {
  Coordinate sum;
  sum.terms = a.terms;
  sum.terms.insert(sum.terms.end(), b.terms.begin(), b.terms.end());
  sum.range = Sum(a.range, b.range);
  sum.whole = CSum({a.whole, b.whole});
  // What may leave 64 bits wraps there, and the compiler is to know it.
  if (sum.range.lo == INT64_MIN && sum.range.hi == INT64_MAX)
    sum.whole = {Cat("wrap_add((i64)", a.whole.In(CText::kUnary), ", (i64)", b.whole.In(CText::kUnary), ")")};
  sum.known = a.known && b.known;
  return sum;
}

Coordinate EmitCoordinate(EmitContext& c, Expr e) {
  const ExprNode& node = c.node(e);
  if (node.op == ExprOp::kIntImm) return ConstantCoordinate(node.i);
  if (node.op == ExprOp::kVar && c.vars[node.i].has_coordinate) return c.vars[node.i].coordinate;
  if (node.op == ExprOp::kAdd) return AddCoordinates(EmitCoordinate(c, node.args[0]), EmitCoordinate(c, node.args[1]));
  Coordinate result;
  result.whole = EmitExpr(c, e);
  result.range = c.ranges.Of(e);
  result.known = result.range.lo >= 0 && result.range.hi <= INT32_MAX;
  bool fixed = true, thread = false;
  ForEachNode(c.kernel.exprs, e, [&](Expr, const ExprNode& n) {
    fixed &=
        n.op != ExprOp::kLoad && n.op != ExprOp::kDim && n.op != ExprOp::kScalar && (n.op != ExprOp::kVar || c.vars[n.i].fixed);
    thread |= n.op == ExprOp::kLoad || (n.op == ExprOp::kVar && (c.vars[n.i].has_coordinate || c.vars[n.i].thread));
  });
  result.terms.push_back({result.whole, 1, std::max<int64_t>(result.range.hi, 0), result.range.align, thread, fixed});
  // A multiple of a variable: the factor is the term's scale.
  int64_t factor = 0;
  if (node.op == ExprOp::kMul && c.kernel.exprs.AsInt(node.args[1], &factor) && factor > 0 && result.known) {
    Coordinate base = EmitCoordinate(c, node.args[0]);
    if (base.known) {
      for (Term& t : base.terms) t.scale *= factor;
      result.terms = base.terms;
    }
  }
  return result;
}

bool MayChange(const EmitContext& c, Expr e) {
  bool changes = false;
  ForEachNode(c.kernel.exprs, e, [&](Expr, const ExprNode& node) {
    if (node.op != ExprOp::kLoad) return;
    const kir::Buffer& buffer = c.buffer(static_cast<BufferId>(node.i));
    changes |= buffer.space == kir::Space::kShared || (buffer.space == kir::Space::kGlobal && buffer.written);
  });
  return changes;
}

Coordinate Named(Coordinate coordinate, const std::string& name) {
  coordinate.whole = {name};
  coordinate.terms = {{{name}, 1, std::max<int64_t>(coordinate.range.hi, 0), coordinate.range.align, true, false}};
  return coordinate;
}

Coordinate ReadOnce(EmitContext& c, Expr e) {
  const Coordinate coordinate = EmitCoordinate(c, e);
  if (!MayChange(c, e)) return coordinate;
  const std::string name = c.names.Fresh("at");
  c.out.Line(Cat("const ", IsWide(c, e) ? "i64 " : "int ", name, " = ", coordinate.whole.text, ";"));
  return Named(coordinate, name);
}

CText Digit(const Coordinate& coordinate, int64_t weight, int64_t size) {
  std::vector<Term> terms = coordinate.terms;
  if (!coordinate.known || !Separable(terms)) return PlainDigit(coordinate, weight, size);
  std::vector<CText> parts;
  for (const Term& t : terms) {
    if (!TermDigit(t, weight, size, &parts)) return PlainDigit(coordinate, weight, size);
  }
  return CSum(parts);
}

CText RegisterIndex(const FragmentLayout& layout, absl::Span<const Coordinate> all_coordinates) {
  const std::vector<Coordinate> coordinates = FirstTurns(all_coordinates);
  std::vector<CText> parts;
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    int64_t weight = 1;
    for (const Factor& f : layout.dims[d].factors) {
      if (f.owner == Owner::kReg && f.size > 1) parts.push_back(CScaled(Digit(coordinates[d], weight, f.size), f.stride));
      weight *= f.size;
    }
  }
  return CSum(parts);
}

CText WordIndex(const FragmentLayout& layout, absl::Span<const Coordinate> all_coordinates, int per_word) {
  if (per_word == 1) return RegisterIndex(layout, all_coordinates);
  const std::vector<Coordinate> coordinates = FirstTurns(all_coordinates);
  std::vector<CText> parts;
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    int64_t weight = 1;
    for (const Factor& f : layout.dims[d].factors) {
      if (f.owner == Owner::kReg && f.size > 1) {
        // The part of the digit that counts words.
        const int64_t within = f.stride >= per_word ? 1 : per_word / f.stride;
        if (f.stride % per_word != 0 && (per_word % f.stride != 0 || f.size % within != 0))
          return CDivided(RegisterIndex(layout, coordinates), per_word);
        if (f.size > within) {
          parts.push_back(
              CScaled(Digit(coordinates[d], weight * within, f.size / within), std::max<int64_t>(f.stride / per_word, 1)));
        }
      }
      weight *= f.size;
    }
  }
  return CSum(parts);
}

CText GlobalOffset(EmitContext& c, const kir::Buffer& buffer, absl::Span<const Coordinate> coordinates) {
  std::vector<CText> parts;
  for (size_t d = 0; d < coordinates.size(); ++d) {
    const CText& at = coordinates[d].whole;
    if (at.text == "0") continue;
    int64_t constant = 0;
    if (c.kernel.exprs.AsInt(buffer.strides[d], &constant) && constant == 1) {
      parts.push_back(at);
      continue;
    }
    c.narrow = c.kernel.index32 && Grows(c, buffer.strides[d]);  // it is known to fit an int
    const CText stride = EmitExpr(c, buffer.strides[d]);
    const bool wide = !c.kernel.index32 && coordinates[d].range.FitsInt() && !IsWide(c, buffer.strides[d]);
    parts.push_back(CBinary(wide ? CText{Cat("(i64)", at.In(CText::kUnary)), CText::kUnary} : at, "*", CText::kProduct, stride));
    c.narrow = false;
  }
  return CSum(parts);
}

CText SharedOffset::Whole() const { return CSum({Xor(thread, flip), rest}); }

SharedOffset SharedByteOffset(const kir::Buffer& buffer, const CText& version, absl::Span<const Coordinate> coordinates) {
  const SharedLayout& layout = buffer.shared;
  const int64_t bytes = layout.element_bytes, rows = layout.rows();
  std::vector<CText> base = {CNumber(buffer.offset)};
  if (version.text != "0") base.push_back(CScaled(version, layout.version_bytes()));
  // Rows: all leading dimensions; the column in bytes, cut into panels.
  std::vector<Term> row, column, low, high;
  std::vector<CText> row_whole;
  bool known = true;
  int64_t factor = rows;
  for (size_t d = 0; d + 1 < coordinates.size(); ++d) {
    factor /= layout.extents[d];
    Append(&row, coordinates[d].terms, factor);
    row_whole.push_back(CScaled(coordinates[d].whole, factor));
    known &= coordinates[d].known;
  }
  const Coordinate zero = ConstantCoordinate(0);
  const Coordinate& last = coordinates.empty() ? zero : coordinates.back();
  Append(&column, last.terms, bytes);
  known &= last.known;
  const bool one_panel = layout.panel >= (layout.extents.empty() ? 1 : layout.extents.back()) * bytes;
  if (one_panel && !layout.swizzled) {
    base.push_back(known ? Joined(row, false, layout.pitch) : CScaled(CSum(row_whole), layout.pitch));
    base.push_back(known ? Joined(column, false, 1) : CScaled(last.whole, bytes));
    if (!known) return {CText{"0"}, CText{"0"}, CSum(base)};
    return {CSum({Joined(row, true, layout.pitch), Joined(column, true, 1)}), CText{"0"}, CSum(base)};
  }
  bool split = known && !layout.folded && (!layout.swizzled ||
                         std::all_of(row.begin(), row.end(), [](const Term& t) { return t.thread || Grain(t) % 8 == 0; }));
  split = split && std::has_single_bit(static_cast<uint64_t>(layout.panel)) && Separable(column);
  for (const Term& t : column) split = split && SplitTerm(t, layout.panel, &low, &high);
  split = split && (!layout.swizzled || BitsDisjoint(low));
  // The swizzle flips bits of whole chunks: what of the column does not depend on the thread is flipped in afterwards.
  if (!split) {
    const std::string function = layout.folded ? "folded" : layout.swizzled ? Cat("swizzled<", layout.panel, ">") : "paneled";
    std::vector<std::string> args = {CSum(row_whole).text, CScaled(last.whole, bytes).text, Cat(rows)};
    if (!layout.swizzled) args.insert(args.end(), {Cat(layout.panel), Cat(layout.pitch)});
    std::string call = Cat(function, "(", args[0], ", ", args[1], ", ", args[2]);
    if (!layout.swizzled) absl::StrAppend(&call, ", ", args[3], ", ", args[4]);
    base.push_back({Cat(call, ")")});
    return {CText{"0"}, CText{"0"}, CSum(base)};
  }
  const int64_t panel_bytes = rows * layout.pitch / layout.panel;  // from one panel to the next, by byte of column
  CText in_panel = Joined(low, true, 1);
  CText flip = {"0"};
  if (layout.swizzled) {
    const CText chunk = ChunkFlip(layout.panel, Joined(row, true, 1));
    in_panel = Xor(CScaled(chunk, kChunk), in_panel);
    flip = Joined(low, false, 1);
  } else {
    base.push_back(Joined(low, false, 1));
  }
  base.push_back(Joined(row, false, layout.pitch));
  base.push_back(Joined(high, false, panel_bytes));
  return {CSum({Joined(row, true, layout.pitch), Joined(high, true, panel_bytes), in_panel}), flip, CSum(base)};
}

CText InsideDim(EmitContext& c, const kir::Buffer& buffer, size_t d, const Coordinate& coordinate, Expr e) {
  const Range& range = coordinate.range;
  if (c.ranges.ProveInside(buffer, d, range, e)) return {""};
  CText extent;
  Range extent_range;
  if (buffer.space == kir::Space::kGlobal) {
    extent = EmitExpr(c, buffer.shape[d]);
    extent_range = c.ranges.Of(buffer.shape[d]);
  } else {
    const int64_t value = buffer.space == kir::Space::kShared ? buffer.shared.extents[d] : buffer.layout.dims[d].extent;
    extent = CNumber(value);
    extent_range = ConstantRange(value);
  }
  const CText& at = coordinate.whole;
  if (range.lo >= 0) return CBinary(at, "<", CText::kRelation, extent);
  const std::string_view type = range.FitsInt() && extent_range.FitsInt() ? "(u32)" : "(u64)";
  return {Cat(type, at.In(CText::kUnary), " < ", type, extent.In(CText::kUnary)), CText::kRelation};
}

CText And(const CText& a, const CText& b) {
  if (a.text.empty()) return b;
  return b.text.empty() ? a : CBinary(a, "&", CText::kBitAnd, b);
}

CText InsideCondition(EmitContext& c, const kir::Buffer& buffer, absl::Span<const Coordinate> coordinates,
                      absl::Span<const Expr> e) {
  CText all{""};
  for (size_t d = 0; d < coordinates.size(); ++d) all = And(all, InsideDim(c, buffer, d, coordinates[d], e[d]));
  return all;
}

CText SharedPointer(DType type, const CText& offset) {
  return {Cat("(", std::string(MemoryType(type)), "*)(smem + ", offset.In(CText::kSum), ")"), CText::kUnary};
}

CText ElementAt(DType, const CText& pointer, const CText& offset) {
  return {Cat(pointer.In(CText::kPrimary), "[", offset.text, "]")};
}

namespace {

// The first warp of the role that loads by TMA; 0: there are no roles.
int FirstToLoad(const kir::Block& body) {
  int first = 0;
  for (const kir::Stmt& stmt : body) {
    auto* roles = std::get_if<kir::Roles>(&stmt.op);
    if (roles == nullptr) continue;
    for (const kir::Role& role : roles->roles) {
      if (AnyStmt(role.body, [](const kir::StmtOp& op) { return std::holds_alternative<kir::TmaLoad>(op); })) return first;
      first += role.warps * role.instances;
    }
  }
  return 0;
}

}  // namespace

// The warps that load find out what L2 is to keep while the first warp sets up the barriers.
void EmitPolicies(EmitContext& c) {
  const int first = FirstToLoad(c.kernel.body);
  for (size_t i = 0; i < c.kernel.buffers.size(); ++i) {
    const kir::Buffer& buffer = c.kernel.buffers[i];
    CText policy{"kEvictNormal"};
    const auto prefer = [&](Expr when, const char* name) {
      if (!when || c.kernel.exprs.IsInt(when, 0)) return;
      const bool always = c.kernel.exprs.IsInt(when, 1);
      policy = always ? CText{name} : CText{Cat(EmitExpr(c, when).In(CText::kOr), " ? ", name, " : ", policy.In(CText::kConditional)), CText::kConditional};
    };
    prefer(buffer.evict_last, "kEvictLast");
    prefer(buffer.evict_first, "kEvictFirst");
    if (policy.text == "kEvictNormal") continue;
    c.policies[i] = c.names.Fresh(Cat(buffer.name, "_policy"));
    const std::string others = first > 0 && policy.precedence == CText::kConditional ? Cat("block_warp < ", first, " ? kEvictNormal : ") : "";
    c.out.Optional(c.policies[i], Cat("const u64 ", c.policies[i], " = ", others, policy.text, ";"));
  }
}

}  // namespace tilert
