// Kernels of the Hopper family as CUDA C++, and what NVRTC and ptxas make of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "hopper_kernels.h"
#include "kernel_maker.h"
#include "lowering/lowered.h"
#include "nvrtc_harness.h"
#include "tests/golden.h"

namespace tilert {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string EmitOk(const kir::Kernel& kernel) {
  EXPECT_EQ(kir::VerifyKernel(kernel), "");
  const absl::StatusOr<std::string> text = EmitKernel(kernel, *FindTarget("sm_90a"));
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : "";
}
// The kernel itself, without the device functions before it.
std::string BodyOf(const std::string& text) {
  const size_t at = text.find("\n// ", text.rfind("#endif"));
  return at == std::string::npos ? text : text.substr(at);
}

size_t Count(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++count;
  return count;
}

// Compiles without a warning (among them ptxas' C75xx: wgmma serialised, setmaxnreg ignored), nothing in local memory, and
// `products` instructions of wgmma.
void ExpectClean(const kir::Kernel& kernel, size_t products, int max_registers = 168) {
  if (!HasNvrtc()) GTEST_SKIP() << "no NVRTC";
  const std::string source = Prelude(*FindTarget("sm_90a")) + EmitOk(kernel);
  const TestCubin cubin = CompileForTest(source, "sm_90a");
  EXPECT_TRUE(cubin.ok) << cubin.log;
  EXPECT_EQ(cubin.complaints, "");
  EXPECT_EQ(cubin.stack_bytes, 0) << cubin.log;
  EXPECT_EQ(cubin.spill_bytes, 0) << cubin.log;
  EXPECT_LE(cubin.registers, max_registers);
  const TestCubin ptx = CompileForTest(source, "compute_90a");
  EXPECT_EQ(Count(ptx.code, "wgmma.mma_async"), products);
}

TEST(HopperEmit, GoldenTexts) {
  ExpectGolden("emit_hopper_gemm.cu", EmitOk(HopperGemmKernel({})));
  ExpectGolden("emit_hopper_ping_pong.cu", BodyOf(EmitOk(HopperGemmKernel({.bn = 192, .ping_pong = true, .b_mn_major = true}))));
  ExpectGolden("emit_hopper_attention.cu", BodyOf(EmitOk(HopperAttentionKernel())));
}

TEST(HopperEmit, LargeGemmCompilesClean) {
  for (DType type : {DType::kBFloat16, DType::kFloat16}) {
    for (bool mn_major : {false, true}) {
      for (bool staged : {false, true}) {
        ExpectClean(HopperGemmKernel({.dtype = type, .c_dtype = type, .b_mn_major = mn_major, .staged = staged}), 4);
      }
    }
  }
}

TEST(HopperEmit, SmallGemmCompilesClean) {
  for (bool staged : {false, true})
    ExpectClean(HopperGemmKernel({.bm = 64, .bn = 128, .stages = 6, .warpgroups = 1, .staged = staged}), 4);
  ExpectClean(HopperGemmKernel({.bm = 64, .bn = 128, .stages = 6, .warpgroups = 1, .b_mn_major = true}), 4);
  ExpectClean(HopperGemmKernel({.bm = 128, .bn = 64, .bk = 128, .stages = 4, .warpgroups = 1, .b_mn_major = true}), 16);
}

TEST(HopperEmit, PingPongCompilesClean) {
  for (bool mn_major : {false, true}) ExpectClean(HopperGemmKernel({.bn = 192, .ping_pong = true, .b_mn_major = mn_major}), 8);
}

TEST(HopperEmit, OtherTypesCompileClean) {
  ExpectClean(HopperGemmKernel({.dtype = DType::kFloat8E4M3, .bk = 128}), 4);
  ExpectClean(HopperGemmKernel({.dtype = DType::kFloat8E5M2, .c_dtype = DType::kFloat16, .bk = 128}), 4);
  ExpectClean(
      HopperGemmKernel({.dtype = DType::kInt8, .c_dtype = DType::kInt32, .acc_dtype = DType::kInt32, .bk = 128, .staged = false}),
      4);
  ExpectClean(HopperGemmKernel(
                  {.dtype = DType::kUInt8, .c_dtype = DType::kInt32, .acc_dtype = DType::kInt32, .bk = 128, .staged = false}),
              4);
  ExpectClean(HopperGemmKernel({.dtype = DType::kFloat32, .c_dtype = DType::kFloat32, .bk = 32, .staged = false}), 4);
  ExpectClean(HopperGemmKernel({.dtype = DType::kFloat16, .c_dtype = DType::kFloat16, .acc_dtype = DType::kFloat16}), 4);
}

TEST(HopperEmit, RegisterOperandsCompileClean) { ExpectClean(HopperAttentionKernel(), 8); }

}  // namespace
}  // namespace tilert
