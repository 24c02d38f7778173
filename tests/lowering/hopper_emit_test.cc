// Kernels of the Hopper family as CUDA C++, and what NVRTC and ptxas make of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hopper_kernels.h"
#include "kernel_maker.h"
#include "lowering/lowered.h"
#include "nvrtc_harness.h"
#include "tests/golden.h"

namespace tilert {
namespace {

std::string EmitOk(const kir::Kernel& kernel) {
  EXPECT_EQ(kir::VerifyKernel(kernel), "");
  const absl::StatusOr<std::string> text = EmitKernel(kernel, *FindTarget("sm_90a"));
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : "";
}

TEST(HopperEmit, GoldenTexts) {
  ExpectGolden("emit_hopper_gemm.cu", EmitOk(HopperGemmKernel({})));
}

}  // namespace
}  // namespace tilert
