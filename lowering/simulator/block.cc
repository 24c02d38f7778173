// Scheduling of warps, barriers, and what is said when something is wrong.
#include "lowering/simulator/block.h"

#include <algorithm>
#include <chrono>

#include "ir/status_util.h"

namespace tilert::sim {
double SteadySeconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

ThreadBlock::ThreadBlock(Run& run, uint32_t number)
    : run_(run),
      kernel_(*run.kernel),
      number_(number),
      components_{kernel_.kernel->warps, kernel_.ring_slots.back()},
      groups_{{"", -1, 0, 0, kernel_.kernel->warps}},
      warps_(static_cast<size_t>(kernel_.kernel->warps)),
      shared_(static_cast<size_t>(kernel_.kernel->shared_bytes), kPoison),
      shared_shadow_(kernel_.kernel->shared_bytes, kernel_.shared_cell_bytes),
      async_(*this) {
  const std::vector<kir::Ring>& rings = kernel_.kernel->rings;
  for (size_t w = 0; w < warps_.size(); ++w) {
    Warp& warp = warps_[w];
    warp.number = warp.index = static_cast<int>(w);
    warp.frame.resize(kernel_.frame_rows * kLanes);
    warp.registers.resize(kernel_.buffers.size());
    warp.clock = Clock(components_);
    warp.positions.resize(rings.size());
    warp.held.resize(rings.size());
    for (const kir::Ring& ring : rings) SetVar(warp, ring.slot, Value{.i = 0});
    warp.stack.push_back({&kernel_.body});
    warp.tile = TileCoords(kernel_, number);
    for (size_t d = 0; d < warp.tile.size(); ++d) SetVar(warp, kernel_.kernel->block_vars[d], Value{.i = warp.tile[d]});
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
      if (!async_.RunOne()) ReportDeadlock();
      continue;
    }
    if (warp->state == Warp::State::kWaiting) async_.Pass(*warp);
    // Now and then one warp runs far ahead.
    int64_t burst = run_.random() % 8 == 0 ? 1000 : 1 + static_cast<int64_t>(run_.random() % 6);
    while (burst-- > 0 && warp->state == Warp::State::kReady && !failed()) Step(*warp);
    LandSome();
    async_.RunSome();
  }
  if (!failed()) async_.CheckEnd();
  return status_;
}

Warp* ThreadBlock::PickWarp() {
  const auto can_run = [this](const Warp& warp) {
    return warp.state == Warp::State::kReady || (warp.state == Warp::State::kWaiting && async_.CanPass(warp));
  };
  size_t ready = 0;
  for (const Warp& warp : warps_) ready += can_run(warp);
  if (ready == 0) return nullptr;
  size_t pick = run_.random() % ready;
  for (Warp& warp : warps_) {
    if (can_run(warp) && pick-- == 0) return &warp;
  }
  return nullptr;
}

// What all lanes of the warp have done so far is known to all of them, and may be told to others.
void ThreadBlock::SyncLanes(Warp& warp) {
  const auto number = static_cast<size_t>(warp.number);
  warp.clock.seen[number] = warp.epoch++;
  warp.clock.fenced[number] = warp.own_fence;
  warp.clock.seen[static_cast<size_t>(components_.StoreRead(warp.number))] = warp.stores_read;
  warp.clock.seen[static_cast<size_t>(components_.StoreWrite(warp.number))] = warp.stores_written;
}

void ThreadBlock::ArriveAtBarrier(Warp& warp, const CStmt& stmt) {
  warp.state = Warp::State::kAtBarrier;
  uint64_t hash = static_cast<uint64_t>(stmt.number) + 1;
  for (const ControlFrame& frame : warp.stack) hash = (hash ^ static_cast<uint64_t>(frame.value)) * 0x9e3779b97f4a7c15;
  warp.barrier_instance = hash;
  Group group = groups_[static_cast<size_t>(warp.group)];
  if (std::get<CBarSync>(stmt.op).by_warpgroup) {
    group.first += warp.index / kWarpgroupWarps * kWarpgroupWarps;
    group.warps = kWarpgroupWarps;
  }
  for (int w = group.first; w < group.first + group.warps; ++w) {
    const Warp& other = warps_[static_cast<size_t>(w)];
    if (other.state != Warp::State::kAtBarrier || other.group != warp.group) return;
  }
  ReleaseBarrier(group);
}

