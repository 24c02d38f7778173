// The tilert command and files that are not what it hopes for: none of them makes it wait or costs the user data.
#include <sys/stat.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"
#include "tool_runner.h"
#include "tools/npy.h"
#include "tools/safetensors.h"

namespace tilert {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ToolFilesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("TILERT_TOOL", TILERT_TOOL, 1); }

  std::string Path(const std::string& name) { return TestFolder() + "/" + name; }
  std::string Copy(const std::string& name) {  // of a source
    WriteText(Path(name), ReadSourceFile("kernels/" + name));
    return Path(name);
  }
  std::string Pipe(const std::string& name) {
    EXPECT_EQ(mkfifo(Path(name).c_str(), 0600), 0);
    return Path(name);
  }
};

TEST_F(ToolFilesTest, PipesAreNoInputs) {
  const std::string source = Copy("add.py");
  const std::vector<std::string> calls[] = {
      {"compile", Pipe("p.py"), "-o", Path("out.tilert")},
      {"verify", Pipe("p.tilert")},
      {"run", source, "--random", "--dim", "N=4", "--in", "A=" + Pipe("p.npy")},
      {"run", source, "--random", "--dim", "N=4", "--in", "A=" + Pipe("p.safetensors") + ":a"},
      {"compile", "--spec", Pipe("p.spec"), "-o", Path("out.tilert")},
  };
  for (const auto& call : calls) {
    const ToolResult result = Tilert(call);
    EXPECT_EQ(result.exit_code, 1) << call[0] << result.out;
    EXPECT_THAT(result.err, HasSubstr(": not a regular file"));
  }
}

TEST_F(ToolFilesTest, InputsAreNotReplaced) {
  const std::string source = Copy("add.py");
  const std::string bundle = Path("add.tilert");
  ASSERT_EQ(Tilert({"compile", source, "-o", bundle}).exit_code, 0);
  ASSERT_EQ(symlink(bundle.c_str(), Path("link").c_str()), 0);
  const std::string text = ReadText(source), bytes = ReadText(bundle);
  WriteText(Path("add.spec"), "add = add.py:add\n");
  const std::vector<std::string> calls[] = {
      {"compile", source, "-o", source},
      {"compile", "--spec", Path("add.spec"), "-o", Path("add.spec")},
      {"print", bundle, "-o", bundle},
      {"print", bundle, "-o", Path("./add.tilert")},
      {"print", Path("link"), "-o", bundle},
      {"emit", bundle, "-o", bundle},
      {"layout", bundle, "-o", bundle},
  };
  for (const auto& call : calls) {
    const ToolResult result = Tilert(call);
    EXPECT_EQ(result.exit_code, 2) << call[0] << result.out;
    EXPECT_THAT(result.err, HasSubstr(" would replace the input"));
  }
  EXPECT_EQ(ReadText(source), text);
  EXPECT_EQ(ReadText(bundle), bytes);
  EXPECT_EQ(Tilert({"compile", source, "-o", bundle}).exit_code, 0);  // what is no input may be replaced
}

// A safetensors file is written as a whole: that must not cost a model its other weights.
TEST_F(ToolFilesTest, OtherTensorsOfAFileAreNotLost) {
  const std::string source = Copy("add.py");
  const tool::Array four = *tool::MakeArray(DType::kFloat16, {4});
  WriteText(Path("model.safetensors"), tool::SafetensorsBytes({{"a", four}, {"b", four}}));
  const std::string model = ReadText(Path("model.safetensors"));
  const auto run = [&](const std::string& out) {
    return Tilert({"run", source, "--in", "A=" + Path("model.safetensors:a"), "--in", "B=" + Path("model.safetensors:b"), "--out",
                   "C=" + Path(out)});
  };
  for (const char* out : {"model.safetensors:c", "model.safetensors:a"}) {
    const ToolResult result = run(out);
    EXPECT_EQ(result.exit_code, 1) << result.out;
    EXPECT_THAT(result.err, AllOf(HasSubstr("model.safetensors also holds '"), HasSubstr("which would be lost")));
    EXPECT_EQ(ReadText(Path("model.safetensors")), model);
  }
  EXPECT_EQ(run("out.safetensors:c").exit_code, 0);
  EXPECT_EQ(run("out.safetensors:c").exit_code, 0);  // again, over itself
  EXPECT_EQ(run("out.safetensors:d").exit_code, 1);
  WriteText(Path("text.safetensors"), "no tensors");
  EXPECT_THAT(run("text.safetensors:c").err, HasSubstr("not a safetensors file"));
  EXPECT_EQ(ReadText(Path("text.safetensors")), "no tensors");
}

TEST_F(ToolFilesTest, AskingForACacheMakesNone) {
  for (const char* action : {"list", "clear"}) {
    const ToolResult result = Tilert({"cache", action, "--dir", Path("none")});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr(" 0 bytes"));
    EXPECT_NE(access(Path("none").c_str(), F_OK), 0);
  }
}

TEST_F(ToolFilesTest, AFullDiskIsNoSuccess) {
  for (const char* command : {"--help", "--version", "compile --help"}) {
    const std::string line = std::string(TILERT_TOOL) + " " + command + " >/dev/full 2>/dev/null";
    EXPECT_NE(std::system(line.c_str()), 0) << command;
  }
}

}  // namespace
}  // namespace tilert
