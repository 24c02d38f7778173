// Kernels on the fake driver: what reaches the driver, and what happens when it says no.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/runtime/runtime_fixture.h"

namespace {
// Counts allocations, and makes them fail after a number of them.
std::atomic<int64_t> allocations{0};
std::atomic<int64_t> allocations_left{INT64_MAX};
}  // namespace

void* operator new(size_t size) {
  ++allocations;
  if (--allocations_left < 0) throw std::bad_alloc();
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
// Not inlined, or gcc sees free() of what a `new` made and warns.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace tilert {
namespace {

using LaunchTest = RuntimeFixture;

TEST_F(LaunchTest, RuntimeNeedsAContextAndASupportedGpu) {
  std::thread([&] {  // a thread without a context
    EXPECT_EQ(Runtime::Create(Options()).status().code(), absl::StatusCode::kFailedPrecondition);
  })
      .join();
  fake_->SetDevice(7, 5, 65536);
  EXPECT_EQ(Runtime::Create(Options()).status().code(), absl::StatusCode::kInvalidArgument) << "too old";
  fake_->SetDevice(9, 0, 232448);
  EXPECT_EQ(MakeRuntime()->target().arch, "sm_90a");
  RuntimeOptions ampere = Options();
  ampere.family = "ampere";
  EXPECT_EQ(MakeRuntime(ampere)->target().family, Family::kAmpere);
  fake_->SetDevice(15, 0, 232448);
  const auto future = MakeRuntime();
  EXPECT_TRUE(absl::StartsWith(future->target().arch, "compute_")) << future->target().arch;
}

TEST_F(LaunchTest, ArgumentsGridAndClassReachTheDriver) {
  const auto kernel = MakeKernel(MakeRuntime(), ScaleProgram());
  ASSERT_TRUE(kernel->Prepare().ok()) << kernel->Prepare();
  EXPECT_TRUE(kernel->is_prepared());
  fake_->SetParameterCount("fast_main", 4);
  fake_->SetParameterCount("general_main", 4);
  ScaleArgs aligned(1000), misaligned(1000, 1);
  ASSERT_TRUE(kernel->Launch(aligned.request()).ok()) << kernel->Launch(aligned.request());
  ASSERT_TRUE(kernel->Launch(misaligned.request()).ok());
  const std::vector<FakeLaunch> launches = fake_->Launches();
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0].kernel, "fast_main");
  EXPECT_EQ(launches[1].kernel, "general_main") << "X is not 16-byte aligned";
  EXPECT_EQ(launches[0].grid_x, 8u);
  EXPECT_EQ(launches[0].threads, 128u);
  EXPECT_EQ(launches[0].shared_bytes, 60000u);
  EXPECT_EQ(launches[0].args[0], reinterpret_cast<uintptr_t>(aligned.tensors[0].data));
  EXPECT_EQ(launches[0].args[1], reinterpret_cast<uintptr_t>(aligned.tensors[1].data));
  EXPECT_EQ(launches[0].args[2], 0x3f000000u) << "0.5f";
  EXPECT_EQ(launches[0].args[3], 1000u);
}

TEST_F(LaunchTest, EmptyGridsLaunchNothingHugeOnesAreRefused) {
  const auto kernel = MakeKernel(MakeRuntime(), ScaleProgram());
  ASSERT_TRUE(kernel->Prepare().ok());
  ScaleArgs empty(0);
  EXPECT_TRUE(kernel->Launch(empty.request()).ok());
  EXPECT_TRUE(fake_->Launches().empty());
  const auto two_step = MakeKernel(MakeRuntime(), TwoStepProgram());
  float memory[64] = {};
  const std::vector<int64_t> shape = {int64_t{1} << 40, 0}, outs = {0};
  LaunchRequest request;
  const std::vector<TensorArg> tensors = {{memory, DType::kFloat32, shape, {}}, {memory + 32, DType::kFloat32, outs, {}}};
  request.tensors = tensors;
  EXPECT_TRUE(two_step->Launch(request).ok()) << two_step->Launch(request);
  EXPECT_TRUE(fake_->Launches().empty());
  ScaleArgs huge(8);
  huge.shape[0] = int64_t{1} << 45;  // 2^38 blocks: more than a launch can have
  huge.tensors[1].data = static_cast<char*>(huge.tensors[0].data) + (int64_t{1} << 47);
  EXPECT_EQ(kernel->Launch(huge.request()).code(), absl::StatusCode::kInvalidArgument);
}