// All warps of the group are at a barrier: it must be the same.
void ThreadBlock::ReleaseBarrier(const Group& group) {
  Clock clock(components_);
  const Warp& first = warps_[static_cast<size_t>(group.first)];
  for (int w = group.first; w < group.first + group.warps; ++w) {
    Warp& warp = warps_[static_cast<size_t>(w)];
    if (warp.barrier_instance != first.barrier_instance) {
      return Fail(first, 0,
                  Cat("waits at this barrier while warp ", warp.number, " waits at ", PathOf(warp.stmt->number),
                      ", or at this one in another iteration"));
    }
    SyncLanes(warp);
    clock.Join(warp.clock);
  }
  for (int w = group.first; w < group.first + group.warps; ++w) {
    Warp& warp = warps_[static_cast<size_t>(w)];
    warp.clock = clock;
    warp.state = Warp::State::kReady;
  }
  ++run_.report->barriers;
}

// No warp can run and nothing is pending. Warps of a role that wait for the same are named together.
void ThreadBlock::ReportDeadlock() {
  std::vector<std::pair<std::string, std::string>> waits;  // who, and where for what
  const Warp* first = nullptr;
  for (const Warp& warp : warps_) {
    if (warp.state == Warp::State::kDone) continue;
    if (first == nullptr) first = &warp;
    const Group& group = groups_[static_cast<size_t>(warp.group)];
    std::string what = warp.state == Warp::State::kWaiting ? async_.Awaited(warp) : "a barrier";
    for (int w = group.first; w < group.first + group.warps && warp.state == Warp::State::kAtBarrier; ++w) {
      if (warps_[static_cast<size_t>(w)].state == Warp::State::kDone) what = Cat("warp ", w, ", which has ended");
    }
    what = Cat(" at ", PathOf(warp.stmt->number), " waits for ", what);
    if (!waits.empty() && waits.back().second == what) {
      waits.back().first += Cat(", ", warp.index);
    } else {
      waits.emplace_back(NameOf(warp), what);
    }
  }
  std::string text;
  for (const auto& [who, what] : waits) text += Cat(text.empty() ? "" : "; ", who, what);
  Fail(*first, 0, Cat("deadlock: ", text));
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

void ThreadBlock::Fail(const Warp& warp, int lane, const std::string& what) {
  FailAs(absl::StatusCode::kInternal, warp, lane, what);
}

void ThreadBlock::FailAs(absl::StatusCode code, const Warp& warp, int lane, const std::string& what) {
  if (failed()) return;
  const std::string path = warp.stmt == nullptr ? "start" : PathOf(warp.stmt->number);
  std::string tile;
  for (int64_t c : warp.tile) tile += Cat(tile.empty() ? "" : ", ", c);
  const std::string block = kernel_.persistent ? Cat("block ", number_, ", tile (", tile, ")") : Cat("block (", tile, ")");
  status_ = absl::Status(
      code, Cat("kernel ", kernel_.kernel->name, ", ", path, ", ", block, " ", NameOf(warp), " lane ", lane, ": ", what));
}

std::string ThreadBlock::NameOf(const Warp& warp) const {
  const Group& group = groups_[static_cast<size_t>(warp.group)];
  if (group.role < 0) return Cat("warp ", warp.number);
  const std::string instance = group.instance > 0 ? Cat("[", group.instance, "]") : "";
  return Cat("role ", group.name, instance, " warp ", warp.index);
}

std::string ThreadBlock::Describe(const Agent& agent) const {
  const int warps = components_.warps, warp = agent.component % std::max(warps, 1);
  std::string who = Cat("warp ", warp);
  if (agent.component >= 4 * warps) {
    who = Cat("the load into ", async_.SlotName(agent.component - 4 * warps));
  } else if (agent.component >= 2 * warps) {
    who += "'s TMA store";
  } else if (agent.component >= warps) {
    who += "'s wgmma";
  } else if (agent.block == kSeveralBlocks || agent.lane == kSeveralLanes) {
    who = agent.block == kSeveralBlocks ? "several threads" : Cat("several lanes of warp ", warp);
  } else {
    who += Cat(" lane ", agent.lane);
  }
  return Cat(who, agent.block == number_ ? "" : " of another block", " at ", PathOf(agent.stmt));
}

}  // namespace tilert::sim
