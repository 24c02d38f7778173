// Every standard kernel as it ships, for each family and class of arguments, compiled as the runtime compiles it: no error, no
// warning, nothing in local memory. Registers and spills are written to <build>/std_kernels_code.txt.
#include <atomic>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/flat_reader.h"
#include "ir/specialize.h"
#include "ir/status_util.h"
#include "runtime/compile_lowered.h"

namespace tilert {
namespace {

constexpr char kArchs[][2][8] = {{"sm_80", "auto"}, {"sm_89", "auto"}, {"sm_90a", "auto"}, {"sm_90a", "ampere"}};
constexpr size_t kThreads = 2;  // as many processors as tests/CMakeLists.txt asks for

// What ptxas -v says of a cubin, over its kernels.
struct Resources {
  int registers = 0, local_bytes = 0;
  std::string warnings;
};

int NumberBefore(const std::string& line, const std::string& unit) {
  const size_t at = line.find(unit);
  if (at == std::string::npos) return 0;
  size_t begin = at;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1]))) --begin;
  return std::atoi(line.c_str() + begin);
}

Resources ReadLog(const CompiledCode& code) {
  Resources resources;
  std::istringstream lines(code.log);
  for (std::string line; std::getline(lines, line);) {
    resources.registers = std::max(resources.registers, NumberBefore(line, " registers"));
    for (const char* what : {" bytes stack frame", " bytes spill stores", " bytes spill loads"}) {
      resources.local_bytes = std::max(resources.local_bytes, NumberBefore(line, what));
    }
    if (line.find("warning") != std::string::npos) resources.warnings += line + "\n";
  }
  for (const std::string& line : code.codegen_warnings) resources.warnings += line + "\n";
  return resources;
}

struct Job {
  std::shared_ptr<const Program> program;
  Target target;
  ArgClass arg_class;
  std::string name;
  absl::StatusOr<Lowered> lowered = absl::UnknownError("");
  CompileOptions options;
  const Job* twin = nullptr;  // an earlier job with the same code and options
  absl::StatusOr<CompiledCode> code = absl::UnknownError("");
};

// Runs `work` on every job, on kThreads threads.
template <typename Work>
void ForEachJob(std::vector<Job>& jobs, const Work& work) {
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (size_t at = next++; at < jobs.size(); at = next++) work(jobs[at]);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

Bundle StandardBundle(std::string* bytes) {
  std::ifstream file(TILERT_BINARY_DIR "/std.tilert", std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  *bytes = text.str();
  absl::StatusOr<Bundle> bundle = ReadBundle(*bytes);
  EXPECT_TRUE(bundle.ok()) << bundle.status();
  return bundle.ok() ? *std::move(bundle) : Bundle();
}

// `program` with `constants`, else defaults.
void AddJob(const Program& program, const std::map<std::string, int64_t>& constants, const Target& target, bool general,
            const std::string& name, std::vector<Job>& jobs) {
  const absl::StatusOr<Program> special = Specialize(program, constants);
  ASSERT_TRUE(special.ok()) << name << ": " << special.status();
  const auto shared = std::make_shared<const Program>(*special);
  const ArgClass arg_class = general ? GeneralArgClass(*shared) : FastArgClass(*shared);
  jobs.push_back({shared, target, arg_class, Cat(name, general ? " general" : " fast")});
}

// What hosts compile: for fast arguments the variants for a target, and the defaults where no variant is for all dims; for others
// the defaults.
std::vector<Job> JobsOf(const Bundle& bundle) {
  std::vector<Job> jobs;
  for (const auto& [arch, family] : kArchs) {
    const Target target = *FindTarget(arch, family);
    for (size_t i = 0; i < bundle.programs.size(); ++i) {
      const Program& program = bundle.programs[i];
      const std::string name = Cat(program.name, " ", arch, " ", family);
      bool needs_default = true;
      for (const Variant& variant : bundle.variants) {
        const bool fits = variant.program == i && (variant.target.empty() || variant.target == arch);
        if (!fits || std::string_view(family) != "auto") continue;
        needs_default = needs_default && !variant.guards.empty();
        AddJob(program, variant.constants, target, false, Cat(name, " ", variant.name), jobs);
      }
      if (needs_default) AddJob(program, {}, target, false, name, jobs);
      AddJob(program, {}, target, true, name, jobs);
    }
  }
  return jobs;
}

// Comments say for which target and why; kernels that differ in nothing else are the same code.
std::string WithoutComments(const std::string& source) {
  std::istringstream lines(source);
  std::string code;
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos || line.compare(begin, 2, "//") != 0) code += line + "\n";
  }
  return code;
}

