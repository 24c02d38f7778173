// What the benches of kernels share: settings, the device, prepared calls, result lines.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/compare.h"
#include "runtime/opened_bundle.h"
#include "tests/gpu/std_bundle.h"
#include "tools/gpu_timer.h"

namespace tilert::bench {

struct Settings {
  std::string family = "auto";
  std::string only;  // parts: "gemm attention rows load launch"; empty: all
  // Names as in the result lines, e.g. "gemm/bf16/nt/4096x4096x4096": any of these inside; empty: all.
  std::vector<std::string> filter;
  std::vector<std::string> fixed;  // names of dims that kernels are specialised to
  std::string variant;             // of the programs that have it; empty: the runtime's choice
  std::string out;
  Rounds rounds;
};

// One prepared kernel with its device arguments.
struct Call {
  std::shared_ptr<Kernel> kernel;
  std::vector<tool::DeviceMemory> memory;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<TensorArg> tensors;
  std::vector<ScalarArg> scalars;
  tool::DeviceMemory workspace;
  LaunchRequest request;
  std::string schedule;  // the variant that it runs; "default", "general"
  absl::Status Run() { return kernel->Launch(request); }
};

// One result. `flop` and `bytes` of one run; peers that ran beside it, the first being the one to compare with.
struct Row {
  struct Peer {
    std::string name;
    double us = 0;
    Ratio ratio;  // of its time to ours
  };
  std::string bench, dtype, shape, layout;
  double us = 0, flop = 0, bytes = 0;
  std::vector<Peer> peers;
  std::string schedule = {};  // as in Call
  // What the filter looks at.
  std::string Name() const { return bench + "/" + dtype + "/" + layout + "/" + shape; }
};

class BenchContext {
 public:
  explicit BenchContext(Settings settings) : settings_(std::move(settings)) {}
  ~BenchContext();
  absl::Status Init();

  const Settings& settings() const { return settings_; }
  const cuda::Driver& driver() const { return device_->driver(); }
  tool::Device& device() { return *device_; }
  tool::GpuTimer& timer() { return *timer_; }
  const OpenedBundle& bundle() const { return *bundle_; }
  const std::shared_ptr<const OpenedBundle>& shared_bundle() const { return bundle_; }
  std::string family() const;  // that the lowering takes here

  bool WantsPart(const std::string& part) const;
  bool Wants(const Row& row) const;
  // A kernel of std.tilert with random inputs and scalars of 1. Kernels are kept, so that further shapes of one need no compile.
  absl::StatusOr<Call> MakeCall(const std::string& entry, const std::map<std::string, int64_t>& dims);
  // One JSON object a line, on stdout and into --out.
  void Emit(const std::string& line);
  void Emit(const Row& row);
  // A bench that did not come to a result: told on stderr, and the rest goes on.
  void Failed(const Row& row, const absl::Status& status);
  bool has_failures() const { return failures_ > 0; }

 private:
  Settings settings_;
  std::unique_ptr<tool::Device> device_;
  std::unique_ptr<tool::GpuTimer> timer_;
  std::shared_ptr<const OpenedBundle> bundle_;
  std::map<std::string, std::shared_ptr<Kernel>> kernels_;
  std::FILE* out_ = nullptr;
  int failures_ = 0;
};

// bench/gemms.cc
absl::Status BenchGemms(BenchContext& context);

}  // namespace tilert::bench
