#include "runtime/driver.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "absl/strings/match.h"
#include "tests/runtime/fake_libcuda.h"

namespace tilert::cuda {
namespace {

TEST(Driver, MissingLibraryListsWhatWasTried) {
  setenv("TILERT_LIBCUDA", "/nowhere/libcuda.so.1", 1);
  const absl::Status status = Driver::Load().status();
  unsetenv("TILERT_LIBCUDA");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(absl::StrContains(status.message(), "/nowhere/libcuda.so.1")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "TILERT_LIBCUDA")) << status;
}

TEST(Driver, OldDriverIsNamedWithTheMissingSymbols) {
  setenv("TILERT_LIBCUDA", "libm.so.6", 1);
  const absl::Status status = Driver::Load().status();
  unsetenv("TILERT_LIBCUDA");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(status.message(), "cuLaunchKernel")) << status;
  EXPECT_FALSE(absl::StrContains(status.message(), "cuLibraryLoadData")) << "optional: " << status;
}

class FakeDriver : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_ = LoadFakeCuda();
    ASSERT_NE(fake_, nullptr);
    fake_->Reset();
  }
  void TearDown() override { unsetenv("TILERT_LIBCUDA"); }
  FakeCuda* fake_ = nullptr;
};

TEST_F(FakeDriver, LoadsAndReportsVersion) {
  const auto driver = Driver::Load();
  ASSERT_TRUE(driver.ok()) << driver.status();
  EXPECT_EQ((*driver)->version(), 13000);
#define TILERT_DRIVER_SYMBOL(method, symbol, presence, ...) EXPECT_NE((*driver)->raw().method, nullptr) << symbol;
#include "runtime/driver_symbols.def"
#undef TILERT_DRIVER_SYMBOL
}

TEST_F(FakeDriver, ErrorsCarryCallNameAndNumber) {
  const auto driver = Driver::Load().value();
  fake_->MakeContext();
  fake_->Fail("cuMemAlloc_v2", kOutOfMemory);
  DevicePtr pointer = 0;
  const absl::Status status = driver->MemAlloc(&pointer, size_t{16});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2): scripted");
}

TEST_F(FakeDriver, StartFailuresAreStatuses) {
  for (const auto& [result, code] : {std::pair{kNoDevice, absl::StatusCode::kUnavailable},
                                     {kStubLibrary, absl::StatusCode::kUnavailable},
                                     {kSystemDriverMismatch, absl::StatusCode::kUnavailable},
                                     {999, absl::StatusCode::kInternal}}) {
    fake_->Fail("cuInit", result);
    EXPECT_EQ(Driver::Load().status().code(), code) << result;
    fake_->Reset();
  }
}

TEST(StatusCodeOf, TellsKindsApart) {
  EXPECT_EQ(StatusCodeOf(kSuccess), absl::StatusCode::kOk);
  EXPECT_EQ(StatusCodeOf(kInvalidContext), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(StatusCodeOf(kIllegalAddress), absl::StatusCode::kAborted);
  EXPECT_EQ(StatusCodeOf(716), absl::StatusCode::kAborted) << "misaligned address";
  EXPECT_EQ(StatusCodeOf(kNoBinaryForGpu), absl::StatusCode::kUnimplemented);
  for (int result = kStreamCaptureUnsupported; result <= kStreamCaptureWrongThread; ++result) {
    EXPECT_EQ(StatusCodeOf(result), absl::StatusCode::kFailedPrecondition) << result;
  }
  for (int result = 1; result < 1000; ++result) EXPECT_NE(StatusCodeOf(result), absl::StatusCode::kOk) << result;
}

}  // namespace
}  // namespace tilert::cuda
