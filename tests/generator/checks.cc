#include "tests/generator/checks.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <ctime>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "frontend/frontend.h"
#include "ir/executor.h"
#include "ir/flat_reader.h"
#include "ir/flat_writer.h"
#include "ir/printer.h"
#include "ir/specialize.h"
#include "ir/status_util.h"
#include "ir/verifier.h"
#include "lowering/kernel_ir_printer.h"
#include "lowering/restride.h"
#include "lowering/target.h"
#include "runtime/compile_lowered.h"
#include "tests/generator/device_run.h"
#include "tests/lowering/nvrtc_harness.h"
#include "tests/lowering/program_sim.h"

namespace tilert {
namespace {

// A message without what differs between programs with one fault: only its plain words.
std::string Signature(std::string_view message) {
  std::string text;
  for (const std::string& word :
       std::vector<std::string>(absl::StrSplit(std::string(message.substr(0, message.find('\n'))), ' '))) {
    const size_t letters = word.find_first_of(",:;") == word.size() - 1 ? word.size() - 1 : word.size();
    const bool plain = std::all_of(word.begin(), word.begin() + static_cast<int64_t>(letters),
                                   [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '-'; });
    if (plain && !word.empty() && text.size() < 90) text += Cat(text.empty() ? "" : " ", word);
  }
  return text;
}

// The first line in which two texts differ, as it is in each.
std::string DifferentLine(const std::string& a, const std::string& b) {
  const std::vector<std::string> left = absl::StrSplit(a, '\n'), right = absl::StrSplit(b, '\n');
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    if (left[i] != right[i]) return Cat("another text\n", left[i], "\n", right[i]);
  }
  return "another text, longer or shorter";
}

bool Prints(const Program& program) {
  bool prints = false;
  for (const Launch& launch : program.launches) {
    ForEachStmt(launch.body, [&](const Stmt& stmt) {
      prints |= std::holds_alternative<Print>(stmt.op) || std::holds_alternative<Assert>(stmt.op);
    });
  }
  return prints;
}

class Checker {
 public:
  Checker(const TileCase& tile_case, const CheckOptions& options) : case_(tile_case), options_(options) {}
  Verdict Run() {
    const bool device_only = !options_.devices.empty() && !options_.simulate && options_.compile.empty();
    static_cast<void>(Valid() && (device_only || (RoundTrips() && Lowers())) && RunsOnDevices());
    return std::move(verdict_);
  }

 private:
  bool Invalid(std::string_view kind, std::string message) {
    verdict_.result = Verdict::Result::kInvalid;
    verdict_.kind = std::string(kind);
    verdict_.message = std::move(message);
    return false;
  }
  bool Fault(std::string_view kind, std::string_view message) {
    verdict_.result = Verdict::Result::kFault;
    verdict_.kind = Cat(kind, ": ", Signature(message));
    verdict_.message = std::string(message);
    return false;
  }
  bool Valid();
  bool RoundTrips();
  bool Lowers();
  bool LowersFor(const std::string& arch, const Program& program, const CallData& call, const ArgClass& arg_class,
                 const std::string& what);
  bool Simulates(const std::vector<kir::Kernel>& kernels, const Program& program, CallData run, const std::string& what);
  bool IsCompiled(const std::string& arch, bool general) const;
  bool Compiles(const Program& program, const Lowered& lowered, const ArgClass& arg_class, const Target& target);
  bool RunsOnDevice(const std::string& family);
  bool RunsOnDevices();
  bool FitsClass(const Program& program, const ArgClass& arg_class) const;
  bool Agrees(const CallData& run, const std::string& kind);

