// Launches a standard kernel with a fault planted into its KernelIr, for compute-sanitizer to find: a checker that misses these
// says nothing when it is silent.
//
//   compute-sanitizer --tool memcheck  planted_fault outside     every bounds check removed, ragged extents
//   compute-sanitizer --tool racecheck planted_fault race        every barrier removed
#include <cstdio>
#include <string>

#include "bench/gpu_timer.h"
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

absl::Status Run(const std::string& fault) {
  RuntimeOptions options;
  options.family = "ampere";
  TILERT_ASSIGN_OR_RETURN(const auto device, tool::Device::Open(options));
  const cuda::Driver& driver = device->driver();
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
