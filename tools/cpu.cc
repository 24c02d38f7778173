#include "tools/cpu.h"

#include <cstdio>

#include "ir/executor.h"
#include "ir/status_util.h"
#include "tools/compare.h"

namespace tilert::tool {
namespace {

// Hours of work: what needs more does not end.
constexpr uint64_t kMostSteps = uint64_t{1} << 34;

void PrintOutput(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace

absl::Status ExecuteOnCpu(const Program& program, bool check, CallArguments& call, std::vector<Array>& arrays) {
  ExecOptions options;
  options.check_races = options.check_unwritten = check;
  options.print = PrintOutput;
  options.max_steps = kMostSteps;
  return Execute(program, CallArguments::Tensors(arrays), call.scalars, options);
}

absl::Status CheckAgainstExecutor(double tolerance, const Program& program, CallArguments& call, std::vector<Array> before) {
  TILERT_RETURN_IF_ERROR(ExecuteOnCpu(program, false, call, before));
  std::string errors;
  for (size_t i = 0; i < call.arrays.size(); ++i) {
    if (call.access[i] == Access::kIn) continue;
    const double bound = tolerance < 0 ? DefaultTolerance(program, call.arrays[i].dtype) : tolerance;
    const Comparison comparison = Compare(call.arrays[i], before[i], bound);
    std::printf("%s: largest difference from the executor %.3g\n", call.names[i].c_str(), comparison.largest);
    if (comparison.equal) continue;
    errors += Cat(errors.empty() ? "" : "\n", "'", call.names[i], "' differs from the executor in ", comparison.differing, " of ",
                  call.arrays[i].elements(), " elements; worst at ", comparison.worst);
  }
  return errors.empty() ? absl::OkStatus() : absl::FailedPreconditionError(errors);
}

}  // namespace tilert::tool
