// Lowers a program, runs the emitted source on the host, and compares every output with the executor's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host_kernel.h"
#include "ir/bind_args.h"

namespace tilert {

struct HostTensor {
  DType dtype = DType::kInvalid;
  std::vector<int64_t> shape;
  std::unique_ptr<GuardedMemory> memory;
  int64_t count() const;
  // An element as a double; uint64 and int64 lose what a double cannot hold.
  double At(int64_t i) const;
};

using FillFunction = std::function<void(HostTensor& tensor, uint32_t seed)>;
// Integers from −3 to 3: sums of their products are exact.
void FillSmall(HostTensor& tensor, uint32_t seed);

class HostProgram {
 public:
  // `fast`: the ArgClass that assumes aligned arguments and small extents.
  // One of the Hopper family only where it has no tensor map, as in the general class.
  explicit HostProgram(Program program, bool fast = false, const std::string& arch = "sm_80");
  // Shapes in parameter order. An output element may differ by relative(dtype)·|expected| + `absolute`; NaN must meet NaN.
  void Check(const std::vector<std::vector<int64_t>>& shapes, const FillFunction& fill,
             const std::function<double(DType)>& relative, double absolute);

 private:
  std::vector<HostTensor> Make(const std::vector<std::vector<int64_t>>& shapes, const FillFunction& fill) const;
  void Launch(const std::vector<HostTensor>& tensors) const;

  Program program_;
  Lowered lowered_;
  std::unique_ptr<HostKernels> kernels_;
};

}  // namespace tilert
