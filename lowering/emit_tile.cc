// Element loops and reductions over the registers of a layout.
#include <algorithm>
#include <functional>

#include "ir/status_util.h"
#include "lowering/affine.h"
#include "lowering/emit_unroll.h"

namespace tilert {
namespace {

bool LoadsBuffer(const EmitContext& c, const kir::Stmt& stmt, BufferId buffer) {
  bool found = false;
  kir::ForEachExpr(stmt, [&](Expr e) {
    ForEachNode(c.kernel.exprs, e, [&](Expr, const ExprNode& node) {
      found |= node.op == ExprOp::kLoad && static_cast<BufferId>(node.i) == buffer;
    });
  });
  for (const kir::Block* block : kir::ChildBlocks(stmt)) {
    for (const kir::Stmt& child : *block) found = found || LoadsBuffer(c, child, buffer);
  }
  return found;
}

int CountStores(const kir::Block& block, BufferId buffer) {
  int count = 0;
  for (const kir::Stmt& stmt : block) {
    if (auto* store = std::get_if<kir::Store>(&stmt.op)) count += store->buffer == buffer;
    for (const kir::Block* child : kir::ChildBlocks(stmt)) count += CountStores(*child, buffer);
  }
  return count;
}

// Register buffers of 16-bit elements whose stores in `loop` may be gathered and packed two by two: written once, in every point,
// at the point's own coordinates, and not read afterwards.
std::vector<BufferId> PackedTargets(const EmitContext& c, const kir::Elementwise& loop) {
  std::vector<BufferId> targets;
  if (!HasVector(loop.layout, 2)) return targets;
  for (const LayoutDim& dim : loop.layout.dims) {
    if (dim.padded() != dim.extent) return targets;
  }
  for (size_t i = 0; i < loop.body.size(); ++i) {
    auto* store = std::get_if<kir::Store>(&loop.body[i].op);
    if (store == nullptr) continue;
    const kir::Buffer& buffer = c.buffer(store->buffer);
    if (buffer.space != kir::Space::kRegister || PerWord(buffer.dtype) != 2 || !HasVector(buffer.layout, 2)) continue;
    bool own = store->indices.size() == loop.vars.size();
    for (size_t d = 0; own && d < loop.vars.size(); ++d) {
      const ExprNode& node = c.node(store->indices[d]);
      own = node.op == ExprOp::kVar && static_cast<VarId>(node.i) == loop.vars[d];
    }
    own = own && CountStores(loop.body, store->buffer) == 1;
    for (size_t j = i + 1; own && j < loop.body.size(); ++j) own = !LoadsBuffer(c, loop.body[j], store->buffer);
    if (own) targets.push_back(store->buffer);
  }
  return targets;
}

// The loop's one statement, if it adds float32 values to rows of global memory, of which two neighbours can go together: they lie
// side by side in registers and in memory, on a multiple of 8 bytes, and are both inside. (PTX ISA, "red" with .vec_32_bit.)
const kir::Atomic* PairedSum(const EmitContext& c, const kir::Elementwise& loop) {
  constexpr int kFirstWithPairs = 90;
  const auto* sum = loop.body.size() == 1 ? std::get_if<kir::Atomic>(&loop.body[0].op) : nullptr;
  if (sum == nullptr || c.target.sm < kFirstWithPairs) return nullptr;
  if (sum->op != AtomicOp::kAdd || sum->order != MemoryOrder::kRelaxed || sum->prev != kNoId) return nullptr;
  const kir::Buffer& buffer = c.buffer(sum->buffer);
  if (buffer.space != kir::Space::kGlobal || buffer.dtype != DType::kFloat32 || buffer.alignment < 8) return nullptr;
  if (!HasVector(loop.layout, 2) || sum->scope == MemoryScope::kSystem) return nullptr;
  for (const LayoutDim& dim : loop.layout.dims) {
    if (dim.padded() != dim.extent) return nullptr;
  }
  int64_t columns = 0;
  const size_t last = sum->indices.size() - 1;
  const auto is_column = [&](Expr e) { return c.node(e).op == ExprOp::kVar && static_cast<VarId>(c.node(e).i) == loop.vars.back(); };
  if (!is_column(sum->indices[last]) || !c.kernel.exprs.AsInt(buffer.shape[last], &columns) || columns < loop.layout.dims.back().extent) return nullptr;
  for (size_t d = 0; d < last; ++d) {
    bool by_column = false;
    ForEachNode(c.kernel.exprs, sum->indices[d], [&](Expr e, const ExprNode&) { by_column |= is_column(e); });
    if (by_column || c.ranges.Of(buffer.strides[d]).align % 2 != 0) return nullptr;
  }
  return c.kernel.exprs.IsInt(buffer.strides[last], 1) ? sum : nullptr;
}

void BindVars(EmitContext& c, const kir::Elementwise& loop, const Nest& nest) {
  for (size_t d = 0; d < loop.vars.size(); ++d) {
    VarText& var = c.vars[loop.vars[d]];
    var.name = nest.coordinates[d].whole.text;
    var.wide = var.fixed = false;
    var.coordinate = nest.coordinates[d];
    var.has_coordinate = true;
    c.ranges.Bind(loop.vars[d], nest.coordinates[d].range);
  }
}

void EmitPoint(EmitContext& c, const kir::Elementwise& loop, Nest& nest) {
  DeclareCoordinates(c, nest, loop.layout);
  BindVars(c, loop, nest);
  std::string mask;
  for (const std::string& cond : nest.masks) mask += Cat(mask.empty() ? "" : " && ", cond);
  if (!mask.empty()) c.Open(Cat("if (", mask, ") {"));
  EmitBlock(c, loop.body);
  if (!mask.empty()) c.Close();
}

// The point loop over pairs: values are gathered, then packed by one conversion each.
void EmitPairs(EmitContext& c, const kir::Elementwise& loop, Nest& nest, const std::vector<BufferId>& targets) {
  const std::string element = c.names.Fresh("e");
  std::vector<std::string> pairs;
  for (BufferId id : targets) {
    pairs.push_back(c.names.Fresh(Cat(c.kernel.buffers[id].name, "_pair")));
    c.out.Line(Cat(ValueType(c.buffer(id).dtype), " ", pairs.back(), "[2];"));
    c.deferred[id] = Cat(pairs.back(), "[", element, "]");
  }
  Nest point = nest;
  point.coordinates.back().terms.push_back({CText{element}, 1, 1, 1, false, true});
  point.coordinates.back().range.align = 1;
  c.OpenUnrolled(element, 0, 2);
  EmitPoint(c, loop, point);
  c.Close();
  c.deferred.clear();
  for (size_t i = 0; i < targets.size(); ++i) {
    const kir::Buffer& buffer = c.buffer(targets[i]);
    c.out.Line(Cat(c.buffers[targets[i]], "[", WordIndex(buffer.layout, nest.coordinates, 2).text, "] = pair<",
                   MemoryType(buffer.dtype), ">(", pairs[i], "[0], ", pairs[i], "[1]);"));
  }
}

// The point loop over pairs: two values are gathered, then added by one instruction.
void EmitSums(EmitContext& c, const kir::Elementwise& loop, Nest& nest, const kir::Atomic& sum) {
  const std::string element = c.names.Fresh("e"), pair = c.names.Fresh("pair");
  c.out.Line(Cat("float ", pair, "[2];"));
  Nest point = nest;
  point.coordinates.back().terms.push_back({CText{element}, 1, 1, 1, false, true});
  point.coordinates.back().range.align = 1;
  c.OpenUnrolled(element, 0, 2);
  DeclareCoordinates(c, point, loop.layout);
  BindVars(c, loop, point);
  c.out.Line(Cat(pair, "[", element, "] = ", ConvertedValue(c, sum.value, DType::kFloat32).text, ";"));
  c.Close();
  DeclareCoordinates(c, nest, loop.layout);
  BindVars(c, loop, nest);
  EmitPairSum(c, sum, pair);
}

// Rows of which few have something to do: the body is one `if` whose condition is the same for all points of a row, as some dimension's
// variable is not in it, and reads nothing but registers, which the body leaves alone.
const kir::If* RowGuard(const EmitContext& c, const kir::Elementwise& loop) {
  const auto* guard = loop.body.size() == 1 ? std::get_if<kir::If>(&loop.body[0].op) : nullptr;
  if (guard == nullptr || !guard->else_body.empty()) return nullptr;
  bool in_registers = true;
  ForEachNode(c.kernel.exprs, guard->cond, [&](Expr, const ExprNode& node) {
    if (node.op != ExprOp::kLoad) return;
    const auto buffer = static_cast<BufferId>(node.i);
    in_registers &= c.buffer(buffer).space == kir::Space::kRegister && CountStores(guard->then_body, buffer) == 0;
  });
  return in_registers ? guard : nullptr;
}

// Opens a branch that is taken by threads with a point for which `guard` holds; none where that costs as much as asking at each point.
bool OpenRowGuard(EmitContext& c, const kir::Elementwise& loop, const Nest& nest, const kir::If& guard) {
  std::vector<Nest::Loop> rows;
  int64_t points_of_row = 1;
  for (const Nest::Loop& l : nest.loops) {
    if (UsesAny(c.kernel.exprs, guard.cond, {loop.vars[l.dim]})) {
      rows.push_back(l);
    } else {
      points_of_row *= l.size;
    }
  }
  constexpr int64_t kFewestPoints = 8;  // fewer are as quickly predicated
  if (points_of_row < kFewestPoints) return false;
  const std::string any = c.names.Fresh("any");
  c.out.Line(Cat("bool ", any, " = false;"));
  for (const Nest::Loop& l : rows) c.OpenUnrolled(l.var, 0, l.size);
  Nest row = nest;
  DeclareCoordinates(c, row, loop.layout);
  BindVars(c, loop, row);
  c.out.Line(Cat(any, " |= ", EmitExpr(c, guard.cond).text, ";"));
  CloseLoops(c, rows.size());
  c.Open(Cat("if (", any, ") {"));
  return true;
}

// ---- reductions

std::string Combined(ReduceOp op, DType type, const std::string& a, const std::string& b) {
  const bool wraps = KindOf(type) == DTypeKind::kSigned;
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAbsSum: return wraps ? Cat("wrap_add(", a, ", ", b, ")") : Cat(a, " + ", b);
    case ReduceOp::kMax:
    case ReduceOp::kAbsMax: return Cat("greatest(", a, ", ", b, ")");
    case ReduceOp::kMin: return Cat("least(", a, ", ", b, ")");
    case ReduceOp::kBitAnd: return Cat(a, " & ", b);
    case ReduceOp::kBitOr: return Cat(a, " | ", b);
    case ReduceOp::kBitXor: return Cat(a, " ^ ", b);
    case ReduceOp::kInvalid: break;
  }
  return a;
}

// The value that changes no other when combined with it.
std::string Identity(ReduceOp op, DType type) {
  const bool is_float = IsFloat(type);
  const std::string infinity =
      type == DType::kFloat64 ? "__longlong_as_double(0x7ff0000000000000ll)" : "__uint_as_float(0x7f800000u)";
  const bool is_unsigned = KindOf(type) == DTypeKind::kUnsigned || type == DType::kBool;
  const std::string greatest_signed =
      DTypeBits(type) == 64 ? "0x7fffffffffffffffll" : Cat((int64_t{1} << (DTypeBits(type) - 1)) - 1);
  switch (op) {
    case ReduceOp::kMax: return is_float ? Cat("-", infinity) : is_unsigned ? "0" : Cat("-", greatest_signed, " - 1");
    case ReduceOp::kMin:
      return is_float ? infinity : is_unsigned ? Cat("(", ValueType(type), ")(", MemoryType(type), ")~0ull") : greatest_signed;
    case ReduceOp::kBitAnd: return Cat("(", ValueType(type), ")(", MemoryType(type), ")~0ull");
    default: return "0";
  }
}

class LaneReducer {
 public:
  LaneReducer(EmitContext& c, const kir::LaneReduce& reduce)
      : c_(c), s_(reduce), src_(c.buffer(reduce.src)), dst_(c.buffer(reduce.dst)), axis_(static_cast<size_t>(reduce.axis)) {}