// Grids are filled up to whole clusters; persistent kernels get as many clusters as the driver says fit.
TEST_F(LaunchTest, ClustersAreLaunchedWhole) {
  for (const bool persistent : {false, true}) {
    const EditKernel edit = [persistent](CubinKernel& kernel, bool) {
      kernel.cluster = {2, 2};
      kernel.persistent = persistent;
    };
    const auto kernel = MakeKernel(MakeRuntime(), ScaleProgram(), "", {}, edit);
    ASSERT_TRUE(kernel->Prepare().ok()) << kernel->Prepare();
    const size_t before = fake_->Launches().size();
    for (const int64_t n : {128 * 5, 128 * 64, 0}) {
      ScaleArgs args(n);
      ASSERT_TRUE(kernel->Launch(args.request()).ok()) << kernel->Launch(args.request());
    }
    const std::vector<FakeLaunch> launches = fake_->Launches();
    ASSERT_EQ(launches.size(), before + 2);
    EXPECT_EQ(launches[before].cluster, 4u);
    EXPECT_EQ(launches[before].grid_x, 12u) << "6 blocks of the grid, two of the cluster for each";
    EXPECT_EQ(launches[before + 1].grid_x, persistent ? 12u : 128u) << "three clusters of four fit";
  }
}

TEST_F(LaunchTest, OldDriversKnowNoClusters) {
  FakeCuda* const old = LoadFakeCuda(true);
  ASSERT_NE(old, nullptr);
  old->Reset();
  old->MakeContext();
  {
    // The general code has none.
    const EditKernel edit = [](CubinKernel& kernel, bool is_fast) {
      if (is_fast) kernel.cluster = {2, 1};
    };
    const auto kernel = MakeKernel(MakeRuntime(), ScaleProgram(), "", {}, edit);
    EXPECT_TRUE(kernel->Prepare().ok()) << kernel->Prepare();
    ScaleArgs args(100);
    EXPECT_TRUE(kernel->Launch(args.request()).ok()) << kernel->Launch(args.request());
    EXPECT_EQ(old->Launches().back().kernel, "general_main");
  }
  EXPECT_EQ(old->Misuses(), 0);
}

TEST_F(LaunchTest, LaunchesRunInOrderOverAZeroedWorkspace) {
  const auto kernel = MakeKernel(MakeRuntime(), TwoStepProgram());
  ASSERT_TRUE(kernel->Prepare().ok());
  float x[6] = {}, y[3] = {};
  alignas(256) unsigned char workspace[256];
  std::fill(std::begin(workspace), std::end(workspace), 0xaa);
  const std::vector<int64_t> x_shape = {2, 3}, y_shape = {3};
  const std::vector<TensorArg> tensors = {{x, DType::kFloat32, x_shape, {}}, {y, DType::kFloat32, y_shape, {}}};
  LaunchRequest request;
  request.tensors = tensors;
  EXPECT_EQ(kernel->Launch(request).code(), absl::StatusCode::kInvalidArgument) << "no workspace";
  EXPECT_EQ(kernel->WorkspaceBytes(tensors, {}).value(), 256u);
  request.workspace = workspace;
  request.workspace_bytes = sizeof workspace;
  ASSERT_TRUE(kernel->Launch(request).ok()) << kernel->Launch(request);
  EXPECT_EQ(workspace[0], 0);
  EXPECT_EQ(workspace[11], 0);
  EXPECT_EQ(workspace[12], 0xaa) << "nothing behind the workspace is touched";
  const std::vector<FakeLaunch> launches = fake_->Launches();
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0].kernel, "general_first");
  EXPECT_EQ(launches[0].grid_x, 6u) << "the grid is flattened";
  EXPECT_EQ(launches[1].kernel, "general_second");
  EXPECT_EQ(launches[1].grid_x, 3u);
}

