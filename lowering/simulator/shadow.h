// What the simulator knows about each cell of a memory: who wrote and read it last, and when.
//
// The only synchronisation between threads of a block is BarSync, which all of them pass: so the vector clock of a thread is one
// number, its phase (barriers passed), and an access happens before another of the same block iff both are by one thread or its
// phase is lower. Accesses of two blocks are never ordered.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilert::sim {

struct Agent {
  uint32_t block = 0;
  uint32_t phase = 0;
  int32_t thread = 0;  // within the block
  int32_t stmt = 0;    // number of the statement, for messages
};

enum class AccessKind : uint8_t {
  kRead,
  kWrite,
  kAtomic,
  kAsyncWrite,  // begins a cp.async into the cell: until Settle any access is an error
};

class Shadow {
 public:
  struct Cell {
    Agent write, read;          // the latest of each
    bool has_write = false, has_read = false;
    bool defined = false;       // holds a value that was written (a cell may have been written with something undefined)
    bool atomic = false;        // the latest write was atomic
    bool in_flight = false;
    bool many_threads = false;  // other threads than read.thread have read in read.phase
    bool many_blocks = false;   // other blocks than read.block have read
  };

  explicit Shadow(size_t cells, bool defined = false) : cells_(cells) {
    for (Cell& cell : cells_) cell.defined = defined;
  }

  // Records the access; nullptr, or what is wrong with it (and `other` is the access it clashes with).
  const char* Touch(size_t cell, AccessKind kind, const Agent& agent, Agent* other);
  // The copy in flight into `cell` has completed, as seen by its own thread.
  void Settle(size_t cell, const Agent& agent, bool defined);
  bool defined(size_t cell) const { return cells_[cell].defined; }
  void SetDefined(size_t cell, bool defined) { cells_[cell].defined = defined; }

 private:
  std::vector<Cell> cells_;
};

}  // namespace tilert::sim