  void Emit() {
    std::vector<std::string> names;
    for (size_t d = 0; d < src_.layout.dims.size(); ++d) names.push_back(d == axis_ ? "column" : "row");
    Nest nest = OpenNest(c_, src_.layout, names, 1);
    size_t outer = 0;
    std::vector<Nest::Loop> inner;
    for (const Nest::Loop& loop : nest.loops) {
      if (loop.dim == axis_) {
        inner.push_back(loop);
        continue;
      }
      c_.OpenUnrolled(loop.var, 0, loop.size);
      ++outer;
    }
    const std::string x = c_.names.Fresh("x");
    const LayoutDim& axis = src_.layout.dims[axis_];
    const bool masked = axis.padded() != axis.extent;
    int64_t count = 1;
    for (const Nest::Loop& loop : inner) count *= loop.size;
    // One loop over all registers along the axis, its counter taken apart into their digits.
    const std::string first = masked ? Identity(s_.op, dst_.dtype) : Element(nest, inner, {"0"});
    c_.out.Line(Cat(ValueType(dst_.dtype), " ", x, " = ", first, ";"));
    if (masked || count > 1) {
      const std::string s = c_.names.Fresh("s");
      c_.OpenUnrolled(s, masked ? 0 : 1, count);
      const std::string element = Element(nest, inner, {s});
      const std::string guard = masked ? Cat("if (", AxisCoordinate(nest, inner, {s}).text, " < ", axis.extent, ") ") : "";
      c_.out.Line(Cat(guard, x, " = ", Combined(s_.op, dst_.dtype, x, element), ";"));
      c_.Close();
    }
    for (const Factor& f : axis.factors) {
      if (f.owner != Owner::kLane) continue;
      for (int64_t step = 1; step < f.size; step *= 2) {
        c_.out.Line(Cat(
            x, " = ", Combined(s_.op, dst_.dtype, x, Cat("__shfl_xor_sync(0xffffffffu, ", x, ", ", step * f.stride, ")")), ";"));
      }
    }
    WriteResult(nest, x);
    CloseLoops(c_, outer);
    c_.Close();
  }