TEST_F(LaunchTest, HostAllocatesTheWorkspaceWhenAsked) {
  alignas(256) static unsigned char memory[1024];
  int allocated = 0, released = 0;
  RuntimeOptions options = Options();
  options.hooks.allocate = [&](uint64_t bytes, cuda::Stream) -> void* {
    ++allocated;
    return bytes <= sizeof memory ? memory : nullptr;
  };
  options.hooks.release = [&](void*, uint64_t, cuda::Stream) { ++released; };
  const auto kernel = MakeKernel(MakeRuntime(options), TwoStepProgram());
  std::vector<float> x(1000), y(1000);
  std::vector<int64_t> x_shape = {1, 10}, y_shape = {10};
  const std::vector<TensorArg> tensors = {{x.data(), DType::kFloat32, x_shape, {}}, {y.data(), DType::kFloat32, y_shape, {}}};
  LaunchRequest request;
  request.tensors = tensors;
  EXPECT_TRUE(kernel->Launch(request).ok()) << kernel->Launch(request);
  x_shape[1] = y_shape[0] = 1000;
  EXPECT_EQ(kernel->Launch(request).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(allocated, 2);
  EXPECT_EQ(released, 1);
}

TEST_F(LaunchTest, SteadyStateAllocatesNothing) {
  const auto kernel = MakeKernel(MakeRuntime(), ScaleProgram());
  ASSERT_TRUE(kernel->Prepare().ok());
  ScaleArgs args(1000), misaligned(1000, 1);
  ASSERT_TRUE(kernel->Launch(args.request()).ok());
  fake_->SetRecording(false);
  const int64_t before = allocations;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(kernel->Launch(args.request()).ok());
    ASSERT_TRUE(kernel->Launch(misaligned.request()).ok());
  }
  EXPECT_EQ(allocations - before, 0) << "allocated in the steady state";
}

TEST_F(LaunchTest, UnpreparedLaunchInCaptureIsRefusedAndTheCaptureLives) {
  const auto runtime = MakeRuntime();
  const auto kernel = MakeKernel(runtime, ScaleProgram());
  const cuda::Driver& driver = runtime->driver();
  cuda::Stream stream = nullptr;
  cuda::Graph graph = nullptr;
  ASSERT_TRUE(driver.StreamCreate(&stream, cuda::kStreamNonBlocking).ok());
  ASSERT_TRUE(driver.StreamBeginCapture(stream, cuda::kCaptureModeGlobal).ok());
  ScaleArgs args(100);
  const absl::Status refused = kernel->Launch(args.request(stream));
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(refused.message(), "Prepare")) << refused;
  EXPECT_TRUE(driver.StreamEndCapture(stream, &graph).ok()) << "the capture must stay valid";
  EXPECT_EQ(fake_->BrokenCaptures(), 0);
  (void)driver.GraphDestroy(graph);

  ASSERT_TRUE(kernel->Prepare().ok());
  const int loads = fake_->Calls("cuLibraryLoadData") + fake_->Calls("cuFuncLoad");
  ASSERT_TRUE(driver.StreamBeginCapture(stream, cuda::kCaptureModeGlobal).ok());
  EXPECT_TRUE(kernel->Launch(args.request(stream)).ok()) << kernel->Launch(args.request(stream));
  EXPECT_TRUE(driver.StreamEndCapture(stream, &graph).ok());
  EXPECT_EQ(fake_->Calls("cuLibraryLoadData") + fake_->Calls("cuFuncLoad"), loads) << "nothing is loaded after Prepare";
  (void)driver.GraphDestroy(graph);
  (void)driver.StreamDestroy(stream);
}

