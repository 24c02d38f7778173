// Scheduling of warps, and statements outside Elementwise.
#include "lowering/simulator/block.h"

#include <chrono>
#include <cstring>

#include "ir/status_util.h"

namespace tilert::sim {
namespace {

// NaN in every float type, −1 in signed ones.
constexpr uint8_t kPoison = 0xff;

size_t CellCount(const Compiled& kernel) {
  return kernel.shared_cell_bytes == 0
             ? 0
             : static_cast<size_t>(kernel.kernel->shared_bytes) / static_cast<size_t>(kernel.shared_cell_bytes);
}

}  // namespace

double SteadySeconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

ThreadBlock::ThreadBlock(Run& run, uint32_t number, const std::vector<int64_t>& coords)
    : run_(run),
      kernel_(*run.kernel),
      number_(number),
      coords_(coords),
      warps_(static_cast<size_t>(kernel_.kernel->warps)),
      shared_(static_cast<size_t>(kernel_.kernel->shared_bytes), kPoison),
      shared_shadow_(CellCount(kernel_)) {
  for (size_t w = 0; w < warps_.size(); ++w) {
    Warp& warp = warps_[w];
    warp.index = static_cast<int>(w);
    warp.frame.resize(kernel_.frame_rows * kLanes);
    warp.registers.resize(kernel_.buffers.size());
    for (size_t b = 0; b < kernel_.buffers.size(); ++b) {
      if (kernel_.buffers[b].layout != nullptr) Declare(warp, {static_cast<BufferId>(b), false});
    }
    for (size_t d = 0; d < coords_.size(); ++d) SetVar(warp, kernel_.kernel->block_vars[d], Value{.i = coords_[d]});
    warp.stack.push_back({&kernel_.body});
  }
}

absl::Status ThreadBlock::Execute() {
  ++run_.report->blocks;
  while (!failed()) {
    Warp* warp = PickWarp();
    if (warp == nullptr) {
      bool done = true;
      for (const Warp& other : warps_) done = done && other.state == Warp::State::kDone;
      if (done) break;
      ReleaseBarrier();
      continue;
    }
    // Now and then one warp runs far ahead.
    int64_t burst = run_.random() % 8 == 0 ? 1000 : 1 + static_cast<int64_t>(run_.random() % 6);
    while (burst-- > 0 && warp->state == Warp::State::kReady && !failed()) Step(*warp);
    LandSome();
  }
  return status_;
}

Warp* ThreadBlock::PickWarp() {
  size_t ready = 0;
  for (const Warp& warp : warps_) ready += warp.state == Warp::State::kReady;
  if (ready == 0) return nullptr;
  size_t pick = run_.random() % ready;
  for (Warp& warp : warps_) {
    if (warp.state == Warp::State::kReady && pick-- == 0) return &warp;
  }
  return nullptr;
}

// No warp can run: all must be at one barrier.
void ThreadBlock::ReleaseBarrier() {
  const Warp* first = nullptr;
  for (const Warp& warp : warps_) {
    if (warp.state == Warp::State::kAtBarrier && first == nullptr) first = &warp;
  }
  for (const Warp& warp : warps_) {
    if (warp.state == Warp::State::kDone)
      return Fail(*first, 0, Cat("waits for warp ", warp.index, ", which has ended: deadlock"));
    if (warp.barrier_instance != first->barrier_instance) {
      return Fail(*first, 0,
                  Cat("waits at this barrier while warp ", warp.index, " waits at ", kernel_.paths[warp.stmt->number],
                      ", or at this one in another iteration"));
    }
  }
  for (Warp& warp : warps_) {
    warp.state = Warp::State::kReady;
    ++warp.phase;
  }
  ++run_.report->barriers;
}

void ThreadBlock::ArriveAtBarrier(Warp& warp, const CStmt& stmt) {
  warp.state = Warp::State::kAtBarrier;
  uint64_t hash = static_cast<uint64_t>(stmt.number) + 1;
  for (const ControlFrame& frame : warp.stack) hash = (hash ^ static_cast<uint64_t>(frame.value)) * 0x9e3779b97f4a7c15;
  warp.barrier_instance = hash;
}

bool ThreadBlock::CountStep() {
  const int64_t steps = ++run_.report->statements;
  if (steps > run_.max_steps || (steps % 1024 == 0 && SteadySeconds() > run_.deadline)) {
    status_ = absl::ResourceExhaustedError(Cat("simulation of kernel ", kernel_.kernel->name, " stopped after ", steps,
                                               " statements: over its limit of steps or time"));
    return false;
  }
  return true;
}

bool ThreadBlock::Advance(Warp& warp) {
  while (!warp.stack.empty()) {
    ControlFrame& frame = warp.stack.back();
    if (frame.next < frame.block->size()) return true;
    if (frame.loop == nullptr) {
      warp.stack.pop_back();
      continue;
    }
    if (!CountStep()) return false;
    warp.stmt = frame.loop;
    if (const auto* loop = std::get_if<CFor>(&frame.loop->op)) {
      frame.value += frame.step;
      frame.next = 0;
      if (frame.step > 0 ? frame.value < frame.end : frame.value > frame.end) {
        SetVar(warp, loop->var, Value{.i = frame.value});
      } else {
        warp.stack.pop_back();
      }
    } else if (Uniform(warp, std::get<CWhile>(frame.loop->op).cond).i != 0) {
      ++frame.value;
      frame.next = 0;
    } else {
      warp.stack.pop_back();
    }
    if (failed()) return false;
  }
  return false;
}

void ThreadBlock::Step(Warp& warp) {
  if (!CountStep()) return;
  if (!Advance(warp)) {
    warp.state = Warp::State::kDone;
    return;
  }
  ControlFrame& frame = warp.stack.back();
  const CStmt& stmt = (*frame.block)[frame.next++];
  warp.stmt = &stmt;
  ExecuteStmt(warp, stmt);
}

void ThreadBlock::EnterLoop(Warp& warp, const CStmt& stmt, const CFor& loop) {
  ControlFrame frame{&loop.body, 0, &stmt};
  frame.value = Uniform(warp, loop.begin).i;
  frame.end = Uniform(warp, loop.end).i;
  frame.step = Uniform(warp, loop.step).i;
  if (frame.step == 0) return Fail(warp, 0, "the loop's step is 0");
  if (frame.step > 0 ? frame.value >= frame.end : frame.value <= frame.end) return;
  SetVar(warp, loop.var, Value{.i = frame.value});
  warp.stack.push_back(frame);
}

void ThreadBlock::Unwind(Warp& warp, bool leave_loop) {
  while (!warp.stack.empty() && warp.stack.back().loop == nullptr) warp.stack.pop_back();
  if (warp.stack.empty()) return Fail(warp, 0, "break or continue outside a loop");
  if (leave_loop) {
    warp.stack.pop_back();
  } else {
    warp.stack.back().next = warp.stack.back().block->size();
  }
}

void ThreadBlock::Declare(Warp& warp, const CDeclare& declare) {
  const BufferInfo& info = Info(declare.buffer);
  Registers& registers = warp.registers[declare.buffer];
  const auto regs = static_cast<size_t>(info.layout->regs());
  registers.data.assign(regs * kLanes * static_cast<size_t>(info.bytes), declare.zero ? 0 : kPoison);
  registers.defined.assign(regs, declare.zero ? 0xffffffff : 0);
  registers.read_point.assign(regs * kLanes, 0);
  registers.write_point.assign(regs * kLanes, 0);
}

void ThreadBlock::ExecuteStmt(Warp& warp, const CStmt& stmt) {
  const Overloaded visitor{
      [&](const CDeclare& s) { Declare(warp, s); },
      [&](const CFor& s) { EnterLoop(warp, stmt, s); },
      [&](const CWhile& s) {
        if (Uniform(warp, s.cond).i != 0) warp.stack.push_back({&s.body, 0, &stmt});
      },
      [&](const CIf& s) { warp.stack.push_back({Uniform(warp, s.cond).i != 0 ? &s.then_body : &s.else_body}); },
      [&](const CBreak&) { Unwind(warp, true); },
      [&](const CContinue&) { Unwind(warp, false); },
      [&](const CLet& s) { SetVar(warp, s.var, Uniform(warp, s.value)); },
      [&](const CPoints& s) { RunPoints(warp, s); },
      [&](const CCopy& s) { RunCopy(warp, s); },
      [&](const CCommit&) { Commit(warp); },
      [&](const CWait& s) { Wait(warp, s); },
      [&](const CBarSync&) { ArriveAtBarrier(warp, stmt); },
      [&](const CLaneReduce& s) { RunLaneReduce(warp, s); },
      [&](const CMma& s) { RunMma(warp, s); },
      // Compiled as the body of a CPoints.
      [&](const CStore&) {},
      [&](const CAtomic&) {},
      [&](const CPrint&) {},
      [&](const CAssert&) {},
  };
  std::visit(visitor, stmt.op);
}

void ThreadBlock::Fail(const Warp& warp, int lane, const std::string& what) {
  FailAs(absl::StatusCode::kInternal, warp, lane, what);
}

void ThreadBlock::FailAs(absl::StatusCode code, const Warp& warp, int lane, const std::string& what) {
  if (failed()) return;
  const std::string path = warp.stmt == nullptr ? "start" : kernel_.paths[warp.stmt->number];
  std::string block;
  for (int64_t c : coords_) block += Cat(block.empty() ? "" : ", ", c);
  status_ = absl::Status(code, Cat("kernel ", kernel_.kernel->name, ", ", path, ", block (", block, ") warp ", warp.index,
                                   " lane ", lane, ": ", what));
}

std::string ThreadBlock::Describe(const Agent& agent) const {
  const std::string who =
      agent.thread < 0 ? "several threads" : Cat("warp ", agent.thread / kLanes, " lane ", agent.thread % kLanes);
  return Cat(who, agent.block == number_ ? "" : " of another block", " at ", kernel_.paths[agent.stmt]);
}

}  // namespace tilert::sim
