#include "tests/golden.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "gtest/gtest.h"

namespace tilert {
namespace {

std::optional<std::string> ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

struct Difference {
  int line;
  std::string expected;
  std::string actual;
};

Difference FirstDifference(const std::string& expected, const std::string& actual) {
  std::istringstream a(expected), b(actual);
  Difference diff{1, "", ""};
  for (;; ++diff.line) {
    const bool more_a = static_cast<bool>(std::getline(a, diff.expected));
    const bool more_b = static_cast<bool>(std::getline(b, diff.actual));
    if (!more_a) diff.expected = "<end of file>";
    if (!more_b) diff.actual = "<end of file>";
    if (!more_a || !more_b || diff.expected != diff.actual) return diff;
  }
}

bool Updating() {
  const char* value = std::getenv("TILERT_UPDATE_GOLDEN");
  return value != nullptr && std::string_view(value) == "1";
}

}  // namespace

void ExpectGolden(std::string_view name, std::string_view actual) {
  const std::filesystem::path path = std::filesystem::path(TILERT_SOURCE_DIR) / "tests" / "golden" / name;
  const std::optional<std::string> expected = ReadFile(path);
  if (expected == actual) return;
  if (Updating()) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << actual;
    return;
  }
  if (!expected.has_value()) {
    ADD_FAILURE() << path << " does not exist; run this test with --update to write it. It would hold:\n" << actual;
    return;
  }
  const Difference diff = FirstDifference(*expected, std::string(actual));
  ADD_FAILURE() << path << ":" << diff.line << " differs (--update rewrites it)\n  expected: " << diff.expected
                << "\n  actual:   " << diff.actual << "\nwhole actual text:\n"
                << actual;
}

std::string ReadSourceFile(std::string_view path) {
  const std::filesystem::path full = std::filesystem::path(TILERT_SOURCE_DIR) / path;
  std::optional<std::string> text = ReadFile(full);
  if (!text.has_value()) ADD_FAILURE() << "cannot read " << full;
  return std::move(text).value_or("");
}

}  // namespace tilert
