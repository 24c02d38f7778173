#include "runtime/nvrtc_compile.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tilert {
namespace {

constexpr char kKernel[] = R"(
template <int N> __device__ float Twice(float x) { return x * N; }
extern "C" __global__ void scale(float* out, const float* in, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < n) out[i] = Twice<2>(in[i]);
}
template <typename T> __global__ void fill(T* out) { out[threadIdx.x] = T(1); }
)";

// Clears an environment variable again at the end of a test.
struct ScopedEnv {
  ScopedEnv(const char* name, const char* value) : name(name) { setenv(name, value, 1); }
  ~ScopedEnv() { unsetenv(name); }
  const char* name;
};

class NvrtcCompile : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::shared_ptr<const Nvrtc>> loaded = Nvrtc::Load();
    if (!loaded.ok()) GTEST_SKIP() << loaded.status();
    nvrtc_ = *loaded;
  }
  absl::StatusOr<CompiledCode> Run(const std::string& source, const std::string& arch) {
    CompileOptions options;
    options.arch = arch;
    options.no_cache = true;
    return Compile(*nvrtc_, "test.cu", source, options);
  }
  std::shared_ptr<const Nvrtc> nvrtc_;
};

TEST_F(NvrtcCompile, CubinPerArchitecture) {
  for (const char* arch : {"sm_80", "sm_89", "sm_90a"}) {
    const absl::StatusOr<CompiledCode> code = Run(kKernel, arch);
    ASSERT_TRUE(code.ok()) << code.status();
    EXPECT_FALSE(code->is_ptx);
    EXPECT_EQ(code->code.substr(0, 4),
              "\x7f"
              "ELF");
    EXPECT_TRUE(absl::StrContains(code->code, "scale")) << "the entry must keep its name";
    EXPECT_TRUE(code->codegen_warnings.empty()) << code->log;
    EXPECT_GT(code->compile_ms, 0);
  }
}

TEST_F(NvrtcCompile, PtxForVirtualArchitecture) {
  const absl::StatusOr<CompiledCode> code = Run(kKernel, absl::StrCat("compute_", nvrtc_->architectures().back()));
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_TRUE(code->is_ptx);
  EXPECT_TRUE(absl::StrContains(code->code, ".entry scale"));
  EXPECT_EQ(code->code.back(), '\0');
}

TEST_F(NvrtcCompile, LoweredNames) {
  CompileOptions options;
  options.arch = "sm_80";
  options.name_expressions = {"fill<float>", "fill<int>"};
  const absl::StatusOr<CompiledCode> code = Compile(*nvrtc_, "names.cu", kKernel, options);
  ASSERT_TRUE(code.ok()) << code.status();
  ASSERT_EQ(code->lowered_names.size(), 2u);
  for (const std::string& name : code->lowered_names) EXPECT_TRUE(absl::StrContains(code->code, name)) << name;
}

TEST_F(NvrtcCompile, ErrorCarriesTheLog) {
  const absl::StatusOr<CompiledCode> code = Run("__global__ void f() { undefined_thing(); }", "sm_80");
  EXPECT_EQ(code.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(code.status().message(), "undefined_thing")) << code.status();
  EXPECT_TRUE(absl::StrContains(code.status().message(), "test.cu")) << code.status();
}

TEST_F(NvrtcCompile, UnknownArchitectures) {
  for (const char* arch : {"sm_35", "sm_999", "sm_", "hopper", ""}) {
    EXPECT_EQ(Run(kKernel, arch).status().code(), absl::StatusCode::kUnimplemented) << arch;
  }
}

TEST_F(NvrtcCompile, PtxasScheduleWarningsAreListed) {
  // setmaxnreg without a minimum block count: ptxas ignores it and says so (C7508).
  const absl::StatusOr<CompiledCode> code = Run(R"(
      extern "C" __global__ void f(int* p) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        p[threadIdx.x] = 1;
      })",
                                                "sm_90a");
  ASSERT_TRUE(code.ok()) << code.status();
  ASSERT_EQ(code->codegen_warnings.size(), 1u) << code->log;
  EXPECT_TRUE(absl::StrContains(code->codegen_warnings[0], "C7508"));
}

TEST_F(NvrtcCompile, ThreadsGiveIdenticalCode) {
  const std::string alone = Run(kKernel, "sm_80").value().code;
  std::vector<std::string> codes(4);
  std::vector<std::thread> threads;
  for (std::string& out : codes) threads.emplace_back([&out, this] { out = Run(kKernel, "sm_80").value().code; });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& code : codes) EXPECT_EQ(code, alone);
}

TEST_F(NvrtcCompile, DeadlineStopsALongCompile) {
  if (nvrtc_->raw().SetFlowCallback == nullptr) GTEST_SKIP() << "this NVRTC cannot be cancelled";
  std::string bomb = "extern \"C\" __global__ void f(float* p) {\n";
  for (int i = 0; i < 3000; ++i) absl::StrAppend(&bomb, "  p[", i, "] = __sinf(p[", i * 7 % 3001, "]) * ", i, ".5f;\n");
  CompileOptions options;
  options.arch = "sm_80";
  options.no_cache = true;
  options.deadline = std::chrono::milliseconds(1);
  const absl::StatusOr<CompiledCode> code = Compile(*nvrtc_, "bomb.cu", bomb + "}\n", options);
  EXPECT_EQ(code.status().code(), absl::StatusCode::kDeadlineExceeded) << code.status();
}

TEST(Nvrtc, MissingLibraryListsWhatWasTried) {
  const ScopedEnv env("TILERT_LIBNVRTC", "/nowhere/libnvrtc.so.13");
  const absl::Status status = Nvrtc::Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(absl::StrContains(status.message(), "/nowhere/libnvrtc.so.13")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "TILERT_LIBNVRTC")) << status;
}

TEST(Nvrtc, LibraryWithoutTheSymbolsIsNamed) {
  const ScopedEnv env("TILERT_LIBNVRTC", "libm.so.6");
  const absl::Status status = Nvrtc::Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(status.message(), "nvrtcCompileProgram")) << status;
}

}  // namespace
}  // namespace tilert
