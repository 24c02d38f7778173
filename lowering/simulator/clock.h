// Vector clocks: which events of a block, or of the blocks of a cluster, happen before which.
//
// A component of a clock counts one thing that goes on in the cluster: the accesses of a warp; for each warp the groups of its
// wgmma, of the reads of its TMA stores and of their writes; and for each slot of each ring the rounds of its TMA loads. An event
// is (component, epoch); a warp knows of it when its clock holds that epoch or a later one. Clocks travel by BarSync, through
// mbarriers and with the order token.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tilert::sim {

inline constexpr int16_t kSeveralLanes = -1;  // of one warp: no lane of it has all these events in its own past
inline constexpr int16_t kNoLane = -2;        // asynchronous work
inline constexpr uint32_t kSeveralBlocks = 0xffffffff;

struct Agent {
  uint32_t block = 0;  // number of the cluster
  uint32_t epoch = 0;
  int16_t component = 0;
  int16_t lane = 0;
  int32_t stmt = 0;  // number of the statement, for messages
};

struct Components {
  int warps = 0, slots = 0;  // of all blocks of the cluster, one block after the other
  int count() const { return 4 * warps + slots; }
  int Wgmma(int warp) const { return warps + warp; }
  int StoreRead(int warp) const { return 2 * warps + warp; }
  int StoreWrite(int warp) const { return 3 * warps + warp; }
  int Slot(int slot) const { return 4 * warps + slot; }
};

// How far the past of one lane is known, where it alone told it.
struct LanePast {
  int16_t component = 0, lane = 0;
  uint32_t seen = 0, fenced = 0;
};

struct Clock {
  Clock() = default;
  explicit Clock(const Components& components)
      : seen(static_cast<size_t>(components.count())), fenced(static_cast<size_t>(components.warps)) {}
  void Join(const Clock& other) {
    for (size_t i = 0; i < seen.size(); ++i) seen[i] = std::max(seen[i], other.seen[i]);
    for (size_t i = 0; i < fenced.size(); ++i) fenced[i] = std::max(fenced[i], other.fenced[i]);
    for (const LanePast& past : other.lanes) Learn(past);
  }
  void Learn(const LanePast& past) {
    for (LanePast& known : lanes) {
      if (known.component != past.component || known.lane != past.lane) continue;
      known.seen = std::max(known.seen, past.seen);
      known.fenced = std::max(known.fenced, past.fenced);
      return;
    }
    lanes.push_back(past);
  }
  void Reset() {
    std::fill(seen.begin(), seen.end(), 0);
    std::fill(fenced.begin(), fenced.end(), 0);
    lanes.clear();
  }
  bool Knows(const Agent& agent) const {
    return agent.epoch <= seen[static_cast<size_t>(agent.component)] || agent.epoch <= OfLane(agent).seen;
  }
  bool KnowsFenced(const Agent& agent) const {
    return agent.epoch <= fenced[static_cast<size_t>(agent.component)] || agent.epoch <= OfLane(agent).fenced;
  }
  LanePast OfLane(const Agent& agent) const {
    for (const LanePast& past : lanes) {
      if (past.component == agent.component && past.lane == agent.lane) return past;
    }
    return {};
  }
  std::vector<uint32_t> seen;
  std::vector<uint32_t> fenced;  // by warp: its writes up to here went through a ProxyFence of their thread
  std::vector<LanePast> lanes;
};

// Who touches memory now, and what that thread knows.
struct Observer {
  Agent self;  // what is recorded
  const Clock* clock = nullptr;
  int16_t warp = 0, lane = 0;                    // of the thread; kNoLane where all threads of the warp act together
  bool proxy = false;                            // through the async proxy
  uint32_t own_fence = 0;                        // the thread's last ProxyFence
  int16_t store_read = -1, store_write = -1;     // components of the thread's own TMA stores,
  uint32_t stores_read = 0, stores_written = 0;  // and how many of their groups it has waited for
};

inline bool SameThread(const Agent& earlier, const Observer& now) {
  return earlier.component == now.warp && earlier.lane == now.lane && now.lane >= 0;
}

inline bool Ordered(const Agent& earlier, const Observer& now) {
  if (earlier.block != now.self.block) return false;
  if (SameThread(earlier, now)) return true;
  if (now.clock->Knows(earlier)) return true;
  return (earlier.component == now.store_read && earlier.epoch <= now.stores_read) ||
         (earlier.component == now.store_write && earlier.epoch <= now.stores_written);
}

// Whether what `write` wrote, ordered before, can be seen: by the async proxy only after a ProxyFence of its thread.
inline bool Fenced(const Agent& write, const Observer& now) {
  if (!now.proxy || static_cast<size_t>(write.component) >= now.clock->fenced.size()) return true;
  if (SameThread(write, now)) return write.epoch <= now.own_fence;
  return now.clock->KnowsFenced(write);
}

}  // namespace tilert::sim
