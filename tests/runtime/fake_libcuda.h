// Controls of fake_libcuda.so, a libcuda that needs no GPU: it checks what a driver checks (current context, live handles,
// kernel names, no loading during capture), counts, and fails where a script says. Nothing is computed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/driver_api.h"
#include "tests/runtime/fake_tensor_map.h"

namespace tilert {

struct FakeLaunch {
  std::string kernel;
  unsigned grid_x = 0, grid_y = 0, grid_z = 0, threads = 0, shared_bytes = 0;
  std::vector<uint64_t> args;  // the first 8 bytes of each parameter, as many as set_parameter_count said
  cuda::Stream stream = nullptr;
  unsigned cluster = 1;  // blocks of a cluster
  std::vector<cuda::TensorMap> maps;  // the parameters that SetMapParameters named
};

// Obtained by dlsym("fake_cuda") from the library that TILERT_LIBCUDA names. Thread safe.
class FakeCuda {
 public:
  virtual void Reset() = 0;
  // From now on the (skip + 1)-th call of `symbol`, and all later ones if `forever`, return `result`.
  virtual void Fail(const std::string& symbol, int result, int skip = 0, bool forever = true) = 0;
  virtual void SetDevice(int major, int minor, int max_shared_bytes) = 0;
  virtual void SetParameterCount(const std::string& kernel, int count) = 0;
  // Parameters first … first + count − 1 of `kernel` are tensor maps.
  virtual void SetMapParameters(const std::string& kernel, int first, int count) = 0;
  // Makes a context current in the calling thread, as a host would.
  virtual cuda::Context MakeContext() = 0;
  // Off: launches succeed without being remembered or checked, and nothing is counted: the fake takes next to no time.
  virtual void SetRecording(bool on) = 0;
  // Forgets images whose unload was made to fail.
  virtual void ForgetImages() = 0;
  virtual int Calls(const std::string& symbol) = 0;
  virtual std::vector<FakeLaunch> Launches() = 0;
  virtual int64_t LiveImages() = 0;      // libraries and modules loaded and not unloaded
  virtual int64_t BrokenCaptures() = 0;  // captures that a forbidden call has invalidated
  virtual int64_t Misuses() = 0;         // uses of dead handles and the like

 protected:
  ~FakeCuda() = default;
};

// The controls of the library beside this executable, which TILERT_LIBCUDA is set to. Null when it is not there.
// `old_driver`: the one without the symbols that driver_symbols.def calls optional.
FakeCuda* LoadFakeCuda(bool old_driver = false);

}  // namespace tilert
