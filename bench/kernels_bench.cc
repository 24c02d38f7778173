// Speed of the standard kernels on the GPU, beside what users pick instead. Prints one JSON object a line and writes them to
// --out.
//
//   kernels_bench [--family hopper] [--only "gemm attention"] [--filter gemm/bf16/nt/4096x4096x4096] [--fix N,K] [--repeats 20]
//   [--variant 128x256] [--rest 100] [--out results.jsonl]
//
// --rest: milliseconds before each timed run (see Rounds in compare.h).
//
// The environment gives what the command line does not: TILERT_FAMILY, TILERT_ONLY, TILERT_BENCH (the filter, several parts
// separated by spaces or commas), TILERT_FIX, TILERT_REPEATS, TILERT_VARIANT, TILERT_REST.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "bench/bench_context.h"
#include "bench/cublas.h"
#include "ir/status_util.h"

namespace tilert::bench {
namespace {

using Clock = std::chrono::steady_clock;
double Milliseconds(Clock::time_point since) { return std::chrono::duration<double, std::milli>(Clock::now() - since).count(); }

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text + " ") {
    if (c != ' ' && c != ',') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, ""));
    }
  }
  return words;
}

class Bench {
 public:
  explicit Bench(Settings settings) : context_(std::move(settings)) {}

  absl::Status Run() {
    TILERT_RETURN_IF_ERROR(context_.Init());
    Meta();
    if (context_.WantsPart("gemm")) TILERT_RETURN_IF_ERROR(BenchGemms(context_));
    if (context_.WantsPart("attention")) Attentions();
    if (context_.WantsPart("rows")) Rows();
    if (context_.WantsPart("load")) Loads();
    if (context_.WantsPart("launch"))
      Try({"launch", "bf16", "3 tensors", "", 0, 0, 0, {}}, [this](Row& row) { return LaunchCost(row); });
    return context_.has_failures() ? absl::AbortedError("not every bench came to a result") : absl::OkStatus();
  }

 private:
  const cuda::Driver& driver() const { return context_.driver(); }

  void Meta() {
    const auto& runtime = *context_.device().runtime();
    const auto cublas = Cublas::Load();
    context_.Emit(Cat("{\"meta\": {\"gpu\": \"", runtime.device().name, "\", \"driver\": \"", driver().version(),
                      "\", \"nvrtc\": \"", runtime.nvrtc().ok() ? std::to_string((*runtime.nvrtc())->version()) : "none",
                      "\", \"cublas\": \"", cublas.ok() ? (*cublas)->version() : "none", "\", \"family\": \"", context_.family(),
                      "\", \"rest_ms\": ", context_.settings().rounds.rest.count(), "}}"));
  }

  // Runs a bench that fills in the figures of `row`, if it is wanted.
  template <typename Fill>
  void Try(Row row, Fill fill) {
    if (!context_.Wants(row)) return;
    const absl::Status status = fill(row);
    if (!status.ok()) return context_.Failed(row, status);
    context_.Emit(row);
  }

  // Times `call` alone or beside a peer.
  absl::Status Time(Row& row, Call& call, const std::vector<Candidate>& peers = {}) {
    std::vector<Candidate> candidates = {{"tilert", [&] { return call.Run(); }}};
    candidates.insert(candidates.end(), peers.begin(), peers.end());
    TILERT_ASSIGN_OR_RETURN(const Times times, Compare(context_.timer(), candidates, context_.settings().rounds));
    row.schedule = call.schedule;
    row.us = tool::Median(times[0]);
    for (size_t i = 1; i < times.size(); ++i)
      row.peers.push_back({candidates[i].name, tool::Median(times[i]), RatioOf(times[i], times[0])});
    return absl::OkStatus();
  }

  void Attentions() {
    const int64_t batch = 4, heads = 16, seq = 4096;
    for (const char* mask : {"", "causal_"}) {
      const bool causal = *mask != '\0';
      for (const int64_t d : {128, 64}) {
        Try({causal ? "attention_causal" : "attention", "bf16", Cat(batch, "x", heads, "x", seq, "x", d), "bshd", 0, 0, 0, {}},
            [&](Row& row) -> absl::Status {
              TILERT_ASSIGN_OR_RETURN(
                  Call call,
                  context_.MakeCall(Cat("attention_", mask, "d", d, "_bf16"),
                                    {{"batch", batch}, {"seq_q", seq}, {"seq_kv", seq}, {"heads", heads}, {"heads_kv", heads}}));
              row.flop = 4.0 * double(batch * heads) * double(seq) * double(seq) * double(d) * (causal ? 0.5 : 1);
              row.bytes = 2.0 * 4 * double(batch * heads * seq * d);
              return Time(row, call);
            });
      }
    }
  }

