// Emitted CUDA C++ run on the host: compiled by the host compiler against host_cuda.h, threads as fibers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lowering/lowered.h"

namespace tilert {

// Memory between two unmapped pages, its end at the second one: an access past it kills the process.
class GuardedMemory {
 public:
  explicit GuardedMemory(size_t bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  uint8_t* data() const { return data_; }
  size_t size() const { return bytes_; }
  // False when bytes between the end and the page's end, which alignment leaves, were written.
  bool Intact() const;

 private:
  uint8_t* base_ = nullptr;
  uint8_t* data_ = nullptr;
  size_t mapped_ = 0, bytes_ = 0;
};

// A tensor map as host_hopper.h reads it, of a contiguous tensor.
struct alignas(64) HostTensorMap {
  HostTensorMap(void* base, int element_bytes, const std::vector<int64_t>& shape, const std::vector<int64_t>& box, int swizzle);
  uint64_t words[16] = {};
};

// All kernels of a lowered program. One at a time in a process: they share their emulated shared memory with nobody else.
class HostKernels {
 public:
  // Null and a message in `error` when there is no compiler or it refuses the source.
  static std::unique_ptr<HostKernels> Build(const Lowered& lowered, const Target& target, std::string* error);
  ~HostKernels();
  // Runs `blocks` blocks of kernel `index`; `args` as for cuLaunchKernel. False on a deadlock.
  bool Run(size_t index, uint32_t blocks, uint32_t seed, const std::vector<void*>& args) const;

 private:
  HostKernels() = default;
  std::string folder_;
  void* library_ = nullptr;
  std::vector<uint32_t> threads_;
};

}  // namespace tilert
