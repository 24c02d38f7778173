// Tiles that threads read across their rows are laid out so that they don't meet in a bank.
#include "compile_source.h"
#include "gtest/gtest.h"
#include "lowering/lowered.h"

namespace tilert {
namespace {

std::string SourceOf(const std::string& path, const std::string& entry, const std::string& settings, const std::string& arch) {
  const Program program = CompileSource(path, entry, ParseSettings(settings));
  const absl::StatusOr<Lowered> lowered = Lower(program, FastArgClass(program), *FindTarget(arch, "auto"), {});
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  return lowered.ok() ? lowered->source : "";
}

constexpr const char* kFolded = "smem + folded(";

TEST(TileBanksTest, TilesReadAcrossTheirRowsAreFolded) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    for (const char* settings : {"dtype=float16", "dtype=bfloat16 block=128", "dtype=float32 block=32"}) {
      EXPECT_NE(SourceOf("kernels/transpose.py", "transpose", settings, arch).find(kFolded), std::string::npos)
          << settings << " for " << arch;
    }
  }
}

TEST(TileBanksTest, OthersAreAsTheInstructionsWantThem) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    EXPECT_EQ(SourceOf("kernels/gemm.py", "gemm", "dtype=float16", arch).find(kFolded), std::string::npos) << arch;
    EXPECT_EQ(SourceOf("kernels/attention.py", "attention", "dtype=float16", arch).find(kFolded), std::string::npos) << arch;
    EXPECT_EQ(SourceOf("tests/lowering/edge_tiles.py", "chained", "", arch).find(kFolded), std::string::npos) << arch;
  }
}

// Byte addresses a row apart by eight: the folded tile has none in common, the plain one all.
TEST(TileBanksTest, RowsEightApartDoNotMeet) {
  SharedLayout layout = SwizzledShared({64, 64}, 2);
  for (const bool folded : {false, true}) {
    layout.folded = folded;
    for (int64_t within = 0; within < 8; ++within) {
      std::vector<int64_t> addresses;
      for (int64_t row = within; row < 64; row += 8) addresses.push_back(layout.ByteOffset({row, 8}));
      EXPECT_EQ(BankConflictWays(addresses, 2), folded ? 1 : 8);
    }
  }
}

}  // namespace
}  // namespace tilert