  void Rows() {
    const int64_t m = 16384, n = 8192;
    for (const char* bench : {"rms_norm", "layer_norm", "softmax", "transpose", "add"}) {
      const bool flat = std::strcmp(bench, "add") == 0;
      Try({bench, "bf16", flat ? std::to_string(m * n) : Cat(m, "x", n), "row", 0, 0, 0, {}}, [&](Row& row) -> absl::Status {
        const std::map<std::string, int64_t> dims =
            flat ? std::map<std::string, int64_t>{{"N", m * n}} : std::map<std::string, int64_t>{{"M", m}, {"N", n}};
        TILERT_ASSIGN_OR_RETURN(Call call, context_.MakeCall(Cat(bench, "_bf16"), dims));
        const uint64_t bytes = static_cast<uint64_t>(m * n * 2);
        const double arrays = flat ? 3 : 2;
        row.bytes = arrays * double(bytes);
        TILERT_RETURN_IF_ERROR(Time(row, call, {{"cuMemcpyDtoD", [&] {
                                                   return driver().MemcpyDtoDAsync(call.memory.back().address(),
                                                                                   call.memory.front().address(), bytes, nullptr);
                                                 }}}));
        // The copy moves two arrays, the addition three: compare bandwidths.
        Row::Peer& copy = row.peers[0];
        for (double* value : {&copy.us, &copy.ratio.median, &copy.ratio.low, &copy.ratio.high}) *value *= arrays / 2;
        return absl::OkStatus();
      });
    }
  }

  // From a program to a kernel that can be launched, without and with an entry in the cache: of one schedule, and (warm_load_all)
  // from the bundle, of all the schedules that it has for this GPU.
  void Loads() {
    for (const char* entry : {"add_bf16", "gemm_nt_bf16", "attention_d128_bf16"}) {
      Row cold{"cold_load", "bf16", entry, "", 0, 0, 0, {}}, warm{"warm_load", "bf16", entry, "", 0, 0, 0, {}};
      if (!context_.Wants(cold) && !context_.Wants(warm)) continue;
      if (const absl::Status status = LoadTimes(entry, cold.us, warm.us); !status.ok()) {
        context_.Failed(cold, status);
        continue;
      }
      context_.Emit(cold);
      context_.Emit(warm);
      Row all{"warm_load_all", "bf16", entry, "", 0, 0, 0, {}};
      if (const absl::Status status = LoadAllTime(entry, all.us); !status.ok()) {
        context_.Failed(all, status);
        continue;
      }
      context_.Emit(all);
    }
  }

  absl::Status LoadTimes(const std::string& entry, double& cold_us, double& warm_us) {
    std::vector<double> cold, warm;
    TILERT_ASSIGN_OR_RETURN(const Program* const original, context_.bundle().Entry(entry));
    for (int i = 0; i < 5; ++i) {
      const std::string folder = (std::filesystem::temp_directory_path() / Cat("tilert-bench-cache-", i)).string();
      std::filesystem::remove_all(folder);
      for (std::vector<double>* times : {&cold, &warm}) {
        RuntimeOptions options;
        options.family = context_.settings().family;
        options.cache_directory = folder;
        TILERT_ASSIGN_OR_RETURN(const auto device, tool::Device::Open(options));
        Program program = *original;
        // A name of its own, or NVRTC would answer from a disk cache that it keeps itself.
        program.name += Cat("_", run_, "_", i);
        const auto start = Clock::now();
        TILERT_ASSIGN_OR_RETURN(const auto kernel, Kernel::Create(device->runtime(), program, {}));
        TILERT_RETURN_IF_ERROR(kernel->Prepare());
        times->push_back(Milliseconds(start));
      }
      std::filesystem::remove_all(folder);
    }
    cold_us = tool::Median(cold) * 1000;
    warm_us = tool::Median(warm) * 1000;
    return absl::OkStatus();
  }

