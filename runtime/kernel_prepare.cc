// Kernel, second part: from a key to loaded code. Prebuilt code of a trusted bundle, else the cache, else lower and compile.
#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>
#include <utility>

#include "ir/status_util.h"
#include "runtime/compile_lowered.h"
#include "runtime/kernel.h"

namespace tilert {
namespace {

using Clock = std::chrono::steady_clock;

// " 128x256"; nothing for a program's defaults.
std::string NameOf(const Schedule& schedule) { return schedule.name.empty() ? "" : " " + schedule.name; }

double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// The launch record of prebuilt code. Its grid follows from the program.
absl::StatusOr<LaunchRecord> RecordOf(const Program& program, const PrebuiltCubin& cubin) {
  if (cubin.kernels.size() != program.launches.size()) return absl::DataLossError("prebuilt code has another number of launches");
  LaunchRecord record;
  for (size_t i = 0; i < cubin.kernels.size(); ++i) {
    const CubinKernel& from = cubin.kernels[i];
    KernelRecord kernel;
    kernel.symbol = from.symbol;
    for (const CubinKernel::Arg& arg : from.args) {
      if (arg.kind == CubinKernel::Arg::Kind::kInvalid) return absl::DataLossError("prebuilt code has an argument of no kind");
      kernel.args.push_back({static_cast<KernelArg::Kind>(static_cast<int>(arg.kind) - 1), arg.index, arg.bytes});
    }
    for (const CubinKernel::Map& map : from.maps) kernel.maps.push_back({map.buffer, map.dtype, map.box, map.swizzle});
    for (const Expr extent : program.launches[i].grid) {
      TILERT_ASSIGN_OR_RETURN(DimExpr compiled, DimExpr::Compile(program, extent));
      kernel.grid.push_back(std::move(compiled));
    }
    kernel.threads = from.threads;
    kernel.shared_bytes = static_cast<uint32_t>(from.shared_bytes);
    kernel.cooperative = from.cooperative;
    kernel.persistent = from.persistent;
    kernel.blocks_per_sm = from.blocks_per_sm;
    kernel.cluster = from.cluster;
    record.kernels.push_back(std::move(kernel));
  }
  return record;
}

// What a variant is compiled from.
struct Source {
  Lowered lowered;
  LaunchRecord record;
};

absl::StatusOr<Source> LowerVariant(const Runtime& runtime, const KernelVariant& variant, PrepareStats& stats) {
  const auto start = Clock::now();
  if (!runtime.nvrtc().ok()) return runtime.nvrtc().status();
  TILERT_ASSIGN_OR_RETURN(Lowered lowered, Lower(variant.schedule->program, variant.arg_class, runtime.target()));
  TILERT_ASSIGN_OR_RETURN(LaunchRecord record, MakeLaunchRecord(variant.schedule->program, lowered));
  stats.lower_ms = MillisecondsSince(start);
  return Source{std::move(lowered), std::move(record)};
}

absl::StatusOr<CacheEntry> CompileVariant(const Runtime& runtime, const KernelVariant& variant, const Source& source,
                                          PrepareStats& stats) {
  const Program& program = variant.schedule->program;
  const Nvrtc& nvrtc = **runtime.nvrtc();
  CompileOptions options = OptionsFor(program, variant.arg_class, runtime.target(), nvrtc.version());
  options.deadline = runtime.options().compile_deadline;
  TILERT_ASSIGN_OR_RETURN(CompiledCode code, CompileLowered(nvrtc, program, source.lowered, options));
  stats.compile_ms = code.compile_ms;
  for (const std::string& line : code.codegen_warnings) runtime.Log(LogLevel::kWarning, __FILE__, __LINE__, line);
  return CacheEntry{Sha256Of(source.lowered.source), EncodeLaunchRecord(source.record), std::move(code.code)};
}

// The same, unless the cache has it meanwhile; whoever asks for it at the same time gets it too.
absl::StatusOr<CacheEntry> CompileOnce(Runtime& runtime, const KernelVariant& variant, const Source& source,
                                       PrepareStats& stats) {
  bool is_built = false;
  absl::Status published;
  absl::StatusOr<CacheEntry> entry = runtime.cache().FindOrBuild(
      variant.key,
      [&] {
        is_built = true;
        return CompileVariant(runtime, variant, source, stats);
      },
      &published);
  (is_built ? stats.compiles : stats.cache_hits) = 1;
  if (!published.ok() && !runtime.cache().directory().empty()) {
    runtime.Log(LogLevel::kWarning, __FILE__, __LINE__, Cat("kernel cache: ", std::string(published.message())));
  }
  return entry;
}

}  // namespace

const PrebuiltCubin* Kernel::FindPrebuilt(const Variant& variant) const {
  if (bundle_ == nullptr || !runtime_->options().allow_prebuilt_cubins) return nullptr;
  for (const PrebuiltCubin& cubin : bundle_->bundle().cubins) {
    const ArgClass arg_class = {cubin.alignment, cubin.index32, cubin.dim_divisor};
    if (cubin.program_digest == digest_ && cubin.constants == variant.schedule->constants && cubin.dims == dims_ &&
        arg_class == variant.arg_class && cubin.target == runtime_->target().arch && cubin.launch_abi == kLaunchAbi &&
        CodeMatchesHash(cubin)) {
      return &cubin;
    }
  }
  return nullptr;
}

std::optional<CacheEntry> Kernel::FindCompiled(const Variant& variant, PrepareStats& stats) const {
  if (const PrebuiltCubin* cubin = FindPrebuilt(variant)) {
    absl::StatusOr<LaunchRecord> record = RecordOf(variant.schedule->program, *cubin);
    if (record.ok()) return CacheEntry{{}, EncodeLaunchRecord(*record), std::string(cubin->code)};
    runtime_->Log(LogLevel::kWarning, __FILE__, __LINE__, std::string(record.status().message()));
  }
  std::optional<CacheEntry> entry = runtime_->cache().Find(variant.key);
  if (entry) ++stats.cache_hits;
  return entry;
}

void Kernel::AddMissing(std::vector<Missing>& missing) {
  for (const auto& variant : variants_) {
    if (!variant->is_settled()) missing.push_back({this, variant.get()});
  }
}

std::vector<absl::StatusOr<CacheEntry>> Kernel::Obtain(const std::vector<Missing>& missing, PrepareMode mode) {
  std::vector<absl::StatusOr<CacheEntry>> entries(missing.size(), absl::UnknownError(""));
  std::vector<absl::StatusOr<Source>> sources(missing.size(), absl::UnknownError(""));
  std::vector<PrepareStats> stats(missing.size());
  std::vector<size_t> builds;
  for (size_t i = 0; i < missing.size(); ++i) {
    const auto [kernel, variant] = missing[i];
    if (std::optional<CacheEntry> entry = kernel->FindCompiled(*variant, stats[i])) {
      entries[i] = *std::move(entry);
    } else if (mode == PrepareMode::kCachedOnly) {
      entries[i] = absl::NotFoundError(Cat("'", program().name, "' is not in the cache and may not be compiled now"));
    } else {
      builds.push_back(i);
    }
  }
  const auto run_all = [&](const auto& step) {
    std::vector<std::function<void()>> tasks;
    for (const size_t i : builds) {
      tasks.push_back([&, i] {
        try {
          step(i);
        } catch (const std::bad_alloc&) {
          entries[i] = absl::Status(absl::StatusCode::kResourceExhausted, "");  // without a text it needs no memory
        }
      });
    }
    runtime_->RunAll(std::move(tasks));
  };
  run_all([&](size_t i) {
    sources[i] = LowerVariant(*runtime_, *missing[i].variant, stats[i]);
    if (!sources[i].ok()) entries[i] = sources[i].status();
  });
  builds.erase(std::remove_if(builds.begin(), builds.end(), [&](size_t i) { return !sources[i].ok(); }), builds.end());
  // NVRTC parses one program at a time, whatever the thread, and then goes on with it beside others: what takes the longest
  // first. That is code for any arguments, unless it may be compiled quickly.
  const auto rank = [&](size_t i) {
    const Lowered& lowered = sources[i]->lowered;
    const bool any_arguments = missing[i].variant->arg_class == GeneralArgClass(missing[i].variant->schedule->program);
    return std::pair(!any_arguments ? 1 : NeedsFullCompile(lowered) ? 2 : 0, lowered.source.size());
  };
  std::stable_sort(builds.begin(), builds.end(), [&](size_t a, size_t b) { return rank(a) > rank(b); });
  run_all([&](size_t i) { entries[i] = CompileOnce(*runtime_, *missing[i].variant, *sources[i], stats[i]); });
  stats_ = {};
  for (const PrepareStats& one : stats) {
    stats_.cache_hits += one.cache_hits, stats_.compiles += one.compiles;
    stats_.lower_ms += one.lower_ms, stats_.compile_ms += one.compile_ms;
  }
  return entries;
}

absl::Status Kernel::Load(Variant& variant, const absl::StatusOr<CacheEntry>& entry, PrepareMode mode) {
  TILERT_RETURN_IF_ERROR(entry.status());
  absl::StatusOr<std::unique_ptr<ReadyCode>> ready = ReadyCode::Load(*runtime_, variant.plan, *entry);
  if (absl::IsDataLoss(ready.status()) && mode == PrepareMode::kBlocking) {
    // Whole but meaningless: an entry of a library that shares our version and not our code. Replace it.
    PrepareStats stats;
    TILERT_ASSIGN_OR_RETURN(const Source source, LowerVariant(*runtime_, variant, stats));
    TILERT_ASSIGN_OR_RETURN(const CacheEntry built, CompileVariant(*runtime_, variant, source, stats));
    (void)runtime_->cache().Publish(variant.key, built);
    ready = ReadyCode::Load(*runtime_, variant.plan, built);
  }
  TILERT_RETURN_IF_ERROR(ready.status());
  variant.storage = *std::move(ready);
  variant.ready.store(variant.storage.get(), std::memory_order_release);
  return absl::OkStatus();
}

absl::Status Kernel::Prepare(PrepareMode mode) {
  if (is_prepared()) return absl::OkStatus();
  TILERT_RETURN_IF_ERROR(runtime_->CheckContext());
  const std::lock_guard<std::mutex> lock(prepare_mutex_);
  std::vector<Missing> missing;
  AddMissing(missing);
  const size_t own = missing.size();
  if (restriding_ != nullptr && restriding_->state() == Restriding::State::kUnprepared) {
    for (const auto& kernel : restriding_->kernels()) kernel->AddMissing(missing);
  }
  const std::vector<absl::StatusOr<CacheEntry>> entries = Obtain(missing, mode);
  const auto start = Clock::now();
  for (size_t i = 0; i < own; ++i) {
    Variant& variant = *missing[i].variant;
    const absl::Status loaded = Load(variant, entries[i], mode);
    // Not compiled, or code that this driver does not take: other variants, at last the general one, do this one's work.
    const bool is_final = !entries[i].ok() || absl::IsUnimplemented(loaded);
    if (mode == PrepareMode::kBlocking && !loaded.ok() && is_final && i + 1 < own && entries[own - 1].ok()) {
      variant.is_refused.store(true);
      runtime_->Log(
          LogLevel::kWarning, __FILE__, __LINE__,
          Cat("'", program().name, "' runs without its fast variant", NameOf(*variant.schedule), ": ", loaded.ToString()));
      continue;
    }
    TILERT_RETURN_IF_ERROR(loaded);
  }
  LoadRestriding(absl::MakeConstSpan(missing).subspan(own), absl::MakeConstSpan(entries).subspan(own), mode);
  stats_.load_ms = MillisecondsSince(start);
  return absl::OkStatus();
}

// What is not there is done without.
void Kernel::LoadRestriding(absl::Span<const Missing> missing, absl::Span<const absl::StatusOr<CacheEntry>> entries,
                            PrepareMode mode) {
  if (restriding_ == nullptr || restriding_->state() != Restriding::State::kUnprepared) return;
  for (size_t i = 0; i < missing.size(); ++i) {
    const absl::Status loaded = missing[i].kernel->Load(*missing[i].variant, entries[i], mode);
    if (loaded.ok()) continue;
    if (mode != PrepareMode::kBlocking) return;  // perhaps it can be compiled later
    restriding_->SetState(Restriding::State::kRefused);
    runtime_->Log(LogLevel::kInfo, __FILE__, __LINE__,
                  Cat("'", program().name, "' copies no inputs of unaligned rows: ", loaded.ToString()));
    return;
  }
  restriding_->SetState(Restriding::State::kReady);
}

absl::Status Kernel::PrepareAsync() {
  if (is_prepared()) return absl::OkStatus();
  TILERT_RETURN_IF_ERROR(runtime_->CheckContext());
  std::unique_lock<std::mutex> lock(async_mutex_);
  if (std::exchange(async_pending_, true)) return absl::OkStatus();
  auto task = [this] {
    // The runtime's context, for as long as the task runs on a thread that is not ours.
    cuda::Context before = nullptr;
    (void)runtime_->driver().CtxGetCurrent(&before);
    absl::Status status = runtime_->driver().CtxSetCurrent(runtime_->context());
    if (status.ok()) status = Prepare();
    (void)runtime_->driver().CtxSetCurrent(before);
    if (!status.ok())
      runtime_->Log(LogLevel::kError, __FILE__, __LINE__, Cat("preparing '", program().name, "': ", status.ToString()));
    const std::lock_guard<std::mutex> done(async_mutex_);
    async_pending_ = false;
    async_done_.notify_all();
  };
  if (runtime_->options().hooks.submit) {
    lock.unlock();
    runtime_->options().hooks.submit(std::move(task));
    return absl::OkStatus();
  }
  if (async_thread_.joinable()) async_thread_.join();  // a finished one: nothing is pending
  try {
    async_thread_ = std::thread(std::move(task));
  } catch (const std::system_error& error) {
    async_pending_ = false;
    return absl::ResourceExhaustedError(Cat("cannot start a thread: ", error.what()));
  }
  return absl::OkStatus();
}

Kernel::~Kernel() {
  std::unique_lock<std::mutex> lock(async_mutex_);
  async_done_.wait(lock, [this] { return !async_pending_; });
  lock.unlock();
  if (async_thread_.joinable()) async_thread_.join();
}

}  // namespace tilert
