// Bundles written by each released version must read as what they were. tests/frozen/bundle_v1_0.tilert was written once, from
// SampleBundle(). To make the file of a new version: frozen_bundle_test --update, with the name of the new file here; never
// rewrite one that is there.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "ir/flat_reader.h"
#include "ir/flat_writer.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "tests/golden.h"
#include "tests/ir/sample_bundle.h"

namespace tilert {
namespace {

constexpr char kFrozen[] = "tests/frozen/bundle_v1_0.tilert";

void WriteIfMissing(const std::string& bytes) {
  const std::filesystem::path path = std::filesystem::path(TILERT_SOURCE_DIR) / kFrozen;
  if (std::getenv("TILERT_UPDATE_GOLDEN") == nullptr || std::filesystem::exists(path)) return;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(FrozenBundle, Version1Reads) {
  const absl::StatusOr<std::string> written = WriteBundle(SampleBundle());
  ASSERT_TRUE(written.ok()) << written.status();
  WriteIfMissing(*written);
  const std::string bytes = ReadSourceFile(kFrozen);
  const absl::StatusOr<Bundle> bundle = ReadBundle(bytes);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_TRUE(*bundle == SampleBundle());
  for (const Program& program : bundle->programs) {
    EXPECT_TRUE(Verify(program).ok());
    ExpectGolden("ir/" + program.name + ".py", PrintProgram(program));
  }
  for (const PrebuiltCubin& cubin : bundle->cubins) EXPECT_TRUE(CodeMatchesHash(cubin));
}

// Digests are keys of caches and of cubins: what identifies a program must not change.
TEST(FrozenBundle, DigestsAreStable) {
  std::string digests;
  for (const Program& program : SampleBundle().programs) digests += program.name + " " + Sha256Hex(ProgramDigest(program)) + "\n";
  ExpectGolden("ir/digests_v1.txt", digests);
}

}  // namespace
}  // namespace tilert
