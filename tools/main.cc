// The `tilert` command.
#include <string>
#include <vector>

#include "tools/command.h"

int main(int argc, char** argv) { return tilert::tool::RunTool(std::vector<std::string>(argv + 1, argv + argc)); }
