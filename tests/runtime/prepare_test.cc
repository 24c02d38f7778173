// From program to loaded code with the real lowering, the real NVRTC and the cache, on the fake driver.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "runtime/cache_key.h"
#include "tests/runtime/runtime_fixture.h"

namespace tilert {
namespace {

class PrepareTest : public RuntimeFixture {
 protected:
  void SetUp() override {
    RuntimeFixture::SetUp();
    if (!MakeRuntime()->nvrtc().ok()) GTEST_SKIP() << "no NVRTC here";
  }
  // A kernel for which no code comes with the bundle.
  std::shared_ptr<Kernel> Scale(const std::shared_ptr<Runtime>& runtime, KernelSpec spec = {}) {
    spec.entry = "scale";
    absl::StatusOr<std::shared_ptr<Kernel>> kernel = Kernel::Create(runtime, ScaleProgram(), spec);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    return *kernel;
  }
  std::vector<std::filesystem::path> Entries() const {
    std::vector<std::filesystem::path> entries;
    for (const auto& file : std::filesystem::directory_iterator(cache_ / "cache")) {
      if (file.path().extension() == ".cubin") entries.push_back(file.path());
    }
    return entries;
  }
};

TEST_F(PrepareTest, ColdThenWarm) {
  {
    const auto kernel = Scale(MakeRuntime());
    EXPECT_EQ(kernel->Query().readiness, Readiness::kNeedsCompile);
    EXPECT_EQ(kernel->Prepare(PrepareMode::kCachedOnly).code(), absl::StatusCode::kNotFound);
    ASSERT_TRUE(kernel->Prepare().ok()) << kernel->Prepare();
    EXPECT_EQ(kernel->prepare_stats().compiles, 2) << "the fast and the general class";
    ScaleArgs args(300);
    EXPECT_TRUE(kernel->Launch(args.request()).ok()) << kernel->Launch(args.request());
    ASSERT_EQ(fake_->Launches().size(), 1u);
    EXPECT_EQ(fake_->Launches()[0].grid_x, 3u);
  }
  EXPECT_EQ(Entries().size(), 2u);
  const auto kernel = Scale(MakeRuntime());
  EXPECT_EQ(kernel->Query().readiness, Readiness::kCached);
  ASSERT_TRUE(kernel->Prepare(PrepareMode::kCachedOnly).ok());
  EXPECT_EQ(kernel->prepare_stats().compiles, 0);
  EXPECT_EQ(kernel->prepare_stats().cache_hits, 2);
  ScaleArgs args(300, 1);
  EXPECT_TRUE(kernel->Launch(args.request()).ok());
}

TEST_F(PrepareTest, DamagedEntriesHeal) {
  ASSERT_TRUE(Scale(MakeRuntime())->Prepare().ok());
  for (const auto& path : Entries()) std::ofstream(path, std::ios::binary | std::ios::trunc) << "damaged";
  const auto kernel = Scale(MakeRuntime());
  ASSERT_TRUE(kernel->Prepare().ok());
  EXPECT_EQ(kernel->prepare_stats().compiles, 2);
  const auto again = Scale(MakeRuntime());
  ASSERT_TRUE(again->Prepare().ok());
  EXPECT_EQ(again->prepare_stats().cache_hits, 2);
}

TEST_F(PrepareTest, GeneralOnlyAndFixedDims) {
  KernelSpec spec;
  spec.general_only = true;
  const auto kernel = Scale(MakeRuntime(), spec);
  ASSERT_TRUE(kernel->Prepare().ok()) << kernel->Prepare();
  EXPECT_EQ(kernel->prepare_stats().compiles, 1);
  spec.dims = {{"N", 300}};
  const auto fixed = Scale(MakeRuntime(), spec);
  ASSERT_TRUE(fixed->Prepare().ok()) << fixed->Prepare();
  EXPECT_EQ(fixed->prepare_stats().compiles, 1) << "fixed dims are another kernel";
  ScaleArgs args(300), other(301);
  EXPECT_TRUE(fixed->Launch(args.request()).ok()) << fixed->Launch(args.request());
  EXPECT_FALSE(fixed->Launch(other.request()).ok());
}

TEST_F(PrepareTest, UnwritableCacheCostsTimeOnly) {
  RuntimeOptions options = Options();
  options.cache_directory = "/proc/no/such/place";
  int warnings = 0;
  options.hooks.log = [&](LogLevel level, const char*, int, const std::string&) { warnings += level == LogLevel::kWarning; };
  const auto kernel = Scale(MakeRuntime(options));
  EXPECT_TRUE(kernel->Prepare().ok()) << kernel->Prepare();
  EXPECT_GT(warnings, 0) << "the host is told";
}

TEST_F(PrepareTest, WithoutNvrtcNothingIsCompiledAndTheReasonIsGiven) {
  ASSERT_TRUE(Scale(MakeRuntime())->Prepare().ok());
  setenv("TILERT_LIBNVRTC", "/nowhere/libnvrtc.so", 1);
  const auto runtime = MakeRuntime();
  unsetenv("TILERT_LIBNVRTC");
  const auto kernel = Scale(runtime);
  const QueryResult query = kernel->Query();
  EXPECT_EQ(query.readiness, Readiness::kUnsupported) << "its version is part of the key";
  EXPECT_TRUE(absl::StrContains(query.reason, "/nowhere/libnvrtc.so")) << query.reason;
  EXPECT_EQ(kernel->Prepare().code(), absl::StatusCode::kNotFound);
}

TEST(CacheKey, EveryPartChangesIt) {
  const auto base = [] {
    CacheKeyParts parts;
    parts.program_digest = Sha256Of("program");
    parts.constants = {{"a", 1}};
    parts.dims = {{"N", 5}};
    parts.arg_class = {{4, 4}, true, {1}};
    parts.target = FindTarget("sm_80").value();
    parts.lowering_build_id = "build";
    parts.nvrtc_version = "13.0";
    parts.flags = {"-arch=sm_80"};
    return parts;
  };
  std::set<std::string> keys = {CacheKeyText(base())};
  EXPECT_EQ(CacheKeyText(base()), *keys.begin());
  const auto add = [&](auto change) {
    CacheKeyParts parts = base();
    change(parts);
    EXPECT_TRUE(keys.insert(CacheKeyText(parts)).second) << "change " << keys.size() << " is not seen";
  };
  add([](CacheKeyParts& p) { p.program_digest[31] ^= 1; });
  add([](CacheKeyParts& p) { p.constants["a"] = 2; });
  add([](CacheKeyParts& p) { p.constants["b"] = 1; });
  add([](CacheKeyParts& p) { p.constants.swap(p.dims); });
  add([](CacheKeyParts& p) { p.dims["N"] = 6; });
  add([](CacheKeyParts& p) { p.dims.clear(); });
  add([](CacheKeyParts& p) { p.arg_class.alignment[1] = 16; });
  add([](CacheKeyParts& p) { p.arg_class.alignment.pop_back(); });
  add([](CacheKeyParts& p) { p.arg_class.index32 = false; });
  add([](CacheKeyParts& p) { p.arg_class.dim_divisor[0] = 8; });
  add([](CacheKeyParts& p) { p.target.arch = "sm_80a"; });
  add([](CacheKeyParts& p) { p.target.sm = 81; });
  add([](CacheKeyParts& p) { p.target.family = Family::kHopper; });
  add([](CacheKeyParts& p) { ++p.target.max_shared_bytes; });
  add([](CacheKeyParts& p) { ++p.target.shared_bytes_per_sm; });
  add([](CacheKeyParts& p) { ++p.target.registers_per_sm; });
  add([](CacheKeyParts& p) { ++p.target.max_threads_per_sm; });
  add([](CacheKeyParts& p) { ++p.target.sm_count; });
  add([](CacheKeyParts& p) { p.lowering_build_id = "build2"; });
  add([](CacheKeyParts& p) { p.nvrtc_version = "13.1"; });
  add([](CacheKeyParts& p) { p.flags.push_back("--use_fast_math"); });
}

}  // namespace
}  // namespace tilert
