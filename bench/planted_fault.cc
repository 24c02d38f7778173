// Launches a standard kernel with a fault planted into its KernelIr, for compute-sanitizer to find: a checker that misses these
// says nothing when it is silent.
//
//   compute-sanitizer --tool memcheck  planted_fault outside     every bounds check removed, ragged extents
//   compute-sanitizer --tool racecheck planted_fault race        every barrier removed
#include <cstdio>
#include <string>

#include "bench/compare.h"
#include "ir/specialize.h"
#include "ir/status_util.h"
#include "lowering/lowered.h"
#include "runtime/nvrtc_compile.h"
#include "tests/gpu/std_bundle.h"

namespace tilert::bench {
namespace {

void RemoveBarriers(kir::Block& block) {
  std::erase_if(block, [](const kir::Stmt& stmt) { return std::holds_alternative<kir::BarSync>(stmt.op); });
  for (kir::Stmt& stmt : block) {
    for (kir::Block* child : kir::ChildBlocks(stmt)) RemoveBarriers(*child);
  }
}

void RemoveChecks(kir::Block& block) {
  for (kir::Stmt& stmt : block) {
    if (auto* copy = std::get_if<kir::Copy>(&stmt.op)) {
      copy->src.inside.assign(copy->src.inside.size(), true);
      copy->dst.inside.assign(copy->dst.inside.size(), true);
    }
    for (kir::Block* child : kir::ChildBlocks(stmt)) RemoveChecks(*child);
  }
}

constexpr char kSync[] = R"(
extern "C" __global__ void planted(const float* in, float* out) {
  if (threadIdx.x % 32 < 16) __syncthreads();
  out[threadIdx.x] = in[threadIdx.x];
}
)";

// PTX ISA "cp.async.bulk", "mbarrier". The wait comes after the read instead of before it.
constexpr char kTma[] = R"(
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
extern "C" __global__ void planted(const float* in, float* out) {
  __shared__ __align__(128) float tile[256];
  __shared__ unsigned long long full;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at(&full)));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  tile[threadIdx.x] = 0;
  asm volatile("fence.proxy.async.shared::cta;");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;" ::"r"(at(&full)) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];"
                 ::"r"(at(tile)), "l"(in), "r"(at(&full)) : "memory");
  }
  out[threadIdx.x] = tile[threadIdx.x];
  unsigned done = 0;
  while (!done) {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(at(&full)) : "memory");
  }
}
)";

// One block of 256 threads of a kernel `planted(in, out)` over 256 floats each.
absl::Status RunSource(const tool::Device& device, const std::string& fault, const std::string& source) {
  const cuda::Driver& driver = device.driver();
  TILERT_RETURN_IF_ERROR(device.runtime()->nvrtc().status());
  CompileOptions compile;
  compile.arch = device.runtime()->target().arch;
  TILERT_ASSIGN_OR_RETURN(const CompiledCode code, Compile(**device.runtime()->nvrtc(), fault, source, compile));
  cuda::Module module = nullptr;
  cuda::Function function = nullptr;
  TILERT_RETURN_IF_ERROR(driver.ModuleLoadDataEx(&module, code.code.data(), 0u, nullptr, nullptr));
  TILERT_RETURN_IF_ERROR(driver.ModuleGetFunction(&function, module, "planted"));
  TILERT_ASSIGN_OR_RETURN(const auto in, RandomOnDevice(driver, DType::kFloat32, 256, 1));
  TILERT_ASSIGN_OR_RETURN(const auto out, RandomOnDevice(driver, DType::kFloat32, 256, 2));
  cuda::DevicePtr pointers[] = {in.address(), out.address()};
  void* params[] = {&pointers[0], &pointers[1]};
  TILERT_RETURN_IF_ERROR(driver.LaunchKernel(function, 1u, 1u, 1u, 256u, 1u, 1u, 0u, nullptr, params, nullptr));
  return driver.CtxSynchronize();
}

absl::Status Run(const std::string& fault) {
  RuntimeOptions options;
  options.family = fault == "tma" ? "auto" : "ampere";
  TILERT_ASSIGN_OR_RETURN(const auto device, tool::Device::Open(options));
  const cuda::Driver& driver = device->driver();
  if (fault == "sync") return RunSource(*device, fault, kSync);
  if (fault == "tma") {
    if (device->runtime()->device().sm < 90) return absl::UnimplementedError("bulk copies need compute capability 9.0");
    return RunSource(*device, fault, kTma);
  }
  TILERT_ASSIGN_OR_RETURN(const auto file, gpu::OpenStd());
  TILERT_ASSIGN_OR_RETURN(const Program open, gpu::FindProgram(*file, "gemm_nt_bf16"));
  TILERT_ASSIGN_OR_RETURN(const Program program, Specialize(open, {}));
  const Target& target = device->runtime()->target();
  TILERT_ASSIGN_OR_RETURN(kir::Kernel kernel, Plan(program, 0, FastArgClass(program), target, {}));
  if (fault == "race") RemoveBarriers(kernel.body);
  if (fault == "outside") RemoveChecks(kernel.body);
  TILERT_ASSIGN_OR_RETURN(const std::string source, EmitKernel(kernel, target));
  TILERT_RETURN_IF_ERROR(device->runtime()->nvrtc().status());
  CompileOptions compile;
  compile.arch = target.arch;
  TILERT_ASSIGN_OR_RETURN(const CompiledCode code,
                          Compile(**device->runtime()->nvrtc(), kernel.name, Prelude(target) + source, compile));
  cuda::Module module = nullptr;
  cuda::Function function = nullptr;
  TILERT_RETURN_IF_ERROR(driver.ModuleLoadDataEx(&module, code.code.data(), 0u, nullptr, nullptr));
  TILERT_RETURN_IF_ERROR(driver.ModuleGetFunction(&function, module, kernel.name.c_str()));
  constexpr int kMaxDynamicShared = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
  TILERT_RETURN_IF_ERROR(driver.FuncSetAttribute(function, kMaxDynamicShared, static_cast<int>(kernel.shared_bytes)));

  int m = 100, n = 104, k = 136;
  TILERT_ASSIGN_OR_RETURN(const auto a, RandomOnDevice(driver, DType::kBFloat16, m * k, 1));
  TILERT_ASSIGN_OR_RETURN(const auto b, RandomOnDevice(driver, DType::kBFloat16, n * k, 2));
  TILERT_ASSIGN_OR_RETURN(const auto c, RandomOnDevice(driver, DType::kBFloat16, m * n, 3));
  cuda::DevicePtr pointers[] = {a.address(), b.address(), c.address()};
  void* params[] = {&pointers[0], &pointers[1], &pointers[2], &m, &n, &k};
  TILERT_RETURN_IF_ERROR(driver.LaunchKernel(function, 1u, 1u, 1u, static_cast<unsigned>(kernel.warps * kLanes), 1u, 1u,
                                             static_cast<unsigned>(kernel.shared_bytes), nullptr, params, nullptr));
  return driver.CtxSynchronize();
}

}  // namespace
}  // namespace tilert::bench

int main(int argc, char** argv) {
  const absl::Status status = tilert::bench::Run(argc > 1 ? argv[1] : "none");
  if (!status.ok()) std::fprintf(stderr, "planted_fault: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
