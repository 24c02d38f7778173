// Expressions over the lanes of a warp.
#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "ir/status_util.h"
#include "lowering/simulator/block.h"

namespace tilert::sim {
namespace {

// The first lane of `mask` whose value is outside [lo, hi]; −1: none.
int Outlier(const Value* row, uint32_t mask, int64_t lo, int64_t hi) {
  uint32_t wrong = 0;
  for (int l = 0; l < kLanes; ++l) wrong |= uint32_t{row[l].i < lo || row[l].i > hi} << l;
  wrong &= mask;
  return wrong == 0 ? -1 : __builtin_ctz(wrong);
}

}  // namespace

Value* ThreadBlock::RowOf(Warp& warp, Slot slot) {
  return slot >= 0 ? &warp.frame[static_cast<size_t>(slot) * kLanes]
                   : const_cast<Value*>(kernel_.constants[static_cast<size_t>(~slot)].data());
}

void ThreadBlock::SetVar(Warp& warp, VarId var, Value value) {
  Value* row = RowOf(warp, static_cast<Slot>(var));
  std::fill(row, row + kLanes, value);
}

const Value* ThreadBlock::Eval(Warp& warp, const Code& code, uint32_t mask, int n) {
  absl::InlinedVector<uint32_t, 4> outer;
  for (const Instr& instr : code.instrs) {
    switch (instr.kind) {
      case Instr::Kind::kOp: {
        Value* out = RowOf(warp, instr.dst);
        EvalOp(instr, RowOf(warp, instr.a), RowOf(warp, instr.b), RowOf(warp, instr.c), out, n);
        if (instr.bounded) {
          const int lane = Outlier(out, n == kLanes ? mask : mask & 1, instr.lo, instr.hi);
          if (lane >= 0) Fail(warp, lane, Cat("computes ", out[lane].i, " where ", instr.lo, " to ", instr.hi, " are relied on"));
        }
        break;
      }
      case Instr::Kind::kLoad:
        EvalLoad(warp, code.loads[static_cast<size_t>(instr.load)], mask, instr.result, RowOf(warp, instr.dst));
        break;
      case Instr::Kind::kMask:
        outer.push_back(mask);
        mask &= TrueLanes(RowOf(warp, instr.a), n);
        break;
      case Instr::Kind::kMaskNot:
        outer.push_back(mask);
        mask &= ~TrueLanes(RowOf(warp, instr.a), n);
        break;
      case Instr::Kind::kUnmask:
        mask = outer.back();
        outer.pop_back();
        break;
    }
    if (failed()) break;
  }
  return RowOf(warp, code.result);
}

void ThreadBlock::EvalLoad(Warp& warp, const LoadRef& load, uint32_t mask, DType type, Value* out) {
  absl::InlinedVector<const Value*, 4> coords;
  for (Slot index : load.indices) coords.push_back(RowOf(warp, index));
  const Places places = Locate(warp, load.buffer, coords.data(), mask, &load.inside);
  if (failed()) return;
  mask &= ~places.outside;  // there the value is zero
  const LaneData data = Read(warp, places, mask);
  if (const uint32_t undefined = mask & ~data.defined; undefined != 0 && !failed()) {
    const int lane = __builtin_ctz(undefined);
    return Fail(warp, lane, Cat("uses ", Describe(places, lane), ", which was never written"));
  }
  LoadRow(type, data.raw.data(), 8 / Info(load.buffer).bytes, kLanes, out);
}

Value ThreadBlock::Uniform(Warp& warp, const Code& code) {
  const Value* row = Eval(warp, code, warp.lanes, code.per_lane() ? kLanes : 1);
  for (int l = 1; l < kLanes && code.per_lane() && !failed(); ++l) {
    if ((warp.lanes >> l & 1) && row[l].i != row[0].i)
      Fail(warp, l, "a value that must be the same in all threads differs from lane 0's");
  }
  return row[0];
}

}  // namespace tilert::sim