 private:
  // The axis coordinate's terms with the register loops' counters as digits of `s`.
  static Coordinate AxisTerms(const Nest& nest, const std::vector<Nest::Loop>& inner, const CText& s, size_t axis) {
    Coordinate coordinate = nest.coordinates[axis];
    int64_t weight = 1;
    for (size_t i = inner.size(); i-- > 0;) {
      const bool last = i == 0;
      const CText digit = last ? CDivided(s, weight) : CModulo(CDivided(s, weight), inner[i].size);
      for (Term& t : coordinate.terms) {
        if (t.text.text == inner[i].var) t.text = digit;
      }
      weight *= inner[i].size;
    }
    return coordinate;
  }
  CText AxisCoordinate(const Nest& nest, const std::vector<Nest::Loop>& inner, const CText& s) const {
    std::vector<CText> sum;
    if (!nest.thread_parts[axis_].empty()) sum.push_back({nest.thread_parts[axis_]});
    for (const Term& t : AxisTerms(nest, inner, s, axis_).terms) {
      if (!t.thread) sum.push_back(CScaled(t.text, t.scale));
    }
    return CSum(sum);
  }
  // An element of the source as a value of the destination's type.
  std::string Element(const Nest& nest, const std::vector<Nest::Loop>& inner, const CText& s) const {
    std::vector<Coordinate> at = nest.coordinates;
    at[axis_] = AxisTerms(nest, inner, s, axis_);
    const std::string index = RegisterIndex(src_.layout, at).text;
    const std::string& name = c_.buffers[s_.src];
    std::string value =
        PerWord(src_.dtype) == 1 ? Cat(name, "[", index, "]") : Cat("get<", MemoryType(src_.dtype), ">(", name, ", ", index, ")");
    if (s_.op == ReduceOp::kAbsSum || s_.op == ReduceOp::kAbsMax) {
      if (IsFloat(src_.dtype)) value = Cat(src_.dtype == DType::kFloat64 ? "fabs(" : "fabsf(", value, ")");
      if (KindOf(src_.dtype) == DTypeKind::kSigned) value = Cat("magnitude(", value, ")");
    }
    return ValueType(src_.dtype) == ValueType(dst_.dtype) ? value : Cat("cast<", MemoryType(dst_.dtype), ">(", value, ")");
  }
  void WriteResult(const Nest& nest, const std::string& x) const {
    std::vector<Coordinate> at = nest.coordinates;
    if (dst_.layout.dims.size() < at.size()) {
      at.erase(at.begin() + static_cast<ptrdiff_t>(axis_));
    } else {
      at[axis_] = ConstantCoordinate(0);  // its factors are warps' only
    }
    const std::string& name = c_.buffers[s_.dst];
    if (dst_.layout.dims.empty()) {
      const std::string all = s_.accumulate ? Combined(s_.op, dst_.dtype, name, x) : x;
      c_.out.Line(
          Cat(name, " = ", IsNarrowFloat(dst_.dtype) ? Cat("rounded<", MemoryType(dst_.dtype), ">(", all, ")") : all, ";"));
      return;
    }
    const std::string index = RegisterIndex(dst_.layout, at).text;
    const bool packed = PerWord(dst_.dtype) > 1;
    const std::string old =
        packed ? Cat("get<", MemoryType(dst_.dtype), ">(", name, ", ", index, ")") : Cat(name, "[", index, "]");
    const std::string all = s_.accumulate ? Combined(s_.op, dst_.dtype, old, x) : x;
    c_.out.Line(packed ? Cat("set<", MemoryType(dst_.dtype), ">(", name, ", ", index, ", ", all, ");")
                       : Cat(old, " = ", all, ";"));
  }