void FindTwins(std::vector<Job>& jobs) {
  std::map<std::pair<std::string, std::vector<std::string>>, const Job*> first;
  for (Job& job : jobs) {
    if (!job.lowered.ok()) continue;
    const auto [it, is_new] = first.try_emplace({WithoutComments(job.lowered->source), CompileFlags(job.options)}, &job);
    if (!is_new) job.twin = it->second;
  }
}

TEST(StandardKernels, CompileCleanAndStayInRegisters) {
  const auto nvrtc = Nvrtc::Load();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status();
  std::string bytes;
  const Bundle bundle = StandardBundle(&bytes);
  ASSERT_GT(bundle.programs.size(), 30u);
  std::vector<Job> jobs = JobsOf(bundle);
  const std::clock_t start = std::clock();
  ForEachJob(jobs, [&](Job& job) {
    job.lowered = Lower(*job.program, job.arg_class, job.target);
    job.options = OptionsFor(*job.program, job.arg_class, job.target, (*nvrtc)->version());
    job.options.no_cache = true;
    job.options.extra_flags.push_back("--ptxas-options=-v");
  });
  FindTwins(jobs);
  const std::clock_t lowered = std::clock();
  ForEachJob(jobs, [&](Job& job) {
    if (job.lowered.ok() && job.twin == nullptr) job.code = CompileLowered(**nvrtc, *job.program, *job.lowered, job.options);
  });
  const std::clock_t compiled = std::clock();

  std::ofstream report(std::string(TILERT_BINARY_DIR) + "/std_kernels_code.txt");
  size_t compiles = 0;
  for (const Job& job : jobs) {
    EXPECT_TRUE(job.lowered.ok()) << job.name << ": " << job.lowered.status();
    if (!job.lowered.ok()) continue;
    if (job.twin != nullptr) {
      report << job.name << ": as " << job.twin->name << "\n";
      continue;
    }
    ++compiles;
    EXPECT_TRUE(job.code.ok()) << job.name << ": " << job.code.status();
    if (!job.code.ok()) continue;
    const Resources resources = ReadLog(*job.code);
    report << job.name << ": " << resources.registers << " registers, " << resources.local_bytes << " bytes of local memory\n";
    EXPECT_GT(resources.registers, 0) << job.name << ": no report in\n" << job.code->log;
    EXPECT_EQ(resources.local_bytes, 0) << job.name << "\n" << job.code->log;
    EXPECT_EQ(resources.warnings, "") << job.name;
  }
  const auto seconds = [](std::clock_t from, std::clock_t to) { return static_cast<double>(to - from) / CLOCKS_PER_SEC; };
  std::printf("%zu kernels, %zu compiles: %.1f CPU seconds of lowering, %.1f of NVRTC\n", jobs.size(), compiles,
              seconds(start, lowered), seconds(lowered, compiled));
  EXPECT_GE(compiles, jobs.size() / 2) << "too much is the same";
}

// The check itself finds what it looks for.
TEST(StandardKernels, LocalMemoryAndWarningsAreFound) {
  const auto nvrtc = Nvrtc::Load();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status();
  CompileOptions options;
  options.arch = "sm_80";
  options.extra_flags = {"--ptxas-options=-v"};
  const std::string source =
      "extern \"C\" __global__ void k(float* out, int n) {\n"
      "  float a[256];\n  for (int i = 0; i < 256; ++i) a[i] = out[i];\n"
      "  int unused = 0;\n  out[n] = a[n] + a[n * 7 & 255];\n}\n";
  const auto code = Compile(**nvrtc, "planted.cu", source, options);
  ASSERT_TRUE(code.ok()) << code.status();
  const Resources resources = ReadLog(*code);
  EXPECT_GE(resources.local_bytes, 1024) << code->log;
  EXPECT_THAT(resources.warnings, testing::HasSubstr("unused"));
}

}  // namespace
}  // namespace tilert
