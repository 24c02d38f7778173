// Launches whose tensors have rows that neither TMA nor wide loads take. Inputs that many blocks read are copied into the
// caller's workspace, to rows that they do take, and code made for such inputs runs: where that is expected to be quicker than
// the code for any arguments (lowering/restride.h).
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/dim_expr.h"
#include "runtime/dim_memo.h"
#include "runtime/kernel_spec.h"
#include "runtime/launch_values.h"
#include "runtime/schedules.h"

namespace tilert {

class ArgPlan;
class Kernel;
class OpenedBundle;
class Runtime;

// Thread safe. Launching takes no lock and allocates nothing.
class Restriding {
 public:
  // Null when there is nothing that copies could make quicker. `original`: the program before specialisation; `schedules` and
  // `plan` are those of its kernel, must outlive the object, and say what runs otherwise.
  struct Home {
    std::shared_ptr<Runtime> runtime;
    std::shared_ptr<const OpenedBundle> bundle;  // what prebuilt code is looked for in; may be null
  };
  static absl::StatusOr<std::unique_ptr<Restriding>> Make(const Home& home, const Program& original, const KernelSpec& spec,
                                                          const Schedules& schedules, const ArgPlan& plan);

  // Inputs to be copied: bit i for the i-th, and the bytes that they take, each a multiple of kWorkspaceAlignment.
  struct Copies {
    uint32_t which = 0;
    uint64_t bytes = 0;
    bool is_worth_it = false;  // else the code for any arguments is expected to be quicker
  };
  // REQUIRES: `values` were bound by the plan and do not belong to the fast class.
  Copies Choose(const LaunchValues& values) const;

  // Queues the copies into `memory` and the program; `values` are the request's. False, and nothing is queued: it cannot be done
  // for these arguments.
  absl::StatusOr<bool> Launch(const LaunchRequest& request, const LaunchValues& values, const Copies& copies, char* memory) const;

  // The kernels to prepare. Until they are, or when one of them cannot be, launches go without.
  const std::vector<std::shared_ptr<Kernel>>& kernels() const { return kernels_; }
  enum class State { kUnprepared, kReady, kRefused };
  State state() const { return state_.load(std::memory_order_acquire); }
  void SetState(State state) { state_.store(state, std::memory_order_release); }
  const Schedule& schedule() const { return *schedule_; }

 private:
  struct Input {
    uint32_t tensor;  // among the program's tensors
    int64_t element_bytes;
    std::vector<DimExpr> shape, strides;  // strides: of the copy
    bool has_strides;                     // the program takes them as they come
    size_t copier;                        // of kernels_
  };

  Restriding(const Schedule& schedule, const ArgPlan& plan, CostModel cost, CostModel otherwise)
      : schedule_(&schedule), plan_(plan), cost_(std::move(cost)), otherwise_(std::move(otherwise)) {}
  absl::Status AddInput(const Home& home, Program padded, uint32_t buffer);
  bool IsWorthIt(const LaunchValues& values, const Copies& copies) const;

  const Schedule* schedule_;  // that the program is compiled with
  const ArgPlan& plan_;
  const CostModel cost_, otherwise_;  // of the program that reads copies, and of the one for any arguments
  std::vector<Input> inputs_;
  std::vector<std::shared_ptr<Kernel>> kernels_;  // the program with its inputs padded, then what copies
  std::atomic<State> state_{State::kUnprepared};
  mutable DimMemo known_;  // dims and the inputs to copy → whether that is worth it
};

}  // namespace tilert
