// The C ABI and its C++ wrapper as a host uses them: the CPU device for results, the fake driver for the CUDA side.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>

#include "tests/runtime/fake_libcuda.h"
#include "tests/runtime/sample_bundles.h"
#include "tilert/tilert.hpp"

namespace {

const tilert_api& api() { return *tilert_get_api(TILERT_API_VERSION); }

tilert_code TakeCode(tilert_status* status) {
  const tilert_code code = api().status_code(status);
  api().status_release(status);
  return code;
}

TEST(CApi, TableAndVersions) {
  EXPECT_EQ(tilert_get_api(0), nullptr);
  EXPECT_EQ(tilert_get_api(TILERT_API_VERSION + 1), nullptr);
  EXPECT_EQ(api().struct_size, sizeof(tilert_api));
  EXPECT_EQ(api().status_code(nullptr), TILERT_OK);
  EXPECT_STREQ(api().status_message(nullptr), "");
  // Every release function takes NULL.
  api().status_release(nullptr);
  api().runtime_release(nullptr);
  api().bundle_release(nullptr);
  api().kernel_release(nullptr);
  EXPECT_EQ(api().bundle_entry_count(nullptr), 0u);
  EXPECT_EQ(api().bundle_entry_name(nullptr, 0), nullptr);
  // No member of the table is null.
  const auto* words = reinterpret_cast<const void* const*>(&api().library_version);
  for (size_t i = 0; i < (sizeof(tilert_api) - offsetof(tilert_api, library_version)) / sizeof(void*); ++i)
    EXPECT_NE(words[i], nullptr) << i;
}

TEST(CApi, NullsAreErrorsNotCrashes) {
  EXPECT_EQ(TakeCode(api().runtime_create(nullptr, nullptr)), TILERT_INVALID_ARGUMENT);
  EXPECT_EQ(TakeCode(api().runtime_get_info(nullptr, nullptr)), TILERT_INVALID_ARGUMENT);
  EXPECT_EQ(TakeCode(api().bundle_open_memory(nullptr, 0, 1, nullptr)), TILERT_INVALID_ARGUMENT);
  tilert_bundle* bundle = nullptr;
  EXPECT_EQ(TakeCode(api().bundle_open_memory(nullptr, 10, 1, &bundle)), TILERT_INVALID_ARGUMENT);
  EXPECT_EQ(TakeCode(api().bundle_open_file(nullptr, &bundle)), TILERT_INVALID_ARGUMENT);
  EXPECT_EQ(TakeCode(api().bundle_param_count(nullptr, "x", nullptr)), TILERT_INVALID_ARGUMENT);
  EXPECT_EQ(TakeCode(api().bundle_get_param(nullptr, "x", 0, nullptr)), TILERT_INVALID_ARGUMENT);
  EXPECT_EQ(TakeCode(api().kernel_create(nullptr, nullptr, nullptr, nullptr)), TILERT_INVALID_ARGUMENT);
  EXPECT_EQ(TakeCode(api().kernel_query(nullptr, nullptr, nullptr, 0)), TILERT_INVALID_ARGUMENT);
  EXPECT_EQ(TakeCode(api().kernel_prepare(nullptr, TILERT_PREPARE_BLOCKING)), TILERT_INVALID_ARGUMENT);
  EXPECT_EQ(TakeCode(api().kernel_workspace_size(nullptr, nullptr, 0, nullptr)), TILERT_INVALID_ARGUMENT);
  EXPECT_EQ(TakeCode(api().kernel_launch(nullptr, nullptr)), TILERT_INVALID_ARGUMENT);
}

TEST(CApi, StructSizesOfOlderAndNewerHosts) {
  struct {
    tilert_runtime_options known;
    uint64_t unknown;
  } newer = {};
  newer.known.struct_size = sizeof newer;
  newer.known.device = TILERT_DEVICE_CPU;
  tilert_runtime* runtime = nullptr;
  EXPECT_EQ(TakeCode(api().runtime_create(&newer.known, &runtime)), TILERT_OK);
  // A host that knows only the first fields of the answer gets these and no byte more.
  struct {
    size_t struct_size;
    const char* device_name;
    uint64_t canary;
  } small = {offsetof(tilert_runtime_info, arch), nullptr, 42};
  EXPECT_EQ(TakeCode(api().runtime_get_info(runtime, reinterpret_cast<tilert_runtime_info*>(&small))), TILERT_OK);
  EXPECT_STREQ(small.device_name, "CPU");
  EXPECT_EQ(small.canary, 42u);
  api().runtime_release(runtime);
  newer.unknown = 1;
  EXPECT_EQ(TakeCode(api().runtime_create(&newer.known, &runtime)), TILERT_INVALID_ARGUMENT);
  EXPECT_EQ(runtime, nullptr);
  newer.known.struct_size = 0;
  EXPECT_EQ(TakeCode(api().runtime_create(&newer.known, &runtime)), TILERT_INVALID_ARGUMENT);
  newer.known.struct_size = offsetof(tilert_runtime_options, family);
  EXPECT_EQ(TakeCode(api().runtime_create(&newer.known, &runtime)), TILERT_OK) << "an older host";
  api().runtime_release(runtime);
}

TEST(CApi, OptionsThatMeanNothingAreErrors) {
  tilert_runtime* runtime = nullptr;
  tilert_runtime_options options = {};
  options.struct_size = sizeof options;
  options.device = TILERT_DEVICE_CPU;
  options.family = "volta";  // also where nothing is lowered
  EXPECT_EQ(TakeCode(api().runtime_create(&options, &runtime)), TILERT_INVALID_ARGUMENT);
  options.family = "hopper";
  options.cpu_threads = -1;
  EXPECT_EQ(TakeCode(api().runtime_create(&options, &runtime)), TILERT_INVALID_ARGUMENT);
  options.cpu_threads = 1;
  EXPECT_EQ(TakeCode(api().runtime_create(&options, &runtime)), TILERT_OK);
  api().runtime_release(runtime);
}

TEST(CApi, ParametersOfAnEntry) {
  const std::string bytes = tilert::ScaleBundle();
  const auto bundle = tilert::Bundle::OpenMemory(bytes.data(), bytes.size());
  ASSERT_TRUE(bundle.ok()) << bundle.status().message();
  EXPECT_EQ(bundle->entries(), std::vector<std::string>{"scale"});
  size_t count = 0;
  ASSERT_EQ(TakeCode(api().bundle_param_count(bundle->get(), "scale", &count)), TILERT_OK);
  ASSERT_EQ(count, 3u);
  tilert_param_info info = {};
  info.struct_size = sizeof info;
  ASSERT_EQ(TakeCode(api().bundle_get_param(bundle->get(), "scale", 1, &info)), TILERT_OK);
  EXPECT_STREQ(info.name, "Y");
  EXPECT_EQ(info.dtype, TILERT_FLOAT32);
  EXPECT_EQ(info.access, TILERT_OUT);
  EXPECT_EQ(info.rank, 1u);
  ASSERT_EQ(TakeCode(api().bundle_get_param(bundle->get(), "scale", 2, &info)), TILERT_OK);
  EXPECT_EQ(info.kind, TILERT_REAL);
  EXPECT_EQ(TakeCode(api().bundle_get_param(bundle->get(), "scale", 3, &info)), TILERT_INVALID_ARGUMENT);
  EXPECT_EQ(TakeCode(api().bundle_param_count(bundle->get(), "other", &count)), TILERT_NOT_FOUND);
}

TEST(CApi, BundlesFromMemoryAtAnyAlignmentAndFromFiles) {
  const std::string bytes = tilert::ScaleBundle();
  std::string mapped(bytes.size() + 16, 'x');
  for (size_t offset = 0; offset < 9; ++offset) {
    std::memcpy(mapped.data() + offset, bytes.data(), bytes.size());
    for (const bool copy : {false, true})
      EXPECT_TRUE(tilert::Bundle::OpenMemory(mapped.data() + offset, bytes.size(), copy).ok());
  }
  for (size_t size = 0; size < bytes.size(); size += 1 + size / 20)
    EXPECT_FALSE(tilert::Bundle::OpenMemory(bytes.data(), size).ok()) << size;
  char path[] = "/tmp/tilert_bundle_XXXXXX";
  close(mkstemp(path));
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_TRUE(tilert::Bundle::OpenFile(path).ok());
  unlink(path);
  const auto missing = tilert::Bundle::OpenFile(path);
  EXPECT_EQ(missing.status().code(), TILERT_NOT_FOUND);
  EXPECT_NE(std::strstr(missing.status().message(), path), nullptr) << missing.status().message();
  EXPECT_EQ(tilert::Bundle::OpenFile("/tmp").status().code(), TILERT_INVALID_ARGUMENT);
}

TEST(CApi, CpuDeviceComputes) {
  const std::string bytes = tilert::ScaleBundle();
  const auto runtime = tilert::Runtime::CreateCpu();
  const auto bundle = tilert::Bundle::OpenMemory(bytes.data(), bytes.size());
  ASSERT_TRUE(runtime.ok() && bundle.ok());
  const auto kernel = tilert::Kernel::Create(*runtime, *bundle, {"scale"});
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  EXPECT_EQ(kernel->Query(), TILERT_READY);
  EXPECT_TRUE(kernel->Prepare().ok());
  std::vector<float> x(1000), y(1000, -1.0f);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  auto status = kernel->Launch(nullptr, {tilert::Tensor(x.data(), TILERT_FLOAT32, {1000}),
                                         tilert::Tensor(y.data(), TILERT_FLOAT32, {1000}), tilert::Real(0.25)});
  ASSERT_TRUE(status.ok()) << status.message();
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], x[i] * 0.25f) << i;

  status = kernel->Launch(nullptr, {tilert::Tensor(x.data(), TILERT_FLOAT32, {1000}),
                                    tilert::Tensor(y.data(), TILERT_FLOAT32, {999}), tilert::Real(0.25)});
  EXPECT_EQ(status.code(), TILERT_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(status.message(), "'Y'"), nullptr) << status.message();
  EXPECT_FALSE(kernel->Launch(nullptr, {tilert::Tensor(x.data(), TILERT_FLOAT32, {1000})}).ok()) << "too few arguments";
  EXPECT_FALSE(kernel
                   ->Launch(nullptr, {tilert::Tensor(x.data(), TILERT_FLOAT32, {1000}), tilert::Real(1),
                                      tilert::Tensor(y.data(), TILERT_FLOAT32, {1000})})
                   .ok())
      << "wrong kinds";
  EXPECT_FALSE(kernel
                   ->Launch(nullptr, {tilert::Tensor(x.data(), TILERT_FLOAT32, {1000}),
                                      tilert::Tensor(x.data(), TILERT_FLOAT32, {1000}), tilert::Real(1)})
                   .ok())
      << "output over input";
  status = kernel->Launch(nullptr, {tilert::Tensor(x.data(), TILERT_FLOAT32, {10}, {1, 1}),
                                    tilert::Tensor(y.data(), TILERT_FLOAT32, {10}), tilert::Real(1)});
  EXPECT_EQ(status.code(), TILERT_INVALID_ARGUMENT) << "two strides, one dimension";
  EXPECT_TRUE(kernel
                  ->Launch(nullptr, {tilert::Tensor(x.data(), TILERT_FLOAT32, {10}),
                                     tilert::Tensor(y.data(), TILERT_FLOAT32, {10}), tilert::Integer(2)})
                  .ok())
      << "an integer for a float";
  EXPECT_EQ(y[3], 6.0f);
  EXPECT_EQ(tilert::Kernel::Create(*runtime, *bundle, {"scale", {{"nothing", 1}}}).status().code(), TILERT_INVALID_ARGUMENT);
  EXPECT_EQ(tilert::Kernel::Create(*runtime, *bundle, {"absent"}).status().code(), TILERT_NOT_FOUND);
  const auto fixed = tilert::Kernel::Create(*runtime, *bundle, {"scale", {}, {{"N", 10}}});
  ASSERT_TRUE(fixed.ok()) << fixed.status().message();
  EXPECT_FALSE(fixed
                   ->Launch(nullptr, {tilert::Tensor(x.data(), TILERT_FLOAT32, {11}),
                                      tilert::Tensor(y.data(), TILERT_FLOAT32, {11}), tilert::Real(1)})
                   .ok());
}

