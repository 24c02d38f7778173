#include "bench/compare.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>

#include "ir/status_util.h"
#include "tools/random_array.h"

namespace tilert::bench {

absl::StatusOr<Times> Compare(tool::GpuTimer& timer, const std::vector<Candidate>& candidates, const Rounds& rounds) {
  for (const Candidate& candidate : candidates) {
    for (int i = 0; i < 2; ++i) TILERT_RETURN_IF_ERROR(candidate.run());
  }
  Times times(candidates.size());
  std::vector<size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937 random(1);
  for (int round = 0; round < rounds.count; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (size_t i : order) {
      if (rounds.rest.count() > 0) {
        std::this_thread::sleep_for(rounds.rest);
        TILERT_RETURN_IF_ERROR(candidates[i].run());
      }
      TILERT_RETURN_IF_ERROR(timer.Flush());
      TILERT_RETURN_IF_ERROR(timer.Begin());
      TILERT_RETURN_IF_ERROR(candidates[i].run());
      TILERT_ASSIGN_OR_RETURN(times[i].emplace_back(), timer.EndMicroseconds());
    }
  }
  return times;
}

Ratio RatioOf(const std::vector<double>& peer, const std::vector<double>& ours) {
  std::vector<double> ratios;
  for (size_t i = 0; i < ours.size() && i < peer.size(); ++i) ratios.push_back(peer[i] / ours[i]);
  return {tool::Median(ratios), tool::Quantile(ratios, 0.25), tool::Quantile(ratios, 0.75)};
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
