// Times on the device: events around work on the default stream, and an L2 cache that holds nothing of it beforehand.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/device.h"

namespace tilert::tool {

// Not thread safe. REQUIRES: the device's context is current.
class GpuTimer {
 public:
  static absl::StatusOr<std::unique_ptr<GpuTimer>> Make(const cuda::Driver& driver);
  ~GpuTimer();
  GpuTimer(const GpuTimer&) = delete;

  // Queues what leaves the L2 cache without useful and without dirty lines: one buffer is overwritten, then another is read, each
  // several times the cache. Dirty lines would be written back during the measurement and share its bandwidth.
  absl::Status Flush();
  absl::Status Begin() { return driver_.EventRecord(begin_, nullptr); }
  // Waits; the time since Begin.
  absl::StatusOr<double> EndMicroseconds();

 private:
  explicit GpuTimer(const cuda::Driver& driver) : driver_(driver) {}
  const cuda::Driver& driver_;
  DeviceMemory written_, read_;
  cuda::Module module_ = nullptr;
  cuda::Function sweep_ = nullptr;
  cuda::Event begin_ = nullptr, end_ = nullptr;
};

// The value that a share `q` (0 … 1) of `values` lies below; 0 of none.
double Quantile(std::vector<double> values, double q);
inline double Median(std::vector<double> values) { return Quantile(std::move(values), 0.5); }

}  // namespace tilert::tool
