// NVRTC for tests of the emitter, which may not use the runtime: opened at run time, absent on machines without CUDA.
#pragma once

#include <string>

namespace tilert {

struct TestCubin {
  bool ok = false;
  std::string log;   // remarks of NVRTC and ptxas, with ptxas' resource report (-v)
  std::string code;  // cubin; PTX text when asked for compute_NN
  // Of the resource report, over all kernels; −1 when absent.
  int registers = -1, stack_bytes = -1, spill_bytes = -1;
  // Lines of the log that are warnings or errors.
  std::string complaints;
};

// False when libnvrtc is not installed: skip the test.
bool HasNvrtc();
TestCubin CompileForTest(const std::string& source, const std::string& arch);

}  // namespace tilert
