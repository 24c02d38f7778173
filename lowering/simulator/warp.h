// A warp in execution: registers, control, and the asynchronous work it has issued.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "ir/fiber.h"
#include "lowering/simulator/clock.h"
#include "lowering/simulator/compiled.h"

namespace tilert::sim {

// The registers of one warp for one buffer.
struct Registers {
  std::vector<uint8_t> data;      // [register][lane], elements in memory form
  std::vector<uint32_t> defined;  // [register]: lanes where it was written
  // The point of the current Elementwise that touched the element last: points may not depend on each other.
  std::vector<uint64_t> read_point, write_point;
  uint32_t wgmma_acc = 0, wgmma_a = 0;  // the last group that accumulates into, or multiplies from them; 0: none
  bool needs_fence = false;             // touched since the last WgmmaFence
  bool unnamed = false;                 // touched, and neither named by a WgmmaFence nor cleared by a wgmma since
};

// One vector of a cp.async on its way.
struct AsyncPiece {
  BufferId dst_buffer = kNoId, src_buffer = kNoId;
  int64_t version = 0;
  int64_t dst = 0, src = 0;      // bytes from the start of shared memory and of the tensor
  int32_t bytes = 0, valid = 0;  // the bytes from `valid` on are zeroed
  int32_t lane = 0, stmt = 0;
  bool landed = false;
};

struct ControlFrame {
  const CBlock* block = nullptr;
  size_t next = 0;
  const CStmt* loop = nullptr;  // the For or While whose body this is
  int64_t value = 0, end = 0, step = 1;
};

// Asynchronous work of one warp, from the issue to the wait that knows it done.
struct PendingWgmma {
  const CStmt* stmt = nullptr;
  uint32_t group = 0;
  bool zero = false, done = false;
  std::vector<int64_t> a, b;  // where the operands start
};
struct PendingStore {
  const CStmt* stmt = nullptr;
  uint32_t group = 0;
  enum class Stage : uint8_t { kIssued, kRead, kWritten } stage = Stage::kIssued;
  int64_t version = 0;
  int share = 0;              // number of the warpgroup that stores this part; 0 when one thread stores all
  std::vector<int64_t> coords;
  std::vector<uint8_t> data;  // the box, once read
};
struct PendingLoad {
  const CStmt* stmt = nullptr;
  int slot = 0;        // among those of all rings
  uint32_t round = 0;  // of the slot
  int64_t version = 0;
  int share = 0;       // which part of the tile
  std::vector<int64_t> coords;
};

struct Warp {
  // kWaiting: at an Acquire or OrderWait that does not let it pass (yet).
  enum class State : uint8_t { kReady, kAtBarrier, kWaiting, kDone };
  int number = 0;  // in the block
  int index = 0;   // in its group
  int group = 0;
  int rank = 0;       // of its block in the cluster
  int component = 0;  // of clocks: its number among the warps of the cluster
  uint32_t lanes = 0xffffffff;  // that run
  State state = State::kReady;
  const CStmt* stmt = nullptr;    // being executed
  uint64_t barrier_instance = 0;  // which barrier, in which iterations
  int named = 0;                  // number of the barrier it is at, if that has one
  int awaited = -1;               // slot of the declared barrier that it waits at,
  bool awaited_parity = false;    // and for which phase
  std::vector<int64_t> tile;      // of the ForTiles it is in
  kir::Share share;               // and which of its iterations, where blocks share them
  std::vector<Value> frame;
  std::vector<ControlFrame> stack;
  std::vector<Registers> registers;            // by BufferId; made by Declare
  std::vector<AsyncPiece> open;                // not committed yet
  std::deque<std::vector<AsyncPiece>> groups;  // committed, oldest first

  std::unique_ptr<Fiber> points;           // an Elementwise in which some of its lanes wait

  Clock clock;                             // what all its lanes know
  std::vector<Clock> lane_clocks;          // and what each does, where some have waited by themselves since they were together
  uint32_t epoch = 1;                      // of its accesses
  uint32_t own_fence = 0;                  // the last epoch before a ProxyFence
  std::array<uint32_t, kLanes> lane_fence{};  // and before one of each lane by itself
  std::vector<int64_t> positions;          // by RingId
  std::vector<std::vector<int64_t>> held;  // by RingId: positions acquired and not released
  int64_t order_waits = 0, order_passes = 0;
  std::vector<int64_t> syncs = {0, 0};  // ClusterSyncs outside and inside roles
  std::deque<PendingWgmma> wgmmas;
  uint32_t wgmma_group = 1, wgmma_retired = 0;  // the open one, and the last that is known done
  std::deque<PendingStore> stores;
  uint32_t store_group = 1, stores_read = 0, stores_written = 0;  // the same; known to lane 0
  const Clock& KnownTo(int lane) const { return lane_clocks.empty() || lane < 0 ? clock : lane_clocks[static_cast<size_t>(lane)]; }
  void Learn(const Clock& other);  // all its lanes do
};

// Warps that synchronise with each other by BarSync: the block, or an instance of a role.
struct Group {
  std::string name;  // of the role
  int role = -1, instance = 0;
  int first = 0, warps = 0;
  bool stores_by_warpgroup = false;
};

}  // namespace tilert::sim
