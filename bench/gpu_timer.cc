#include "bench/gpu_timer.h"

#include <algorithm>
#include <random>

#include "ir/status_util.h"
#include "tools/random_array.h"

namespace tilert::bench {
namespace {

constexpr uint64_t kFlushBytes = uint64_t{256} << 20;  // several times the L2
constexpr uint64_t kPiece = uint64_t{8} << 20;

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

absl::StatusOr<std::unique_ptr<GpuTimer>> GpuTimer::Make(const cuda::Driver& driver) {
  std::unique_ptr<GpuTimer> timer(new GpuTimer(driver));
  for (tool::DeviceMemory* memory : {&timer->written_, &timer->read_}) {
    TILERT_ASSIGN_OR_RETURN(*memory, tool::DeviceMemory::Allocate(driver, kFlushBytes));
  }
  TILERT_ASSIGN_OR_RETURN(timer->small_, tool::DeviceMemory::Allocate(driver, kPiece));
  TILERT_RETURN_IF_ERROR(driver.EventCreate(&timer->begin_, 0u));
  TILERT_RETURN_IF_ERROR(driver.EventCreate(&timer->end_, 0u));
  return timer;
}

// Overwrites one buffer, then reads another into a small place, so that no dirty lines are left to be written back later.
absl::Status GpuTimer::Flush() {
  TILERT_RETURN_IF_ERROR(driver_.MemsetD8Async(written_.address(), 0, kFlushBytes, nullptr));
  for (uint64_t at = 0; at < kFlushBytes; at += kPiece) {
    TILERT_RETURN_IF_ERROR(driver_.MemcpyDtoDAsync(small_.address(), read_.address() + at, kPiece, nullptr));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> GpuTimer::Medians(const std::vector<Candidate>& candidates, int repeats) {
  for (const Candidate& candidate : candidates) {
    for (int i = 0; i < 2; ++i) TILERT_RETURN_IF_ERROR(candidate.run());
  }
  std::vector<std::vector<double>> times(candidates.size());
  std::vector<size_t> order(candidates.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::mt19937 random(1);
  for (int repeat = 0; repeat < repeats; ++repeat) {
    std::shuffle(order.begin(), order.end(), random);
    for (size_t i : order) {
      float milliseconds = 0;
      TILERT_RETURN_IF_ERROR(Flush());
      TILERT_RETURN_IF_ERROR(driver_.EventRecord(begin_, nullptr));
      TILERT_RETURN_IF_ERROR(candidates[i].run());
      TILERT_RETURN_IF_ERROR(driver_.EventRecord(end_, nullptr));
      TILERT_RETURN_IF_ERROR(driver_.EventSynchronize(end_));
      TILERT_RETURN_IF_ERROR(driver_.EventElapsedTime(&milliseconds, begin_, end_));
      times[i].push_back(double{milliseconds} * 1000);
    }
  }
  std::vector<double> medians;
  for (auto& t : times) medians.push_back(Median(std::move(t)));
  return medians;
}

absl::StatusOr<tool::DeviceMemory> RandomOnDevice(const cuda::Driver& driver, DType dtype, int64_t elements, uint64_t seed) {
  const uint64_t bytes = static_cast<uint64_t>(elements) * DTypeBytes(dtype);
  TILERT_ASSIGN_OR_RETURN(tool::DeviceMemory memory, tool::DeviceMemory::Allocate(driver, std::max<uint64_t>(bytes, 16)));
  // An odd number of elements, so that rows of round lengths differ from each other.
  TILERT_ASSIGN_OR_RETURN(tool::Array block, tool::MakeArray(dtype, {std::min<int64_t>(elements, (1 << 20) - 3)}));
  tool::FillRandom(seed, &block);
  const uint64_t piece = block.bytes.size();
  for (uint64_t at = 0; at < bytes; at += piece) {
    const uint64_t n = std::min(piece, bytes - at);
    if (at == 0) {
      TILERT_RETURN_IF_ERROR(driver.MemcpyHtoD(memory.address(), block.bytes.data(), n));
    } else {
      TILERT_RETURN_IF_ERROR(driver.MemcpyDtoDAsync(memory.address() + at, memory.address(), n, nullptr));
    }
  }
  return memory;
}

}  // namespace tilert::bench