  const TileCase& case_;
  const CheckOptions& options_;
  Program special_;
  CallData call_, expected_;
  bool compares_ = true;
  std::set<std::string> simulated_;  // texts of kernels
  Verdict verdict_;
};

bool Checker::Valid() {
  if (absl::StatusOr<VerifiedProgram> verified = Verify(case_.program); !verified.ok())
    return Invalid("verifier", std::string(verified.status().message()));
  absl::StatusOr<Program> special = Specialize(case_.program, {});
  if (!special.ok()) return Invalid("specialise", std::string(special.status().message()));
  special_ = *std::move(special);
  absl::StatusOr<CallData> call = MakeCall(case_);
  if (!call.ok()) return Invalid("arguments", std::string(call.status().message()));
  call_ = *call;
  expected_ = *std::move(call);
  ExecOptions options;
  options.threads = 1;
  options.check_races = options.check_unwritten = true;
  options.max_steps = 4000000;
  options.max_bytes = int64_t{1} << 28;
  options.check_index = !case_.hostile.empty();
  absl::Status status = Execute(special_, expected_.Args(), expected_.scalars, options);
  if (options.check_index && absl::StrContains(status.message(), "does not fit 64 bits")) {
    // Its value is unspecified: what the case comes to is not compared, only that it touches nothing that it should not.
    compares_ = options.check_index = false;
    ++verdict_.unspecified;
    expected_ = call_;
    status = Execute(special_, expected_.Args(), expected_.scalars, options);
  }
  if (status.code() == absl::StatusCode::kInternal) return Fault("executor", ToStd(status.message()));
  if (!status.ok()) return Invalid("executor", std::string(status.message()));
  if (!compares_) return true;
  // Another order of blocks and points must give the same: what does not is no case to compare.
  CallData again = call_;
  options.seed = 99;
  options.check_races = false;
  if (!Execute(special_, again.Args(), again.scalars, options).ok() || !FirstDifference(special_, again, expected_).empty())
    return Invalid("order", "another order of blocks gives another result");
  return true;
}

bool Checker::RoundTrips() {
  const std::string text = PrintProgram(case_.program);
  const absl::StatusOr<Program> read = frontend::Compile(text, "printed.py", case_.program.name, {});
  if (!read.ok()) return Fault("read printed", ToStd(read.status().message()));
  if (const std::string again = PrintProgram(*read); again != text) return Fault("print read", DifferentLine(text, again));
  if (!FindErrors(*read).empty()) return Fault("verify read", FindErrors(*read)[0].ToString());
  Bundle bundle;
  bundle.programs = {*read};
  const absl::StatusOr<std::string> bytes = WriteBundle(bundle);
  if (!bytes.ok()) return Fault("write bundle", ToStd(bytes.status().message()));
  const absl::StatusOr<Bundle> back = ReadBundle(*bytes);
  if (!back.ok()) return Fault("read bundle", ToStd(back.status().message()));
  if (!(back->programs[0] == *read)) return Fault("bundle", "another program");
  if (PrintProgram(back->programs[0]) != text) return Fault("print bundle", "another text");
  return true;
}

// Strides of the arguments and workspaces satisfy the class; memory is aligned to 16 bytes.
bool Checker::FitsClass(const Program& program, const ArgClass& arg_class) const {
  BoundArgs bound;
  bound.dims = case_.dims;
  size_t global = 0;
  for (int64_t dim : case_.dims) {
    if (arg_class.index32 && dim >= int64_t{1} << 30) return false;
  }
  for (const Buffer& buffer : program.buffers) {
    if (buffer.scope != Scope::kGlobal) continue;
    const uint32_t alignment = arg_class.alignment[global++], element = static_cast<uint32_t>(DTypeBytes(buffer.dtype));
    BoundTensor tensor;
    if (!BindShape(program, buffer, bound, &tensor).ok()) return false;
    for (size_t d = 0; d < buffer.strides.size(); ++d)
      tensor.strides[d] = EvalBound(program, buffer.strides[d], bound).value_or(0);
    if (alignment > element && !tensor.strides.empty() && tensor.strides.back() != 1) return false;
    for (size_t d = 0; d + 1 < tensor.strides.size(); ++d) {
      if (tensor.strides[d] * element % alignment != 0) return false;
    }
  }
  return true;
}

// Whether a run left what the executor left, where that is said.
bool Checker::Agrees(const CallData& run, const std::string& kind) {
  const std::string difference = compares_ ? FirstDifference(special_, run, expected_) : "";
  return difference.empty() || (Fault(kind, difference), verdict_.kind = kind, false);
}

bool Checker::Simulates(const std::vector<kir::Kernel>& kernels, const Program& program, CallData run, const std::string& what) {
  SimOptions options{.seed = case_.data_seed, .interleavings = 2};
  options.max_seconds = options_.max_seconds;
  const absl::Status status = SimulateAll(program, kernels, run.Args(), run.scalars, options);
  if (status.code() == absl::StatusCode::kResourceExhausted) return ++verdict_.unjudged, true;
  if (!status.ok()) return Fault(Cat("simulate ", what), ToStd(status.message()));
  ++verdict_.simulated;
  return Agrees(run, Cat("differs ", what));
}

// Whether code for `arch` and this class is compiled.
bool Checker::IsCompiled(const std::string& arch, bool general) const {
  const auto& targets = options_.compile;
  const auto at = static_cast<size_t>(std::find(targets.begin(), targets.end(), arch) - targets.begin());
  if (at == targets.size() || (options_.one_target && case_.data_seed % targets.size() != at)) return false;
  return !options_.one_class || (case_.data_seed / targets.size() % 2 == 0) == general;
}

// As the runtime does it.
bool Checker::Compiles(const Program& program, const Lowered& lowered, const ArgClass& arg_class, const Target& target) {
  static const absl::StatusOr<std::shared_ptr<const Nvrtc>> nvrtc = Nvrtc::Load();
  if (!nvrtc.ok()) return Fault("compile", ToStd(nvrtc.status().message()));
  CompileOptions options = OptionsFor(program, arg_class, target, (*nvrtc)->version());
  options.extra_flags = {"--ptxas-options=-v"};
  const absl::StatusOr<CompiledCode> code = CompileLowered(**nvrtc, program, lowered, options);
  ++verdict_.compiled;
  if (!code.ok()) return Fault(Cat("compile ", target.arch), ToStd(code.status().message()));
  const PtxasReport report = ReadPtxasReport(code->log);
  verdict_.spills += report.spill_bytes > 0;
  // printf is a call, across which ptxas keeps no wgmma unfinished, wherever it stands: C7510.
  for (const std::string& remark : code->codegen_warnings) {
    if (!Prints(special_) || !absl::StrContains(remark, "C7510")) return Fault(Cat("remark ", target.arch), remark);
  }
  return true;
}

bool Checker::LowersFor(const std::string& arch, const Program& program, const CallData& call, const ArgClass& arg_class,
                        const std::string& what) {
  LowerOptions options;
  options.verify_each = true;
  const Target target = *FindTarget(arch);
  const absl::StatusOr<Lowered> lowered = Lower(program, arg_class, target, options);
  if (lowered.status().code() == absl::StatusCode::kResourceExhausted) return ++verdict_.refused, true;
  if (lowered.status().code() == absl::StatusCode::kUnimplemented) {
    Fault("not lowered", ToStd(lowered.status().message()));
    verdict_.result = Verdict::Result::kNotLowered;
    return false;
  }
  if (!lowered.ok()) return Fault(Cat("lower ", what), ToStd(lowered.status().message()));
  std::string text;
  for (const kir::Kernel& kernel : lowered->kernel_ir) {
    text += kir::ToText(kernel);
    const std::string fault = kir::VerifyKernel(kernel);
    if (!fault.empty()) return Fault(Cat("kernel verifier ", what), fault);
  }
  // What two targets or classes have in common is simulated once.
  if (options_.simulate && FitsClass(program, arg_class) && simulated_.insert(text).second) {
    if (!Simulates(lowered->kernel_ir, program, call, what)) return false;
  }
  const bool general = arg_class == GeneralArgClass(program);
  return !IsCompiled(arch, general) || Compiles(program, *lowered, arg_class, target);
}

bool Checker::Lowers() {
  // Of one program in four, also what runs where inputs have been copied to rows of their own (lowering/restride.h).
  std::vector<BufferId> inputs;
  if (case_.data_seed % 4 == 0 && MayHaveSlowRows(special_)) inputs = SharedInputs(special_);
  const Program padded = WithPaddedRows(special_, inputs);
  const absl::StatusOr<CallData> padded_call = WithStridesOf(padded, case_, call_);
  if (!padded_call.ok()) return Fault("padded rows", ToStd(padded_call.status().message()));
  for (const std::string arch : {"sm_80", "sm_89", "sm_90a"}) {
    if (!LowersFor(arch, special_, call_, GeneralArgClass(special_), Cat(arch, " general"))) return false;
    if (!LowersFor(arch, special_, call_, FastArgClass(special_), Cat(arch, " fast"))) return false;
    if (inputs.empty()) continue;
    if (!LowersFor(arch, padded, *padded_call, PaddedArgClass(padded, inputs), Cat(arch, " padded"))) return false;
  }
  return true;
}

bool Checker::RunsOnDevice(const std::string& family) {
  CallData run = call_;
  const bool aligned = case_.hostile.empty() || case_.data_seed % 3 != 0;
  const absl::Status status = RunOnDevice(case_.program, {family, options_.device_runs, aligned, options_.plant}, &run);
  if (status.code() == absl::StatusCode::kResourceExhausted) return ++verdict_.refused, true;
  if (status.code() == absl::StatusCode::kDataLoss) return Fault(Cat("device outside ", family), ToStd(status.message()));
  if (!status.ok()) return Fault(Cat("device ", family), ToStd(status.message()));
  ++verdict_.simulated;
  return Agrees(run, Cat("device differs ", family));
}

bool Checker::RunsOnDevices() {
  return std::all_of(options_.devices.begin(), options_.devices.end(), [this](const std::string& f) { return RunsOnDevice(f); });
}

// Verdicts through a pipe: how many bytes follow, numbers, then texts.
void Send(int fd, const Verdict& v) {
  const std::string text = Cat(static_cast<int>(v.result), " ", v.refused, " ", v.simulated, " ", v.unjudged, " ", v.compiled,
                               " ", v.spills, " ", v.unspecified, " ", v.kind.size(), "\n", v.kind, v.message);
  const std::string bytes = Cat(text.size(), "\n", text);
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t n = write(fd, bytes.data() + sent, bytes.size() - sent);
    if (n <= 0) return;
    sent += static_cast<size_t>(n);
  }
}

