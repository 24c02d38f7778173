#include "tools/progress.h"

#include <unistd.h>

#include <cstdio>

namespace tilert::tool {

Progress::Progress() : terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::Show(std::string_view text) {
  if (!terminal_) return;
  std::fprintf(stderr, "\r\033[K%.*s", static_cast<int>(text.size()), text.data());
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace tilert::tool
