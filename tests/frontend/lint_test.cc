// What the lint says of sources, and that it says nothing of the standard kernels.
#include "ir/lint.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "frontend/frontend.h"
#include "ir/printer.h"
#include "tests/frontend/cases.h"
#include "tests/golden.h"

namespace tilert::frontend {
namespace {

std::string Warnings(const Program& program) {
  const absl::StatusOr<VerifiedProgram> verified = Verify(program);
  EXPECT_TRUE(verified.ok()) << verified.status().message();
  if (!verified.ok()) return "";
  std::string text;
  for (const LintWarning& warning : Lint(*verified)) text += warning.ToString() + "\n";
  return text;
}

TEST(Lint, SaysWhatWhereAndWhatToDo) {
  std::string actual;
  for (const Case& c : ReadCases("tests/frontend/lint.txt")) {
    const std::string source = WithImports(c.source), file = c.name + ".py";
    const absl::StatusOr<Program> program = Compile(source, file, c.entry, c.settings);
    ASSERT_TRUE(program.ok()) << c.name << "\n" << program.status().message();
    actual += "=== " + c.name + "\n" + Quote(source, file, Warnings(*program));
  }
  ExpectGolden("frontend/lint.txt", actual);
}

// Every entry of every source, as its defaults say.
TEST(Lint, SaysNothingOfTheStandardKernels) {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(TILERT_SOURCE_DIR) / "kernels")) {
    if (file.path().extension() != ".py") continue;
    const std::string name = file.path().filename(), text = ReadSourceFile("kernels/" + name);
    const auto entries = ListEntries(text, name);
    ASSERT_TRUE(entries.ok()) << entries.status().message();
    for (const Entry& entry : *entries) {
      const absl::StatusOr<Program> program = Compile(text, name, entry.name, {});
      ASSERT_TRUE(program.ok()) << program.status().message();
      EXPECT_EQ(Warnings(*program), "") << name << ": " << entry.name;
      ++count;
    }
  }
  EXPECT_GT(count, 5);
}

}  // namespace
}  // namespace tilert::frontend
