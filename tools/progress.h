#pragma once

#include <string_view>

namespace tilert::tool {

// One line about long work, rewritten in place on standard error, only where that is a terminal. Gone when the object is.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  void Show(std::string_view text);

 private:
  const bool terminal_;
  bool shown_ = false;
};

}  // namespace tilert::tool
