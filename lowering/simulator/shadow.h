// What the simulator knows about each cell of a memory: who wrote and read it last, and when. An access must happen after
// (clock.h) all earlier ones that it conflicts with; accesses of two blocks are never ordered.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "lowering/simulator/clock.h"

namespace tilert::sim {

enum class AccessKind : uint8_t {
  kRead,
  kWrite,
  kAtomic,
  kAsyncWrite,  // begins a cp.async into the cell: until Settle any access is an error
};

class Shadow {
 public:
  struct Cell {
    Agent write, read;  // the latest of each
    bool has_write = false, has_read = false;
    bool defined = false;  // holds a value that was written (a cell may have been written with something undefined)
    bool atomic = false;   // the latest write was atomic
    bool in_flight = false;
    bool many_blocks = false;         // other blocks than read.block have read
    int32_t reads = -1, writes = -1;  // rows of further readers and (atomic) writers that are not ordered among each other
  };

  explicit Shadow(size_t cells, bool defined = false) : cells_(cells) {
    for (Cell& cell : cells_) cell.defined = defined;
  }

  // Records the access; nullptr, or what is wrong with it (and `other` is the access it clashes with).
  const char* Touch(size_t cell, AccessKind kind, const Observer& now, Agent* other);
  // As Touch of a read or write, but records nothing.
  const char* Check(const Cell& cell, AccessKind kind, const Observer& now, Agent* other) const;
  // The copy in flight into `cell` has completed, as seen by its own thread.
  void Settle(size_t cell, const Agent& agent, bool defined);
  // As if it had never been touched, but for its value, which is defined.
  void Forget(size_t cell);
  const Cell& at(size_t cell) const { return cells_[cell]; }
  bool defined(size_t cell) const { return cells_[cell].defined; }
  void SetDefined(size_t cell, bool defined) { cells_[cell].defined = defined; }

 private:
  void RecordRead(Cell& cell, const Observer& now);
  void RecordWrite(Cell& cell, AccessKind kind, const Observer& now);
  void AddTo(int32_t& row, const Agent& agent, const Observer* now);
  void Free(int32_t& row);

  std::vector<Cell> cells_;
  std::vector<std::vector<Agent>> rows_;
  std::vector<int32_t> free_rows_;
};

// Shared memory: cells for what threads do, and sectors of 16 bytes for what TMA and wgmma do.
class SharedShadow {
 public:
  static constexpr int64_t kSectorBytes = 16;
  // `cell_bytes` divides 16; 0: no shared buffers.
  SharedShadow(int64_t bytes, int cell_bytes);

  // Of `count` cells; `defined` becomes false when one of them does not hold a defined value.
  const char* Touch(size_t first, size_t count, AccessKind kind, const Observer& now, Agent* other, bool* defined);
  // `now` is asynchronous work that reads or overwrites the sector from now until its epoch is known to be over.
  const char* TouchAsync(size_t sector, bool write, const Observer& now, Agent* other);
  bool SectorDefined(size_t sector) const;
  void Settle(size_t cell, const Agent& agent, bool defined) { cells_.Settle(cell, agent, defined); }
  bool defined(size_t cell) const { return cells_.defined(cell); }
  void SetDefined(size_t cell, bool defined) { cells_.SetDefined(cell, defined); }

 private:
  struct Sector {
    Agent write;
    bool has_write = false;
    bool generic = false;                 // its cells were touched since
    absl::InlinedVector<Agent, 2> reads;  // one a component
  };
  const char* CheckReads(const Sector& sector, const Observer& now, Agent* other) const;
  const char* TouchSector(Sector& sector, AccessKind kind, const Observer& now, Agent* other);

  size_t cells_a_sector_ = 1;
  int sector_shift_ = 0;  // its log2
  Shadow cells_;
  std::vector<Sector> sectors_;
};

}  // namespace tilert::sim
