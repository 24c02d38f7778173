// Control flow of a warp, and dispatch of statements outside Elementwise.
#include <algorithm>

#include "ir/int_eval.h"
#include "ir/status_util.h"
#include "lowering/simulator/block.h"

namespace tilert::sim {
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
    if (std::holds_alternative<CRoles>(frame.loop->op)) {
      LeaveRoles(warp, *frame.loop);
      if (warp.state != Warp::State::kReady || failed()) return false;
      continue;
    }
    if (std::holds_alternative<CForTiles>(frame.loop->op)) {
      frame.value += frame.step;
      frame.next = 0;
      if (frame.value < frame.end) {
        BindTile(warp, *frame.loop, frame.value);
      } else {
        warp.stack.pop_back();
      }
      continue;
    }
    if (const auto* loop = std::get_if<CFor>(&frame.loop->op)) {
      frame.value = AddIndex(frame.value, frame.step);
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
  if (warp.points != nullptr) return ResumePoints(warp);
  if (!Advance(warp)) {
    if (warp.stack.empty() && !failed()) {
      warp.state = Warp::State::kDone;
      async_.CheckEnd(warp);
    }
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

// Every warp goes to its role's body; those of a role of one thread but the first are at its end at once.
void ThreadBlock::EnterRoles(Warp& warp, const CStmt& stmt, const CRoles& roles) {
  if (groups_.size() == 1) {
    for (size_t r = 0; r < roles.roles.size(); ++r) {
      const kir::Role& role = *roles.roles[r].source;
      for (int i = 0; i < role.instances; ++i)
        groups_.push_back({role.name, static_cast<int>(r), i, roles.roles[r].first_warp + i * role.warps, role.warps,
                           role.stores_by_warpgroup});
    }
  }
  size_t number = 1;
  while (warp.number >= groups_[number].first + groups_[number].warps) ++number;
  const Group& group = groups_[number];
  const CRole& role = roles.roles[static_cast<size_t>(group.role)];
  warp.group = static_cast<int>(number);
  warp.index = warp.number - group.first;
  const bool idle = role.source->one_thread && warp.index > 0;
  if (role.source->one_thread) warp.lanes = 1;
  if (role.source->instance != kNoId) SetVar(warp, role.source->instance, Value{.i = group.instance});
  warp.stack.push_back({&role.body, idle ? role.body.size() : 0, &stmt});
}

// All wait for all where anything follows.
void ThreadBlock::LeaveRoles(Warp& warp, const CStmt& stmt) {
  warp.stack.pop_back();
  warp.group = 0;
  warp.index = warp.number;
  warp.lanes = 0xffffffff;
  const ControlFrame& outer = warp.stack.back();
  if (outer.next < outer.block->size()) ArriveAtBarrier(warp, stmt);
}

void ThreadBlock::EnterTiles(Warp& warp, const CStmt& stmt, const CForTiles& tiles) {
  const Group& group = groups_[static_cast<size_t>(warp.group)];
  const int instances = group.role < 0 ? 1 : static_cast<int>(std::count_if(groups_.begin(), groups_.end(), [&](const Group& g) {
    return g.role == group.role;
  }));
  ControlFrame frame{&tiles.body, 0, &stmt};
  const int64_t clusters = run_.blocks / cluster_.size();
  frame.value = cluster_.number_ + group.instance * clusters;
  frame.step = instances * clusters;
  frame.end = Clusters(kernel_);
  if (kernel_.kernel->shared_trips) {  // one after the other
    shares_ = kir::SharesOf(frame.end, kernel_.trips, clusters, cluster_.number_);
    frame.value = 0, frame.step = 1, frame.end = static_cast<int64_t>(shares_.size());
  }
  if (frame.value >= frame.end) return;
  warp.stack.push_back(frame);
  BindTile(warp, stmt, frame.value);
}

void ThreadBlock::BindTile(Warp& warp, const CStmt& stmt, int64_t tile) {
  const kir::Kernel& kernel = *kernel_.kernel;
  const bool is_first = rank_ < cluster_.size() / kir::ClusterExtent(kernel, kir::SplitAxis(kernel));  // of those that work on the block
  bool is_last = true;
  if (kernel.shared_trips) {
    warp.share = shares_[static_cast<size_t>(tile)];
    SetVar(warp, kernel.share_begin, Value{.i = warp.share.begin});
    SetVar(warp, kernel.share_end, Value{.i = warp.share.end});
    tile = warp.share.tile;
    is_last = warp.share.end >= kernel_.trips;
  }
  if (!BindBlock(warp, tile) || !is_first || !is_last || warp.index != 0) return;
  const int64_t number = BlockNumber(kernel_, warp.tile);
  auto found =
      std::find_if(run_.visits.begin(), run_.visits.end(), [&](const auto& visits) { return visits.first == stmt.number; });
  if (found == run_.visits.end())
    found = run_.visits.insert(found, {stmt.number, std::vector<uint16_t>(static_cast<size_t>(Tiles(kernel_)))});
  ++found->second[static_cast<size_t>(number)];
}

void ThreadBlock::Unwind(Warp& warp, bool leave_loop) {
  while (!warp.stack.empty() && warp.stack.back().loop == nullptr) warp.stack.pop_back();
  if (warp.stack.empty() || std::holds_alternative<CRoles>(warp.stack.back().loop->op))
    return Fail(warp, 0, "break or continue outside a loop");
  if (leave_loop) {
    warp.stack.pop_back();
  } else {
    warp.stack.back().next = warp.stack.back().block->size();
  }
}

void ThreadBlock::Declare(Warp& warp, const CDeclare& declare) {
  const BufferInfo& info = Info(declare.buffer);
  Registers& registers = warp.registers[declare.buffer];
  if (std::max(registers.wgmma_acc, registers.wgmma_a) > warp.wgmma_retired) {
    return Fail(
        warp, 0,
        Cat("declares ", info.source->name, " while the wgmma at ",
            PathOf(async_.StmtOf(warp, std::max(registers.wgmma_acc, registers.wgmma_a))), " may still use its registers"));
  }
  registers.needs_fence = registers.unnamed = true;
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
      [&](const CPoints& s) { s.waits ? StartPoints(warp, s) : RunPoints(warp, s); },
      [&](const CCopy& s) { RunCopy(warp, s); },
      [&](const CCommit&) { Commit(warp); },
      [&](const CWait& s) { Wait(warp, s); },
      [&](const CBarSync&) { ArriveAtBarrier(warp, stmt); },
      [&](const CLaneReduce& s) { RunLaneReduce(warp, s); },
      [&](const CPartStore& s) { RunPartStore(warp, s); },
      [&](const CPartAdd& s) { RunPartAdd(warp, s); },
      [&](const CSumsGive& s) { GiveSums(warp, s); },
      [&](const CSumsTake& s) { TakeSums(warp, s); },
      [&](const CMma& s) { RunMma(warp, s); },
      [&](const CRoles& s) { EnterRoles(warp, stmt, s); },
      [&](const CForTiles& s) { EnterTiles(warp, stmt, s); },
      // Compiled as the body of a CPoints.
      [&](const CStore&) {},
      [&](const CAtomic&) {},
      [&](const CPrint&) {},
      [&](const CAssert&) {},
      [&](const auto&) { async_.Execute(warp, stmt); },
  };
  std::visit(visitor, stmt.op);
}

}  // namespace tilert::sim
