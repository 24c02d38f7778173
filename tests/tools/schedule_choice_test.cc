// The schedules that std.tilert's programs get for shapes, as the runtime chooses them: kernels/std.spec against the model of
// costs.
#include <cstdio>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/schedules.h"
#include "tools/bundle_spec.h"
#include "tools/file.h"

namespace tilert {
namespace {

constexpr uint64_t kMaxBytes = 1 << 20;

struct Case {
  const char* program;
  std::map<std::string, int64_t> dims;
  std::vector<std::string> expected;  // any of these
};

std::map<std::string, int64_t> Mnk(int64_t m, int64_t n, int64_t k) { return {{"M", m}, {"N", n}, {"K", k}}; }

class ScheduleChoice : public testing::Test {
 protected:
  // A bundle of the one program, as `tilert compile --spec` makes it.
  static Bundle MakeBundle(const std::string& name) {
    const std::string folder = std::string(TILERT_SOURCE_DIR) + "/kernels/";
    const auto text = tool::ReadFile(folder + "std.spec", kMaxBytes);
    const auto entries = tool::ParseBundleSpec(folder + "std.spec", *text);
    EXPECT_TRUE(entries.ok()) << entries.status();
    Bundle bundle;
    for (const tool::SpecEntry& entry : *entries) {
      if (entry.name != name) continue;
      const auto source = tool::ReadFile(entry.source, kMaxBytes);
      const std::string file = entry.source.substr(entry.source.rfind('/') + 1);
      const auto functions = frontend::ListEntries(*source, file);
      const auto settings = tool::SettingsWithCandidates(entry, functions->at(0).params);
      EXPECT_TRUE(settings.ok()) << settings.status();
      absl::StatusOr<Program> program = frontend::Compile(*source, file, entry.entry, *settings);
      EXPECT_TRUE(program.ok()) << program.status();
      program->name = name;
      const auto verified = Verify(*std::move(program));
      EXPECT_TRUE(verified.ok()) << verified.status();
      bundle.variants = tool::MakeVariants(entry, *verified, 0).value();
      bundle.programs.push_back(**verified);
    }
    EXPECT_EQ(bundle.programs.size(), 1u) << name;
    return bundle;
  }
  static absl::StatusOr<Schedules> Find(const Bundle& bundle, const std::string& arch, std::map<std::string, int64_t> dims,
                                        std::map<std::string, int64_t> constants = {}, const std::string& family = "auto") {
    Target target = FindTarget(arch, family).value();
    target.sm_count = 132;
    return FindSchedules(&bundle, Verify(bundle.programs[0]).value(), {&target, "H200", std::move(constants), std::move(dims)});
  }
  static std::vector<int64_t> Values(const Program& program, const std::map<std::string, int64_t>& dims) {
    std::vector<int64_t> values;
    for (const Dim& dim : program.dims) values.push_back(dims.at(dim.name));
    return values;
  }
};

TEST_F(ScheduleChoice, ShapesGetTheTileThatWasMeasuredToBeBest) {
  const Case kCases[] = {
      {"gemm_nt_bf16", Mnk(4096, 4096, 4096), {"128x256"}},
      {"gemm_nn_bf16", Mnk(4096, 4096, 4096), {"128x256"}},
      {"gemm_nt_bf16", Mnk(8192, 8192, 8192), {"128x192"}},
      {"gemm_nn_f16", Mnk(8192, 8192, 8192), {"128x192"}},
      {"gemm_nt_bf16", Mnk(4096, 14336, 4096), {"128x176"}},
      {"gemm_nn_bf16", Mnk(4096, 14336, 4096), {"152x128"}},
      {"gemm_nt_bf16", Mnk(4096, 4096, 14336), {"128x256e"}},
      {"gemm_nn_bf16", Mnk(4096, 4096, 14336), {"128x256e"}},
      {"gemm_nt_bf16", Mnk(257, 4096, 4096), {"136x128s2"}},
      {"gemm_nt_bf16", Mnk(2048, 2048, 2048), {"128x128", "128x256"}},
      {"gemm_nt_bf16", Mnk(1024, 1024, 1024), {"64x128"}},
      {"gemm_nn_bf16", Mnk(1024, 1024, 1024), {"64x128"}},
      {"gemm_nt_bf16", Mnk(1, 14336, 4096), {"16x128"}},
      {"gemm_nt_bf16", Mnk(16, 14336, 4096), {"16x128"}},
      {"gemm_nn_bf16", Mnk(16, 14336, 4096), {"16x128"}},
      {"gemm_nt_bf16", Mnk(16, 4096, 4096), {"16x64"}},
      {"gemm_nn_bf16", Mnk(1, 4096, 14336), {"16x64"}},
      {"gemm_nt_bf16", Mnk(64, 4096, 4096), {"64x64"}},
      {"gemm_nt_bf16", Mnk(32, 14336, 4096), {"32x128"}},
      {"gemm_nt_bf16", Mnk(64, 14336, 4096), {"64x128"}},
      {"gemm_nt_bf16", Mnk(128, 14336, 4096), {"128x112"}},
      {"gemm_nn_bf16", Mnk(128, 14336, 4096), {"128x128"}},
      {"gemm_nt_bf16", Mnk(257, 4104, 4104), {"136x128c2e"}},
      {"gemm_nn_bf16", Mnk(257, 4104, 4104), {"136x128c2e"}},
      {"gemm_nt_bf16", Mnk(4095, 4096, 4104), {"128x256c2"}},
      {"gemm_nn_bf16", Mnk(4095, 4096, 4104), {"128x256"}},
      {"gemm_nt_e4m3", Mnk(4096, 4096, 4096), {"128x256"}},
      {"gemm_nt_s8", Mnk(4096, 4096, 4096), {"128x256"}},
      {"gemm_nt_e4m3", Mnk(8192, 8192, 8192), {"128x192"}},
      {"gemm_nn_bf16", Mnk(8192, 28672, 8192), {"128x192"}},
      {"gemm_nt_bf16", Mnk(8192, 28672, 8192), {"128x192"}},
      {"gemm_nt_e4m3", Mnk(4096, 14336, 4096), {"128x176"}},
      {"gemm_nt_s8", Mnk(4096, 14336, 4096), {"128x176"}},
      {"gemm_nt_e4m3", Mnk(128, 14336, 4096), {"128x112"}},
      {"gemm_nt_e4m3", Mnk(16, 14336, 4096), {"16x128"}},
  };
  for (const Case& c : kCases) {
    const Bundle bundle = MakeBundle(c.program);
    const auto schedules = Find(bundle, "sm_90a", {});
    ASSERT_TRUE(schedules.ok()) << schedules.status();
    const std::vector<int64_t> dims = Values(bundle.programs[0], c.dims);
    const auto& fast = schedules->fast;
    const int best = CheapestSchedule(fast.size(), dims, [&](size_t i) { return &fast[i]; });
    ASSERT_GE(best, 0);
    std::string shape, costs;
    for (const auto& [name, value] : c.dims) shape += " " + name + "=" + std::to_string(value);
    for (const Schedule& s : fast) {
      if (s.Serves(dims)) costs += "\n  " + s.name + " " + std::to_string(s.cost.Cycles(dims));
    }
    EXPECT_THAT(c.expected, testing::Contains(fast[static_cast<size_t>(best)].name)) << c.program << shape << costs;
    // The same with the dims fixed: it alone is left.
    const auto fixed = Find(bundle, "sm_90a", c.dims);
    ASSERT_TRUE(fixed.ok()) << fixed.status();
    // But for another that wants no workspace.
    ASSERT_EQ(fixed->fast.size(), fast[static_cast<size_t>(best)].shares_tiles ? 2u : 1u);
    const int left = CheapestSchedule(fixed->fast.size(), dims, [&](size_t i) { return &fixed->fast[i]; });
    EXPECT_EQ(fixed->fast[static_cast<size_t>(left)].name, fast[static_cast<size_t>(best)].name) << shape;
    EXPECT_TRUE(std::any_of(fixed->fast.begin(), fixed->fast.end(), [](const Schedule& s) { return !s.shares_tiles; })) << shape;
  }
}

TEST_F(ScheduleChoice, OtherTargetsGetTheDefaults) {
  const Bundle bundle = MakeBundle("gemm_nt_bf16");
  for (const char* arch : {"sm_86", "sm_89"}) {
    const auto schedules = Find(bundle, arch, {});
    ASSERT_TRUE(schedules.ok()) << schedules.status();
    ASSERT_EQ(schedules->fast.size(), 1u) << arch;
    EXPECT_EQ(schedules->fast[0].name, "");
    EXPECT_EQ(schedules->fast[0].program, schedules->general.program);
    EXPECT_EQ(schedules->general.constants.at("block_N"), 128);
    EXPECT_EQ(schedules->general.constants.at("block_K"), 32);
  }
}

TEST_F(ScheduleChoice, FixedConstantsAndDimsRestrict) {
  const Bundle bundle = MakeBundle("gemm_nt_bf16");
  const auto wide = Find(bundle, "sm_90a", {}, {{"block_N", 256}});
  ASSERT_TRUE(wide.ok()) << wide.status();
  ASSERT_EQ(wide->fast.size(), 3u);
  EXPECT_EQ(wide->fast[0].name, "128x256");
  EXPECT_EQ(wide->fast[1].name, "128x256c2");
  EXPECT_EQ(wide->fast[2].name, "128x256e");
  EXPECT_EQ(wide->general.constants.at("block_N"), 256) << "for general arguments, too";
  const auto none = Find(bundle, "sm_90a", {}, {{"block_N", 256}, {"block_M", 16}});
  ASSERT_TRUE(none.ok()) << none.status();
  ASSERT_EQ(none->fast.size(), 1u);
  EXPECT_EQ(none->fast[0].name, "") << "no variant has both";
  EXPECT_EQ(none->fast[0].constants.at("block_M"), 16);
  const auto large = Find(bundle, "sm_90a", {{"M", 4096}});
  ASSERT_TRUE(large.ok()) << large.status();
  for (const Schedule& schedule : large->fast)
    EXPECT_TRUE(schedule.guards.empty() || schedule.name == "128x256e") << schedule.name << " is for small M";
  EXPECT_FALSE(Find(bundle, "sm_90a", {}, {{"block_N", 7}}).ok());
  // With the rows alone open: what is the best for no number of rows is not compiled.
  const auto all = Find(bundle, "sm_90a", {}), some = Find(bundle, "sm_90a", {{"N", 14336}, {"K", 4096}});
  ASSERT_TRUE(all.ok() && some.ok()) << all.status() << some.status();
  EXPECT_LT(some->fast.size(), all->fast.size());
  for (int64_t m = 1; m < 20000; m += 1 + m / 7) {
    const auto best = [&](const std::vector<Schedule>& fast, std::vector<int64_t> dims) {
      const int i = CheapestSchedule(fast.size(), dims, [&](size_t k) { return &fast[k]; });
      return i < 0 ? -1.0 : fast[static_cast<size_t>(i)].cost.Cycles(dims);
    };
    EXPECT_NEAR(best(some->fast, {m, 14336, 4096}) / best(all->fast, {m, 14336, 4096}), 1, 0.02) << m;
  }
}

TEST(SuitsTarget, LaterChipsOfTheAmpereFamilyWithAsMuchSharedMemory) {
  const auto suits = [](const char* variant, const char* arch, const char* family) {
    return SuitsTarget(variant, FindTarget(arch, family).value());
  };
  EXPECT_TRUE(suits("", "sm_89", "auto"));
  for (const char* arch : {"sm_80", "sm_87", "sm_90"}) EXPECT_TRUE(suits("sm_80", arch, "auto")) << arch;
  EXPECT_TRUE(suits("sm_80", "sm_90a", "ampere"));
  EXPECT_FALSE(suits("sm_80", "sm_90a", "hopper"));
  for (const char* arch : {"sm_86", "sm_89"}) EXPECT_FALSE(suits("sm_80", arch, "auto")) << arch << " holds less";
  EXPECT_FALSE(suits("sm_87", "sm_80", "auto"));
  EXPECT_TRUE(suits("sm_90a", "sm_90a", "auto"));
  EXPECT_FALSE(suits("sm_90a", "sm_90a", "ampere"));
  EXPECT_FALSE(suits("sm_90a", "sm_90", "auto"));
}

// Where mma.sync multiplies, wide tiles are for products that fill the chip with them.
TEST_F(ScheduleChoice, WideTilesOfMmaSync) {
  const Bundle bundle = MakeBundle("gemm_nt_bf16");
  for (const auto& [arch, family] : {std::pair("sm_80", "auto"), std::pair("sm_90", "auto"), std::pair("sm_90a", "ampere")}) {
    for (const auto& [m, name] : {std::pair(4096, "mma128x256"), {16, "mma128x128"}}) {
      const auto schedules = Find(bundle, arch, {{"M", m}, {"N", 4096}, {"K", 4096}}, {}, family);
      ASSERT_TRUE(schedules.ok()) << schedules.status();
      ASSERT_EQ(schedules->fast.size(), 1u);
      EXPECT_EQ(schedules->fast[0].name, name) << arch;
    }
  }
}

TEST_F(ScheduleChoice, ATuningRecordWins) {
  Bundle bundle = MakeBundle("gemm_nt_bf16");
  bundle.tuning = {{"H200", 3, {}, 9.0}, {"H200", 2, {}, 8.0}, {"another", 0, {}, 1.0}, {"H200", 1, {{0, 1, 8, 1}}, 2.0}};
  const auto tuned = Find(bundle, "sm_90a", {});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  ASSERT_EQ(tuned->fast.size(), 1u);
  EXPECT_EQ(tuned->fast[0].name, bundle.variants[2].name);
}

TEST_F(ScheduleChoice, AttentionTakesTheLargeTiles) {
  const Bundle bundle = MakeBundle("attention_causal_d64_bf16");
  const auto schedules =
      Find(bundle, "sm_90a", {{"batch", 4}, {"seq_q", 4096}, {"seq_kv", 4096}, {"heads", 16}, {"heads_kv", 16}});
  ASSERT_TRUE(schedules.ok()) << schedules.status();
  ASSERT_EQ(schedules->fast.size(), 1u);
  EXPECT_NE(schedules->fast[0].name, "");
}

// What is not a product is added up too, and loops that depend on the block count at the middle of the grid.
TEST_F(ScheduleChoice, CausalAttentionCostsAboutHalf) {
  Target target = FindTarget("sm_90a").value();
  target.sm_count = 132;
  double cycles[2];
  for (const bool causal : {false, true}) {
    const Bundle bundle = MakeBundle(causal ? "attention_causal_d128_bf16" : "attention_d128_bf16");
    const auto schedules = Find(bundle, "sm_90a", {});
    ASSERT_TRUE(schedules.ok()) << schedules.status();
    const Schedule& schedule = schedules->fast[0];
    cycles[causal] = schedule.cost.Cycles(
        Values(schedule.program, {{"batch", 4}, {"seq_q", 8192}, {"seq_kv", 8192}, {"heads", 16}, {"heads_kv", 16}}));
  }
  EXPECT_NEAR(cycles[1] / cycles[0], 0.5, 0.1);
}

TEST(BundleSpec, Mistakes) {
  const auto message = [](const std::string& text) {
    return std::string(tool::ParseBundleSpec("dir/my.spec", text).status().message());
  };
  EXPECT_THAT(message("  variant a x=1\n"), testing::HasSubstr("dir/my.spec:1: a variant belongs to a program"));
  EXPECT_THAT(message("p = a.py:f\n  x=1\n"), testing::HasSubstr("dir/my.spec:2: an indented line declares a variant"));
  EXPECT_THAT(message("p = a.py:f\n  variant x=1\n"), testing::HasSubstr("dir/my.spec:2: the variant has no name"));
  EXPECT_THAT(message("p = a.py:f\n  variant a x=1\n\n  variant a x=2\n"),
              testing::HasSubstr("my.spec:4: 'p' has a variant 'a'"));
  EXPECT_THAT(message("p = a.py:f\n  variant a x=1 x=2\n"), testing::HasSubstr("my.spec:2: x is set twice"));
  EXPECT_THAT(message("p = a.py:f\n  variant a x=true\n"),
              testing::HasSubstr("my.spec:2: 'x=true': a variant gives whole numbers"));
  EXPECT_THAT(message("p = a.py:f\n  variant a M<5\n"), testing::HasSubstr("my.spec:2: 'M<5' is no condition"));
  EXPECT_THAT(message("p = a.py:f\n  variant a K%0==0\n"), testing::HasSubstr("is no condition"));
  EXPECT_THAT(message("p = a.py:f\n  variant a target=sm_7\n"), testing::HasSubstr("my.spec:2: "));
}

TEST(BundleSpec, VariantsBelongToTheLinesDirectlyAbove) {
  const auto entries = tool::ParseBundleSpec(
      "my.spec", "p = a.py:f x=[4,8]\n\nq = a.py:f\nr = a.py:f x=2\n  variant a target=sm_90a x=16 M<=64 K%8==0  # why\n");
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_TRUE(entries->at(0).variants.empty());
  for (const size_t i : {1u, 2u}) {
    ASSERT_EQ(entries->at(i).variants.size(), 1u);
    const tool::SpecVariant& variant = entries->at(i).variants[0];
    EXPECT_EQ(variant.target, "sm_90a");
    EXPECT_EQ(variant.constants, (std::map<std::string, int64_t>{{"x", 16}}));
    ASSERT_EQ(variant.guards.size(), 2u);
    EXPECT_EQ(variant.guards[0].guard.max, 64);
    EXPECT_EQ(variant.guards[1].guard.divisor, 8);
  }
  // The default is the line's, else the function's.
  const std::vector<frontend::EntryParam> params = {{"x", "3", false}};
  EXPECT_EQ(std::get<frontend::Candidates>(tool::SettingsWithCandidates(entries->at(1), params)->at("x")).values,
            (std::vector<int64_t>{3, 16}));
  EXPECT_EQ(std::get<frontend::Candidates>(tool::SettingsWithCandidates(entries->at(2), params)->at("x")).values,
            (std::vector<int64_t>{2, 16}));
  const auto unknown = tool::SettingsWithCandidates(entries->at(1), {});
  EXPECT_THAT(std::string(unknown.status().message()), testing::HasSubstr("my.spec:5: f has no parameter 'x'"));
}

}  // namespace
}  // namespace tilert