// Takes the first verdict from `bytes`; false where it is not whole yet.
bool Receive(std::string* bytes, Verdict* v) {
  const size_t head = bytes->find('\n');
  if (head == std::string::npos) return false;
  const size_t size = std::strtoull(bytes->c_str(), nullptr, 10);
  if (bytes->size() < head + 1 + size) return false;
  const std::string text = bytes->substr(head + 1, size);
  bytes->erase(0, head + 1 + size);
  int result = 0;
  size_t kind = 0;
  const size_t line = text.find('\n');
  if (line == std::string::npos || std::sscanf(text.c_str(), "%d %d %d %d %d %d %d %zu", &result, &v->refused, &v->simulated,
                                               &v->unjudged, &v->compiled, &v->spills, &v->unspecified, &kind) != 8)
    return false;
  v->result = static_cast<Verdict::Result>(result);
  v->kind = text.substr(line + 1, kind);
  v->message = text.substr(line + 1 + kind);
  return true;
}

// A process that checks the cases from `first` on; behind a fault on a device, which may be of no more use, it ends.
void RunChild(int fd, const MakeCase& make, uint64_t first, uint64_t count, const CheckOptions& options, unsigned seconds) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    alarm(seconds);
    const Verdict verdict = Check(make(seed), options);
    Send(fd, verdict);
    if (verdict.result == Verdict::Result::kFault && !options.devices.empty()) break;
  }
}

}  // namespace

