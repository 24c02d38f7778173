// Rings of mbarriers, order tokens, and when asynchronous work happens.
#include <algorithm>

#include "ir/limits.h"
#include "ir/status_util.h"
#include "lowering/simulator/block.h"

namespace tilert::sim {

AsyncWork::AsyncWork(ThreadBlock& block)
    : block_(block),
      kernel_(block.kernel_),
      tokens_(1),
      written_(kernel_.buffers.size()),
      landed_(kernel_.buffers.size()),
      packed_(static_cast<size_t>(kernel_.wgmmas)),
      eagerness_(static_cast<int>(block.run_.random() % 3)) {
  const std::vector<kir::Ring>& rings = kernel_.kernel->rings;
  for (size_t r = 0; r < rings.size(); ++r) {
    for (int s = 0; s < rings[r].slots; ++s) {
      Slot slot;
      slot.ring = static_cast<kir::RingId>(r);
      slot.empty.count = slot.empty.pending = rings[r].consumers;
      slot.full.arriving = slot.full.completed = slot.empty.arriving = slot.empty.completed = Clock(block.components_);
      slots_.push_back(std::move(slot));
    }
  }
  const std::vector<kir::Barrier>& barriers = kernel_.kernel->barriers;
  for (size_t b = 0; b < barriers.size(); ++b) {
    for (int i = 0; i < barriers[b].size; ++i) {
      Slot slot;
      slot.ring = static_cast<kir::RingId>(rings.size() + b);
      slot.full.count = slot.full.pending = barriers[b].arrivals;
      slot.full.arriving = slot.full.completed = slot.empty.arriving = slot.empty.completed = Clock(block.components_);
      slots_.push_back(std::move(slot));
    }
  }
  for (size_t b = 0; b < kernel_.buffers.size(); ++b) landed_[b].resize(static_cast<size_t>(kernel_.buffers[b].source->versions));
}

void Mbarrier::TryComplete() {
  if (pending != 0 || bytes != 0) return;
  ++phase;
  pending = count;
  std::swap(completed, arriving);
  arriving.Reset();
}

int AsyncWork::SlotOf(kir::RingId ring, int64_t position) const {
  return kernel_.ring_slots[ring] + static_cast<int>(position % kernel_.kernel->rings[ring].slots);
}
int AsyncWork::SlotComponent(int slot) const { return block_.components_.Slot(block_.rank_ * kernel_.ring_slots.back() + slot); }
uint32_t AsyncWork::RoundOf(kir::RingId ring, int64_t position) const {
  return static_cast<uint32_t>(position / kernel_.kernel->rings[ring].slots);
}
std::string AsyncWork::SlotName(int slot) const {
  const kir::RingId ring = slots_[static_cast<size_t>(slot)].ring;
  if (const size_t rings = kernel_.kernel->rings.size(); ring >= rings) {
    int first = kernel_.ring_slots[rings];
    for (size_t b = 0; b < ring - rings; ++b) first += kernel_.kernel->barriers[b].size;
    return Cat("barrier ", kernel_.kernel->barriers[ring - rings].name, "[", slot - first, "]");
  }
  return Cat("slot ", slot - kernel_.ring_slots[ring], " of ring ", kernel_.kernel->rings[ring].name);
}

bool AsyncWork::Issues(const Warp& warp) const {
  const bool by_warpgroup = block_.groups_[static_cast<size_t>(warp.group)].stores_by_warpgroup;
  return by_warpgroup ? warp.index % kWarpgroupWarps == 0 : warp.index == 0;
}

void AsyncWork::FailAt(int stmt, const std::string& what) {
  if (!block_.failed())
    block_.status_ = WithPlace(
        Internal("kernel ", kernel_.kernel->name, ", ", block_.PathOf(stmt), ", block ", block_.number_, ": ", what), PlaceOf(kernel_, stmt));
}

void AsyncWork::Execute(Warp& warp, const CStmt& stmt) {
  const Overloaded visitor{
      [&](const CWgmma& s) { Issue(warp, stmt, s); },
      [&](const CWgmmaFence& s) {
        for (Registers& registers : warp.registers) registers.needs_fence = false;
        for (BufferId id : s.touched) warp.registers[id].unnamed = false;
      },
      [&](const CWgmmaCommit&) { ++warp.wgmma_group; },
      [&](const CWgmmaWait& s) { Run(warp, s); },
      [&](const CTmaLoad& s) { Run(warp, stmt, s); },
      [&](const CTmaStore& s) { Run(warp, stmt, s); },
      [&](const CStoreCommit&) { warp.store_group += Issues(warp); },
      [&](const CStoreWait& s) { Run(warp, s); },
      [&](const CProxyFence&) { warp.own_fence = warp.epoch++; },
      [&](const CAcquire&) { WaitAt(warp); },
      [&](const CExpectTx& s) { Run(warp, s); },
      [&](const CRelease& s) { Run(warp, s); },
      [&](const CAdvance& s) { Run(warp, s); },
      [&](const CMbarArrive& s) { Run(warp, s); },
      [&](const CMbarWait& s) { Run(warp, s); },
      [&](const CMbarExpect& s) { Run(warp, s); },
      [&](const CMbarComplete& s) { Run(warp, s); },
      [&](const COrderWait&) { WaitAt(warp); },
      [&](const COrderPass&) { PassOrder(warp); },
      [&](const CClusterSync&) { ArriveAtSync(warp, stmt); },
      [](const auto&) {},
  };
  std::visit(visitor, stmt.op);
}

// ---- waiting

const Mbarrier& AsyncWork::Awaits(const Warp& warp, const CAcquire& acquire, bool* parity) const {
  const int64_t position = warp.positions[acquire.ring];
  const Slot& slot = slots_[static_cast<size_t>(SlotOf(acquire.ring, position))];
  // A fresh barrier counts as one whose phase of parity 1 is complete: the first round of filling falls through.
  *parity = (RoundOf(acquire.ring, position) & 1) != (acquire.fill ? 1 : 0);
  return acquire.fill ? slot.empty : slot.full;
}

int64_t AsyncWork::OrderNeeds(const Warp& warp) const {
  return warp.order_waits + block_.groups_[static_cast<size_t>(warp.group)].instance;
}

bool AsyncWork::CanPass(const Warp& warp) const {
  if (warp.awaited >= 0) {
    return (slots_[static_cast<size_t>(warp.awaited)].full.phase & 1) != (warp.awaited_parity ? 1u : 0u);
  }
  if (const auto* acquire = std::get_if<CAcquire>(&warp.stmt->op)) {
    bool parity = false;
    const Mbarrier& barrier = Awaits(warp, *acquire, &parity);
    return (barrier.phase & 1) != (parity ? 1u : 0u);
  }
  const Group& group = block_.groups_[static_cast<size_t>(warp.group)];
  if (std::holds_alternative<CClusterSync>(warp.stmt->op)) {
    return block_.cluster_.SyncOf(group.role, block_.rank_).completed > warp.syncs[group.role < 0 ? 0 : 1];
  }
  const int64_t needed = OrderNeeds(warp);
  if (needed == 0) return true;
  const auto& passes = tokens_[static_cast<size_t>(group.role)].passes[static_cast<size_t>(1 - group.instance)];
  return static_cast<int64_t>(passes.size()) >= needed && passes[static_cast<size_t>(needed - 1)].warps == group.warps;
}

void AsyncWork::WaitAt(Warp& warp) {
  const Group& group = block_.groups_[static_cast<size_t>(warp.group)];
  if (std::holds_alternative<COrderWait>(warp.stmt->op)) {
    if (group.role < 0 || kernel_.kernel->warps < 2 * group.warps || group.instance > 1)
      return block_.Fail(warp, 0, "there is no order token but in a role of two instances");
    tokens_.resize(std::max(tokens_.size(), static_cast<size_t>(group.role) + 1));
  }
  warp.state = Warp::State::kWaiting;
  if (CanPass(warp)) Pass(warp);
}

// One more warp is at a barrier across blocks.
void AsyncWork::ArriveAtSync(Warp& warp, const CStmt& stmt) {
  const Group& group = block_.groups_[static_cast<size_t>(warp.group)];
  const kir::Kernel& kernel = *kernel_.kernel;
  Cluster::Sync& sync = block_.cluster_.SyncOf(group.role, block_.rank_);
  const int warps =
      group.role < 0 ? kernel.warps * block_.cluster_.size() : group.warps * kir::ClusterExtent(kernel, kir::SplitAxis(kernel));
  if (sync.arrived > 0 && sync.stmt != &stmt)
    return block_.Fail(warp, 0, Cat("waits at this ClusterSync while others wait at ", block_.PathOf(sync.stmt->number)));
  sync.stmt = &stmt;
  block_.SyncLanes(warp);
  sync.arriving.Join(warp.clock);
  if (++sync.arrived == warps) {
    ++sync.completed;
    sync.arrived = 0;
    std::swap(sync.last, sync.arriving);
    sync.arriving.Reset();
  }
  WaitAt(warp);
}

void AsyncWork::Pass(Warp& warp) {
  warp.state = Warp::State::kReady;
  if (warp.awaited >= 0) {
    if (warp.points == nullptr) warp.Learn(slots_[static_cast<size_t>(warp.awaited)].full.completed);
    warp.awaited = -1;
    return;
  }
  if (std::holds_alternative<CClusterSync>(warp.stmt->op)) {
    const Group& group = block_.groups_[static_cast<size_t>(warp.group)];
    warp.Learn(block_.cluster_.SyncOf(group.role, block_.rank_).last);
    ++warp.syncs[group.role < 0 ? 0 : 1];
    return;
  }
  if (const auto* acquire = std::get_if<CAcquire>(&warp.stmt->op)) return PassRing(warp, *acquire);
  if (const int64_t needed = OrderNeeds(warp); needed > 0) {
    const Group& group = block_.groups_[static_cast<size_t>(warp.group)];
    warp.Learn(tokens_[static_cast<size_t>(group.role)]
                   .passes[static_cast<size_t>(1 - group.instance)][static_cast<size_t>(needed - 1)]
                   .clock);
  }
  ++warp.order_waits;
}

void AsyncWork::PassRing(Warp& warp, const CAcquire& acquire) {
  bool parity = false;
  warp.Learn(Awaits(warp, acquire, &parity).completed);
  if (acquire.fill) return;
  const int64_t position = warp.positions[acquire.ring];
  std::vector<int64_t>& held = warp.held[acquire.ring];
  if (std::find(held.begin(), held.end(), position) == held.end()) held.push_back(position);
  Slot& slot = slots_[static_cast<size_t>(SlotOf(acquire.ring, position))];
  slot.acquired = std::max(slot.acquired, RoundOf(acquire.ring, position) + 1);
}

std::string AsyncWork::Awaited(const Warp& warp) const {
  if (warp.awaited >= 0) {
    const Mbarrier& barrier = slots_[static_cast<size_t>(warp.awaited)].full;
    return Cat("phase of parity ", warp.awaited_parity ? 1 : 0, " of ", SlotName(warp.awaited), " (", barrier.phase,
               " phases are complete, ", barrier.count - barrier.pending, " of ", barrier.count, " arrivals and all but ",
               barrier.bytes, " bytes of the next have come)");
  }
  const auto* acquire = std::get_if<CAcquire>(&warp.stmt->op);
  if (std::holds_alternative<CClusterSync>(warp.stmt->op)) return "the other warps of its cluster";
  if (acquire == nullptr) return "the order token";
  const int64_t position = warp.positions[acquire->ring];
  bool parity = false;
  const Mbarrier& barrier = Awaits(warp, *acquire, &parity);
  return Cat(SlotName(SlotOf(acquire->ring, position)), " to be ", acquire->fill ? "empty" : "full", " (position ", position,
             ", parity ", parity, "; the barrier is in phase ", barrier.phase, ", which lacks ", barrier.pending, " of ",
             barrier.count, " arrivals and ", barrier.bytes, " bytes)");
}

// ---- arriving

void AsyncWork::Run(Warp& warp, const CExpectTx& expect) {
  if (!Issues(warp)) return;
  const int64_t position = warp.positions[expect.ring];
  const int number = SlotOf(expect.ring, position);
  Mbarrier& full = slots_[static_cast<size_t>(number)].full;
  const uint32_t round = RoundOf(expect.ring, position);
  if (full.phase != round || full.pending == 0) {
    return block_.Fail(warp, 0,
                       Cat("arrives at the full barrier of ", SlotName(number), " for round ", round, ", but it is in phase ",
                           full.phase, full.pending == 0 ? ", for which it has arrived already" : ""));
  }
  if (warp.lanes == 1) block_.SyncLanes(warp);
  full.arriving.Join(warp.clock);
  full.bytes += expect.bytes;
  if (full.bytes < 0)
    return block_.Fail(
        warp, 0,
        Cat("expects ", expect.bytes, " bytes in ", SlotName(number), ", but ", -full.bytes, " more have arrived already"));
  --full.pending;
  full.TryComplete();
}

void AsyncWork::Run(Warp& warp, const CRelease& release) {
  const int64_t position = warp.positions[release.ring] - release.behind;
  std::vector<int64_t>& held = warp.held[release.ring];
  const auto found = std::find(held.begin(), held.end(), position);
  if (found == held.end()) {
    return block_.Fail(warp, 0,
                       Cat("releases position ", position, " of ring ", kernel_.kernel->rings[release.ring].name,
                           ", which this warp has not acquired, or has released already"));
  }
  held.erase(found);
  const int number = SlotOf(release.ring, position);
  const uint32_t round = RoundOf(release.ring, position);
  block_.SyncLanes(warp);
  for (int rank : PeersOf(*kernel_.kernel, kernel_.kernel->rings[release.ring], block_.rank_)) {
    if (!block_.failed()) ReleaseAt(warp, block_.cluster_.block(rank).async_, number, round);
  }
}

// Arrives at the empty barrier of a slot of this block or another.
void AsyncWork::ReleaseAt(Warp& warp, AsyncWork& owner, int number, uint32_t round) {
  Mbarrier& empty = owner.slots_[static_cast<size_t>(number)].empty;
  const std::string whose = &owner == this ? "" : Cat(" of block ", owner.block_.rank_, " of the cluster");
  if (empty.phase != round) {
    return block_.Fail(
        warp, 0,
        Cat("arrives at the empty barrier of ", SlotName(number), whose, " for round ", round, ", but it is in phase ",
            empty.phase, ": more arrivals than the ring's ", empty.count, " consumers, or too few before"));
  }
  if (&owner != this) owner.block_.ReachedBy(warp, warp.epoch - 1);
  empty.arriving.Join(warp.clock);
  --empty.pending;
  empty.TryComplete();
}

void AsyncWork::Run(Warp& warp, const CAdvance& advance) {
  const int64_t count = block_.Uniform(warp, advance.count).i;
  if (count < 0) return block_.Fail(warp, 0, Cat("advances by ", count));
  const kir::Ring& ring = kernel_.kernel->rings[advance.ring];
  warp.positions[advance.ring] += count;
  block_.SetVar(warp, ring.slot, Value{.i = warp.positions[advance.ring] % ring.slots});
}

void AsyncWork::PassOrder(Warp& warp) {
  if (warp.order_waits != warp.order_passes + 1) return block_.Fail(warp, 0, "passes the order token without having it");
  const Group& group = block_.groups_[static_cast<size_t>(warp.group)];
  auto& passes = tokens_[static_cast<size_t>(group.role)].passes[static_cast<size_t>(group.instance)];
  const auto number = static_cast<size_t>(warp.order_passes++);
  if (passes.size() <= number) passes.push_back({0, Clock(block_.components_)});
  block_.SyncLanes(warp);
  passes[number].clock.Join(warp.clock);
  ++passes[number].warps;
}

// ---- declared barriers

// The slot of an element of a declared barrier; −1 after a failure.
int AsyncWork::BarrierSlot(Warp& warp, kir::BarrierId id, int64_t at, int lane) {
  if (block_.failed()) return -1;
  const kir::Kernel& kernel = *kernel_.kernel;
  int first = kernel_.ring_slots[kernel.rings.size()];
  for (kir::BarrierId b = 0; b < id; ++b) first += kernel.barriers[b].size;
  if (at >= 0 && at < kernel.barriers[id].size) return first + static_cast<int>(at);
  block_.Fail(warp, lane, Cat("barrier ", kernel.barriers[id].name, " has no element ", at));
  return -1;
}

// One arrival, which tells `past`.
void AsyncWork::ArriveAt(Warp& warp, int number, int lane, const Clock& past) {
  Mbarrier& barrier = slots_[static_cast<size_t>(number)].full;
  if (barrier.pending == 0)
    return block_.Fail(warp, lane, Cat("more arrivals at ", SlotName(number), " than a phase counts, before its bytes have come"));
  barrier.arriving.Join(past);
  --barrier.pending;
  barrier.TryComplete();
}

void AsyncWork::Run(Warp& warp, const CMbarArrive& arrive) {
  const int number = BarrierSlot(warp, arrive.barrier, block_.Uniform(warp, arrive.index).i, 0);
  if (number < 0) return;
  block_.TellLanes(warp);
  for (Clock& own : warp.lane_clocks) own.Join(warp.clock);
  for (int lane = 0; lane < kLanes && !block_.failed(); ++lane) ArriveAt(warp, number, lane, warp.KnownTo(lane));
}

// A value of each lane, which stays when others are evaluated.
Row AsyncWork::ByLanes(Warp& warp, const Code& value, uint32_t mask) {
  Row row;
  std::copy_n(block_.Eval(warp, value, mask, kLanes), kLanes, row.begin());
  return row;
}

// Each lane tells what the whole warp knows and what it has done itself; all together, what they have done.
void AsyncWork::ArriveByLanes(Warp& warp, const CMbarArrive& arrive, uint32_t mask, bool all) {
  const Row index = ByLanes(warp, arrive.index, mask);
  const auto own = static_cast<size_t>(warp.component);
  for (int lane = 0; lane < kLanes && !block_.failed(); ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    const auto at = static_cast<size_t>(lane);
    const int number = BarrierSlot(warp, arrive.barrier, index[at].i, lane);
    if (number < 0) return;
    Clock past = warp.KnownTo(lane);
    past.Learn({static_cast<int16_t>(own), static_cast<int16_t>(lane), warp.epoch, std::max(warp.own_fence, warp.lane_fence[at])});
    if (all) {
      past.seen[own] = warp.epoch;
      past.fenced[own] = warp.own_fence;
    }
    ArriveAt(warp, number, lane, past);
  }
  ++warp.epoch;
}

void AsyncWork::Run(Warp& warp, const CMbarWait& wait) {
  const int number = BarrierSlot(warp, wait.barrier, block_.Uniform(warp, wait.index).i, 0);
  const int64_t parity = number < 0 ? 0 : block_.Uniform(warp, wait.parity).i;
  if (block_.failed()) return;
  warp.awaited = number;
  warp.awaited_parity = (parity & 1) != 0;
  warp.state = Warp::State::kWaiting;
  if (CanPass(warp)) Pass(warp);
}

void AsyncWork::WaitByLanes(Warp& warp, const CMbarWait& wait, uint32_t mask) {
  const Row index = ByLanes(warp, wait.index, mask), parity = ByLanes(warp, wait.parity, mask);
  for (int lane = 0; lane < kLanes && !block_.failed(); ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    const auto at = static_cast<size_t>(lane);
    const int number = BarrierSlot(warp, wait.barrier, index[at].i, lane);
    if (number < 0) return;
    block_.AwaitInPoints(warp, number, (parity[at].i & 1) != 0);
    if (warp.lane_clocks.empty()) warp.lane_clocks.assign(kLanes, warp.clock);
    warp.lane_clocks[at].Join(slots_[static_cast<size_t>(number)].full.completed);
  }
}

void AsyncWork::Run(Warp& warp, const CMbarExpect& expect) {
  if (!Issues(warp)) return;
  const int number = BarrierSlot(warp, expect.barrier, block_.Uniform(warp, expect.index).i, 0);
  if (number >= 0) Announce(warp, 0, number, block_.Uniform(warp, expect.bytes).i);
}

void AsyncWork::ExpectByLanes(Warp& warp, const CMbarExpect& expect, uint32_t mask) {
  const Row index = ByLanes(warp, expect.index, mask), bytes = ByLanes(warp, expect.bytes, mask);
  for (int lane = 0; lane < kLanes && !block_.failed(); ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    const int number = BarrierSlot(warp, expect.barrier, index[static_cast<size_t>(lane)].i, lane);
    if (number >= 0) Announce(warp, lane, number, bytes[static_cast<size_t>(lane)].i);
  }
}

void AsyncWork::Announce(Warp& warp, int lane, int number, int64_t bytes) {
  if (block_.failed()) return;
  Mbarrier& barrier = slots_[static_cast<size_t>(number)].full;
  if (bytes < 0 || bytes > kMaxPhaseCount - barrier.bytes)
    return block_.Fail(warp, lane, Cat("announces ", bytes, " bytes at ", SlotName(number), ", which can count 0 to ", kMaxPhaseCount));
  barrier.bytes += bytes;
  barrier.TryComplete();
}

void AsyncWork::Run(Warp& warp, const CMbarComplete& complete) {
  if (!Issues(warp)) return;
  const int number = BarrierSlot(warp, complete.barrier, block_.Uniform(warp, complete.index).i, 0);
  if (number < 0) return;
  Mbarrier& barrier = slots_[static_cast<size_t>(number)].full;
  barrier.arriving.Join(warp.KnownTo(0));
  barrier.bytes -= complete.bytes;
  if (barrier.bytes < 0 && barrier.pending == 0)
    return block_.Fail(warp, 0, Cat(complete.bytes, " bytes arrive at ", SlotName(number), ", which expects ", barrier.bytes + complete.bytes));
  barrier.TryComplete();
}

// Whether the program announces its bytes: some of them may come before.
bool AsyncWork::IsByHand(int number) const {
  const size_t rings = kernel_.kernel->rings.size();
  const kir::RingId ring = slots_[static_cast<size_t>(number)].ring;
  return ring >= rings && kernel_.kernel->barriers[ring - rings].by_hand;
}

// ---- when things happen

bool AsyncWork::RunOne() {
  struct Choice {
    Warp* warp;
    size_t index;
  };
  std::vector<Choice> choices;
  for (size_t i = 0; i < loads_.size(); ++i) choices.push_back({nullptr, i});
  for (Warp& warp : block_.warps_) {
    for (size_t i = 0; i < warp.wgmmas.size(); ++i) {
      if (warp.wgmmas[i].done) continue;
      choices.push_back({&warp, i});
      break;  // in order
    }
    for (size_t i = 0; i < warp.stores.size(); ++i) {
      if (warp.stores[i].stage != PendingStore::Stage::kWritten) choices.push_back({&warp, warp.wgmmas.size() + i});
    }
  }
  if (choices.empty()) return false;
  const Choice choice = choices[block_.run_.random() % choices.size()];
  if (choice.warp == nullptr) {
    const PendingLoad load = std::move(loads_[choice.index]);
    loads_.erase(loads_.begin() + static_cast<std::ptrdiff_t>(choice.index));
    Land(load);
  } else if (choice.index < choice.warp->wgmmas.size()) {
    choice.warp->wgmmas[choice.index].done = true;
    Multiply(*choice.warp, choice.warp->wgmmas[choice.index]);
  } else {
    Step(*choice.warp, choice.warp->stores[choice.index - choice.warp->wgmmas.size()]);
  }
  return true;
}

void AsyncWork::RunSome() {
  if (eagerness_ == 0 || block_.failed()) return;  // everything as late as possible
  if (eagerness_ == 1) {
    if (block_.run_.random() % 4 == 0) RunOne();
    return;
  }
  while (!block_.failed() && RunOne()) {
  }
}

void AsyncWork::CheckEnd(Warp& warp) {
  if (!warp.wgmmas.empty())
    FailAt(warp.wgmmas.front().stmt->number, Cat(block_.NameOf(warp), " ends before a WgmmaWait has retired this"));
  for (const PendingStore& store : warp.stores) {
    if (store.group > warp.stores_read)
      FailAt(store.stmt->number, Cat(block_.NameOf(warp), " ends before a StoreWait knows that this has read shared memory"));
  }
}

void AsyncWork::CheckEnd() {
  while (!block_.failed() && RunOne()) {
  }
  for (size_t s = 0; s < slots_.size() && !block_.failed(); ++s) {
    if (slots_[s].filled <= slots_[s].acquired || slots_[s].ring >= kernel_.kernel->rings.size()) continue;
    block_.status_ =
        Internal("kernel ", kernel_.kernel->name, ", block ", block_.number_, ": ends though nobody has waited for round ",
                 slots_[s].filled - 1, " of ", SlotName(static_cast<int>(s)), " to be full");
  }
  block_.CheckReached();
}

void AsyncWork::SharedWritten(BufferId buffer) {
  for (BufferId other : kernel_.overlaps[buffer]) ++written_[other];
}

}  // namespace tilert::sim
