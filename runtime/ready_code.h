// One compiled form of a program, loaded, with all that launching it takes.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cache_entry.h"
#include "runtime/launch_record.h"
#include "runtime/module.h"
#include "runtime/runtime.h"
#include "runtime/tensor_map.h"

namespace tilert {

// The tensor maps of one launch, those of all its kernels one behind the other. On the stack: not initialised.
struct LaunchMaps {
  cuda::TensorMap maps[kMaxTensorMaps];
};

// Immutable after Load but for the tensor maps that it keeps. Thread safe; launching allocates nothing and takes no lock.
class ReadyCode {
 public:
  // DataLoss: `entry` is whole but does not make sense. Unimplemented: it needs a newer driver. ResourceExhausted: more shared
  // memory than the GPU has. `plan` must outlive the code.
  static absl::StatusOr<std::unique_ptr<ReadyCode>> Load(const Runtime& runtime, const ArgPlan& plan, const CacheEntry& entry);

  // Makes the tensor maps of a launch with `values`; false when TMA cannot work on them. Nothing to do and true for most code.
  bool MakeMaps(const LaunchValues& values, LaunchMaps& maps) const { return encoders_.empty() || EncodeMaps(values, maps); }
  // Workspace beside the program's own that a launch with `values` takes, a multiple of kWorkspaceAlignment.
  uint64_t GivenBytes(const LaunchValues& values) const;
  // Whether it takes any, with some values.
  bool gives() const { return gives_; }
  // Queues all kernels. REQUIRES: MakeMaps was true for these values; `given` has GivenBytes.
  absl::Status Launch(const LaunchValues& values, LaunchMaps& maps, char* given, cuda::Stream stream) const;

 private:
  // Where a kernel argument comes from.
  struct ArgSource {
    KernelArg::Kind kind;
    uint32_t index;  // of LaunchValues' tensors, dims or scalars; of LaunchMaps' maps
    DType dtype;     // scalars: how the value is encoded
  };
  struct Kernel {
    KernelRecord record;
    cuda::Function function = nullptr;
    std::vector<ArgSource> args;
    int64_t most_blocks = 0;  // persistent kernels: all that fit on the GPU at once
  };

  ReadyCode(const Runtime& runtime, const ArgPlan& plan) : runtime_(runtime), plan_(plan) {}
  absl::Status AddKernel(KernelRecord record, cuda::Function function, uint32_t first_map);
  absl::Status FitClusters(const KernelRecord& record, cuda::Function function, int64_t* most_blocks) const;
  bool EncodeMaps(const LaunchValues& values, LaunchMaps& maps) const;
  absl::Status LaunchOne(const Kernel& kernel, const LaunchValues& values, LaunchMaps& maps, char* given,
                         cuda::Stream stream) const;
  static int64_t Blocks(const Kernel& kernel, const LaunchValues& values);

  const Runtime& runtime_;
  const ArgPlan& plan_;
  std::unique_ptr<LoadedModule> module_;
  std::vector<Kernel> kernels_;
  bool gives_ = false;
  std::vector<std::unique_ptr<TensorMapEncoder>> encoders_;  // in the order of LaunchMaps
};

}  // namespace tilert
