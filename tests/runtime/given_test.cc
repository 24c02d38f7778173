// Code whose blocks leave sums for each other in workspace of its own, on the fake driver with made-up code: who asks for the
// workspace, where it lies, and what runs without it.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "ir/builder.h"
#include "ir/flat_writer.h"
#include "tests/runtime/runtime_fixture.h"

namespace tilert {
namespace {

constexpr uintptr_t kA = 0x100000000, kB = 0x200000000, kWorkspace = 0x400000000;
constexpr uint32_t kBytesEach = 4352;

// B[N] = A[N] in tiles of 64; with `has_workspace`, 40 floats of workspace that it does not use.
Program CopyProgram(bool has_workspace) {
  ProgramBuilder b("copy");
  const Val n = b.Dim("N");
  const Buf from = b.Tensor("A", DType::kFloat32, {n}), to = b.Tensor("B", DType::kFloat32, {n}, Access::kOut);
  if (has_workspace) b.Workspace("W", DType::kFloat32, {Val(40)});
  const auto block = b.Launch<1>("main", {CeilDiv(n, 64)}, Val(128));
  b.Copy(from.At({block[0] * 64}, {64}), to.At({block[0] * 64}, {64}));
  b.Close();
  absl::StatusOr<Program> program = b.Build();
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

void AddCode(Bundle& bundle, const Program& program, const ArgClass& arg_class, const std::string& symbol, bool gives) {
  CubinKernel kernel;
  kernel.symbol = symbol;
  for (uint32_t id = 0; id < 2; ++id) kernel.args.push_back({CubinKernel::Arg::Kind::kTensor, id, 8});
  if (gives) kernel.args.push_back({CubinKernel::Arg::Kind::kGiven, kBytesEach, 8});
  kernel.persistent = gives;
  kernel.threads = 128;
  tilert::AddCode(bundle, program, arg_class, "sm_80", {std::move(kernel)});
}

class GivenTest : public RuntimeFixture {
 protected:
  void Make(bool has_workspace = false, RuntimeOptions* options = nullptr) {
    const Program program = CopyProgram(has_workspace);
    Bundle bundle;
    bundle.programs.push_back(program);
    AddCode(bundle, program, FastArgClass(program), "fast", true);
    AddCode(bundle, program, GeneralArgClass(program), "general", false);
    const auto bytes = WriteBundle(bundle);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    setenv("TILERT_LIBNVRTC", "/nowhere/libnvrtc.so", 1);  // nothing is compiled
    runtime_ = options == nullptr ? MakeRuntime() : MakeRuntime(*options);
    const auto kernel = Kernel::Create(runtime_, OpenedBundle::FromMemory(*bytes, true).value(), {"copy"});
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    kernel_ = *kernel;
    EXPECT_EQ(kernel_->WorkspaceBytes(Tensors(64), {}).value(), has_workspace ? 256u : 0u) << "what code wants is not known yet";
    ASSERT_TRUE(kernel_->Prepare().ok()) << kernel_->Prepare();
    unsetenv("TILERT_LIBNVRTC");
    fake_->SetParameterCount("fast", 3);
    fake_->SetParameterCount("general", 2);
  }

  std::vector<TensorArg> Tensors(int64_t n) {
    shape_ = {n};
    return {{reinterpret_cast<void*>(kA), DType::kFloat32, shape_, {}},
            {reinterpret_cast<void*>(kB), DType::kFloat32, shape_, {}}};
  }

  FakeLaunch Launch(int64_t n, uintptr_t workspace, uint64_t workspace_bytes) {
    LaunchRequest request;
    const std::vector<TensorArg> tensors = Tensors(n);
    request.tensors = tensors;
    request.workspace = reinterpret_cast<void*>(workspace);
    request.workspace_bytes = workspace_bytes;
    const absl::Status status = kernel_->Launch(request);
    EXPECT_TRUE(status.ok()) << status;
    return fake_->Launches().back();
  }

  uint64_t BytesFor(int64_t tiles) const {
    return kBytesEach * static_cast<uint64_t>(std::min<int64_t>(tiles * 8, runtime_->device().sm_count));
  }

  void TearDown() override {
    kernel_.reset(), runtime_.reset();
    RuntimeFixture::TearDown();
  }

  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<Kernel> kernel_;
  std::vector<int64_t> shape_;
};

TEST_F(GivenTest, ALaunchBringsWorkspaceForAllBlocks) {
  Make();
  for (const int64_t tiles : {1, 3, 1000}) {
    const uint64_t bytes = kernel_->WorkspaceBytes(Tensors(tiles * 64), {}).value();
    EXPECT_EQ(bytes, BytesFor(tiles));
    const FakeLaunch launch = Launch(tiles * 64, kWorkspace, bytes);
    EXPECT_EQ(launch.kernel, "fast");
    EXPECT_EQ(launch.args, (std::vector<uint64_t>{kA, kB, kWorkspace}));
  }
  EXPECT_EQ(kernel_->WorkspaceBytes(Tensors(0), {}).value(), 0u);
}

TEST_F(GivenTest, WithoutRoomOtherCodeRuns) {
  Make();
  const uint64_t bytes = BytesFor(3);
  EXPECT_EQ(Launch(3 * 64, 0, 0).kernel, "general");
  EXPECT_EQ(Launch(3 * 64, kWorkspace, bytes - 1).kernel, "general");
  EXPECT_EQ(Launch(3 * 64, kWorkspace + 16, bytes).kernel, "general");
  EXPECT_EQ(Launch(3 * 64, kWorkspace, bytes).kernel, "fast");
}

TEST_F(GivenTest, ItLiesBehindTheProgramsOwn) {
  Make(true);
  EXPECT_EQ(kernel_->WorkspaceBytes(Tensors(64), {}).value(), 256 + BytesFor(1));
  EXPECT_EQ(Launch(64, kWorkspace, 256 + BytesFor(1)).args.back(), kWorkspace + 256);
  EXPECT_EQ(Launch(64, kWorkspace, 256).kernel, "general");
}

TEST_F(GivenTest, TheHostsMemoryDoesToo) {
  RuntimeOptions options = Options();
  bool has_memory = true;
  std::vector<uint64_t> asked, released;
  options.hooks.allocate = [&](uint64_t bytes, cuda::Stream) {
    asked.push_back(bytes);
    return has_memory ? reinterpret_cast<void*>(kWorkspace) : nullptr;
  };
  options.hooks.release = [&](void*, uint64_t bytes, cuda::Stream) { released.push_back(bytes); };
  Make(false, &options);
  EXPECT_EQ(Launch(64, 0, 0).kernel, "fast");
  EXPECT_EQ(asked, (std::vector<uint64_t>{BytesFor(1)}));
  EXPECT_EQ(released, asked);
  has_memory = false;
  EXPECT_EQ(Launch(64, 0, 0).kernel, "general");
  EXPECT_EQ(released.size(), 1u);
}

}  // namespace
}  // namespace tilert