  absl::Status LoadAllTime(const std::string& entry, double& us) {
    const std::string folder = (std::filesystem::temp_directory_path() / "tilert-bench-cache-all").string();
    std::filesystem::remove_all(folder);
    std::vector<double> times;
    for (int i = 0; i < 6; ++i) {
      RuntimeOptions options;
      options.family = context_.settings().family;
      options.cache_directory = folder;
      TILERT_ASSIGN_OR_RETURN(const auto device, tool::Device::Open(options));
      const auto start = Clock::now();
      KernelSpec spec;
      spec.entry = entry;
      TILERT_ASSIGN_OR_RETURN(const auto kernel, Kernel::Create(device->runtime(), context_.shared_bundle(), spec));
      TILERT_RETURN_IF_ERROR(kernel->Prepare());
      if (i > 0) times.push_back(Milliseconds(start));  // the first fills the cache
    }
    std::filesystem::remove_all(folder);
    us = tool::Median(times) * 1000;
    return absl::OkStatus();
  }

  // Host time of a launch against the bare driver call with the same parameters.
  absl::Status LaunchCost(Row& row) {
    TILERT_ASSIGN_OR_RETURN(Call call, context_.MakeCall("add_bf16", {{"N", 1}}));
    TILERT_ASSIGN_OR_RETURN(const cuda::Function raw, RawKernel());
    cuda::DevicePtr pointers[3] = {};
    int n = 0;
    void* params[] = {&pointers[0], &pointers[1], &pointers[2], &n};
    std::vector<double> ours, bare;
    // A few hundred launches at a time, so that the queue does not fill up.
    const auto time = [&](std::vector<double>& times, const auto& launch) -> absl::Status {
      constexpr int kCalls = 200;
      TILERT_RETURN_IF_ERROR(driver().CtxSynchronize());
      const auto start = Clock::now();
      for (int i = 0; i < kCalls; ++i) TILERT_RETURN_IF_ERROR(launch());
      times.push_back(Milliseconds(start) * 1000 / kCalls);
      return absl::OkStatus();
    };
    for (int round = 0; round < 31; ++round) {
      TILERT_RETURN_IF_ERROR(time(ours, [&] { return call.Run(); }));
      TILERT_RETURN_IF_ERROR(
          time(bare, [&] { return driver().LaunchKernel(raw, 1u, 1u, 1u, 256u, 1u, 1u, 0u, nullptr, params, nullptr); }));
    }
    row.us = tool::Median(ours);
    row.peers.push_back({"cuLaunchKernel", tool::Median(bare), RatioOf(bare, ours)});
    return absl::OkStatus();
  }

  absl::StatusOr<cuda::Function> RawKernel() {
    // PTX, so that the bare launch needs neither our lowering nor our loader.
    static const char kPtx[] =
        ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry empty(.param .u64 a, .param .u64 b, .param .u64 c, "
        ".param .u32 n) { ret; }\n";
    cuda::Module module = nullptr;
    cuda::Function function = nullptr;
    TILERT_RETURN_IF_ERROR(driver().ModuleLoadDataEx(&module, kPtx, 0u, nullptr, nullptr));
    TILERT_RETURN_IF_ERROR(driver().ModuleGetFunction(&function, module, "empty"));
    return function;
  }

  BenchContext context_;
  const int64_t run_ = Clock::now().time_since_epoch().count() & 0xffffff;
};

Settings ReadSettings(int argc, char** argv) {
  std::map<std::string, std::string> given;
  const std::pair<const char*, const char*> variables[] = {
      {"--family", "TILERT_FAMILY"}, {"--only", "TILERT_ONLY"},       {"--filter", "TILERT_BENCH"},
      {"--fix", "TILERT_FIX"},       {"--repeats", "TILERT_REPEATS"}, {"--variant", "TILERT_VARIANT"},
      {"--rest", "TILERT_REST"},
  };
  for (const auto& [flag, variable] : variables) {
    if (const char* value = std::getenv(variable)) given[flag] = value;
  }
  for (int i = 1; i + 1 < argc; i += 2) given[argv[i]] = argv[i + 1];
  Settings settings;
  if (!given["--family"].empty()) settings.family = given["--family"];
  settings.only = given["--only"];
  settings.filter = Words(given["--filter"]);
  settings.fixed = Words(given["--fix"]);
  settings.variant = given["--variant"];
  settings.out = given["--out"];
  if (!given["--repeats"].empty()) settings.rounds.count = std::max(1, std::atoi(given["--repeats"].c_str()));
  settings.rounds.rest = std::chrono::milliseconds(std::max(0, std::atoi(given["--rest"].c_str())));
  return settings;
}

}  // namespace
}  // namespace tilert::bench

int main(int argc, char** argv) {
  const absl::Status status = tilert::bench::Bench(tilert::bench::ReadSettings(argc, argv)).Run();
  if (!status.ok()) std::fprintf(stderr, "kernels_bench: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
