#include "tests/runtime/runtime_fixture.h"

#include <stdlib.h>

#include "ir/builder.h"
#include "ir/flat_writer.h"
#include "ir/specialize.h"
#include "lowering/lowered.h"
#include "tests/runtime/sample_bundles.h"

namespace tilert {

Program ScaleProgram() {
  ProgramBuilder b("scale");
  const Val n = b.Dim("N");
  const Buf x = b.Tensor("X", DType::kFloat32, {n}), y = b.Tensor("Y", DType::kFloat32, {n}, Access::kOut);
  const Val alpha = b.Scalar("alpha", DType::kFloat32);
  const Val block = b.Launch<1>("main", {CeilDiv(n, Val(128))}, Val(128))[0];
  const Val i = b.OpenParallel({"i"}, {Val(128)})[0];
  b.Store(y, {block * 128 + i}, x(block * 128 + i) * alpha);
  b.Close();
  b.Close();
  absl::StatusOr<Program> program = b.Build();
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

Program TwoStepProgram() {
  ProgramBuilder b("two_step");
  const Val m = b.Dim("M"), n = b.Dim("N");
  const Buf x = b.Tensor("X", DType::kFloat32, {m, n}), y = b.Tensor("Y", DType::kFloat32, {n}, Access::kOut);
  const Buf sums = b.Workspace("sums", DType::kFloat32, {n}, true);
  const std::array<Val, 2> block = b.Launch<2>("first", {m, n}, Val(32));
  b.Atomic(AtomicOp::kAdd, sums, {block[1]}, x(block[0], block[1]));
  b.Close();
  const Val j = b.Launch<1>("second", {n}, Val(32))[0];
  b.Store(y, {j}, sums(j));
  b.Close();
  absl::StatusOr<Program> program = b.Build();
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

Program MapProgram() {
  ProgramBuilder b("maps");
  const Val m = b.Dim("M"), n = b.Dim("N"), k = b.Dim("K"), ld = b.Dim("ld");
  b.Tensor("A", DType::kFloat16, {m, k});
  b.Tensor("B", DType::kFloat16, {k, n}, Access::kIn, {ld, Val(1)});
  b.Tensor("C", DType::kFloat32, {m, n}, Access::kOut);
  b.Scalar("stride", DType::kInt64, ld);
  b.OpenLaunch("main", {CeilDiv(m, Val(64)), CeilDiv(n, Val(64))}, Val(128));
  b.Close();
  absl::StatusOr<Program> program = b.Build();
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

void AddMaps(CubinKernel& kernel, bool is_fast) {
  if (!is_fast) return;
  kernel.maps = {{0, DType::kFloat16, {64, 64}, 128}, {1, DType::kFloat16, {32, 64}, 128}, {2, DType::kFloat32, {64, 32}, 0}};
  for (uint32_t m = 0; m < 3; ++m) kernel.args.insert(kernel.args.begin() + 3 + m, {CubinKernel::Arg::Kind::kTensorMap, m, 128});
}

namespace {

// Pointers of the global buffers, then scalars, then dims.
std::vector<CubinKernel> KernelsOf(const Program& program, const std::string& prefix) {
  std::vector<CubinKernel> kernels;
  for (const Launch& launch : program.launches) {
    CubinKernel kernel;
    kernel.symbol = prefix + launch.name;
    for (uint32_t id = 0; id < program.buffers.size(); ++id) {
      if (program.buffers[id].scope == Scope::kGlobal) kernel.args.push_back({CubinKernel::Arg::Kind::kTensor, id, 8});
    }
    for (uint32_t s = 0; s < program.scalars.size(); ++s) kernel.args.push_back({CubinKernel::Arg::Kind::kScalar, s, 4});
    for (uint32_t d = 0; d < program.dims.size(); ++d) kernel.args.push_back({CubinKernel::Arg::Kind::kDim, d, 8});
    kernel.threads = 128;
    kernel.shared_bytes = 60000;
    kernels.push_back(kernel);
  }
  return kernels;
}

}  // namespace

void AddCode(Bundle& bundle, const Program& program, const ArgClass& arg_class, const std::string& arch,
             std::vector<CubinKernel> kernels) {
  PrebuiltCubin cubin;
  cubin.program_digest = ProgramDigest(program);
  cubin.alignment = arg_class.alignment;
  cubin.dim_divisor = arg_class.dim_divisor;
  cubin.index32 = arg_class.index32;
  cubin.target = arch;
  cubin.launch_abi = kLaunchAbi;
  cubin.kernels = std::move(kernels);
  cubin.code = bundle.Own(
      "\x7f"
      "ELF made up");
  bundle.cubins.push_back(cubin);
}

std::string BundleWithCode(const Program& program, const Target& target, const std::string& symbol_prefix,
                           const EditKernel& edit) {
  Bundle bundle;
  bundle.programs.push_back(program);
  for (const ArgClass& arg_class : {FastArgClass(program), GeneralArgClass(program)}) {
    std::vector<CubinKernel> kernels = KernelsOf(program, symbol_prefix + (arg_class.index32 ? "fast_" : "general_"));
    for (CubinKernel& kernel : kernels) {
      if (edit) edit(kernel, arg_class.index32);
    }
    AddCode(bundle, program, arg_class, target.arch, std::move(kernels));
  }
  absl::StatusOr<std::string> bytes = WriteBundle(bundle);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return *std::move(bytes);
}

std::string ScaleBundle(const std::string& arch) { return BundleWithCode(ScaleProgram(), FindTarget(arch).value()); }
std::string TwoStepBundle(const std::string& arch) { return BundleWithCode(TwoStepProgram(), FindTarget(arch).value()); }

void RuntimeFixture::SetUp() {
  fake_ = LoadFakeCuda();
  ASSERT_NE(fake_, nullptr) << "fake_libcuda.so must lie beside the test";
  fake_->Reset();
  fake_->MakeContext();
  std::string pattern = std::filesystem::temp_directory_path() / "tilert_runtime_XXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  cache_ = pattern;
}

void RuntimeFixture::TearDown() {
  EXPECT_EQ(fake_->LiveImages(), 0) << "code was loaded and not unloaded";
  EXPECT_EQ(fake_->Misuses(), 0);
  unsetenv("TILERT_LIBCUDA");
  std::filesystem::remove_all(cache_);
}

RuntimeOptions RuntimeFixture::Options() const {
  RuntimeOptions options;
  options.cache_directory = cache_ / "cache";
  options.allow_prebuilt_cubins = true;
  return options;
}

std::shared_ptr<Runtime> RuntimeFixture::MakeRuntime(RuntimeOptions options) {
  absl::StatusOr<std::shared_ptr<Runtime>> runtime = Runtime::Create(std::move(options));
  EXPECT_TRUE(runtime.ok()) << runtime.status();
  return runtime.ok() ? *runtime : nullptr;
}

std::shared_ptr<Kernel> RuntimeFixture::MakeKernel(const std::shared_ptr<Runtime>& runtime, const Program& program,
                                                   const std::string& symbol_prefix, KernelSpec spec, const EditKernel& edit) {
  const std::string bytes = BundleWithCode(program, runtime->target(), symbol_prefix, edit);
  const auto bundle = OpenedBundle::FromMemory(bytes, true);
  EXPECT_TRUE(bundle.ok()) << bundle.status();
  spec.entry = program.name;
  absl::StatusOr<std::shared_ptr<Kernel>> kernel = Kernel::Create(runtime, *bundle, spec);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return kernel.ok() ? *kernel : nullptr;
}

ScaleArgs::ScaleArgs(int64_t n, size_t misalign) : memory(static_cast<size_t>(2 * n + 64), 1.0f), shape{n} {
  auto address = reinterpret_cast<uintptr_t>(memory.data());
  address = (address + 15) / 16 * 16;
  float* const x = reinterpret_cast<float*>(address) + misalign;
  float* const y = reinterpret_cast<float*>(address) + (n + 3) / 4 * 4 + 8;
  tensors = {{x, DType::kFloat32, shape, {}}, {y, DType::kFloat32, shape, {}}};
  scalars = {ScalarArg::Float(0.5, DType::kFloat32)};
}

LaunchRequest ScaleArgs::request(cuda::Stream stream) {
  LaunchRequest request;
  request.stream = stream;
  request.tensors = tensors;
  request.scalars = scalars;
  return request;
}

}  // namespace tilert
