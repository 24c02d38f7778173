// The state of a run: global memory, and the warps of the block that is being executed.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "absl/types/span.h"
#include "lowering/simulator.h"
#include "lowering/simulator/compiled.h"
#include "lowering/simulator/shadow.h"

namespace tilert::sim {

// Global memory of a launch, by BufferId. Only buffers that the kernel may write have a shadow.
struct GlobalTensor {
  absl::Span<uint8_t> data;
  std::unique_ptr<Shadow> shadow;
};

// What all blocks of one run share.
struct Run {
  const Compiled* kernel = nullptr;
  std::vector<GlobalTensor> globals;
  SimReport* report = nullptr;
  std::mt19937_64 random;
  int64_t max_steps = 0;
  double deadline = 0;  // seconds of SteadySeconds()
};
double SteadySeconds();

// The registers of one warp for one buffer.
struct Registers {
  std::vector<uint8_t> data;      // [register][lane], elements in memory form
  std::vector<uint32_t> defined;  // [register]: lanes where it was written
  // The point of the current Elementwise that touched the element last: points may not depend on each other.
  std::vector<uint64_t> read_point, write_point;
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

struct Warp {
  enum class State : uint8_t { kReady, kAtBarrier, kDone };
  int index = 0;
  State state = State::kReady;
  uint32_t phase = 0;
  const CStmt* stmt = nullptr;     // being executed
  uint64_t barrier_instance = 0;   // which barrier, in which iterations
  std::vector<Value> frame;
  std::vector<ControlFrame> stack;
  std::vector<Registers> registers;               // by BufferId
  std::vector<AsyncPiece> open;                   // not committed yet
  std::deque<std::vector<AsyncPiece>> groups;     // committed, oldest first
};

// Where the lanes' elements are: the byte address in memory, or the register number.
struct Places {
  BufferId buffer = kNoId;
  const Value* const* coords = nullptr;  // a row of lanes a dimension
  std::array<int64_t, kLanes> at;
  uint32_t outside = 0;                  // lanes whose coordinates lie outside the buffer
};

// One element a lane, in memory form.
struct LaneData {
  std::array<uint64_t, kLanes> raw;
  uint32_t defined = 0;
};

}  // namespace tilert::sim
