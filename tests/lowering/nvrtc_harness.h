// NVRTC for tests of the emitter, which may not use the runtime: opened at run time, absent on machines without CUDA.
#pragma once

#include <string>

namespace tilert {

// What ptxas says with -v, over all kernels.
struct PtxasReport {
  int registers = -1, stack_bytes = -1, spill_bytes = -1;  // −1 when absent
  std::string complaints;                                  // lines that are warnings or errors
};
PtxasReport ReadPtxasReport(const std::string& log);

struct TestCubin : PtxasReport {
  bool ok = false;
  std::string log;   // remarks of NVRTC and ptxas, with ptxas' resource report
  std::string code;  // cubin; PTX text when asked for compute_NN
};

// False when libnvrtc is not installed: skip the test.
bool HasNvrtc();
TestCubin CompileForTest(const std::string& source, const std::string& arch);

}  // namespace tilert
