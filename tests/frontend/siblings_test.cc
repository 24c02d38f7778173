// Sources that import from modules beside them.
#include "frontend/siblings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "ir/printer.h"
#include "tests/frontend/cases.h"

namespace tilert::frontend {
namespace {

using Files = std::map<std::string, std::string>;

absl::StatusOr<Program> CompileWith(const std::string& source, const Files& files) {
  return Compile(WithImports(source), "main.py", "k", {}, nullptr, [&](const std::string& module) -> std::optional<std::string> {
    const auto it = files.find(module);
    return it == files.end() ? std::nullopt : std::optional(WithImports(it->second));
  });
}

const char kSource[] = R"(
import torch
from constants import SCALE, block_size as size
from .helpers import scaled

def check(x): return x

@T.prim_func
def k(A: T.Tensor((size(),), "float32")):
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(size()):
            A[i] = scaled(A[i], SCALE)
)";

TEST(Siblings, NamesComeFromTheModulesBeside) {
  const Files files = {
      {"constants", "SCALE = 3.0\nWIDTH = 48\ndef block_size(): return WIDTH\n"},
      {"helpers", "from constants import WIDTH\nOFFSET = WIDTH // 2\ndef scaled(x, by): return x * by + OFFSET\n"}};
  const absl::StatusOr<Program> program = CompileWith(kSource, files);
  ASSERT_TRUE(program.ok()) << program.status().message();
  const std::string text = PrintProgram(*program);
  EXPECT_NE(text.find("A[i] = (A[i] * 3.0) + 24"), std::string::npos) << text;
  EXPECT_NE(text.find("T.Tensor((48,)"), std::string::npos) << text;
}

// What nothing imported needs is not there, however it is called.
TEST(Siblings, OtherNamesOfAModuleHideNothing) {
  const Files files = {{"constants", "SCALE = 3.0\ndef check(x): return 1 / 0\ndef block_size(): return 32\n"},
                       {"helpers", "def scaled(x, by): return x * by\ndef size(): return 7\n"}};
  const absl::StatusOr<Program> program = CompileWith(kSource, files);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_NE(PrintProgram(*program).find("T.Tensor((32,)"), std::string::npos);
}

// A needed name that the source has too would mean something else to the module: then it is not read.
TEST(Siblings, AModuleWhoseNamesClashBelongsToTheHost) {
  const Files files = {{"constants", "SCALE = 3.0\ndef check(x): return x\ndef block_size(): return check(32)\n"},
                       {"helpers", "def scaled(x, by): return x * by\n"}};
  const absl::StatusOr<Program> program = CompileWith(kSource, files);
  ASSERT_FALSE(program.ok());
  EXPECT_NE(program.status().message().find("constants.block_size"), std::string_view::npos) << program.status().message();
}

TEST(Siblings, ErrorsNameTheFileAndItsLine) {
  const Files files = {{"constants", "SCALE = 3.0\ndef block_size(): return 32\n"},
                       {"helpers", "def scaled(x, by):\n    return x * by + nothing\n"}};
  const absl::StatusOr<Program> program = CompileWith(kSource, files);
  ASSERT_FALSE(program.ok());
  const std::string message(program.status().message());
  const std::string header = WithImports("");
  const int imports = static_cast<int>(std::count(header.begin(), header.end(), '\n'));
  EXPECT_NE(message.find("helpers.py:" + std::to_string(imports + 2) + ":21: error: 'nothing' is not defined"), std::string::npos)
      << message;
  EXPECT_NE(message.find("    return x * by + nothing\n"), std::string::npos) << message;
}

TEST(Siblings, ModulesThatAreNoSourceAreLeftOut) {
  const Files files = {{"constants", "def ("}, {"helpers", "def scaled(x, by): return x * by\n"}};
  const absl::StatusOr<Program> program = CompileWith(kSource, files);
  ASSERT_FALSE(program.ok());
  EXPECT_NE(program.status().message().find("belongs to the host program"), std::string_view::npos) << program.status().message();
}

}  // namespace
}  // namespace tilert::frontend
