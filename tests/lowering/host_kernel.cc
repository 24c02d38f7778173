#include "host_kernel.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace tilert {
namespace {

constexpr uint8_t kCanary = 0xa5;
constexpr size_t kAlignment = 16;

// `template` of the parameter list of `symbol` in the source: types without names.
std::vector<std::string> ParameterTypes(const std::string& source, const std::string& symbol) {
  std::vector<std::string> types;
  const size_t begin = source.find("\n" + symbol + "(") + symbol.size() + 2;
  std::istringstream list(source.substr(begin, source.find(") {", begin) - begin));
  for (std::string parameter; std::getline(list, parameter, ',');) {
    std::string type = parameter.substr(0, parameter.find_last_of(" *") + 1);
    if (const size_t restrict = type.find("__restrict__"); restrict != std::string::npos) type.erase(restrict, 12);
    types.push_back(type);
  }
  return types;
}

std::string Launcher(const std::string& source, const std::string& symbol, size_t index) {
  std::string call;
  const std::vector<std::string> types = ParameterTypes(source, symbol);
  for (size_t i = 0; i < types.size(); ++i) call += (i ? ", *(" : "*(") + types[i] + "*)args[" + std::to_string(i) + "]";
  return "extern \"C\" int host_run_" + std::to_string(index) +
         "(unsigned blocks, unsigned threads, unsigned seed, void** args) {\n"
         "  host::body = [=] { " +
         symbol + "(" + call +
         "); };\n"
         "  gridDim.x = blocks;\n"
         "  for (unsigned b = 0; b < blocks; ++b) {\n"
         "    std::memset(smem, 0xff, sizeof smem);\n"
         "    host::mbarriers.clear(), host::named.clear();\n"
         "    blockIdx.x = b;\n"
         "    if (!host::RunBlock(threads, seed + b)) return 0;\n"
         "  }\n"
         "  return 1;\n"
         "}\n";
}

// wgmma_m64n256k16_f32_bf16_bf16_kk as a host function; where _r64 follows, of an accumulator in registers of PTX, from its
// register 64 on.
std::string HostProduct(const std::string& name) {
  std::vector<std::string> parts;
  std::istringstream words(name);
  for (std::string part; std::getline(words, part, '_');) parts.push_back(part);
  const size_t k = parts[1].find('k');
  for (size_t i : {3, 4}) parts[i][0] = static_cast<char>(std::toupper(static_cast<unsigned char>(parts[i][0])));
  const std::string function = "host::Wgmma<" + parts[1].substr(4, k - 4) + ", " + parts[1].substr(k + 1) + ", host::" +
                               parts[3] + ", host::" + parts[4] + (parts[5][0] == 'm' ? ", false" : ", true") +
                               (parts[5][1] == 'm' ? ", false>" : ", true>");
  if (parts.size() == 6) return "#define " + name + " " + function + "\n";
  return "#define " + name + "(d, a, b, keep) " + function + "(host::PtxRegisters(d, #d) + " + parts[6].substr(1) +
         ", a, b, keep)\n";
}

// What `source` defines for wgmma, for the host.
std::string HostProducts(const std::string& source) {
  const std::string guard = "#ifndef wgmma_";
  std::string text;
  for (size_t at = source.find(guard); at != std::string::npos; at = source.find(guard, at + 1)) {
    const std::string name = source.substr(at + 8, source.find('\n', at) - at - 8);
    const std::string action = name.substr(6, name.find('_', 6) - 6);
    if (action == "registers") {
      text += "#define " + name + "(d)\n";
    } else if (action == "forget" || action == "take") {
      text += "#define " + name + "(d) host::" + (action == "take" ? "Take" : "Forget") + "(d, #d)\n";
    } else {
      text += HostProduct(name);
    }
  }
  return text;
}

std::string MakeFolder() {
  char folder[] = "/tmp/tilert_host_XXXXXX";
  return mkdtemp(folder) == nullptr ? "" : folder;
}

#ifdef __clang__
constexpr char kPrecompiling[] = "-fpch-instantiate-templates ", kUnloadable[] = "";
#else
constexpr char kPrecompiling[] = "", kUnloadable[] = "-fno-gnu-unique ";
#endif

// By the compiler of the tests.
bool CompileOnHost(const std::string& arguments, const std::string& log) {
  const std::string command =
      TILERT_TEST_CXX " -std=c++20 -O0 -w -fPIC -I" TILERT_SOURCE_DIR " " + arguments + " 2>" + log;
  return std::system(command.c_str()) == 0;
}

// What stands in front of every kernel, precompiled (where that fails, kernels are compiled with the text).
class HostPrelude {
 public:
  HostPrelude() : folder_(MakeFolder()) {
    {
      std::ofstream out(header());
      out << "#include \"tests/lowering/host_cuda.h\"\n";
      for (const char* part : {"base", "types", "fp8", "convert", "memory", "math", "atomic", "grid", "debug"})
        out << "#include \"lowering/prelude/" << part << ".cuh\"\n";
      for (const char* part : {"mma", "hopper"}) out << "#include \"tests/lowering/host_" << part << ".h\"\n";
    }
    if (!CompileOnHost(std::string(kPrecompiling) + "-x c++-header " + header() + " -o " + header() + ".gch", folder_ + "/log"))
      unlink((header() + ".gch").c_str());
  }
  ~HostPrelude() {
    for (const char* name : {"/prelude.h", "/prelude.h.gch", "/log"}) unlink((folder_ + name).c_str());
    rmdir(folder_.c_str());
  }
  HostPrelude(const HostPrelude&) = delete;
  std::string header() const { return folder_ + "/prelude.h"; }

