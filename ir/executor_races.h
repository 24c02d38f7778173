// Who touched which element of memory: what the executor's checks for races remember.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "ir/program.h"

namespace tilert::exec {

enum class TouchKind : uint8_t { kRead, kWrite, kAtomic };

// Accesses between two moments at which everybody waits for everybody. Agents are points of a parallel loop, threads, or blocks.
// Not thread-safe.
class RaceTable {
 public:
  // True when the access conflicts with an earlier one of another agent. Two writes of equal values do not conflict:
  // `changes` says whether the new value differs from what is there.
  bool Touch(BufferId buffer, int64_t offset, int64_t agent, TouchKind kind, bool changes);
  void Clear() { cells_.clear(), known_.clear(); }
  // The accesses of `agents`, and those of several at once, which may be theirs, are ordered before all that follow.
  void Forget(const std::vector<int64_t>& agents);
  // Before all that one agent does from now on.
  void Learn(int64_t agent, const std::vector<int64_t>& agents) { known_[agent].insert(agents.begin(), agents.end()); }
  // An agent and those it has learned of.
  std::vector<int64_t> WithKnown(int64_t agent) const;

 private:
  static constexpr int64_t kNobody = -1, kSeveral = -2;
  struct Cell {
    int64_t writer = kNobody, reader = kNobody, adder = kNobody;
  };
  bool Knows(int64_t agent, int64_t who) const;
  absl::flat_hash_map<std::pair<BufferId, int64_t>, Cell> cells_;
  absl::flat_hash_map<int64_t, absl::flat_hash_set<int64_t>> known_;
};

// How far the past of each concurrent part of a block is known (a vector clock). Part 0 stands for asynchronous statements, part
// 1 + i for role i.
using Clock = absl::InlinedVector<int64_t, 8>;
void Join(Clock* clock, const Clock& other);

// Accesses of parts that order themselves through barriers. Not thread-safe.
class PartRaces {
 public:
  // True when the access is not ordered after an earlier conflicting one: `now` is the clock of `part`.
  bool Touch(BufferId buffer, int64_t offset, size_t part, const Clock& now, TouchKind kind, bool changes);
  void Clear() { cells_.clear(); }

 private:
  struct Cell {
    Clock read, written, added;  // when each part last did
  };
  absl::flat_hash_map<std::pair<BufferId, int64_t>, Cell> cells_;
};

}  // namespace tilert::exec
