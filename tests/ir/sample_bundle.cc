#include "tests/ir/sample_bundle.h"

#include "tests/ir/sample_programs.h"

namespace tilert {

Bundle SampleBundle() {
  Bundle bundle;
  bundle.programs = SamplePrograms();
  bundle.metadata = {{"author", "tests"}, {"note", "every table once"}};
  bundle.variants = {{"small", 1, {{"block_M", 64}}, "sm_80", {{0, 1, 128, 1}, {2, 0, INT64_MAX, 8}}}, {"any", 0, {}, "", {}}};
  bundle.tuning = {{"Test GPU 3000", 0, {{0, 64, 64, 1}}, 12.5}};
  PrebuiltCubin cubin;
  cubin.program_digest = ProgramDigest(bundle.programs[1]);
  cubin.constants = {{"block_M", 64}, {"block_N", 128}};
  cubin.dims = {{"K", 4096}};
  cubin.alignment = {16, 16, 16};
  cubin.dim_divisor = {1, 1, 8, 1};
  cubin.index32 = true;
  cubin.target = "sm_80";
  cubin.launch_abi = 1;
  cubin.kernels = {
      {"gemm_k0", {{CubinKernel::Arg::Kind::kTensor, 0, 8}, {CubinKernel::Arg::Kind::kDim, 1, 4}}, 128, 49152, false}};
  for (const char* code : {"\x7f"
                           "ELF one",
                           "\x7f"
                           "ELF another, longer than the first"}) {
    cubin.code = bundle.Own(code);
    cubin.code_sha256 = Sha256Of(cubin.code);
    bundle.cubins.push_back(cubin);
  }
  return bundle;
}

}  // namespace tilert
