// An outside program in C++17 or later over the header-only wrapper.
#include <cstdio>

#include "tilert/tilert.hpp"

int main() {
  const auto runtime = tilert::Runtime::CreateCpu();
  if (!runtime) {
    std::fprintf(stderr, "consumer.cc: %s\n", runtime.status().message());
    return 1;
  }
  const auto bundle = tilert::Bundle::OpenFile("/nowhere/model.tilert");
  if (bundle.ok() || bundle.status().code() != TILERT_NOT_FOUND) {
    std::fprintf(stderr, "consumer.cc: a missing bundle was opened\n");
    return 1;
  }
  std::printf("consumer.cc: %s; a missing file is an error: %s\n", runtime->info().device_name, bundle.status().message());
  return 0;
}
