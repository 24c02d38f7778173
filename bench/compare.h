// Candidates side by side in one process: in random order, the L2 cache flushed before each run.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "tools/gpu_timer.h"

namespace tilert::bench {

struct Candidate {
  std::string name;
  std::function<absl::Status()> run;  // queues one run on the default stream
};

// Microseconds of each candidate (first index) in each round (second index).
using Times = std::vector<std::vector<double>>;

struct Rounds {
  int count = 20;
  // Before each timed run the GPU rests so long and then runs the candidate once untimed: long kernels at a GPU's power limit
  // are slower in a row than alone, and slowed down by each other. 0: one run after the other.
  std::chrono::milliseconds rest{0};
};
// The rounds, after two warm-up runs of each candidate.
absl::StatusOr<Times> Compare(tool::GpuTimer& timer, const std::vector<Candidate>& candidates, const Rounds& rounds);

// How many times as long `peer` takes as `ours`, from the pairs of each round: clocks drift, but less within a round.
struct Ratio {
  double median = 0, low = 0, high = 0;  // low and high: the quartiles
};
Ratio RatioOf(const std::vector<double>& peer, const std::vector<double>& ours);

// Device memory with random numbers of `dtype` from the normal distribution (a block of them, repeated).
absl::StatusOr<tool::DeviceMemory> RandomOnDevice(const cuda::Driver& driver, DType dtype, int64_t elements, uint64_t seed);

}  // namespace tilert::bench
