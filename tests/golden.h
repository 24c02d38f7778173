#pragma once

#include <string>
#include <string_view>

namespace tilert {

// Compares `actual` with tests/golden/<name> and fails the current gtest test with the first differing line if they are not
// the same. Run the test with --update (or TILERT_UPDATE_GOLDEN=1 in the environment) to rewrite the file instead.
void ExpectGolden(std::string_view name, std::string_view actual);

// The text of a file of the source tree, by its path from the root; fails the current test when it cannot be read.
std::string ReadSourceFile(std::string_view path);

}  // namespace tilert
