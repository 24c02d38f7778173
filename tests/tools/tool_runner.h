#pragma once

#include <map>
#include <string>
#include <vector>

namespace tilert {

struct ToolResult {
  int exit_code = -1;  // 128 + signal when it was killed
  std::string out, err;
};

// Runs the tilert command with these arguments (and variables added to the environment), in `directory` if one is given.
ToolResult Tilert(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& environment = {});

// A fresh folder for the current test.
std::string TestFolder();

void WriteText(const std::string& path, const std::string& text);
std::string ReadText(const std::string& path);
bool Exists(const std::string& path);
// Names in a folder, sorted.
std::vector<std::string> FilesIn(const std::string& folder);

}  // namespace tilert