TEST(CApi, ObjectsMayBeReleasedInAnyOrder) {
  const std::string bytes = tilert::ScaleBundle();
  tilert::Result<tilert::Kernel> kernel = [&] {
    const auto runtime = tilert::Runtime::CreateCpu();
    const auto bundle = tilert::Bundle::OpenMemory(bytes.data(), bytes.size());
    return tilert::Kernel::Create(*runtime, *bundle, {"scale"});
  }();
  ASSERT_TRUE(kernel.ok());
  float x[4] = {1, 2, 3, 4}, y[4] = {};
  EXPECT_TRUE(
      kernel->Launch(nullptr, {tilert::Tensor(x, TILERT_FLOAT32, {4}), tilert::Tensor(y, TILERT_FLOAT32, {4}), tilert::Real(2)})
          .ok());
  EXPECT_EQ(y[3], 8.0f);
}

// What a log hook receives.
struct Log {
  std::atomic<int> lines{0};
  static void Hook(void* user, tilert_log_level, const char* file, int, const char* message) {
    if (file != nullptr && message != nullptr) ++static_cast<Log*>(user)->lines;
  }
};

class CApiOnFakeCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_ = tilert::LoadFakeCuda();
    ASSERT_NE(fake_, nullptr);
    fake_->Reset();
    fake_->MakeContext();
    options_.cache_directory = "";
    options_.allow_prebuilt = 1;
  }
  void TearDown() override {
    EXPECT_EQ(fake_->LiveImages(), 0);
    unsetenv("TILERT_LIBCUDA");
  }
  tilert::Result<tilert::Kernel> MakeKernel(const std::string& bytes, const char* entry) {
    const auto runtime = tilert::Runtime::Create(options_);
    if (!runtime.ok()) ADD_FAILURE() << runtime.status().message();
    const auto bundle = tilert::Bundle::OpenMemory(bytes.data(), bytes.size());
    return tilert::Kernel::Create(*runtime, *bundle, {entry});
  }
  tilert::FakeCuda* fake_ = nullptr;
  tilert_runtime_options options_ = tilert::Runtime::DefaultOptions();
};

