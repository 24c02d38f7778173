// Timing on the device: candidates in random order, the L2 cache flushed before each run, medians of event times.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/device.h"

namespace tilert::bench {

struct Candidate {
  std::string name;
  std::function<absl::Status()> run;  // queues one run on the default stream
};

class GpuTimer {
 public:
  static absl::StatusOr<std::unique_ptr<GpuTimer>> Make(const cuda::Driver& driver);
  // Median microseconds of each candidate over `repeats` runs, after two warm-up runs of each.
  absl::StatusOr<std::vector<double>> Medians(const std::vector<Candidate>& candidates, int repeats);

 private:
  explicit GpuTimer(const cuda::Driver& driver) : driver_(driver) {}
  absl::Status Flush();
  const cuda::Driver& driver_;
  tool::DeviceMemory written_, read_, small_;
  cuda::Event begin_ = nullptr, end_ = nullptr;
};

// Device memory with random numbers of `dtype` from the normal distribution (a block of them, repeated).
absl::StatusOr<tool::DeviceMemory> RandomOnDevice(const cuda::Driver& driver, DType dtype, int64_t elements, uint64_t seed);

double Median(std::vector<double> values);

}  // namespace tilert::bench
