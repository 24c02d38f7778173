// A program of a bundle, specialised and ready to be compiled and launched.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/arg_plan.h"
#include "runtime/cache_key.h"
#include "runtime/dim_memo.h"
#include "runtime/kernel_spec.h"
#include "runtime/kernel_variant.h"
#include "runtime/opened_bundle.h"
#include "runtime/restriding.h"
#include "runtime/runtime.h"

namespace tilert {

// Thread safe. Launch takes no lock and allocates nothing once Prepare has returned.
class Kernel {
 public:
  ~Kernel();

  // Verifies and specialises; compiles nothing. InvalidArgument, NotFound: what is wrong with bundle or spec.
  static absl::StatusOr<std::shared_ptr<Kernel>> Create(std::shared_ptr<Runtime> runtime,
                                                        std::shared_ptr<const OpenedBundle> bundle, const KernelSpec& spec);
  // The same for a program without a bundle around it.
  static absl::StatusOr<std::shared_ptr<Kernel>> Create(std::shared_ptr<Runtime> runtime, Program program,
                                                        const KernelSpec& spec);
  // The same for a program that was made of one of `bundle`, whose variants and prebuilt code it may use; `bundle` may be null.
  static absl::StatusOr<std::shared_ptr<Kernel>> Create(std::shared_ptr<Runtime> runtime,
                                                        std::shared_ptr<const OpenedBundle> bundle,
                                                        const VerifiedProgram& program, const KernelSpec& spec);

  QueryResult Query();
  // Idempotent. Not to be called while a stream of the context captures.
  absl::Status Prepare(PrepareMode mode = PrepareMode::kBlocking);
  bool is_prepared() const;
  // Starts a blocking Prepare on another thread (Hooks::submit, or one of our own) and returns; a failure is logged, and a
  // later Prepare meets it again. The destructor waits for it.
  absl::Status PrepareAsync();

  // What the program needs, and what makes launches quick: copies of tensors with unaligned rows (runtime/restriding.h), sums
  // that blocks leave for each other (both once the kernel is prepared). Only shapes and strides are looked at.
  absl::StatusOr<uint64_t> WorkspaceBytes(absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars) const;

  // Checks the arguments and queues the program's launches on the stream. Prepares first if nobody has, unless the stream
  // is capturing: then FailedPrecondition, and the capture stays valid. On a CPU runtime runs to completion.
  absl::Status Launch(const LaunchRequest& request);

  // What a launch with these arguments runs, as far as is known before it: code that cannot be compiled is not chosen once
  // Prepare has returned, and a tensor that TMA cannot read is only found out by the launch.
  absl::StatusOr<KernelChoice> Choice(absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars) const;

  // A launch in two steps, of a kernel that is compiled for one class. The code that takes the request, which is bound into
  // `values` and `maps`; null: the class does not hold, or it is not prepared.
  absl::StatusOr<const ReadyCode*> Resolve(const LaunchRequest& request, LaunchValues& values, LaunchMaps& maps) const;
  absl::Status Queue(const ReadyCode& code, const LaunchValues& values, LaunchMaps& maps, char* given, cuda::Stream stream) const;
  const ArgPlan& plan() const { return plan_; }
  const Program& program() const { return schedules_.general.program; }  // specialised
  const Runtime& runtime() const { return *runtime_; }
  PrepareStats prepare_stats() const;

 private:
  using Variant = KernelVariant;
  Kernel(std::shared_ptr<Runtime> runtime, std::shared_ptr<const OpenedBundle> bundle, Schedules schedules);
  absl::Status Init(const Program& original, const KernelSpec& spec);
  absl::Status AddVariant(const Schedule& schedule, ArgClass arg_class, CacheKeyParts& parts);

  // kernel_prepare.cc
  struct Missing { Kernel* kernel; Variant* variant; };  // of this kernel, or of one that it needs
  void AddMissing(std::vector<Missing>& missing);
  std::vector<absl::StatusOr<CacheEntry>> Obtain(const std::vector<Missing>& missing, PrepareMode mode);
  void LoadRestriding(absl::Span<const Missing> missing, absl::Span<const absl::StatusOr<CacheEntry>> entries, PrepareMode mode);
  std::optional<CacheEntry> FindCompiled(const Variant& variant, PrepareStats& stats) const;
  const PrebuiltCubin* FindPrebuilt(const Variant& variant) const;
  absl::Status Load(Variant& variant, const absl::StatusOr<CacheEntry>& entry, PrepareMode mode);

  // kernel_launch.cc
  // `may_give`: code that takes workspace of its own (ReadyCode::GivenBytes) may be chosen.
  size_t Pick(const LaunchValues& values, bool may_give) const;
  size_t PickFast(absl::Span<const int64_t> dims, bool may_give) const;
  const ReadyCode* Giving(const LaunchValues& values) const;
  bool MayGive() const;
  absl::StatusOr<const ReadyCode*> Choose(const LaunchRequest& request, const LaunchValues& values, LaunchMaps& maps);
  absl::Status PrepareForLaunch(cuda::Stream stream);
  bool TakesAnyArguments(const LaunchValues& values) const;
  absl::StatusOr<bool> LaunchRestrided(const LaunchRequest& request, const LaunchValues& values);
  absl::Status Enqueue(const LaunchRequest& request, LaunchValues& values);
  absl::Status EnqueueByPlan(const LaunchRequest& request, LaunchValues& values);

  const std::shared_ptr<Runtime> runtime_;
  const std::shared_ptr<const OpenedBundle> bundle_;  // what prebuilt code points into; may be null
  const Schedules schedules_;
  Sha256Digest digest_{};  // of the program before specialisation
  std::map<std::string, int64_t> dims_;
  ArgPlan plan_;
  bool has_own_plans_ = false;  // some of the variants
  // Fast ones of one class, one a schedule: the cheapest that serves the dims is launched, if the arguments belong to the class
  // and tensor maps can describe them. At last the one for any arguments.
  std::vector<std::unique_ptr<Variant>> variants_;
  std::unique_ptr<Restriding> restriding_;  // may be null
  mutable DimMemo picked_[2];               // dims → index into variants_; the second: with code that gives
  std::mutex async_mutex_;
  std::condition_variable async_done_;
  bool async_pending_ = false;  // guarded by async_mutex_
  std::thread async_thread_;    // guarded by async_mutex_
  mutable std::mutex prepare_mutex_;
  PrepareStats stats_;  // guarded by prepare_mutex_
};

}  // namespace tilert
