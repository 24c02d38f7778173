#include "nvrtc_harness.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <vector>

namespace tilert {
namespace {

using NvrtcProgram = void*;

struct Api {
  int (*version)(int*, int*) = nullptr;
  int (*create)(NvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*destroy)(NvrtcProgram*) = nullptr;
  int (*compile)(NvrtcProgram, int, const char* const*) = nullptr;
  int (*log_size)(NvrtcProgram, size_t*) = nullptr;
  int (*log)(NvrtcProgram, char*) = nullptr;
  int (*cubin_size)(NvrtcProgram, size_t*) = nullptr;
  int (*cubin)(NvrtcProgram, char*) = nullptr;
  int (*ptx_size)(NvrtcProgram, size_t*) = nullptr;
  int (*ptx)(NvrtcProgram, char*) = nullptr;
};

const Api* LoadApi() {
  static const Api* const api = []() -> const Api* {
    void* handle = nullptr;
    for (const char* name : {"libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
      if ((handle = dlopen(name, RTLD_NOW)) != nullptr) break;
    }
    if (handle == nullptr) return nullptr;
    auto* loaded = new Api;
    const auto find = [handle](auto* function, const char* name) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(handle, name));
      return *function != nullptr;
    };
    const bool all = find(&loaded->version, "nvrtcVersion") && find(&loaded->create, "nvrtcCreateProgram") &&
                     find(&loaded->destroy, "nvrtcDestroyProgram") && find(&loaded->compile, "nvrtcCompileProgram") &&
                     find(&loaded->log_size, "nvrtcGetProgramLogSize") && find(&loaded->log, "nvrtcGetProgramLog") &&
                     find(&loaded->cubin_size, "nvrtcGetCUBINSize") && find(&loaded->cubin, "nvrtcGetCUBIN") &&
                     find(&loaded->ptx_size, "nvrtcGetPTXSize") && find(&loaded->ptx, "nvrtcGetPTX");
    return all ? loaded : nullptr;
  }();
  return api;
}

std::string Fetch(NvrtcProgram program, int (*size)(NvrtcProgram, size_t*), int (*get)(NvrtcProgram, char*)) {
  size_t bytes = 0;
  if (size(program, &bytes) != 0 || bytes == 0) return {};
  std::string text(bytes, '\0');
  get(program, text.data());
  return text;
}

// The number before `unit` in `line`, or `otherwise`.
int NumberBefore(const std::string& line, const std::string& unit, int otherwise) {
  const size_t at = line.find(unit);
  if (at == std::string::npos) return otherwise;
  size_t begin = at;
  while (begin > 0 && (std::isdigit(static_cast<unsigned char>(line[begin - 1])) || line[begin - 1] == ' ')) --begin;
  return std::atoi(line.c_str() + begin);
}

}  // namespace

PtxasReport ReadPtxasReport(const std::string& log) {
  PtxasReport report;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    report.registers = std::max(report.registers, NumberBefore(line, " registers", -1));
    report.stack_bytes = std::max(report.stack_bytes, NumberBefore(line, " bytes stack frame", -1));
    report.spill_bytes = std::max(report.spill_bytes, NumberBefore(line, " bytes spill stores", -1));
    const bool info = line.find("ptxas info") != std::string::npos && line.find("C75") == std::string::npos;
    if (!info && (line.find("warning") != std::string::npos || line.find("error") != std::string::npos ||
                  line.find("C75") != std::string::npos)) {
      report.complaints += line + "\n";
    }
  }
  return report;
}

bool HasNvrtc() { return LoadApi() != nullptr; }

TestCubin CompileForTest(const std::string& source, const std::string& arch) {
  const Api& api = *LoadApi();
  TestCubin result;
  NvrtcProgram program = nullptr;
  if (api.create(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr) != 0) return result;
  const bool is_virtual = arch.rfind("compute_", 0) == 0;
  const std::string arch_flag = "--gpu-architecture=" + arch;
  // As the runtime compiles.
  std::vector<const char*> flags = {arch_flag.c_str(), "--std=c++17", "-default-device", "--builtin-move-forward=false",
                                    "--builtin-initializer-list=false"};
  int major = 0, minor = 0;
  if (api.version(&major, &minor) == 0 && (major > 12 || (major == 12 && minor >= 4))) flags.push_back("--minimal");
  if (!is_virtual) flags.push_back("--ptxas-options=-v");
  result.ok = api.compile(program, static_cast<int>(flags.size()), flags.data()) == 0;
  result.log = Fetch(program, api.log_size, api.log);
  result.code = is_virtual ? Fetch(program, api.ptx_size, api.ptx) : Fetch(program, api.cubin_size, api.cubin);
  api.destroy(&program);
  result.ok = result.ok && !result.code.empty();
  static_cast<PtxasReport&>(result) = ReadPtxasReport(result.log);
  return result;
}

}  // namespace tilert
