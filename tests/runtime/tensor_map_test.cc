// Tensor maps and persistent launches on the fake driver: what is encoded, when, and what happens to tensors that TMA cannot
// take.
#include "runtime/tensor_map.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "absl/strings/match.h"
#include "tests/runtime/runtime_fixture.h"

namespace tilert {
namespace {

FakeTensorMap Seen(const cuda::TensorMap& map) {
  FakeTensorMap seen;
  std::memcpy(static_cast<void*>(&seen), &map, sizeof seen);
  return seen;
}

// Made-up addresses: nothing reads or writes what they point to.
struct MapArgs {
  MapArgs(int64_t m, int64_t n, int64_t k, int64_t ld, uint64_t base = 0x10000000) {
    shapes = {{m, k}, {k, n}, {m, n}};
    strides = {{}, {ld, 1}, {}};
    scalars = {ScalarArg::Int(ld, DType::kInt64)};
    const DType types[] = {DType::kFloat16, DType::kFloat16, DType::kFloat32};
    for (size_t t = 0; t < 3; ++t)
      tensors.push_back({reinterpret_cast<void*>(base + (t << 44)), types[t], shapes[t], strides[t]});
  }
  LaunchRequest request(cuda::Stream stream = nullptr) const {
    LaunchRequest request;
    request.stream = stream;
    request.tensors = tensors;
    request.scalars = scalars;
    return request;
  }
  std::vector<std::vector<int64_t>> shapes, strides;
  std::vector<TensorArg> tensors;
  std::vector<ScalarArg> scalars;
};

class TensorMapTest : public RuntimeFixture {
 protected:
  void SetUp() override {
    RuntimeFixture::SetUp();
    fake_->SetDevice(9, 0, 232448);
    fake_->SetMapParameters("fast_main", 3, 3);
    fake_->SetParameterCount("fast_main", 11);
  }
  std::shared_ptr<Kernel> Maps(const std::shared_ptr<Runtime>& runtime, const EditKernel& edit = AddMaps) {
    return MakeKernel(runtime, MapProgram(), "", {}, edit);
  }
  int Encodes() { return fake_->Calls("cuTensorMapEncodeTiled"); }
  std::string LastKernel() { return fake_->Launches().empty() ? "" : fake_->Launches().back().kernel; }
};

TEST_F(TensorMapTest, TheMapIsTheTensorInnermostDimFirst) {
  const auto kernel = Maps(MakeRuntime());
  const MapArgs args(100, 72, 40, 80);
  ASSERT_TRUE(kernel->Launch(args.request()).ok()) << kernel->Launch(args.request());
  ASSERT_EQ(LastKernel(), "fast_main");
  const FakeLaunch launch = fake_->Launches().back();
  ASSERT_EQ(launch.maps.size(), 3u);
  const FakeTensorMap a = Seen(launch.maps[0]), b = Seen(launch.maps[1]), c = Seen(launch.maps[2]);
  EXPECT_EQ(a.address, 0x10000000u);
  EXPECT_EQ(a.type, 6u) << "float16";
  EXPECT_EQ(a.rank, 2u);
  EXPECT_EQ(a.extents[0], 40u);
  EXPECT_EQ(a.extents[1], 100u);
  EXPECT_EQ(a.strides[0], 80u) << "bytes";
  EXPECT_EQ(a.box[0], 64);
  EXPECT_EQ(a.box[1], 64);
  EXPECT_EQ(a.swizzle, 3) << "128 bytes";
  EXPECT_EQ(a.promotion, 2) << "L2 promotion of 128 bytes";
  EXPECT_EQ(a.fill, 0) << "zeros outside";
  EXPECT_EQ(a.interleave, 0);
  EXPECT_EQ(a.element_strides, 1u);
  EXPECT_EQ(b.extents[0], 72u);
  EXPECT_EQ(b.extents[1], 40u);
  EXPECT_EQ(b.strides[0], 160u) << "the declared stride";
  EXPECT_EQ(b.box[0], 64);
  EXPECT_EQ(b.box[1], 32);
  EXPECT_EQ(c.type, 7u) << "float32";
  EXPECT_EQ(c.address, 0x10000000u + (uint64_t{2} << 44));
  EXPECT_EQ(c.strides[0], 288u);
  EXPECT_EQ(c.swizzle, 0);
  // Pointers, maps, scalar, dims: the other arguments are where they were.
  EXPECT_EQ(launch.args[1], 0x10000000u + (uint64_t{1} << 44));
  EXPECT_EQ(static_cast<uint32_t>(launch.args[7]), 100u);
  EXPECT_EQ(static_cast<uint32_t>(launch.args[10]), 80u);
}

TEST_F(TensorMapTest, EncodedOnceForEachTensor) {
  const auto kernel = Maps(MakeRuntime());
  const MapArgs first(100, 72, 40, 80), moved(100, 72, 40, 80, 0x10000100), longer(101, 72, 40, 80);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(kernel->Launch(first.request()).ok());
  EXPECT_EQ(Encodes(), 3);
  for (int i = 0; i < 10; ++i) {
    for (const MapArgs* args : {&first, &moved, &longer}) {
      ASSERT_TRUE(kernel->Launch(args->request()).ok());
      const FakeLaunch launch = fake_->Launches().back();
      EXPECT_EQ(Seen(launch.maps[0]).address, reinterpret_cast<uintptr_t>(args->tensors[0].data));
      EXPECT_EQ(Seen(launch.maps[0]).extents[1], static_cast<uint64_t>(args->shapes[0][0]));
    }
  }
  EXPECT_EQ(Encodes(), 3 + 3 + 2) << "B does not change with M";
}

// Arguments in the fast class that TMA does not take: the general variant, and no error.
TEST_F(TensorMapTest, WhatTmaCannotTakeGoesToTheGeneralVariant) {
  const auto kernel = Maps(MakeRuntime());
  ASSERT_TRUE(kernel->Prepare().ok());
  const auto run = [&](const MapArgs& args) {
    const absl::Status status = kernel->Launch(args.request());
    EXPECT_TRUE(status.ok()) << status;
    return LastKernel();
  };
  EXPECT_EQ(run(MapArgs(100, 72, 40, 80)), "fast_main");
  EXPECT_EQ(run(MapArgs(1, 8, 8, 8)), "fast_main") << "boxes larger than the tensor are fine";
  EXPECT_EQ(run(MapArgs(100, 72, 0, 80)), "general_main") << "an empty dim";
  EXPECT_EQ(run(MapArgs(100, 72, 40, 0)), "general_main") << "every row the same";
  EXPECT_EQ(run(MapArgs(100, 72, 40, 84)), "general_main") << "rows of 168 bytes";
  EXPECT_EQ(run(MapArgs(100, 72, 41, 80)), "general_main") << "rows of 82 bytes";
  EXPECT_EQ(run(MapArgs(100, 72, 40, 80, 0x10000008)), "general_main") << "a base that is no multiple of 16";
  EXPECT_EQ(fake_->Misuses(), 0) << "nothing illegal was tried";
  fake_->Fail("cuTensorMapEncodeTiled", cuda::kInvalidValue);
  EXPECT_EQ(run(MapArgs(100, 72, 40, 80)), "fast_main") << "known already";
  EXPECT_EQ(run(MapArgs(99, 72, 40, 80)), "general_main") << "the driver refuses";
}

TEST_F(TensorMapTest, CaptureAfterPrepareTakesEitherVariant) {
  const auto runtime = MakeRuntime();
  const auto kernel = Maps(runtime);
  const cuda::Driver& driver = runtime->driver();
  cuda::Stream stream = nullptr;
  cuda::Graph graph = nullptr;
  ASSERT_TRUE(kernel->Prepare().ok());
  ASSERT_TRUE(driver.StreamCreate(&stream, cuda::kStreamNonBlocking).ok());
  ASSERT_TRUE(driver.StreamBeginCapture(stream, cuda::kCaptureModeGlobal).ok());
  EXPECT_TRUE(kernel->Launch(MapArgs(100, 72, 40, 80).request(stream)).ok());
  EXPECT_TRUE(kernel->Launch(MapArgs(100, 72, 0, 80).request(stream)).ok());
  EXPECT_TRUE(driver.StreamEndCapture(stream, &graph).ok());
  EXPECT_EQ(fake_->BrokenCaptures(), 0);
  EXPECT_EQ(fake_->Launches().size(), 2u);
  EXPECT_EQ(LastKernel(), "general_main");
  (void)driver.GraphDestroy(graph);
  (void)driver.StreamDestroy(stream);
}

TEST_F(TensorMapTest, OldDriversRunTheGeneralVariantAndSaySo) {
  FakeCuda* const old = LoadFakeCuda(true);
  ASSERT_NE(old, nullptr);
  old->Reset();
  old->MakeContext();
  std::string log;
  RuntimeOptions options = Options();
  options.hooks.log = [&](LogLevel, const char*, int, const std::string& message) { log += message; };
  {
    const auto kernel = Maps(MakeRuntime(options));
    ASSERT_TRUE(kernel->Prepare().ok()) << kernel->Prepare();
    EXPECT_TRUE(kernel->is_prepared());
    EXPECT_TRUE(absl::StrContains(log, "cuTensorMapEncodeTiled")) << log;
    ASSERT_TRUE(kernel->Launch(MapArgs(100, 72, 40, 80).request()).ok());
    ASSERT_EQ(old->Launches().size(), 1u);
    EXPECT_EQ(old->Launches()[0].kernel, "general_main");
    // Where there is no other variant, the message is the error.
    const auto only = MakeKernel(MakeRuntime(), MapProgram(), "", {}, [](CubinKernel& k, bool) { AddMaps(k, true); });
    const absl::Status status = only->Prepare();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_TRUE(absl::StrContains(status.message(), "cuTensorMapEncodeTiled")) << status;
  }
  EXPECT_EQ(old->LiveImages(), 0);
}

TEST_F(TensorMapTest, PersistentKernelsTakeNoMoreBlocksThanFit) {
  const auto edit = [](CubinKernel& kernel, bool is_fast) {
    AddMaps(kernel, is_fast);
    kernel.persistent = is_fast;
    kernel.blocks_per_sm = 2;
  };
  const auto kernel = Maps(MakeRuntime(), edit);
  const auto grid = [&](const MapArgs& args) {
    EXPECT_TRUE(kernel->Launch(args.request()).ok());
    return fake_->Launches().back().grid_x;
  };
  EXPECT_EQ(grid(MapArgs(64 * 3, 64 * 5, 64, 320)), 15u);
  EXPECT_EQ(grid(MapArgs(64 * 216, 64, 64, 64)), 216u);
  EXPECT_EQ(grid(MapArgs(64 * 217, 64, 64, 64)), 216u) << "108 SMs, two blocks on each";
  EXPECT_EQ(grid(MapArgs(64 * 100, 64 * 100, 64, 6400)), 216u);
  EXPECT_EQ(grid(MapArgs(64 * 100, 64 * 100, 0, 6400)), 10000u) << "the general kernel is not persistent";
  const size_t launches = fake_->Launches().size();
  const int attributes = fake_->Calls("cuDeviceGetAttribute");
  EXPECT_TRUE(kernel->Launch(MapArgs(0, 64, 64, 64).request()).ok());
  EXPECT_EQ(fake_->Launches().size(), launches) << "no tiles, no launch";
  EXPECT_EQ(fake_->Calls("cuDeviceGetAttribute"), attributes) << "the device is asked once";
}

// Rules that no ArgClass states, on the encoder alone.
TEST_F(TensorMapTest, EveryRuleIsCheckedBeforeTheDriverIsAsked) {
  const Program program = MapProgram();
  const ArgPlan plan = ArgPlan::Make(program).value();
  const auto driver = cuda::Driver::Load().value();
  const auto b = TensorMapEncoder::Make(*driver, plan, {1, DType::kFloat16, {32, 64}, 128}).value();
  const auto fits = [&](const MapArgs& args, cuda::TensorMap* out = nullptr) {
    LaunchValues values(plan);
    EXPECT_TRUE(plan.Bind(args.tensors, args.scalars, nullptr, 0, values).ok())
        << plan.Bind(args.tensors, args.scalars, nullptr, 0, values);
    cuda::TensorMap map;
    return b->Fill(plan, values, out == nullptr ? map : *out);
  };
  EXPECT_TRUE(fits(MapArgs(1, 72, 40, 80)));
  EXPECT_FALSE(fits(MapArgs(1, 72, 40, 80, 0x10000008)));
  EXPECT_FALSE(fits(MapArgs(1, 0, 40, 80)));
  EXPECT_FALSE(fits(MapArgs(1, 72, 0, 80)));
  EXPECT_FALSE(fits(MapArgs(1, 72, 40, 81)));
  EXPECT_TRUE(fits(MapArgs(1, 8, 2, (int64_t{1} << 39) - 8)));
  EXPECT_FALSE(fits(MapArgs(1, 8, 2, int64_t{1} << 39))) << "2^40 bytes";
  EXPECT_TRUE(fits(MapArgs(0, 8, (int64_t{1} << 32) - 1, 8)));
  EXPECT_FALSE(fits(MapArgs(0, 8, int64_t{1} << 32, 8)));
  cuda::TensorMap map;
  EXPECT_TRUE(fits(MapArgs(1, 72, 1, 81), &map)) << "the stride of a single row is never taken";
  EXPECT_EQ(Seen(map).strides[0], 16u);
  EXPECT_EQ(fake_->Misuses(), 0);
}

TEST_F(TensorMapTest, ImpossibleMapsAreRefused) {
  const Program program = MapProgram();
  const LoweredTensorMap good{0, DType::kFloat16, {64, 64}, 128};
  EXPECT_TRUE(CheckTensorMap(program, good).ok());
  const auto refused = [&](auto change) {
    LoweredTensorMap map = good;
    change(map);
    EXPECT_EQ(CheckTensorMap(program, map).code(), absl::StatusCode::kDataLoss);
  };
  refused([](LoweredTensorMap& m) { m.buffer = 9; });
  refused([](LoweredTensorMap& m) { m.dtype = DType::kFloat32; });
  refused([](LoweredTensorMap& m) { m.box = {64}; });
  refused([](LoweredTensorMap& m) { m.box = {0, 64}; });
  refused([](LoweredTensorMap& m) { m.box = {257, 64}; });
  refused([](LoweredTensorMap& m) { m.box = {64, 4}; });
  refused([](LoweredTensorMap& m) { m.box = {64, 128}; });
  refused([](LoweredTensorMap& m) { m.swizzle = 16; });
}

// Threads that replace each other's maps: each launch must pass whole maps of its own tensors.
TEST_F(TensorMapTest, ThreadsNeverSeeHalfAMap) {
  const auto kernel = Maps(MakeRuntime());
  ASSERT_TRUE(kernel->Prepare().ok());
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      fake_->MakeContext();
      for (int i = 0; i < 500; ++i) {
        const MapArgs args(64 + (i * 7 + t) % 13, 72, 40, 80, 0x10000000 + static_cast<uint64_t>((i * 5 + t) % 97) * 4096);
        if (!kernel->Launch(args.request()).ok()) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  for (const FakeLaunch& launch : fake_->Launches()) {
    ASSERT_EQ(launch.maps.size(), 3u);
    for (size_t m = 0; m < 3; ++m) {
      const FakeTensorMap map = Seen(launch.maps[m]);
      ASSERT_EQ(map.address, launch.args[m]);
      ASSERT_EQ(map.check, FakeMapCheck(map));
      ASSERT_EQ(map.extents[1], m == 1 ? 40 : static_cast<uint32_t>(launch.args[7]));
    }
  }
}

// What a launch costs beyond the driver: for people to read; the bound is only against the absurd.
TEST_F(TensorMapTest, LaunchCost) {
  const auto kernel = Maps(MakeRuntime());
  const auto plain = MakeKernel(MakeRuntime(), MapProgram());
  const MapArgs args(100, 72, 40, 80);
  ASSERT_TRUE(kernel->Launch(args.request()).ok());
  ASSERT_TRUE(plain->Launch(args.request()).ok());
  fake_->SetRecording(false);
  const auto nanoseconds = [&](Kernel& measured) {
    constexpr int kCalls = 20000;
    double best = 1e9;
    for (int round = 0; round < 7; ++round) {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < kCalls; ++i) (void)measured.Launch(args.request());
      best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / kCalls);
    }
    return best;
  };
  const double without = nanoseconds(*plain), with = nanoseconds(*kernel);
  std::printf("launch: %.0f ns without tensor maps, %.0f ns with three\n", without, with);
  RecordProperty("ns_without_maps", static_cast<int>(without));
  RecordProperty("ns_with_maps", static_cast<int>(with));
  EXPECT_LT(with, 20000);
}

}  // namespace
}  // namespace tilert
