// A kernel with several schedules: each launch takes the cheapest that serves its dims, on the fake driver with made-up code.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <thread>

#include "absl/strings/match.h"
#include "ir/builder.h"
#include "ir/flat_writer.h"
#include "ir/specialize.h"
#include "lowering/lowered.h"
#include "runtime/dim_memo.h"
#include "tests/runtime/runtime_fixture.h"

namespace tilert {
namespace {

// Y[i] = X[i] * alpha, `block` elements a block. With `other_workspace`, a workspace that depends on the block; with
// `whole_blocks`, N must be a multiple of it.
Program BlockProgram(bool other_workspace = false, bool whole_blocks = false) {
  ProgramBuilder b("scale");
  const Val n = b.Dim("N"), block = b.Constant("block", {128, 64, 512});
  const Buf x = b.Tensor("X", DType::kFloat32, {n}), y = b.Tensor("Y", DType::kFloat32, {n}, Access::kOut);
  const Val alpha = b.Scalar("alpha", DType::kFloat32);
  if (whole_blocks) b.Assume(n % block == 0);
  if (other_workspace) b.Workspace("W", DType::kFloat32, {CeilDiv(n, block) * 64});
  const Val at = b.Launch<1>("main", {CeilDiv(n, block)}, Val(128))[0];
  const Val i = b.OpenParallel({"i"}, {block})[0];
  b.Store(y, {at * block + i}, x(at * block + i) * alpha);
  b.Close();
  b.Close();
  absl::StatusOr<Program> program = b.Build();
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

class ScheduleLaunchTest : public RuntimeFixture {
 protected:
  // Code for every class and block size but `without`.
  std::shared_ptr<Kernel> Make(const Program& program, KernelSpec spec = {}, int64_t without = 0,
                               RuntimeOptions* options = nullptr) {
    const auto runtime = options == nullptr ? MakeRuntime() : MakeRuntime(*options);
    Bundle bundle;
    bundle.programs.push_back(program);
    bundle.variants = {{"small", 0, {{"block", 64}}, "sm_80", {{0, 0, 1000, 1}}},
                       {"middle", 0, {{"block", 128}}, "sm_80", {}},
                       {"large", 0, {{"block", 512}}, "", {}},
                       {"elsewhere", 0, {{"block", 64}}, "sm_90a", {}}};
    for (const int64_t block : {64, 128, 512}) {
      const Program specialised = Specialize(program, {{"block", block}}, spec.dims).value();
      for (const bool fast : {true, false}) {
        const ArgClass arg_class = fast ? FastArgClass(specialised) : GeneralArgClass(specialised);
        PrebuiltCubin cubin{ProgramDigest(program),
                            {{"block", block}},
                            spec.dims,
                            arg_class.alignment,
                            arg_class.dim_divisor,
                            arg_class.index32,
                            "sm_80",
                            static_cast<uint32_t>(kLaunchAbi),
                            {},
                            {},
                            {}};
        CubinKernel kernel;
        kernel.symbol = (fast ? "fast_" : "general_") + std::to_string(block);
        kernel.args = {{CubinKernel::Arg::Kind::kTensor, 0, 8}, {CubinKernel::Arg::Kind::kTensor, 1, 8}};
        kernel.threads = 128;
        cubin.kernels = {kernel};
        cubin.code = bundle.Own(
            "\x7f"
            "ELF made up");
        if (block != without) bundle.cubins.push_back(cubin);
      }
    }
    const auto bytes = WriteBundle(bundle);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    spec.entry = "scale";
    const auto kernel = Kernel::Create(runtime, OpenedBundle::FromMemory(*bytes, true).value(), spec);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    return *kernel;
  }
  // The symbol that a launch with N = n runs.
  std::string Launched(Kernel& kernel, int64_t n, size_t misalign = 0) {
    ScaleArgs args(n, misalign);
    const absl::Status status = kernel.Launch(args.request());
    EXPECT_TRUE(status.ok()) << status;
    const std::vector<FakeLaunch> launches = fake_->Launches();
    return launches.empty() ? "nothing" : launches.back().kernel;
  }
};

TEST_F(ScheduleLaunchTest, EachLaunchTakesTheCheapestThatServesIt) {
  const auto kernel = Make(BlockProgram());
  ASSERT_TRUE(kernel->Prepare().ok()) << kernel->Prepare();
  for (int repeat = 0; repeat < 3; ++repeat) {
    EXPECT_EQ(Launched(*kernel, 500), "fast_64");
    EXPECT_EQ(Launched(*kernel, 2000), "fast_128") << "too many for the small one, and one wave for the middle one";
    EXPECT_EQ(Launched(*kernel, 1000000), "fast_512") << "the fewest waves";
    EXPECT_EQ(Launched(*kernel, 500, 1), "general_128") << "not aligned";
  }
  ScaleArgs args(500);
  const auto choice = kernel->Choice(args.tensors, args.scalars);
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_EQ(choice->schedule, "small");
  EXPECT_EQ(choice->constants.at("block"), 64);
  EXPECT_FALSE(choice->is_general);
  EXPECT_GT(choice->cycles, 0);
}

TEST_F(ScheduleLaunchTest, FixedDimsLeaveOneFastVariant) {
  KernelSpec spec;
  spec.dims = {{"N", 1000000}};
  const auto kernel = Make(BlockProgram(), spec);
  ASSERT_TRUE(kernel->Prepare().ok()) << kernel->Prepare();
  EXPECT_EQ(fake_->LiveImages(), 2) << "the fast one and the general one";
  EXPECT_EQ(Launched(*kernel, 1000000), "fast_512");
  ScaleArgs other(500);
  EXPECT_FALSE(kernel->Launch(other.request()).ok());
}

TEST_F(ScheduleLaunchTest, FixedConstantsLeaveTheirVariants) {
  KernelSpec spec;
  spec.constants = {{"block", 512}};
  const auto kernel = Make(BlockProgram(), spec);
  ASSERT_TRUE(kernel->Prepare().ok()) << kernel->Prepare();
  EXPECT_EQ(Launched(*kernel, 500), "fast_512");
  EXPECT_EQ(Launched(*kernel, 500, 1), "general_512");
}

TEST_F(ScheduleLaunchTest, WhatCannotBeCompiledIsLeftOutAndTheHostIsTold) {
  RuntimeOptions options = Options();
  std::string log;
  options.hooks.log = [&](LogLevel, const char*, int, const std::string& message) { log += message + "\n"; };
  setenv("TILERT_LIBNVRTC", "/nowhere/libnvrtc.so", 1);
  const auto kernel = Make(BlockProgram(), {}, 512, &options);
  unsetenv("TILERT_LIBNVRTC");
  // The first launch finds out.
  EXPECT_EQ(Launched(*kernel, 1000000), "fast_128");
  EXPECT_TRUE(absl::StrContains(log, "'scale' runs without its fast variant large")) << log;
  EXPECT_EQ(Launched(*kernel, 500), "fast_64");
  EXPECT_TRUE(kernel->is_prepared());
}

// The workspace that is asked for serves whatever a launch takes; with less, the code for any arguments may run.
TEST_F(ScheduleLaunchTest, WorkspacesMayDependOnTheSchedule) {
  const auto kernel = Make(BlockProgram(true));
  const auto workspace_of = [](int64_t n, int64_t block) { return static_cast<uint64_t>((n + block - 1) / block * 256); };
  std::vector<char> memory(5 << 20);
  char* const workspace = memory.data() + (256 - reinterpret_cast<uintptr_t>(memory.data()) % 256) % 256;
  const auto launched = [&](int64_t n, uint64_t bytes) -> std::string {
    ScaleArgs args(n);
    LaunchRequest request = args.request();
    request.workspace = workspace;
    request.workspace_bytes = bytes;
    const absl::Status status = kernel->Launch(request);
    return status.ok() ? fake_->Launches().back().kernel : std::string(status.message());
  };
  EXPECT_EQ(launched(500, workspace_of(500, 64)), "fast_64") << "prepared by the launch";
  for (const int64_t n : {500, 2000, 1000000}) {
    ScaleArgs args(n);
    EXPECT_EQ(kernel->WorkspaceBytes(args.tensors, args.scalars).value(), workspace_of(n, 64)) << "the smallest blocks'";
  }
  ScaleArgs args(500);
  EXPECT_EQ(kernel->Choice(args.tensors, args.scalars)->schedule, "small");
  EXPECT_EQ(launched(2000, workspace_of(2000, 64)), "fast_128");
  EXPECT_EQ(launched(1000000, workspace_of(1000000, 64)), "fast_512");
  EXPECT_EQ(launched(1000000, workspace_of(1000000, 512)), "fast_512");
  EXPECT_EQ(launched(500, workspace_of(500, 64) - 1), "general_128") << "too little for the one that is chosen";
  const std::string refusal = launched(500, workspace_of(500, 128) - 1);
  EXPECT_TRUE(absl::StrContains(refusal, "needs a workspace of 1024 bytes")) << refusal;
}

TEST_F(ScheduleLaunchTest, SchedulesThatWantOtherArgumentsAreLeftOut) {
  RuntimeOptions options = Options();
  std::string log;
  options.hooks.log = [&](LogLevel, const char*, int, const std::string& message) { log += message + "\n"; };
  const auto kernel = Make(BlockProgram(false, true), {}, 0, &options);
  EXPECT_TRUE(absl::StrContains(log, "variant small wants other arguments")) << log;
  ASSERT_TRUE(kernel->Prepare().ok()) << kernel->Prepare();
  ScaleArgs args(512);
  EXPECT_EQ(kernel->Choice(args.tensors, args.scalars)->schedule, "middle");
  EXPECT_EQ(Launched(*kernel, 512), "fast_128");
}

TEST_F(ScheduleLaunchTest, ManyThreadsManySizes) {
  const auto kernel = Make(BlockProgram());
  ASSERT_TRUE(kernel->Prepare().ok()) << kernel->Prepare();
  constexpr int kThreads = 4, kLaunches = 200;
  std::vector<std::thread> threads;
  const cuda::Context context = kernel->runtime().context();
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      ASSERT_TRUE(kernel->runtime().driver().CtxSetCurrent(context).ok());
      for (int i = 0; i < kLaunches; ++i) {
        ScaleArgs args(i % 2 == 0 ? 900 + t : 3000 + i);
        ASSERT_TRUE(kernel->Launch(args.request()).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  int small = 0;
  for (const FakeLaunch& launch : fake_->Launches()) small += launch.kernel == "fast_64";
  EXPECT_EQ(small, kThreads * kLaunches / 2);
}

TEST(DimMemo, FindsWhatWasPutAndNothingElse) {
  DimMemo memo;
  const std::vector<int64_t> a = {1, 2, 3}, b = {3, 2, 1}, zero = {0, 0, 0}, many(DimMemo::kMaxDims + 1, 7);
  EXPECT_EQ(memo.Find(zero), -1) << "an empty memo knows nothing, zeros neither";
  memo.Put(a, 5);
  EXPECT_EQ(memo.Find(a), 5);
  EXPECT_EQ(memo.Find(b), -1);
  memo.Put(a, 6);
  EXPECT_EQ(memo.Find(a), 6);
  memo.Put(many, 1);
  EXPECT_EQ(memo.Find(many), -1);
}

// Value and dims of an entry belong together, whoever writes.
TEST(DimMemo, NeverMixesEntries) {
  DimMemo memo;
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (int w = 0; w < 2; ++w) {
    writers.emplace_back([&, w] {
      for (int64_t i = w; !stop; i = (i + 7) % 1000) memo.Put(std::vector<int64_t>{i, i * 31, -i}, static_cast<int>(i));
    });
  }
  int found = 0;
  for (int64_t i = 0; i < 200000; ++i) {
    const int64_t key = i % 1000;
    const int value = memo.Find(std::vector<int64_t>{key, key * 31, -key});
    if (value < 0) continue;
    ++found;
    EXPECT_EQ(value, key);
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace tilert
