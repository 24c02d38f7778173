#include "runtime/nvrtc_compile.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tilert {
namespace {

using Clock = std::chrono::steady_clock;

// Owns an nvrtcProgram.
class ProgramHandle {
 public:
  explicit ProgramHandle(const NvrtcTable& table) : table_(table) {}
  ~ProgramHandle() {
    if (program_ != nullptr) table_.DestroyProgram(&program_);
  }
  ProgramHandle(const ProgramHandle&) = delete;
  ProgramHandle& operator=(const ProgramHandle&) = delete;

  NvrtcProgram get() const { return program_; }
  NvrtcProgram* out() { return &program_; }

 private:
  const NvrtcTable& table_;
  NvrtcProgram program_ = nullptr;
};

absl::StatusCode StatusCodeOfNvrtc(int result) {
  switch (result) {
    case kNvrtcOutOfMemory:
      return absl::StatusCode::kResourceExhausted;
    case kNvrtcCompilation:
      return absl::StatusCode::kInvalidArgument;
    case kNvrtcInvalidOption:
      return absl::StatusCode::kUnimplemented;
    case kNvrtcBuiltinOperationFailure:
      return absl::StatusCode::kNotFound;
    case kNvrtcCancelled:
      return absl::StatusCode::kDeadlineExceeded;
    default:
      return absl::StatusCode::kInternal;
  }
}

// The program's log without its NUL; empty when NVRTC gives none.
std::string LogOf(const NvrtcTable& table, NvrtcProgram program) {
  size_t size = 0;
  if (table.GetProgramLogSize(program, &size) != kNvrtcSuccess || size <= 1) return "";
  std::string log(size, '\0');
  if (table.GetProgramLog(program, log.data()) != kNvrtcSuccess) return "";
  log.resize(strnlen(log.data(), size));
  return log;
}

absl::Status Failure(const Nvrtc& nvrtc, const std::string& name, const std::string& arch, int result, const std::string& log) {
  const char* text = nvrtc.raw().GetErrorString(result);
  return absl::Status(StatusCodeOfNvrtc(result),
                      absl::StrCat("NVRTC ", nvrtc.version_text(), " failed on ", name, " for ", arch, ": ",
                                   text != nullptr ? text : "unknown error", log.empty() ? "" : "\n", log));
}

std::vector<std::string> CodegenWarnings(const std::string& log) {
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    const size_t at = line.find("C75");
    if (at != absl::string_view::npos && at + 5 <= line.size() && isdigit(line[at + 3]) && isdigit(line[at + 4])) {
      lines.emplace_back(line);
    }
  }
  return lines;
}

// "sm_90a" → 90, "compute_120" → 120; 0 when malformed.
int ArchNumber(absl::string_view arch) {
  absl::ConsumePrefix(&arch, "sm_") || absl::ConsumePrefix(&arch, "compute_");
  while (!arch.empty() && (arch.back() == 'a' || arch.back() == 'f')) arch.remove_suffix(1);
  int number = 0;
  return absl::SimpleAtoi(arch, &number) ? number : 0;
}

absl::Status CheckArch(const Nvrtc& nvrtc, const std::string& arch) {
  const int number = ArchNumber(arch);
  const std::vector<int>& known = nvrtc.architectures();
  if (number != 0 && std::find(known.begin(), known.end(), number) != known.end()) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("NVRTC ", nvrtc.version_text(), " (", nvrtc.path(), ") cannot compile for ", arch,
                                               "; it knows ", absl::StrJoin(known, ", ")));
}

// nvrtcSetFlowCallback's callback: non-zero cancels.
int PastDeadline(void* deadline, void*) { return Clock::now() > *static_cast<const Clock::time_point*>(deadline) ? 1 : 0; }

absl::Status ReadLoweredNames(const Nvrtc& nvrtc, NvrtcProgram program, const std::vector<std::string>& expressions,
                              std::vector<std::string>& names) {
  for (const std::string& expression : expressions) {
    const char* lowered = nullptr;
    if (nvrtc.raw().GetLoweredName(program, expression.c_str(), &lowered) != kNvrtcSuccess || lowered == nullptr) {
      return absl::InternalError(absl::StrCat("the compiled code has no kernel ", expression));
    }
    names.emplace_back(lowered);
  }
  return absl::OkStatus();
}