Verdict Check(const TileCase& tile_case, const CheckOptions& options) { return Checker(tile_case, options).Run(); }

void CheckInProcesses(const MakeCase& make, uint64_t first, uint64_t count, const CheckOptions& options,
                      const std::function<void(uint64_t, const Verdict&)>& report, unsigned seconds, std::time_t until) {
  constexpr uint64_t kCasesOfADevice = 64;  // opening one takes longer than most cases
  const uint64_t end = first + count;
  const auto left = [&] {
    return until == 0 ? -1 : static_cast<int>(std::max<std::time_t>(until - std::time(nullptr), 0)) * 1000;
  };
  while (first < end && left() != 0) {
    int ends[2];
    if (pipe(ends) != 0) return;
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      RunChild(ends[1], make, first, options.devices.empty() ? 1 : std::min(end - first, kCasesOfADevice), options, seconds);
      _exit(0);
    }
    close(ends[1]);
    std::string bytes;
    char buffer[4096];
    pollfd input = {ends[0], POLLIN, 0};
    while (poll(&input, 1, left()) > 0) {
      const ssize_t n = read(ends[0], buffer, sizeof buffer);
      if (n <= 0) break;
      bytes.append(buffer, static_cast<size_t>(n));
      for (Verdict verdict; Receive(&bytes, &verdict); verdict = {}) report(first++, verdict);
    }
    close(ends[0]);
    if (left() == 0) kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    if (left() == 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) continue;
    Verdict crash;
    crash.result = Verdict::Result::kFault;
    crash.kind = WIFSIGNALED(status) ? Cat("crash: ", strsignal(WTERMSIG(status))) : "crash";
    crash.message = "the process ended early";
    if (first < end) report(first++, crash);
  }
}

Verdict CheckInProcess(const TileCase& tile_case, const CheckOptions& options, unsigned seconds) {
  Verdict result;
  CheckInProcesses([&](uint64_t) { return tile_case; }, 0, 1, options,
                   [&](uint64_t, const Verdict& verdict) { result = verdict; }, seconds);
  return result;
}

}  // namespace tilert