  EmitContext& c_;
  const kir::LaneReduce& s_;
  const kir::Buffer& src_;
  const kir::Buffer& dst_;
  const size_t axis_;
};

}  // namespace

void Emit(EmitContext& c, const kir::Elementwise& loop) {
  const std::vector<BufferId> targets = PackedTargets(c, loop);
  const kir::Atomic* const sum = PairedSum(c, loop);
  std::vector<std::string> names;
  for (VarId var : loop.vars) names.push_back(c.kernel.vars[var].name);
  Nest nest = OpenNest(c, loop.layout, names, targets.empty() && sum == nullptr ? 1 : 2);
  c.in_elementwise = true;
  if (loop.layout.dims.size() == 1 && loop.layout.dims[0].extent % kLanes != 0) {
    c.lanes_here = Cat("lanes_below(", loop.layout.dims[0].extent, loop.layout.warps > 1 ? Cat(" - warp * ", kLanes) : "", ")");
  }
  c.replica_zero.clear();
  if (!nest.replica_zero.empty()) {
    c.replica_zero = c.names.Fresh("writes");
    c.out.Optional(c.replica_zero, Cat("const bool ", c.replica_zero, " = ", nest.replica_zero, ";"));
  }
  const kir::If* const guard = RowGuard(c, loop);
  const bool rare = guard != nullptr && OpenRowGuard(c, loop, nest, *guard);
  BindVars(c, loop, nest);
  LimitUnrolling(c, nest, CodeSize(c, loop.body), RegisterUses(c, loop));
  OpenLoops(c, nest, 0, nest.loops.size());
  if (sum != nullptr) {
    EmitSums(c, loop, nest, *sum);
  } else if (targets.empty()) {
    EmitPoint(c, loop, nest);
  } else {
    EmitPairs(c, loop, nest, targets);
  }
  CloseLoops(c, nest.loops.size() + (rare ? 1 : 0));
  c.in_elementwise = false;
  c.lanes_here = "0xffffffffu";
  c.Close();
}

void Emit(EmitContext& c, const kir::LaneReduce& reduce) { LaneReducer(c, reduce).Emit(); }

}  // namespace tilert