 private:
  const std::string folder_;
};

}  // namespace

HostTensorMap::HostTensorMap(void* base, int element_bytes, const std::vector<int64_t>& shape, const std::vector<int64_t>& box,
                             int swizzle) {
  const size_t rank = shape.size();
  words[0] = reinterpret_cast<uint64_t>(base);
  words[1] = rank | static_cast<uint64_t>(element_bytes) << 8 | static_cast<uint64_t>(swizzle) << 16;
  int64_t stride = element_bytes;
  for (size_t d = 0; d < rank; ++d) {
    const size_t from = rank - 1 - d;  // the innermost first
    words[2 + d] = static_cast<uint64_t>(shape[from]);
    if (d > 0) words[6 + d] = static_cast<uint64_t>(stride);
    stride *= shape[from];
    words[11 + d / 4] |= static_cast<uint64_t>(box[from]) << d % 4 * 16;
  }
}

GuardedMemory::GuardedMemory(size_t bytes) : bytes_(bytes) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), used = (bytes + page - 1) / page * page;
  mapped_ = used + 2 * page;
  base_ = static_cast<uint8_t*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(base_, page, PROT_NONE);
  mprotect(base_ + page + used, page, PROT_NONE);
  std::memset(base_ + page, kCanary, used);
  data_ = base_ + page + used - (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

GuardedMemory::~GuardedMemory() { munmap(base_, mapped_); }

bool GuardedMemory::Intact() const {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (const uint8_t* p = base_ + page; p < base_ + mapped_ - page; ++p) {
    if ((p < data_ || p >= data_ + bytes_) && *p != kCanary) return false;
  }
  return true;
}

std::unique_ptr<HostKernels> HostKernels::Build(const Lowered& lowered, const Target& target, std::string* error) {
  static const HostPrelude prelude;
  auto kernels = std::unique_ptr<HostKernels>(new HostKernels);
  kernels->folder_ = MakeFolder();
  const std::string text = lowered.source.substr(Prelude(target).size());
  const std::string cc = kernels->folder_ + "/kernel.cc", so = kernels->folder_ + "/kernel.so", log = kernels->folder_ + "/log";
  {
    std::ofstream out(cc);
    out << HostProducts(text) << text;
    for (size_t i = 0; i < lowered.kernels.size(); ++i) out << Launcher(text, lowered.kernels[i].symbol, i);
  }
  if (!CompileOnHost(std::string("-shared ") + kUnloadable + "-include " + prelude.header() + " " + cc + " -o " + so, log)) {
    std::ostringstream message;
    message << std::ifstream(log).rdbuf();
    *error = message.str();
    return nullptr;
  }
  kernels->library_ = dlopen(so.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (kernels->library_ == nullptr) {
    *error = dlerror();
    return nullptr;
  }
  for (const LoweredKernel& kernel : lowered.kernels) kernels->threads_.push_back(kernel.threads);
  return kernels;
}

HostKernels::~HostKernels() {
  if (library_ != nullptr) dlclose(library_);
  for (const char* name : {"/kernel.cc", "/kernel.so", "/log"}) unlink((folder_ + name).c_str());
  rmdir(folder_.c_str());
}

bool HostKernels::Run(size_t index, uint32_t blocks, uint32_t seed, const std::vector<void*>& args) const {
  const std::string name = "host_run_" + std::to_string(index);
  auto* run = reinterpret_cast<int (*)(unsigned, unsigned, unsigned, void**)>(dlsym(library_, name.c_str()));
  return run != nullptr && run(blocks, threads_[index], seed, const_cast<void**>(args.data())) != 0;
}

}  // namespace tilert
