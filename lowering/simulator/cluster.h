// A thread block cluster in execution: its blocks are interleaved like the warps of one. Without clusters, a block by itself.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "lowering/simulator/block_state.h"

namespace tilert::sim {

class ThreadBlock;

class Cluster {
 public:
  // `number`: of the cluster in the launch.
  Cluster(Run& run, uint32_t number);
  ~Cluster();
  absl::Status Execute();

 private:
  friend class ThreadBlock;
  friend class AsyncWork;
  // Barriers across blocks: of everybody, or of one role in the blocks that work on the same block of the grid.
  struct Sync {
    int64_t completed = 0;
    int arrived = 0;  // warps, since
    const CStmt* stmt = nullptr;
    Clock arriving, last;
  };
  ThreadBlock& block(int rank) { return *blocks_[static_cast<size_t>(rank)]; }
  int size() const { return static_cast<int>(blocks_.size()); }
  Sync& SyncOf(int role, int rank);
  bool RunOne();  // some asynchronous work of some block
  void ReportDeadlock();

  Run& run_;
  const Compiled& kernel_;
  const uint32_t number_;
  const Components components_;
  absl::Status status_;                               // the first failure
  std::vector<std::unique_ptr<ThreadBlock>> blocks_;  // by rank
  std::map<std::pair<int, int>, Sync> syncs_;         // by role, and by which of the grid's blocks
};

}  // namespace tilert::sim