TEST_F(LaunchTest, OtherContextsAreRefused) {
  const auto kernel = MakeKernel(MakeRuntime(), ScaleProgram());
  ASSERT_TRUE(kernel->Prepare().ok());
  ScaleArgs args(100);
  std::thread([&] { EXPECT_EQ(kernel->Launch(args.request()).code(), absl::StatusCode::kFailedPrecondition); }).join();
  std::thread([&] {
    fake_->MakeContext();
    EXPECT_TRUE(kernel->Launch(args.request()).ok());
  }).join();
}

TEST_F(LaunchTest, CodeWithoutTheKernelIsAnErrorAndLeaksNothing) {
  const auto kernel = MakeKernel(MakeRuntime(), ScaleProgram(), "missing_");
  EXPECT_EQ(kernel->Prepare().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(fake_->LiveImages(), 0);
}

TEST_F(LaunchTest, PrebuiltCodeIsACapability) {
  RuntimeOptions options = Options();
  options.allow_prebuilt_cubins = false;
  const auto kernel = MakeKernel(MakeRuntime(options), ScaleProgram());
  EXPECT_EQ(kernel->Prepare(PrepareMode::kCachedOnly).code(), absl::StatusCode::kNotFound);
  EXPECT_NE(kernel->Query().readiness, Readiness::kCached);
  EXPECT_EQ(MakeKernel(MakeRuntime(), ScaleProgram())->Query().readiness, Readiness::kCached);
}

TEST_F(LaunchTest, OldDriversWithoutLibrariesUseModules) {
  FakeCuda* const old = LoadFakeCuda(true);
  ASSERT_NE(old, nullptr);
  old->Reset();
  old->MakeContext();
  {
    const auto kernel = MakeKernel(MakeRuntime(), ScaleProgram());
    EXPECT_TRUE(kernel->Prepare().ok()) << kernel->Prepare();
    EXPECT_EQ(old->Calls("cuModuleLoadDataEx"), 2);
    ScaleArgs args(100);
    EXPECT_TRUE(kernel->Launch(args.request()).ok());
  }
  EXPECT_EQ(old->LiveImages(), 0);
  EXPECT_EQ(old->Misuses(), 0);
}

// Every driver call fails in turn, with codes of every kind: an error or success comes back, nothing leaks, and the next run
// without faults works.
TEST_F(LaunchTest, EveryDriverCallMayFail) {
  const std::string bytes = BundleWithCode(TwoStepProgram(), FindTarget("sm_80").value());
  const auto bundle = OpenedBundle::FromMemory(bytes, true).value();
  alignas(256) static unsigned char workspace[256];
  const auto run = [&]() -> absl::Status {
    absl::StatusOr<std::shared_ptr<Runtime>> runtime = Runtime::Create(Options());
    if (!runtime.ok()) return runtime.status();
    KernelSpec spec;
    spec.entry = "two_step";
    absl::StatusOr<std::shared_ptr<Kernel>> kernel = Kernel::Create(*runtime, bundle, spec);
    if (!kernel.ok()) return kernel.status();
    float x[6] = {}, y[3] = {};
    const std::vector<int64_t> x_shape = {2, 3}, y_shape = {3};
    const std::vector<TensorArg> tensors = {{x, DType::kFloat32, x_shape, {}}, {y, DType::kFloat32, y_shape, {}}};
    LaunchRequest request;
    request.tensors = tensors;
    request.workspace = workspace;
    request.workspace_bytes = sizeof workspace;
    return (*kernel)->Launch(request);
  };
  ASSERT_TRUE(run().ok()) << run();
  static constexpr const char* kSymbols[] = {
#define TILERT_DRIVER_SYMBOL(method, symbol, presence, ...) symbol,
#include "runtime/driver_symbols.def"
#undef TILERT_DRIVER_SYMBOL
  };
  int failures = 0;
  for (const char* symbol : kSymbols) {
    for (const int code : {1, 2, 3, 4, 100, 200, 201, 209, 218, 222, 400, 500, 700, 701, 719, 801, 900, 901, 999}) {
      for (const int skip : {0, 1, 2}) {
        fake_->Reset();
        fake_->Fail(symbol, code, skip);
        const absl::Status status = run();
        const bool is_used = fake_->Calls(symbol) > skip;
        // Unloading cannot report anything; texts of errors have a stand-in.
        const bool is_quiet = absl::StrContains(symbol, "Unload") || absl::StrContains(symbol, "cuGetError");
        EXPECT_EQ(status.ok(), !is_used || is_quiet) << symbol << " gives " << code << " at call " << skip << ": " << status;
        if (!status.ok()) {
          ++failures;
          EXPECT_TRUE(absl::StrContains(status.message(), symbol)) << status;
        }
        if (std::string(symbol) == "cuLibraryUnload") fake_->ForgetImages();
        EXPECT_EQ(fake_->LiveImages(), 0) << symbol << " gives " << code;
      }
    }
  }
  EXPECT_GT(failures, 200);
  fake_->Reset();
  EXPECT_TRUE(run().ok());
}

TEST_F(LaunchTest, AsynchronousPrepare) {
  RuntimeOptions options = Options();
  std::vector<std::thread> pool;
  std::mutex mutex;
  for (const bool with_pool : {false, true}) {
    if (with_pool) {
      options.hooks.submit = [&](std::function<void()> task) {
        const std::lock_guard<std::mutex> lock(mutex);
        pool.emplace_back(std::move(task));
      };
    }
    const auto kernel = MakeKernel(MakeRuntime(options), ScaleProgram());
    ASSERT_TRUE(kernel->PrepareAsync().ok());
    ASSERT_TRUE(kernel->PrepareAsync().ok());
    ScaleArgs args(64);
    EXPECT_TRUE(kernel->Launch(args.request()).ok()) << "waits, or prepares itself";
    EXPECT_TRUE(kernel->is_prepared());
  }
  for (std::thread& thread : pool) thread.join();
  // Released while it is being prepared.
  ASSERT_TRUE(MakeKernel(MakeRuntime(), ScaleProgram())->PrepareAsync().ok());
}

TEST_F(LaunchTest, ThreadsShareKernels) {
  const auto runtime = MakeRuntime();
  const auto kernel = MakeKernel(runtime, ScaleProgram());
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      fake_->MakeContext();
      ScaleArgs args(100 + t, t % 2);
      for (int i = 0; i < 200; ++i) {
        if (i % 50 == 0 && !kernel->Prepare().ok()) ++failures;
        if (i % 67 == 0) (void)kernel->Query();
        if (!kernel->Launch(args.request()).ok()) ++failures;
        if (i % 100 == 0) {
          const auto own = MakeKernel(runtime, ScaleProgram());
          if (!own->Launch(args.request()).ok()) ++failures;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

// Abseil's hash tables do not survive bad_alloc, so reading and copying programs is left out.
TEST_F(LaunchTest, EveryAllocationOfPrepareAndLaunchMayFail) {
  const auto runtime = MakeRuntime();
  ScaleArgs args(100);
  bool succeeded = false;
  int failures = 0;
  for (int64_t limit = 0; !succeeded && limit < 10000; ++limit) {
    const auto kernel = MakeKernel(runtime, ScaleProgram());
    allocations_left = limit;
    try {
      succeeded = kernel->Launch(args.request()).ok();
    } catch (const std::bad_alloc&) {
      // The C interface turns this into a status; here it must leave nothing behind.
    }
    allocations_left = INT64_MAX;
    if (succeeded) break;
    ++failures;
    EXPECT_TRUE(kernel->Launch(args.request()).ok()) << "must work once there is memory again, after failure " << limit;
  }
  EXPECT_TRUE(succeeded);
  EXPECT_GT(failures, 20);
}

}  // namespace
}  // namespace tilert
