#include "lowering/target.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilert {
namespace {

TEST(TargetTest, KnownChips) {
  EXPECT_EQ(FindTarget("sm_80")->max_shared_bytes, 166912);
  EXPECT_EQ(FindTarget("sm_86")->max_shared_bytes, 101376);
  EXPECT_EQ(FindTarget("sm_87")->max_shared_bytes, 166912);
  EXPECT_EQ(FindTarget("sm_89")->shared_bytes_per_sm, 102400);
  EXPECT_EQ(FindTarget("sm_90")->max_shared_bytes, 232448);
  EXPECT_EQ(FindTarget("sm_90a")->shared_bytes_per_sm, 233472);
  EXPECT_EQ(FindTarget("sm_89")->sm, 89);
}

TEST(TargetTest, Families) {
  EXPECT_EQ(FindTarget("sm_89")->family, Family::kAmpere);
  EXPECT_EQ(FindTarget("sm_90a")->family, Family::kHopper);
  EXPECT_EQ(FindTarget("sm_90")->family, Family::kAmpere);  // wgmma needs the "a"
  EXPECT_EQ(FindTarget("sm_90a", "ampere")->family, Family::kAmpere);
  EXPECT_FALSE(FindTarget("sm_80", "hopper").ok());
  EXPECT_FALSE(FindTarget("sm_80", "volta").ok());
}

TEST(TargetTest, UnknownNewerChipsGoThroughPtx) {
  for (const char* arch : {"sm_100", "sm_120", "sm_121a", "compute_120"}) {
    const auto target = FindTarget(arch);
    ASSERT_TRUE(target.ok()) << target.status();
    EXPECT_EQ(target->arch.rfind("compute_", 0), 0u);
    EXPECT_EQ(target->family, Family::kAmpere);
    EXPECT_EQ(target->max_shared_bytes, 101376);
  }
  EXPECT_EQ(FindTarget("compute_80")->max_shared_bytes, 166912);
}

TEST(TargetTest, NonsenseIsRefusedWithTheList) {
  for (const char* arch : {"", "sm_", "sm_x", "sm_9999999999999", "gfx942", "sm_75", "sm_80b"}) {
    const auto target = FindTarget(arch);
    ASSERT_FALSE(target.ok()) << arch;
    EXPECT_EQ(target.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(target.status().message()), testing::HasSubstr("sm_90a"));
  }
}

}  // namespace
}  // namespace tilert
