// The dependency arrows of docs/ARCHITECTURE.md, as includes: runtime -> lowering -> ir -> schemas; frontend -> ir.

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tilert {
namespace {

namespace fs = std::filesystem;

// What the files of a folder may include from the project, besides their own folder.
const std::map<std::string, std::set<std::string>>& AllowedArrows() {
  static const auto* arrows = new std::map<std::string, std::set<std::string>>{
      {"ir", {"schemas"}},
      {"frontend", {"ir"}},
      {"lowering", {"ir"}},
      {"runtime", {"ir", "lowering", "include"}},
      {"tools", {"ir", "frontend", "lowering", "runtime", "include"}},
      {"include", {}},
      {"examples", {"include"}},
  };
  return *arrows;
}

const std::set<std::string>& ProjectFolders() {
  static const auto* folders = new std::set<std::string>{"schemas", "ir",   "frontend", "lowering", "runtime", "include",
                                                         "tools",   "tests", "bench",   "examples", "kernels"};
  return *folders;
}

std::string FirstFolder(const std::string& included) {
  const std::string folder = included.substr(0, included.find('/'));
  return folder == "tilert" ? "include" : folder;
}

bool IsSource(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".cc" || extension == ".h" || extension == ".hpp" || extension == ".c" || extension == ".def";
}

struct Include {
  std::string target;  // as written
  bool quoted;
  int line;
};

std::vector<Include> IncludesOf(std::istream& in) {
  static const std::regex pattern(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re");
  std::vector<Include> includes;
  std::string text;
  for (int line = 1; std::getline(in, text); ++line) {
    std::smatch match;
    if (std::regex_search(text, match, pattern)) includes.push_back({match[2], match[1] == "\"", line});
  }
  return includes;
}

template <typename Visit>
int ForEachSource(const std::string& folder, Visit visit) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(TILERT_SOURCE_DIR) / folder)) {
    if (!entry.is_regular_file() || !IsSource(entry.path())) continue;
    ++files;
    std::ifstream in(entry.path());
    for (const Include& include : IncludesOf(in)) visit(entry.path(), include);
  }
  return files;
}

std::string ArrowError(const std::string& folder, const Include& include) {
  const std::string target = FirstFolder(include.target);
  if (!ProjectFolders().contains(target) || target == folder) return "";
  if (AllowedArrows().at(folder).contains(target)) return "";
  return folder + "/ may not include " + target + "/";
}

TEST(LayeringTest, IncludesFollowTheArrows) {
  int files = 0;
  for (const auto& [folder, allowed] : AllowedArrows()) {
    files += ForEachSource(folder, [&folder = folder](const fs::path& path, const Include& include) {
      const std::string error = ArrowError(folder, include);
      if (!error.empty()) ADD_FAILURE() << path << ":" << include.line << ": \"" << include.target << "\": " << error;
    });
  }
  EXPECT_GT(files, 50) << "the folders moved?";
}

TEST(LayeringTest, ForbiddenArrowIsFound) {
  EXPECT_NE(ArrowError("ir", {"lowering/kernel_ir.h", true, 1}), "");
  EXPECT_NE(ArrowError("lowering", {"frontend/parser.h", true, 1}), "");
  EXPECT_NE(ArrowError("lowering", {"runtime/cache.h", true, 1}), "");
  EXPECT_EQ(ArrowError("runtime", {"tilert/tilert.h", true, 1}), "");
  EXPECT_EQ(ArrowError("lowering", {"vector", false, 1}), "");
}

TEST(LayeringTest, NoToolkitHeaderInTheLibrary) {
  static const std::regex toolkit(R"(^(cuda|nvrtc|cublas|cudnn|driver_types|vector_types|cooperative_groups|cutlass/|mma\.h))");
  for (const std::string folder : {"ir", "frontend", "lowering", "runtime", "include", "tools"}) {
    ForEachSource(folder, [](const fs::path& path, const Include& include) {
      EXPECT_FALSE(std::regex_search(include.target, toolkit)) << path << ":" << include.line << " includes " << include.target;
    });
  }
}

TEST(LayeringTest, PublicHeadersIncludeOnlyTheStandardLibraries) {
  static const std::regex standard(R"(^[a-z0-9_]+(\.h)?$)");
  ForEachSource("include", [](const fs::path& path, const Include& include) {
    const bool own = FirstFolder(include.target) == "include";
    const bool std_header = !include.quoted && std::regex_match(include.target, standard);
    EXPECT_TRUE(own || std_header) << path << ":" << include.line << " includes " << include.target;
  });
}

TEST(LayeringTest, NoAbseilMutex) {
  for (const std::string folder : {"ir", "lowering", "runtime"}) {
    ForEachSource(folder, [](const fs::path& path, const Include& include) {
      EXPECT_FALSE(include.target.starts_with("absl/synchronization")) << path << ":" << include.line << ": use std::mutex";
    });
  }
}

}  // namespace
}  // namespace tilert
