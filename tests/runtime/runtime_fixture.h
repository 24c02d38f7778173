// What tests of the launch share: a fake driver, a runtime over it, small programs, and bundles with made-up machine code for
// them, so that launches can be tested where there is neither a GPU nor NVRTC.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "ir/bundle.h"
#include "lowering/target.h"
#include "runtime/kernel.h"
#include "tests/runtime/fake_libcuda.h"

namespace tilert {

// Y[i] = X[i] * alpha for i < N, float32; grid ceil(N / 128).
Program ScaleProgram();
// Two launches over a zeroed workspace of N floats: "first" (grid M x N) and "second" (grid M).
Program TwoStepProgram();

// C[M, N] from A[M, K] and B[K, N] with a row stride of ld (a scalar), float16 and float32; grid ceil(M / 64) x ceil(N / 64). It
// computes nothing.
Program MapProgram();

// Changes a made-up kernel before it goes into a bundle.
using EditKernel = std::function<void(CubinKernel& kernel, bool is_fast)>;
// Gives the fast kernels of MapProgram maps of A (box 64x64, 128-byte swizzle), B (32x64) and C (64x32, none), behind their
// pointers.
void AddMaps(CubinKernel& kernel, bool is_fast);

// Adds made-up code for `program`, compiled for `arg_class` and the chip `arch`.
void AddCode(Bundle& bundle, const Program& program, const ArgClass& arg_class, const std::string& arch,
             std::vector<CubinKernel> kernels);
// A bundle of `program` with made-up code for every class that a kernel of `target` may want. Symbols: the launch names.
// `symbol_prefix` "missing" makes the fake driver not find them.
std::string BundleWithCode(const Program& program, const Target& target, const std::string& symbol_prefix = "",
                           const EditKernel& edit = {});

class RuntimeFixture : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  RuntimeOptions Options() const;
  std::shared_ptr<Runtime> MakeRuntime(RuntimeOptions options);
  std::shared_ptr<Runtime> MakeRuntime() { return MakeRuntime(Options()); }
  std::shared_ptr<Kernel> MakeKernel(const std::shared_ptr<Runtime>& runtime, const Program& program,
                                     const std::string& symbol_prefix = "", KernelSpec spec = {}, const EditKernel& edit = {});

  FakeCuda* fake_ = nullptr;
  std::filesystem::path cache_;
};

// Memory for ScaleProgram on `n` elements.
struct ScaleArgs {
  explicit ScaleArgs(int64_t n, size_t misalign = 0);
  LaunchRequest request(cuda::Stream stream = nullptr);

  std::vector<float> memory;
  std::vector<int64_t> shape;
  std::vector<TensorArg> tensors;
  std::vector<ScalarArg> scalars;
};

}  // namespace tilert
