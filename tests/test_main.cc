#include <cstdlib>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--update") setenv("TILERT_UPDATE_GOLDEN", "1", 1);
  }
  return RUN_ALL_TESTS();
}
