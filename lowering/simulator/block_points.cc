// Elementwise: 32 points at a time, one a lane, the lanes that take part given by a mask.
#include <algorithm>
#include <cstring>
#include <tuple>

#include "ir/int_eval.h"
#include "ir/status_util.h"
#include "lowering/simulator/block.h"

namespace tilert::sim {
namespace {

Row CopyRow(const Value* row) {
  Row copy;
  std::copy(row, row + kLanes, copy.begin());
  return copy;
}

void Blend(Value* row, const Value* from, uint32_t mask) {
  for (int l = 0; l < kLanes; ++l) {
    if (mask >> l & 1) row[l] = from[l];
  }
}

Instr AtomicInstr(AtomicOp op, DType type) {
  const ExprOp expr_op = op == AtomicOp::kAdd ? ExprOp::kAdd : op == AtomicOp::kMax ? ExprOp::kMax : ExprOp::kMin;
  return {.op = expr_op, .type = type, .result = type};
}

}  // namespace

// Registers in ascending or descending order: points are independent, so it must not matter.
void ThreadBlock::RunPoints(Warp& warp, const CPoints& points) {
  const LayoutTables& layout = *points.layout;
  replica_zero_ = layout.ReplicaZero(warp.index);
  point_base_ += 1 << 20;
  const bool descending = run_.random() & 1;
  for (int64_t i = 0; i < layout.regs() && !failed(); ++i) {
    const int64_t reg = descending ? layout.regs() - 1 - i : i;
    const uint32_t mask = layout.Valid(reg, warp.index) & warp.lanes;
    if (mask == 0) continue;
    points_ = &points;
    point_reg_ = reg;
    point_ = layout.regs() > 1 ? point_base_ + static_cast<uint64_t>(reg) + 1 : 0;
    for (int d = 0; d < layout.rank(); ++d) {
      Value* row = RowOf(warp, static_cast<Slot>(points.vars[static_cast<size_t>(d)]));
      for (int l = 0; l < kLanes; ++l) row[l].i = layout.Coord(reg, l, warp.index, d);
    }
    Flow flow;
    RunLanes(warp, points.body, mask, flow);
  }
  point_ = 0;
  points_ = nullptr;
}

// On a stack of its own, so that lanes can wait where they are.
void ThreadBlock::StartPoints(Warp& warp, const CPoints& points) {
  warp.points = std::make_unique<Fiber>([this, &warp, &points] { RunPoints(warp, points); });
  if (!warp.points->ok()) return FailAs(absl::StatusCode::kResourceExhausted, warp, 0, "no memory for the stack of a warp");
  ResumePoints(warp);
}

void ThreadBlock::ResumePoints(Warp& warp) {
  const CStmt* const stmt = warp.stmt;
  warp.points->Resume();
  if (!warp.points->done()) return;
  warp.points = nullptr;
  warp.stmt = stmt;
}

// Other warps run until the phase is complete.
void ThreadBlock::AwaitInPoints(Warp& warp, int slot, bool parity) {
  warp.awaited = slot;
  warp.awaited_parity = parity;
  warp.state = Warp::State::kWaiting;
  if (async_.CanPass(warp)) return async_.Pass(warp);
  const auto state = std::make_tuple(points_, point_reg_, replica_zero_, point_);
  warp.points->Yield();
  std::tie(points_, point_reg_, replica_zero_, point_) = state;
}

void ThreadBlock::EndFibers() {
  for (Warp& warp : warps_) {
    if (warp.points != nullptr && warp.points->ok()) ResumePoints(warp);
  }
}

// Returns the lanes that reach the end of the block.
uint32_t ThreadBlock::RunLanes(Warp& warp, const CBlock& block, uint32_t mask, Flow& flow) {
  for (const CStmt& stmt : block) {
    if (mask == 0 || failed() || !CountStep()) break;
    const CStmt* outer = warp.stmt;
    warp.stmt = &stmt;
    RunLaneStmt(warp, stmt, mask, flow);
    warp.stmt = outer;
  }
  return mask;
}

void ThreadBlock::RunLaneStmt(Warp& warp, const CStmt& stmt, uint32_t& mask, Flow& flow) {
  const Overloaded visitor{
      [&](const CStore& s) { RunStore(warp, s, mask); },
      [&](const CAtomic& s) { RunAtomic(warp, s, mask); },
      [&](const CLet& s) {
        const Value* value = Eval(warp, s.value, mask, kLanes);
        Blend(RowOf(warp, static_cast<Slot>(s.var)), value, mask);
      },
      [&](const CShuffle& s) { RunShuffle(warp, s, mask); },
      [&](const CMbarArrive& s) { async_.ArriveByLanes(warp, s, mask, AllAre(warp, mask)); },
      [&](const CMbarWait& s) { async_.WaitByLanes(warp, s, mask); },
      [&](const CMbarExpect& s) { async_.ExpectByLanes(warp, s, mask); },
      [&](const CProxyFence&) { FenceByLanes(warp, mask); },
      [&](const CIf& s) {
        const uint32_t taken = TrueLanes(Eval(warp, s.cond, mask, kLanes)) & mask;
        mask = RunLanes(warp, s.then_body, taken, flow) | RunLanes(warp, s.else_body, mask & ~taken, flow);
      },
      [&](const CFor& s) { RunLaneFor(warp, s, mask); },
      [&](const CWhile& s) { RunLaneWhile(warp, s, mask); },
      [&](const CBreak&) {
        flow.broke |= mask;
        mask = 0;
      },
      [&](const CContinue&) {
        flow.continued |= mask;
        mask = 0;
      },
      [&](const CPrint& s) {
        for (const Code& arg : s.args) Eval(warp, arg, mask, kLanes);
      },
      [&](const CAssert& s) {
        const uint32_t wrong = mask & ~TrueLanes(Eval(warp, s.cond, mask, kLanes));
        if (wrong != 0)
          FailAs(absl::StatusCode::kFailedPrecondition, warp, __builtin_ctz(wrong), Cat("assertion failed: ", s.message));
      },
      [&](const auto&) { Fail(warp, 0, "this statement may not stand inside Elementwise"); },
  };
  std::visit(visitor, stmt.op);
}

// Are these all lanes of the warp that have a point?
bool ThreadBlock::AllAre(const Warp& warp, uint32_t mask) const {
  return points_ != nullptr && mask == (points_->layout->Valid(point_reg_, warp.index) & warp.lanes);
}

void ThreadBlock::FenceByLanes(Warp& warp, uint32_t mask) {
  if (AllAre(warp, mask)) warp.own_fence = warp.epoch;
  for (size_t l = 0; l < kLanes; ++l) {
    if (mask >> l & 1) warp.lane_fence[l] = warp.epoch;
  }
  ++warp.epoch;
}

// All lanes that have a point must be here, those that give and those that take.
void ThreadBlock::RunShuffle(Warp& warp, const CShuffle& shuffle, uint32_t mask) {
  if (!AllAre(warp, mask))
    return Fail(warp, 0, "not all lanes of the warp reach this shuffle together");
  const Row lanes = CopyRow(Eval(warp, shuffle.lane, mask, kLanes));
  const Row values = CopyRow(Eval(warp, shuffle.value, mask, kLanes));
  Value* const row = RowOf(warp, static_cast<Slot>(shuffle.var));
  for (int l = 0; l < kLanes; ++l) {
    if ((mask >> l & 1) == 0) continue;
    const int from = static_cast<int>(static_cast<uint64_t>(lanes[static_cast<size_t>(l)].i) % kLanes);
    row[l] = values[static_cast<size_t>((mask >> from & 1) != 0 ? from : l)];  // from a lane that is not there: unspecified
  }
}

void ThreadBlock::RunLaneFor(Warp& warp, const CFor& loop, uint32_t& mask) {
  Row value = CopyRow(Eval(warp, loop.begin, mask, kLanes));
  const Row end = CopyRow(Eval(warp, loop.end, mask, kLanes)), step = CopyRow(Eval(warp, loop.step, mask, kLanes));
  Flow flow;
  uint32_t active = mask;
  while (!failed()) {
    for (int l = 0; l < kLanes; ++l) {
      const auto at = static_cast<size_t>(l);
      if (step[at].i == 0 && (active >> l & 1)) return Fail(warp, l, "the loop's step is 0");
      const bool more = step[at].i > 0 ? value[at].i < end[at].i : value[at].i > end[at].i;
      if (!more) active &= ~(uint32_t{1} << l);
    }
    if (active == 0 || !CountStep()) return;
    Blend(RowOf(warp, static_cast<Slot>(loop.var)), value.data(), active);
    flow.continued = 0;
    active = RunLanes(warp, loop.body, active, flow) | flow.continued;
    for (size_t l = 0; l < kLanes; ++l) value[l].i = AddIndex(value[l].i, step[l].i);
  }
}

void ThreadBlock::RunLaneWhile(Warp& warp, const CWhile& loop, uint32_t& mask) {
  Flow flow;
  uint32_t active = mask;
  while (!failed()) {
    active &= TrueLanes(Eval(warp, loop.cond, active, kLanes));
    if (active == 0 || !CountStep()) return;
    flow.continued = 0;
    active = RunLanes(warp, loop.body, active, flow) | flow.continued;
  }
}

Places ThreadBlock::LocateAt(Warp& warp, BufferId buffer, const std::vector<Code>& indices, const std::vector<bool>& inside,
                             uint32_t mask, std::vector<Row>& rows, std::vector<const Value*>& coords) {
  rows.reserve(indices.size());
  for (const Code& index : indices) {
    const Value* row = Eval(warp, index, mask, kLanes);
    if (!index.instrs.empty()) row = rows.emplace_back(CopyRow(row)).data();  // a temporary: the next evaluation reuses it
    coords.push_back(row);
  }
  Places places;
  if (failed()) return places;
  return Locate(warp, buffer, coords.data(), mask, &inside);
}

// Memory is written by replica zero only; registers by every thread that holds the element.
void ThreadBlock::RunStore(Warp& warp, const CStore& store, uint32_t mask) {
  const BufferInfo& info = Info(store.buffer);
  if (info.layout == nullptr) mask &= replica_zero_;
  if (mask == 0) return;
  std::vector<Row> rows;
  std::vector<const Value*> coords;
  const Places places = LocateAt(warp, store.buffer, store.indices, store.inside, mask, rows, coords);
  mask &= ~places.outside;
  if (failed() || mask == 0) return;
  const Value* value = Eval(warp, store.value, mask, kLanes);
  LaneData data;
  data.raw.fill(0);
  data.defined = mask;
  StoreRow(info.source->dtype, value, kLanes, data.raw.data(), 8 / info.bytes);
  if (!failed()) Write(warp, places, mask, data);
}

void ThreadBlock::RunAtomic(Warp& warp, const CAtomic& atomic, uint32_t mask) {
  const BufferInfo& info = Info(atomic.buffer);
  if (info.layout != nullptr) return Fail(warp, 0, "atomics are for memory, not registers");
  if (atomic.prev != kNoId) {
    if ((mask & ~replica_zero_) != 0) return Fail(warp, 0, "an atomic gives but one replica the value before");
    Value* const before = RowOf(warp, static_cast<Slot>(atomic.prev));
    for (int l = 0; l < kLanes; ++l) {
      if (mask >> l & 1) before[l] = Value{};
    }
  }
  mask &= replica_zero_;
  if (mask == 0) return;
  std::vector<Row> rows;
  std::vector<const Value*> coords;
  const Places places = LocateAt(warp, atomic.buffer, atomic.indices, atomic.inside, mask, rows, coords);
  mask &= ~places.outside;
  if (failed() || mask == 0) return;
  const DType type = info.source->dtype;
  const Value* operand = Eval(warp, atomic.value, mask, kLanes);
  const Instr instr = AtomicInstr(atomic.op, type);
  for (int l = 0; l < kLanes && !failed(); ++l) {
    if ((mask >> l & 1) == 0) continue;
    if (TouchCells(warp, places, uint32_t{1} << l, AccessKind::kAtomic) == 0)
      Fail(warp, l, Cat("atomic on ", Describe(places, l), ", which was never written"));
    if (failed()) return;
    uint8_t* memory = Memory(places.buffer) + places.at[static_cast<size_t>(l)];
    Value old, result;
    LoadRow(type, memory, 1, 1, &old);
    EvalOp(instr, &old, operand + l, nullptr, &result, 1);
    if (info.source->space == kir::Space::kShared) async_.SharedWritten(atomic.buffer);
    StoreRow(type, &result, 1, memory, 1);
    if (atomic.prev != kNoId) RowOf(warp, static_cast<Slot>(atomic.prev))[l] = old;
  }
}

}  // namespace tilert::sim
