// The command table of the tool: what `tilert NAME` does, and the reading of its arguments.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tilert::tool {

// Exit codes of the tool.
inline constexpr int kExitOk = 0, kExitFailure = 1, kExitUsage = 2;

// A mistake in how the tool was called: exit code 2.
absl::Status UsageError(std::string_view message);
bool IsUsageError(const absl::Status& status);

struct Option {
  const char* name;   // "--entry", "-o"
  const char* value;  // what follows it: "NAME"; empty: a flag
  const char* help;
  bool repeated = false;
};

// The arguments of one call, checked against the command's options.
class Args {
 public:
  bool Has(std::string_view name) const { return values_.count(std::string(name)) > 0; }
  // The last value, or `fallback`.
  std::string Get(std::string_view name, std::string_view fallback = "") const;
  // Every value, in order.
  std::vector<std::string> All(std::string_view name) const;
  // UsageError unless the value is a whole number from `min` to `max`.
  absl::StatusOr<int64_t> Int(std::string_view name, int64_t fallback, int64_t min, int64_t max) const;
  const std::vector<std::string>& positional() const { return positional_; }

 private:
  friend absl::StatusOr<Args> ParseArgs(const struct Command& command, absl::Span<const std::string> words);
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> positional_;
};

struct Command {
  const char* name;
  const char* arguments;  // "BUNDLE", "SOURCE..."
  const char* summary;    // one line
  const char* details;    // paragraphs of the help page; may be empty
  absl::Span<const Option> options;
  const char* examples;  // lines
  size_t min_arguments, max_arguments;
  absl::Status (*run)(const Args& args);
};

// "--name=value" and "--name value" both work; "--" ends the options.
absl::StatusOr<Args> ParseArgs(const Command& command, absl::Span<const std::string> words);

// The help page of a command.
std::string HelpPage(const Command& command);

// "NAME=VALUE" → its halves. UsageError without '=' or name.
absl::StatusOr<std::pair<std::string, std::string>> SplitAssignment(std::string_view option, const std::string& text);
// Every `option` of the form NAME=INTEGER.
absl::StatusOr<std::map<std::string, int64_t>> IntAssignments(const Args& args, std::string_view option);

// The commands, each in its own file.
extern const Command kCompileCommand, kInfoCommand, kVerifyCommand, kPrintCommand, kEmitCommand, kBuildCommand, kRunCommand,
    kBenchCommand, kCacheCommand, kLayoutCommand;

// The tool: prints what went wrong as "tilert: …" on standard error and returns the exit code.
int RunTool(absl::Span<const std::string> words);

}  // namespace tilert::tool
