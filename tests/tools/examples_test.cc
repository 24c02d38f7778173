// The commands that the README and the help pages show do what they show, in a folder as the texts suppose it.
#include <unistd.h>

#include <sstream>

#include "gtest/gtest.h"
#include "tests/golden.h"
#include "tool_runner.h"
#include "tools/npy.h"
#include "tools/safetensors.h"

namespace tilert {
namespace {

// The lines of a text that begin a tilert command after `indent`, those that they go on in appended, without the remarks.
std::vector<std::string> Commands(const std::string& text, const std::string& indent) {
  std::vector<std::string> commands;
  std::istringstream lines(text);
  bool goes_on = false;
  for (std::string line; std::getline(lines, line);) {
    if (!goes_on && line.rfind(indent + "tilert ", 0) != 0) continue;
    line = line.substr(line.find_first_not_of(' '));
    line = line.substr(0, line.find("  #"));
    const bool was_part = goes_on;
    goes_on = line.back() == '\\';
    if (goes_on) line.pop_back();
    if (was_part) {
      commands.back() += line;
    } else {
      commands.push_back(line);
    }
  }
  return commands;
}

// Takes a GPU or minutes.
bool IsLeftOut(const std::string& command) {
  const auto begins = [&](const char* text) { return command.rfind(text, 0) == 0; };
  return command.find("cuda") != std::string::npos || begins("tilert bench") || begins("tilert build");
}

TEST(Examples, Run) {
  setenv("TILERT_TOOL", TILERT_TOOL, 1);
  const std::string folder = TestFolder();
  const auto npy = [&](const std::string& name, DType type, std::vector<int64_t> shape) {
    WriteText(folder + "/" + name, tool::NpyBytes(*tool::MakeArray(type, std::move(shape))));
  };
  npy("a.npy", DType::kFloat16, {5, 8}), npy("b.npy", DType::kFloat16, {8, 3}), npy("x.npy", DType::kFloat32, {3, 64});
  const tool::Array row = *tool::MakeArray(DType::kFloat32, {64});
  WriteText(folder + "/model.safetensors", tool::SafetensorsBytes({{"norm.weight", row}, {"norm.bias", row}}));
  WriteText(folder + "/scan.py",
            "import tilelang.language as T\nM = T.dynamic(\"M\")\n@T.prim_func\n"
            "def scan(X: T.Tensor((M, 64), \"float32\"), Y: T.Tensor((M, 64), \"float32\")):\n"
            "    with T.Kernel(M, threads=64) as b:\n        row = T.alloc_fragment((64,), \"float32\")\n"
            "        T.copy(X[b, 0:64], row)\n        T.cumsum(row)\n        T.copy(row, Y[b, 0:64])\n");
  ASSERT_EQ(symlink((std::string(TILERT_SOURCE_DIR) + "/kernels").c_str(), (folder + "/kernels").c_str()), 0);
  ASSERT_EQ(symlink(TILERT_TOOL, (folder + "/tilert").c_str()), 0);

  std::vector<std::string> commands = Commands(ReadSourceFile("README.md"), "    ");
  ASSERT_GE(commands.size(), 5u);
  for (const char* page : {"compile", "info", "verify", "print", "emit", "run", "layout", "cache"}) {
    for (const std::string& command : Commands(Tilert({page, "--help"}).out, "  ")) commands.push_back(command);
  }
  int ran = 0;
  for (const std::string& command : commands) {
    if (IsLeftOut(command)) continue;
    const std::string line = "cd '" + folder + "' && TILERT_CACHE_DIR=$PWD/cache PATH=.:$PATH && " + command + " >out.txt 2>&1";
    EXPECT_EQ(std::system(line.c_str()), 0) << command << "\n" << ReadText(folder + "/out.txt").substr(0, 2000);
    ++ran;
  }
  EXPECT_GE(ran, 20);
}

}  // namespace
}  // namespace tilert
