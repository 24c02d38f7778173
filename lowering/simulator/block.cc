// Scheduling of warps, barriers, and what is said when something is wrong.
#include "lowering/simulator/block.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "ir/status_util.h"

namespace tilert::sim {
double SteadySeconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void Warp::Learn(const Clock& other) {
  clock.Join(other);
  for (Clock& own : lane_clocks) own.Join(other);
}

ThreadBlock::ThreadBlock(Cluster& cluster, int rank)
    : cluster_(cluster),
      run_(cluster.run_),
      kernel_(cluster.kernel_),
      rank_(rank),
      number_(cluster.number_ * static_cast<uint32_t>(kir::ClusterSize(*kernel_.kernel)) + static_cast<uint32_t>(rank)),
      components_(cluster.components_),
      groups_{{"", -1, 0, 0, kernel_.kernel->warps}},
      warps_(static_cast<size_t>(kernel_.kernel->warps)),
      shared_(static_cast<size_t>(kernel_.kernel->shared_bytes), kPoison),
      shared_shadow_(kernel_.kernel->shared_bytes, kernel_.shared_cell_bytes),
      async_(*this),
      status_(cluster.status_) {
  const kir::Kernel& kernel = *kernel_.kernel;
  for (size_t w = 0; w < warps_.size(); ++w) {
    Warp& warp = warps_[w];
    warp.number = warp.index = static_cast<int>(w);
    warp.rank = rank;
    warp.component = rank * kernel.warps + warp.number;
    warp.frame.resize(kernel_.frame_rows * kLanes);
    warp.registers.resize(kernel_.buffers.size());
    warp.clock = Clock(components_);
    warp.positions.resize(kernel.rings.size());
    warp.held.resize(kernel.rings.size());
    for (const kir::Ring& ring : kernel.rings) SetVar(warp, ring.slot, Value{.i = 0});
    warp.stack.push_back({&kernel_.body});
    if (!kernel.cluster.empty()) SetVar(warp, kernel.cluster_rank, Value{.i = rank});
    BindBlock(warp, cluster.number_);
  }
}

// The block of the grid that is this one's in cluster `number` of the grid.
bool ThreadBlock::BindBlock(Warp& warp, int64_t number) {
  const kir::Kernel& kernel = *kernel_.kernel;
  bool has_block = true;
  warp.tile = BlockCoords(kernel_, number, rank_, &has_block);
  for (size_t d = 0; d < warp.tile.size(); ++d) SetVar(warp, kernel.block_vars[d], Value{.i = warp.tile[d]});
  if (!kernel.cluster.empty()) SetVar(warp, kernel.has_block, Value{.i = has_block});
  return has_block;
}

void ThreadBlock::ReachedBy(const Warp& other, uint32_t epoch) {
  const Agent agent{cluster_.number_, epoch, static_cast<int16_t>(other.component), 0, other.stmt->number};
  for (Agent& known : reached_) {
    if (known.component == agent.component) return void(known = agent);
  }
  reached_.push_back(agent);
}

// Some warp of this block ended after each access of the others, by a barrier or the like.
void ThreadBlock::CheckReached() {
  for (const Agent& agent : reached_) {
    const auto knows = [&](const Warp& warp) { return warp.clock.seen[static_cast<size_t>(agent.component)] >= agent.epoch; };
    if (failed() || std::any_of(warps_.begin(), warps_.end(), knows)) continue;
    status_ = Internal("kernel ", kernel_.kernel->name, ", block ", number_, ": may have ended when ", Describe(agent),
                       " reaches its shared memory");
  }
}

bool ThreadBlock::AddReady(std::vector<Warp*>* ready) {
  bool done = true;
  for (Warp& warp : warps_) {
    if (warp.state == Warp::State::kReady || (warp.state == Warp::State::kWaiting && async_.CanPass(warp)))
      ready->push_back(&warp);
    done = done && warp.state == Warp::State::kDone;
  }
  return done;
}

void ThreadBlock::RunBurst(Warp& warp) {
  if (warp.state == Warp::State::kWaiting) async_.Pass(warp);
  // Now and then one warp runs far ahead.
  int64_t burst = run_.random() % 8 == 0 ? 1000 : 1 + static_cast<int64_t>(run_.random() % 6);
  while (burst-- > 0 && warp.state == Warp::State::kReady && !failed()) Step(warp);
  LandSome();
  async_.RunSome();
}

// What all lanes of the warp have done so far, and know, is known to all of them, and may be told to others.
void ThreadBlock::SyncLanes(Warp& warp) {
  for (const Clock& own : std::exchange(warp.lane_clocks, {})) warp.clock.Join(own);
  TellLanes(warp);
}

// What they have done.
void ThreadBlock::TellLanes(Warp& warp) {
  const auto own = static_cast<size_t>(warp.component);
  warp.clock.seen[own] = warp.epoch++;
  warp.clock.fenced[own] = warp.own_fence;
  warp.clock.seen[static_cast<size_t>(components_.StoreRead(warp.component))] = warp.stores_read;
  warp.clock.seen[static_cast<size_t>(components_.StoreWrite(warp.component))] = warp.stores_written;
}

void ThreadBlock::ArriveAtBarrier(Warp& warp, const CStmt& stmt) {
  warp.state = Warp::State::kAtBarrier;
  uint64_t hash = static_cast<uint64_t>(stmt.number) + 1;
  for (const ControlFrame& frame : warp.stack) hash = (hash ^ static_cast<uint64_t>(frame.value)) * 0x9e3779b97f4a7c15;
  warp.barrier_instance = hash;
  const auto* sync = std::get_if<CBarSync>(&stmt.op);
  if (sync != nullptr && sync->number > 0) return ArriveAtNamed(warp, *sync);
  Group group = groups_[static_cast<size_t>(warp.group)];
  if (sync != nullptr && sync->by_warpgroup) {
    group.first += warp.index / kWarpgroupWarps * kWarpgroupWarps;
    group.warps = kWarpgroupWarps;
  }
  for (int w = group.first; w < group.first + group.warps; ++w) {
    const Warp& other = warps_[static_cast<size_t>(w)];
    if (other.state != Warp::State::kAtBarrier || other.group != warp.group || other.named != 0) return;
  }
  ReleaseBarrier(group);
}

// The numbered barriers of the hardware: any warps may meet, at whatever statement.
void ThreadBlock::ArriveAtNamed(Warp& warp, const CBarSync& sync) {
  warp.named = sync.number;
  std::vector<Warp*> here;
  for (Warp& other : warps_) {
    if (other.state == Warp::State::kAtBarrier && other.named == sync.number) here.push_back(&other);
  }
  if (static_cast<int>(here.size()) < sync.warps) return;
  Clock clock(components_);
  for (Warp* other : here) {
    SyncLanes(*other);
    clock.Join(other->clock);
  }
  for (Warp* other : here) {
    other->clock = clock;
    other->state = Warp::State::kReady;
    other->named = 0;
  }
  ++run_.report->barriers;
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

// Who waits where for what. Warps of a role that wait for the same are named together.
std::string ThreadBlock::DescribeWaits() const {
  std::vector<std::pair<std::string, std::string>> waits;  // who, and where for what
  for (const Warp& warp : warps_) {
    if (warp.state == Warp::State::kDone) continue;
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
  return text;
}

void ThreadBlock::FailWaiting(const std::string& what) {
  const auto waits = [](const Warp& warp) { return warp.state != Warp::State::kDone; };
  Fail(*std::find_if(warps_.begin(), warps_.end(), waits), 0, what);
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
  status_ = WithPlace(
      absl::Status(code, Cat("kernel ", kernel_.kernel->name, ", ", path, ", ", block, " ", NameOf(warp), " lane ", lane, ": ", what)),
      warp.stmt == nullptr ? "" : PlaceOf(kernel_, warp.stmt->number));
}

std::string ThreadBlock::NameOf(const Warp& warp) const {
  const Group& group = groups_[static_cast<size_t>(warp.group)];
  if (group.role < 0) return Cat("warp ", warp.number);
  const std::string instance = group.instance > 0 ? Cat("[", group.instance, "]") : "";
  return Cat("role ", group.name, instance, " warp ", warp.index);
}

std::string ThreadBlock::Describe(const Agent& agent) const {
  const int all = components_.warps, warps = kernel_.kernel->warps, slots = kernel_.ring_slots.back();
  const bool is_load = agent.component >= 4 * all;
  const int warp = agent.component % std::max(warps, 1);
  const int rank = is_load ? (agent.component - 4 * all) / slots : agent.component % std::max(all, 1) / std::max(warps, 1);
  std::string who = Cat("warp ", warp);
  if (is_load) {
    who = Cat("the load into ", async_.SlotName((agent.component - 4 * all) % slots));
  } else if (agent.component >= 2 * all) {
    who += "'s TMA store";
  } else if (agent.component >= all) {
    who += "'s wgmma";
  } else if (agent.block == kSeveralBlocks || agent.lane == kSeveralLanes) {
    who = agent.block == kSeveralBlocks ? "several threads" : Cat("several lanes of warp ", warp);
  } else {
    who += Cat(" lane ", agent.lane);
  }
  const bool same = agent.block == cluster_.number_;
  const std::string where = !same ? " of another block" : rank != rank_ ? Cat(" of block ", rank, " of the cluster") : "";
  return Cat(who, where, " at ", PathOf(agent.stmt));
}

}  // namespace tilert::sim
