#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "frontend/settings.h"
#include "ir/program.h"

// TileLang-syntax sources to programs. For build machines: nothing here is needed where kernels run.
namespace tilert::frontend {

struct EntryParam {
  std::string name;
  std::string default_text;  // as the source writes it; empty if there is none
  bool is_tensor = false;    // described as a tensor or scalar of the kernel; not to be set
};

// A function that is a kernel or makes one.
struct Entry {
  std::string name;
  std::vector<EntryParam> params;
  int line = 0;
};

// The entries of a source, in its order: functions under @T.prim_func or @tilelang.jit, and functions that hold a @T.prim_func.
// InvalidArgument with every syntax error, each as `file:line:column: error: …`, the line and a caret.
absl::StatusOr<std::vector<Entry>> ListEntries(const std::string& text, const std::string& file_name);

// The text of the module that a source imports by this name, if it is to be read; nothing for what belongs to the host program.
using ModuleReader = std::function<std::optional<std::string>(const std::string& module)>;

// Evaluates the function `entry` of the source with `settings` and returns the program that it is or returns, named `entry`.
// Parameters without a setting take their default or, under @autotune, the first configuration; a T.const or T.dynamic without a
// setting is an extent that is known at launch.
//
// `read_module`, if given, is asked for modules that the source imports names from.
//
// The program is not verified. `warnings`, if given, gets rendered warnings. InvalidArgument: the source is wrong, or uses what
// is not supported; the message holds every error found, rendered as above. Thread-safe; deterministic.
absl::StatusOr<Program> Compile(const std::string& text, const std::string& file_name, const std::string& entry,
                                const Settings& settings, std::string* warnings = nullptr,
                                const ModuleReader& read_module = nullptr);

// `message`, about a program that Compile made of the same source (errors of the verifier, warnings of the lint), with the line
// of the source and a caret below each of its lines that begins with `file:line:column: `.
std::string Quote(const std::string& text, const std::string& file_name, const std::string& message,
                  const ModuleReader& read_module = nullptr);

}  // namespace tilert::frontend
