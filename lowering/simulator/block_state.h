// The state of a run: global memory, and what statements pass around.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <tuple>
#include <vector>

#include "absl/types/span.h"
#include "lowering/simulator.h"
#include "lowering/simulator/compiled.h"
#include "lowering/simulator/shadow.h"
#include "lowering/simulator/warp.h"

namespace tilert::sim {

inline constexpr uint32_t kAllLanes = 0xffffffff;  // as a mask

// What memory and registers hold before they are written: NaN in every float type, −1 in signed ones.
inline constexpr uint8_t kPoison = 0xff;

// Global memory of a launch, by BufferId. Only buffers that the kernel may write have a shadow.
struct GlobalTensor {
  absl::Span<uint8_t> data;
  std::unique_ptr<Shadow> shadow;
};

// One element a lane, in memory form.
struct LaneData {
  std::array<uint64_t, kLanes> raw;
  uint32_t defined = 0;
};

// What all blocks of one run share.
struct Run {
  const Compiled* kernel = nullptr;
  std::vector<GlobalTensor> globals;
  SimReport* report = nullptr;
  std::mt19937_64 random;
  int64_t max_steps = 0;
  double deadline = 0;  // seconds of SteadySeconds()
  int64_t blocks = 0;   // of this launch
  // How often each tile was visited, by the number of the ForTiles that did.
  std::vector<std::pair<int, std::vector<uint16_t>>> visits = {};
  // Sums that warps left in the workspace: by block, buffer and warp, a register of all lanes each.
  struct Given {
    std::vector<LaneData> registers;
    bool taken = false;
  };
  std::map<std::tuple<int64_t, BufferId, int>, Given> given = {};
};
double SteadySeconds();

int64_t Tiles(const Compiled& kernel);     // blocks of the grid
int64_t Clusters(const Compiled& kernel);  // and clusters; blocks where there are none
// The block variables of a block of a cluster: clusters go over the grid x fastest, in panels if the kernel says so
// (kir::Kernel::raster_panel), ranks over the cluster. Outside the grid: those of the nearest block.
std::vector<int64_t> BlockCoords(const Compiled& kernel, int64_t cluster, int rank, bool* inside);
int64_t BlockNumber(const Compiled& kernel, const std::vector<int64_t>& coords);  // x fastest

// Where the lanes' elements are: the byte address in memory, or the register number.
struct Places {
  BufferId buffer = kNoId;
  const Value* const* coords = nullptr;  // a row of lanes a dimension
  std::array<int64_t, kLanes> at;
  uint32_t outside = 0;  // lanes whose coordinates lie outside the buffer
};

// Of sums of a 4-byte type, in memory form.
uint64_t AddWords(DType type, uint64_t a, uint64_t b);

// Completes a phase when all arrivals and bytes of it are there (PTX ISA, "mbarrier").
struct Mbarrier {
  int count = 1, pending = 1;
  int64_t bytes = 0;  // expected and not yet arrived
  uint32_t phase = 0;
  Clock arriving, completed;  // what the arrivals of this phase and of the last one knew
  void TryComplete();
};

// Lanes that left the body of a loop inside Elementwise.
struct Flow {
  uint32_t broke = 0, continued = 0;
};

// One side of a copy that is being run.
struct Side {
  const CAccess* access = nullptr;
  std::vector<int64_t> start;
  std::vector<Row> rows;
  std::vector<const Value*> coords;
  Places places;
};

}  // namespace tilert::sim