TEST_F(CApiOnFakeCuda, InfoDescribesTheDevice) {
  const auto runtime = tilert::Runtime::Create(options_);
  ASSERT_TRUE(runtime.ok()) << runtime.status().message();
  const tilert_runtime_info info = runtime->info();
  EXPECT_STREQ(info.device_name, "Fake GPU");
  EXPECT_STREQ(info.arch, "sm_80");
  EXPECT_STREQ(info.family, "ampere");
  EXPECT_EQ(info.compute_capability, 80);
  EXPECT_EQ(info.sm_count, 108);
  EXPECT_EQ(info.driver_version, 13000);
  EXPECT_EQ(info.nvrtc_version == 0, *info.nvrtc_error != '\0');
  EXPECT_STRNE(info.cache_error, "") << "no cache was asked for";
}

TEST_F(CApiOnFakeCuda, MissingDriverIsNotFound) {
  setenv("TILERT_LIBCUDA", "/nowhere/libcuda.so.1", 1);
  const auto runtime = tilert::Runtime::Create(options_);
  EXPECT_EQ(runtime.status().code(), TILERT_NOT_FOUND);
  EXPECT_NE(std::strstr(runtime.status().message(), "/nowhere/libcuda.so.1"), nullptr);
}

TEST_F(CApiOnFakeCuda, PrepareLaunchAndWorkspace) {
  const std::string bytes = tilert::TwoStepBundle();
  const auto kernel = MakeKernel(bytes, "two_step");
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  EXPECT_EQ(kernel->Query(), TILERT_CACHED);
  EXPECT_EQ(kernel->Prepare(static_cast<tilert_prepare_mode>(9)).code(), TILERT_INVALID_ARGUMENT);
  EXPECT_TRUE(kernel->Prepare(TILERT_PREPARE_ASYNC).ok());
  const auto prepared = kernel->Prepare();
  ASSERT_TRUE(prepared.ok()) << prepared.message();
  EXPECT_EQ(kernel->Query(), TILERT_READY);
  float x[6] = {}, y[3] = {};
  alignas(256) unsigned char workspace[256];
  const auto size = kernel->WorkspaceSize({tilert::Tensor(x, TILERT_FLOAT32, {2, 3}), tilert::Tensor(y, TILERT_FLOAT32, {3})});
  ASSERT_TRUE(size.ok()) << size.status().message();
  EXPECT_EQ(*size, 256u);
  const auto launched = kernel->Launch(
      nullptr, {tilert::Tensor(x, TILERT_FLOAT32, {2, 3}), tilert::Tensor(y, TILERT_FLOAT32, {3})}, workspace, *size);
  EXPECT_TRUE(launched.ok()) << launched.message();
  EXPECT_EQ(fake_->Launches().size(), 2u);
  fake_->Fail("cuLaunchKernel", 719);
  const auto lost = kernel->Launch(nullptr, {tilert::Tensor(x, TILERT_FLOAT32, {2, 3}), tilert::Tensor(y, TILERT_FLOAT32, {3})},
                                   workspace, *size);
  EXPECT_EQ(lost.code(), TILERT_ABORTED);
}

TEST_F(CApiOnFakeCuda, HooksAreCalled) {
  Log log;
  options_.hooks.user = &log;
  options_.hooks.log = Log::Hook;
  options_.hooks.submit = [](void*, void (*task)(void*), void* argument) { std::thread(task, argument).detach(); };
  const std::string bytes = tilert::ScaleBundle();
  {
    const auto kernel = MakeKernel(bytes, "scale");
    ASSERT_TRUE(kernel.ok());
    fake_->Fail("cuLibraryLoadData", 2);
    EXPECT_TRUE(kernel->Prepare(TILERT_PREPARE_ASYNC).ok());
  }  // waits for the task
  EXPECT_EQ(log.lines, 1) << "the failure of an asynchronous prepare is logged";
}

}  // namespace
