#include "tests/frontend/cases.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/golden.h"

namespace tilert::frontend {
namespace {

Case ReadHeader(const std::string& line) {
  std::istringstream words(line.substr(4));
  Case result;
  words >> result.name >> result.entry;
  EXPECT_EQ(result.name.back(), ':') << line;
  result.name.pop_back();
  for (std::string word; words >> word;) EXPECT_TRUE(AddSetting(word, &result.settings).ok()) << line;
  return result;
}

}  // namespace

std::vector<Case> ReadCases(const std::string& path) {
  std::vector<Case> cases;
  std::istringstream lines(ReadSourceFile(path));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("=== ", 0) == 0) {
      cases.push_back(ReadHeader(line));
    } else if (!cases.empty()) {
      cases.back().source += line + "\n";
    }
  }
  EXPECT_FALSE(cases.empty()) << path;
  return cases;
}

std::string WithImports(const std::string& source) { return "import tilelang\nimport tilelang.language as T\n" + source; }

}  // namespace tilert::frontend