absl::Status ReadCode(const Nvrtc& nvrtc, NvrtcProgram program, CompiledCode& out) {
  const NvrtcTable& table = nvrtc.raw();
  size_t size = 0;
  const int sized = out.is_ptx ? table.GetPtxSize(program, &size) : table.GetCubinSize(program, &size);
  if (sized == kNvrtcSuccess && size != 0) {
    out.code.resize(size);
    const int read = out.is_ptx ? table.GetPtx(program, out.code.data()) : table.GetCubin(program, out.code.data());
    if (read == kNvrtcSuccess && (out.is_ptx ? size > 1
                                             : absl::StartsWith(out.code,
                                                                "\x7f"
                                                                "ELF")))
      return absl::OkStatus();
  }
  // NVRTC reports success with an empty cubin for virtual architectures.
  return absl::InternalError(
      absl::StrCat("NVRTC ", nvrtc.version_text(), " reported success but gave no ", out.is_ptx ? "PTX" : "cubin"));
}

}  // namespace

std::vector<std::string> CompileFlags(const CompileOptions& options) {
  std::vector<std::string> flags = {absl::StrCat("-arch=", options.arch), "--std=c++17", "-default-device"};
  if (options.quick) flags.push_back("--Ofast-compile=min");
  flags.insert(flags.end(), options.extra_flags.begin(), options.extra_flags.end());
  return flags;
}

absl::StatusOr<CompiledCode> Compile(const Nvrtc& nvrtc, const std::string& name, const std::string& source,
                                     const CompileOptions& options) {
  if (absl::Status status = CheckArch(nvrtc, options.arch); !status.ok()) return status;
  const NvrtcTable& table = nvrtc.raw();
  ProgramHandle program(table);
  const auto start = Clock::now();
  int result = table.CreateProgram(program.out(), source.c_str(), name.c_str(), 0, nullptr, nullptr);
  for (size_t i = 0; result == kNvrtcSuccess && i < options.name_expressions.size(); ++i) {
    result = table.AddNameExpression(program.get(), options.name_expressions[i].c_str());
  }
  if (result != kNvrtcSuccess) return Failure(nvrtc, name, options.arch, result, "");

  Clock::time_point deadline = start + options.deadline;
  if (options.deadline.count() > 0 && table.SetFlowCallback != nullptr) {
    table.SetFlowCallback(program.get(), PastDeadline, &deadline);
  }
  std::vector<std::string> flags = CompileFlags(options);
  // The option came with 12.9, as did the cache that it turns off.
  if (options.no_cache && nvrtc.version() >= 12090) flags.push_back("--no-cache");
  // Without what no kernel uses (texture functions, the runtime's types, std::move, std::initializer_list): a third of the time
  // of an empty program.
  flags.insert(flags.end(), {"--builtin-move-forward=false", "--builtin-initializer-list=false"});
  if (nvrtc.version() >= 12040) flags.push_back("--minimal");
  std::vector<const char*> arguments;
  for (const std::string& flag : flags) arguments.push_back(flag.c_str());
  result = table.CompileProgram(program.get(), static_cast<int>(arguments.size()), arguments.data());

  CompiledCode out;
  out.log = LogOf(table, program.get());
  if (result != kNvrtcSuccess) return Failure(nvrtc, name, options.arch, result, out.log);
  out.codegen_warnings = CodegenWarnings(out.log);
  out.is_ptx = absl::StartsWith(options.arch, "compute_");
  if (absl::Status status = ReadCode(nvrtc, program.get(), out); !status.ok()) return status;
  if (absl::Status status = ReadLoweredNames(nvrtc, program.get(), options.name_expressions, out.lowered_names); !status.ok()) {
    return status;
  }
  out.compile_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return out;
}

}  // namespace tilert
