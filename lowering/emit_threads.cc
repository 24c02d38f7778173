// What threads do by themselves, and declared barriers.
#include "ir/limits.h"
#include "ir/status_util.h"
#include "lowering/emit_place.h"

namespace tilert {
namespace {

std::string BarrierAt(EmitContext& c, kir::BarrierId id, Expr index) {
  if (c.kernel.barriers[id].size == 1) return c.barriers[id];
  return CSum({{c.barriers[id]}, CScaled(EmitInt(c, index), kir::kBarrierBytes)}).text;
}

std::string Call(const EmitContext& c, kir::BarrierId id, std::string_view what) {
  const kir::Barrier& barrier = c.kernel.barriers[id];
  return barrier.by_hand ? Cat("counted_", what, "<", barrier.arrivals, ">(") : Cat("declared_", what, "(");
}

}  // namespace

void Emit(EmitContext& c, const kir::Shuffle& s) {
  const DType type = c.kernel.vars[s.var].dtype;
  const CText value = EmitExpr(c, s.value);
  const std::string lane = EmitInt(c, s.lane).text;
  VarText& var = c.vars[s.var];
  var.wide = type == DType::kIndex && IsWide(c, s.value);
  var.fixed = var.has_coordinate = false;
  var.thread = true;
  // Lanes that the block does not have give anything that the register may hold.
  const bool all_lanes = c.lanes_here == "0xffffffffu";
  const Range any = type == DType::kIndex && !var.wide ? TypeRange(DType::kInt32) : TypeRange(type);
  if (!IsFloat(type)) c.ranges.Bind(s.var, all_lanes ? c.ranges.Of(s.value) : any);
  var.name = c.names.Fresh(c.kernel.vars[s.var].name);
  const std::string c_type(type != DType::kIndex ? ValueType(type) : var.wide ? "i64" : "int");
  // Types that the instruction does not have travel as int.
  const bool narrow = DTypeBits(type) < 32 && !IsFloat(type);
  c.out.Line(Cat("const ", c_type, " ", var.name, " = ", narrow ? Cat("(", c_type, ")") : "", "__shfl_sync(", c.lanes_here, ", ",
                 narrow ? "(int)" : "", narrow ? value.In(CText::kUnary) : value.text, ", ", lane, ");"));
}

void Emit(EmitContext& c, const kir::MbarArrive& s) { c.out.Line(Cat(Call(c, s.barrier, "arrive"), BarrierAt(c, s.barrier, s.index), ");")); }

void Emit(EmitContext& c, const kir::MbarWait& s) {
  int64_t parity = 0;
  const std::string text = c.kernel.exprs.AsInt(s.parity, &parity) ? Cat(parity & 1) : Cat("(u32)", EmitInt(c, s.parity).In(CText::kUnary), " & 1");
  c.out.Line(Cat(Call(c, s.barrier, "wait"), BarrierAt(c, s.barrier, s.index), ", ", text, ");"));
}

void Emit(EmitContext& c, const kir::MbarExpect& s) {
  int64_t bytes = 0;
  const bool fits = c.kernel.exprs.AsInt(s.bytes, &bytes) && bytes >= 0 && bytes <= kMaxPhaseCount;
  const std::string text = fits ? Cat(bytes) : Cat("phase_bytes(", EmitExpr(c, s.bytes).text, ")");
  c.out.Line(Cat(Call(c, s.barrier, "expect"), BarrierAt(c, s.barrier, s.index), ", ", text, ");"));
}

void Emit(EmitContext& c, const kir::MbarComplete& s) {
  c.out.Line(Cat(Call(c, s.barrier, "complete"), BarrierAt(c, s.barrier, s.index), ", ", s.bytes, ");"));
}

}  // namespace tilert
