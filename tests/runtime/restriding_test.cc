// Launches with rows that TMA and wide loads cannot take, on the fake driver with made-up code: what is copied where, and when
// not.
#include "runtime/restriding.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "absl/strings/match.h"
#include "ir/builder.h"
#include "ir/flat_writer.h"
#include "lowering/restride.h"
#include "tests/runtime/runtime_fixture.h"

namespace tilert {
namespace {

constexpr uintptr_t kA = 0x100000000, kB = 0x200000000, kC = 0x300000000, kWorkspace = 0x400000000;

// C[M, N] = A[M, K] · B[K, N] in tiles of 64 x 64; with `has_workspace`, 40 floats of workspace that it does not use; with
// `strided`, rows of A and B lie as far apart as the launch says.
Program ProductProgram(bool has_workspace = false, bool strided = false) {
  ProgramBuilder b("product");
  const Val m = b.Dim("M"), n = b.Dim("N"), k = b.Dim("K");
  const DType type = DType::kFloat16;
  const auto strides = [&](const char* name) { return strided ? std::vector<Val>{b.Dim(name), Val(1)} : std::vector<Val>{}; };
  const Buf a_all = b.Tensor("A", type, {m, k}, Access::kIn, strides("pitch_A"));
  const Buf b_all = b.Tensor("B", type, {k, n}, Access::kIn, strides("pitch_B"));
  const Buf c_all = b.Tensor("C", type, {m, n}, Access::kOut);
  if (has_workspace) b.Workspace("W", DType::kFloat32, {Val(40)});
  const auto block = b.Launch<2>("main", {CeilDiv(n, 64), CeilDiv(m, 64)}, Val(128));
  const Buf a = b.Shared("a", type, {64, 32}), bb = b.Shared("b", type, {32, 64});
  const Buf c = b.Fragment("c", DType::kFloat32, {64, 64});
  b.Fill(c, 0.0);
  const Val i = b.OpenFor(ForKind::kPipelined, "i", 0, CeilDiv(k, 32), 1, 2);
  b.Copy(a_all.At({block[1] * 64, i * 32}, {64, 32}), a);
  b.Copy(b_all.At({i * 32, block[0] * 64}, {32, 64}), bb);
  b.Gemm(a, bb, c);
  b.Close();
  b.Copy(c, c_all.At({block[1] * 64, block[0] * 64}, {64, 64}));
  b.Close();
  absl::StatusOr<Program> program = b.Build();
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

void AddCode(Bundle& bundle, const Program& program, const ArgClass& arg_class, const std::string& symbol) {
  CubinKernel kernel;
  kernel.symbol = symbol;
  for (uint32_t id = 0; id < program.buffers.size(); ++id) {
    if (program.buffers[id].scope == Scope::kGlobal) kernel.args.push_back({CubinKernel::Arg::Kind::kTensor, id, 8});
  }
  kernel.threads = 128;
  tilert::AddCode(bundle, program, arg_class, "sm_80", {std::move(kernel)});
}

class RestridingTest : public RuntimeFixture {
 protected:
  std::shared_ptr<Kernel> Make(const Program& program, bool with_copier = true, RuntimeOptions* options = nullptr) {
    Bundle bundle;
    bundle.programs.push_back(program);
    AddCode(bundle, program, FastArgClass(program), "fast");
    AddCode(bundle, program, GeneralArgClass(program), "general");
    const std::vector<BufferId> inputs = SharedInputs(program);
    EXPECT_EQ(inputs.size(), 2u);
    const Program padded = WithPaddedRows(program, inputs);
    const Program copier = *RestrideProgram(DType::kFloat16, 2, !program.buffers[inputs[0]].strides.empty()).value();
    AddCode(bundle, padded, PaddedArgClass(padded, inputs), "restrided");
    if (with_copier) AddCode(bundle, copier, PaddedArgClass(copier, std::vector<BufferId>{copier.params[1].index}), "copy");
    const auto bytes = WriteBundle(bundle);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    setenv("TILERT_LIBNVRTC", "/nowhere/libnvrtc.so", 1);  // nothing is compiled
    const auto runtime = options == nullptr ? MakeRuntime() : MakeRuntime(*options);
    const auto kernel = Kernel::Create(runtime, OpenedBundle::FromMemory(*bytes, true).value(), {"product"});
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_TRUE((*kernel)->Prepare().ok()) << (*kernel)->Prepare();
    unsetenv("TILERT_LIBNVRTC");
    for (const char* symbol : {"fast", "general", "restrided"}) fake_->SetParameterCount(symbol, 3);
    fake_->SetParameterCount("copy", 2);
    return *kernel;
  }

  struct Call {
    Call(int64_t m, int64_t n, int64_t k, uintptr_t a = kA, uintptr_t b = kB)
        : shapes{{m, k}, {k, n}, {m, n}},
          tensors{{reinterpret_cast<void*>(a), DType::kFloat16, shapes[0], {}},
                  {reinterpret_cast<void*>(b), DType::kFloat16, shapes[1], {}},
                  {reinterpret_cast<void*>(kC), DType::kFloat16, shapes[2], {}}} {}
    LaunchRequest With(uint64_t workspace_bytes) const {
      LaunchRequest request;
      request.tensors = tensors;
      if (workspace_bytes > 0) request.workspace = reinterpret_cast<void*>(kWorkspace);
      request.workspace_bytes = workspace_bytes;
      return request;
    }
    // Rows of A and B so far apart.
    Call& Pitched(int64_t of_a, int64_t of_b) {
      strides = {{of_a, 1}, {of_b, 1}};
      for (size_t i = 0; i < 2; ++i) tensors[i].strides = strides[i];
      return *this;
    }
    std::vector<std::vector<int64_t>> shapes, strides;
    std::vector<TensorArg> tensors;
  };

  // What the call queues with so many bytes of workspace: "copy(100000000) restrided(400000000 …)", addresses in hex.
  std::string Launched(Kernel& kernel, const Call& call, uint64_t workspace_bytes) {
    const size_t before = fake_->Launches().size();
    const absl::Status status = kernel.Launch(call.With(workspace_bytes));
    EXPECT_TRUE(status.ok()) << status;
    std::string text;
    for (size_t i = before; i < fake_->Launches().size(); ++i) {
      const FakeLaunch launch = fake_->Launches()[i];
      absl::StrAppend(&text, text.empty() ? "" : " ", launch.kernel, "(");
      for (size_t a = 0; a < launch.args.size(); ++a) absl::StrAppend(&text, a == 0 ? "" : " ", absl::Hex(launch.args[a]));
      text += ")";
    }
    return text;
  }
};

constexpr uint64_t kBytesOfA = 2047 * 2112 * 2, kBytesOfB = 2049 * 2112 * 2;  // rows of 2049 and 2051 float16, padded
uint64_t Up(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

TEST_F(RestridingTest, InputsAreCopiedIntoTheWorkspace) {
  const auto kernel = Make(ProductProgram());
  const Call call(2047, 2051, 2049);
  const uint64_t bytes = Up(kBytesOfA) + Up(kBytesOfB);
  EXPECT_EQ(kernel->WorkspaceBytes(call.tensors, {}).value(), bytes);
  const std::string second = absl::StrCat(absl::Hex(kWorkspace + Up(kBytesOfA)));
  for (int repeat = 0; repeat < 2; ++repeat) {
    EXPECT_EQ(Launched(*kernel, call, bytes),
              "copy(100000000 400000000) copy(200000000 " + second + ") restrided(400000000 " + second + " 300000000)");
  }
  const auto choice = kernel->Choice(call.tensors, {});
  ASSERT_TRUE(choice.ok());
  EXPECT_TRUE(choice->is_restrided);
  EXPECT_FALSE(choice->is_general);
}

TEST_F(RestridingTest, WithoutRoomItRunsAsItAlwaysDid) {
  const auto kernel = Make(ProductProgram());
  const Call call(2047, 2051, 2049);
  const uint64_t bytes = kernel->WorkspaceBytes(call.tensors, {}).value();
  EXPECT_EQ(Launched(*kernel, call, 0), "general(100000000 200000000 300000000)");
  EXPECT_EQ(Launched(*kernel, call, bytes - 1), "general(100000000 200000000 300000000)");
}

TEST_F(RestridingTest, OnlyWhatIsUnalignedIsCopied) {
  const auto kernel = Make(ProductProgram());
  const Call rows_of_b(2048, 2051, 2048), results(2048, 2056, 2048, kA + 2), nothing(2048, 2056, 2048);
  EXPECT_EQ(kernel->WorkspaceBytes(rows_of_b.tensors, {}).value(), Up(2048 * 2112 * 2));
  EXPECT_EQ(Launched(*kernel, rows_of_b, 1 << 30), "copy(200000000 400000000) restrided(100000000 400000000 300000000)");
  // A pointer that is off is seen by the launch; the size asked for depends on shapes only.
  EXPECT_EQ(kernel->WorkspaceBytes(results.tensors, {}).value(), 0u);
  EXPECT_EQ(Launched(*kernel, results, 1 << 30), "copy(100000002 400000000) restrided(400000000 200000000 300000000)");
  EXPECT_EQ(Launched(*kernel, results, 0), "general(100000002 200000000 300000000)");
  EXPECT_EQ(kernel->WorkspaceBytes(nothing.tensors, {}).value(), 0u);
  EXPECT_EQ(Launched(*kernel, nothing, 1 << 30), "fast(100000000 200000000 300000000)");
}

// Of strided tensors what counts is how far rows are apart, not how long they are. Where they are well placed they stay.
TEST_F(RestridingTest, PartsOfLargerTensors) {
  const auto kernel = Make(ProductProgram(false, true));
  Call good(2047, 2051, 2049), one_bad = good, both_bad = good;
  good.Pitched(2056, 4096), one_bad.Pitched(2056, 2053), both_bad.Pitched(2050, 2053);
  EXPECT_EQ(kernel->WorkspaceBytes(good.tensors, {}).value(), 0u) << "C alone is unaligned: nothing to copy";
  EXPECT_EQ(Launched(*kernel, good, 1 << 30), "restrided(100000000 200000000 300000000)");
  EXPECT_EQ(kernel->WorkspaceBytes(one_bad.tensors, {}).value(), Up(kBytesOfB));
  EXPECT_EQ(Launched(*kernel, one_bad, 1 << 30), "copy(200000000 400000000) restrided(100000000 400000000 300000000)");
  const std::string second = absl::StrCat(absl::Hex(kWorkspace + Up(kBytesOfA)));
  EXPECT_EQ(Launched(*kernel, both_bad, 1 << 30),
            "copy(100000000 400000000) copy(200000000 " + second + ") restrided(400000000 " + second + " 300000000)");
  EXPECT_EQ(Launched(*kernel, both_bad, 0), "general(100000000 200000000 300000000)");
  const Call whole(2047, 2056, 2048);  // contiguous
  EXPECT_EQ(Launched(*kernel, whole, 1 << 30), "fast(100000000 200000000 300000000)");
}

TEST_F(RestridingTest, SmallProductsAreNotWorthIt) {
  const auto kernel = Make(ProductProgram());
  for (const Call& call : {Call(65, 67, 35), Call(1, 9, 7), Call(64, 65, 0), Call(0, 2051, 2049)}) {
    EXPECT_EQ(kernel->WorkspaceBytes(call.tensors, {}).value(), 0u);
    EXPECT_FALSE(absl::StrContains(Launched(*kernel, call, 1 << 30), "restrided"));
  }
}

TEST_F(RestridingTest, CopiesLieBehindTheProgramsOwnWorkspace) {
  const auto kernel = Make(ProductProgram(true));
  const Call call(2048, 2051, 2048);
  EXPECT_EQ(kernel->WorkspaceBytes(call.tensors, {}).value(), 256 + Up(2048 * 2112 * 2));
  EXPECT_EQ(Launched(*kernel, call, 1 << 30), "copy(200000000 400000100) restrided(100000000 400000100 300000000)");
  EXPECT_EQ(Launched(*kernel, call, 256), "general(100000000 200000000 300000000)");
  EXPECT_EQ(kernel->Launch(call.With(0)).code(), absl::StatusCode::kInvalidArgument) << "it needs its own";
}

TEST_F(RestridingTest, TheHostLendsMemoryForCopies) {
  RuntimeOptions options = Options();
  uint64_t lent = 0;
  int given_back = 0;
  bool is_rich = true;
  options.hooks.allocate = [&](uint64_t bytes, cuda::Stream) -> void* {
    lent = bytes;
    return is_rich ? reinterpret_cast<void*>(kWorkspace) : nullptr;
  };
  options.hooks.release = [&](void*, uint64_t bytes, cuda::Stream) { given_back += bytes == lent; };
  const auto kernel = Make(ProductProgram(), true, &options);
  const Call call(2048, 2051, 2048), aligned(2048, 2048, 2048);
  EXPECT_EQ(Launched(*kernel, call, 0), "copy(200000000 400000000) restrided(100000000 400000000 300000000)");
  EXPECT_EQ(lent, Up(2048 * 2112 * 2));
  EXPECT_EQ(given_back, 1);
  is_rich = false;
  EXPECT_EQ(Launched(*kernel, call, 0), "general(100000000 200000000 300000000)") << "no memory, no error";
  lent = 0;
  EXPECT_EQ(Launched(*kernel, aligned, 0), "fast(100000000 200000000 300000000)");
  EXPECT_EQ(lent, 0u);
}

TEST_F(RestridingTest, WhatCannotBeCompiledIsDoneWithout) {
  RuntimeOptions options = Options();
  std::string log;
  options.hooks.log = [&](LogLevel, const char*, int, const std::string& message) { log += message + "\n"; };
  const auto kernel = Make(ProductProgram(), false, &options);
  EXPECT_TRUE(absl::StrContains(log, "'product' copies no inputs of unaligned rows")) << log;
  EXPECT_TRUE(kernel->is_prepared());
  const Call call(2047, 2051, 2049);
  EXPECT_EQ(kernel->WorkspaceBytes(call.tensors, {}).value(), 0u);
  EXPECT_EQ(Launched(*kernel, call, 1 << 30), "general(100000000 200000000 300000000)");
}

TEST_F(RestridingTest, ProgramsOfAlignedRowsHaveNone) {
  const auto runtime = MakeRuntime();
  KernelSpec spec;
  spec.entry = "product";
  spec.dims = {{"N", 64}, {"K", 128}};
  const auto kernel = MakeKernel(runtime, ProductProgram(), "", spec);
  EXPECT_EQ(kernel->WorkspaceBytes(Call(3, 64, 128, kA + 2).tensors, {}).value(), 0u);
}

}  // namespace
}  // namespace tilert
