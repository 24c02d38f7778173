// Sources as text: what they become, and how they are refused. The expectations are golden files.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "frontend/frontend.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "tests/frontend/cases.h"
#include "tests/golden.h"

namespace tilert::frontend {
namespace {

// The text is read back: the same program, and so the same text.
void ExpectRoundTrip(const Program& program) {
  const std::string text = PrintProgram(program);
  const absl::StatusOr<Program> again = Compile(text, "printed.py", program.name, {});
  ASSERT_TRUE(again.ok()) << again.status().message() << "\n" << text;
  EXPECT_EQ(PrintProgram(*again), text);
}

TEST(Cases, ProgramsAreWhatTheySay) {
  std::string actual;
  for (const Case& c : ReadCases("tests/frontend/programs.txt")) {
    std::string warnings;
    const absl::StatusOr<Program> program = Compile(WithImports(c.source), c.name + ".py", c.entry, c.settings, &warnings);
    ASSERT_TRUE(program.ok()) << c.name << "\n" << program.status().message();
    const absl::StatusOr<VerifiedProgram> verified = Verify(*program);
    EXPECT_TRUE(verified.ok()) << c.name << "\n" << verified.status().message() << PrintProgram(*program);
    ExpectRoundTrip(*program);
    actual += "=== " + c.name + "\n" + warnings + PrintProgram(*program) + "\n";
  }
  ExpectGolden("frontend/programs.txt", actual);
}

void ExpectErrors(const std::string& cases, const std::string& golden) {
  std::string actual;
  for (const Case& c : ReadCases(cases)) {
    const absl::StatusOr<Program> program = Compile(WithImports(c.source), c.name + ".py", c.entry, c.settings);
    ASSERT_FALSE(program.ok()) << c.name << "\n" << PrintProgram(*program);
    EXPECT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument) << c.name;
    actual += "=== " + c.name + "\n" + std::string(program.status().message()) + "\n";
  }
  ExpectGolden(golden, actual);
}

TEST(Cases, ErrorsSayWhatWhereAndWhatToDo) { ExpectErrors("tests/frontend/errors.txt", "frontend/errors.txt"); }
// What each rule of the frontend says; scripts/message_coverage knows which are missing.
TEST(Cases, RulesSayWhatWhereAndWhatToDo) { ExpectErrors("tests/frontend/rules.txt", "frontend/rules.txt"); }

// Both sides of the printer's promise, on the programs of the printer's own tests.
TEST(Cases, ReadsWhatThePrinterWrites) {
  int count = 0;
  const std::filesystem::path folder = std::filesystem::path(TILERT_SOURCE_DIR) / "tests/golden/ir";
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    if (text.str().rfind("import tilelang.language as T", 0) != 0) continue;
    const auto entries = ListEntries(text.str(), path.filename());
    ASSERT_TRUE(entries.ok()) << entries.status().message();
    ASSERT_EQ(entries->size(), 1u) << path;
    const absl::StatusOr<Program> program = Compile(text.str(), path.filename(), (*entries)[0].name, {});
    ASSERT_TRUE(program.ok()) << program.status().message();
    EXPECT_EQ(PrintProgram(*program), text.str()) << path;
    ++count;
  }
  EXPECT_GT(count, 0);
}

TEST(Entries, AreListedWithTheirParameters) {
  const auto entries =
      ListEntries(WithImports("import triton\n"
                              "def helper(x): return x\n"
                              "@triton.jit\ndef other(a): pass\n"
                              "@tilelang.jit(out_idx=[1])\ndef eager(A, n=3 + 4):\n    A: T.Tensor((4,), 'float32')\n"
                              "def factory(M, N=128):\n    if M:\n        @T.prim_func\n        def main(A: T.Tensor((M,), "
                              "'float32')):\n            pass\n    return main\n"
                              "@T.prim_func\ndef direct(A: T.Tensor((4,), 'float32'), n: T.int32): pass\n"),
                  "x.py");
  ASSERT_TRUE(entries.ok()) << entries.status().message();
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ((*entries)[0].name, "eager");
  EXPECT_TRUE((*entries)[0].params[0].is_tensor);
  EXPECT_EQ((*entries)[0].params[1].default_text, "3 + 4");
  EXPECT_FALSE((*entries)[1].params[0].is_tensor);
  EXPECT_EQ((*entries)[1].name, "factory");
  EXPECT_TRUE((*entries)[2].params[1].is_tensor);
  EXPECT_EQ((*entries)[1].line, 10);
}

TEST(Settings, AreRead) {
  Settings settings;
  for (const char* text :
       {"a=128", "b=dyn", "c=[64, 128]", "d=bfloat16", "e=true", "f=0.5", "g=-3", "h='dyn'", "i=1e-5", "n=(4, (8, x), 0.5,)"}) {
    EXPECT_TRUE(AddSetting(text, &settings).ok()) << text;
  }
  EXPECT_EQ(settings["a"], Setting(int64_t{128}));
  EXPECT_EQ(settings["b"], Setting(DynamicDim{}));
  EXPECT_EQ(settings["c"], Setting(Candidates{{64, 128}}));
  EXPECT_EQ(settings["d"], Setting(std::string("bfloat16")));
  EXPECT_EQ(settings["e"], Setting(true));
  EXPECT_EQ(settings["f"], Setting(0.5));
  EXPECT_EQ(settings["g"], Setting(int64_t{-3}));
  EXPECT_EQ(settings["h"], Setting(std::string("dyn")));
  EXPECT_EQ(settings["i"], Setting(1e-5));
  EXPECT_EQ(settings["n"], Setting(TupleSetting{{"4", "(8, x)", "0.5"}}));
  std::string messages;
  for (const char* text : {"", "a", "=1", "a=1", "j=", "k=[]", "l=[1,x]", "m=[1", "o=(1", "o=(1,,2)", "o=(1))",
                           "p=99999999999999999999"}) {
    const absl::Status status = AddSetting(text, &settings);
    EXPECT_FALSE(status.ok()) << text;
    messages += "--set '" + std::string(text) + "': " + std::string(status.message()) + "\n";
  }
  ExpectGolden("frontend/settings.txt", messages);
  for (const auto& [name, setting] : settings) {
    if (name != "h") {
      EXPECT_EQ(*ParseSetting(SettingText(setting)), setting) << name;
    }
  }
}

}  // namespace
}  // namespace tilert::frontend
