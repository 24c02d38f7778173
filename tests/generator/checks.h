// What must hold for every valid tile program, and the name of what does not.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "tests/generator/tile_case.h"

namespace tilert {

struct CheckOptions {
  bool simulate = true;              // both families and both classes of arguments, against the executor
  std::vector<std::string> compile;  // architectures to compile for by NVRTC ("sm_80"): no error, no C75xx remark
  bool one_target = false;           // each case for one of these only; the seed says for which
  bool one_class = false;            // compile each for one class of arguments only; the seed says for which
  // Families ("auto", "ampere", "hopper") to lower for and run with on the GPU that is there; then, without `simulate` and
  // `compile`, nothing else is checked.
  std::vector<std::string> devices;
  int device_runs = 3;
  bool plant = false;                // each run on a device is made to write outside a tensor
  double max_seconds = 20;           // of one simulation; what takes longer is not judged
};

// What became of a case. `kind` is empty where all is well. A fault's kind is what a shrinker must keep: the check, the target
// and the message without its numbers and names.
struct Verdict {
  // kInvalid: the verifier refuses it, or the executor finds a race or a read of what was never written: not a case at all.
  enum class Result { kOk, kInvalid, kNotLowered, kFault };
  // kNotLowered: all else is well, but the lowering says that it does not do something yet; `kind` is what it says.
  Result result = Result::kOk;
  std::string kind, message;
  int refused = 0;    // lowerings that stopped for lack of shared memory or registers
  int simulated = 0;  // kernels compared with the executor
  int unjudged = 0;   // simulations that took too long
  int compiled = 0;
  int spills = 0;       // cubins in which ptxas spilled registers
  int unspecified = 0;  // 1: an index leaves 64 bits, so that nothing says what the results are
};
Verdict Check(const TileCase& tile_case, const CheckOptions& options);

// The same in a process of its own: a crash or an endless loop is a fault too. `seconds`: what a case may take.
Verdict CheckInProcess(const TileCase& tile_case, const CheckOptions& options, unsigned seconds = 180);
// The same of the cases that `make` makes of the seeds `first` … `first + count − 1`, in order; where `until` is not 0, what is
// not done by then is left out.
using MakeCase = std::function<TileCase(uint64_t seed)>;
void CheckInProcesses(const MakeCase& make, uint64_t first, uint64_t count, const CheckOptions& options,
                      const std::function<void(uint64_t seed, const Verdict& verdict)>& report, unsigned seconds = 180,
                      std::time_t until = 0);

}  // namespace tilert
