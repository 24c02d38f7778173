#include "tools/command.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "ir/status_util.h"
#include "tilert/tilert.h"
#include "tools/file.h"

namespace tilert::tool {
namespace {

constexpr char kUsagePayload[] = "tilert/usage";
constexpr const Command* kCommands[] = {&kCompileCommand, &kInfoCommand, &kVerifyCommand, &kPrintCommand,  &kEmitCommand,
                                        &kBuildCommand,   &kRunCommand,  &kBenchCommand,  &kLayoutCommand, &kCacheCommand};

const Option* FindOption(const Command& command, std::string_view name) {
  for (const Option& option : command.options) {
    if (name == option.name) return &option;
  }
  return nullptr;
}

std::string OverviewPage() {
  std::string text = "usage: tilert COMMAND [arguments]\n\nTile programs: source to bundle to cubin to results.\n\n";
  for (const Command* command : kCommands) {
    text += Cat("  ", command->name, std::string(10 - std::string_view(command->name).size(), ' '), command->summary, "\n");
  }
  return text +
         "\n`tilert COMMAND --help` explains a command, with examples. Exit codes: 0 done, 1 failed, 2 called wrongly.\n\n"
         "examples:\n"
         "  tilert compile kernels/gemm.py -o gemm.tilert\n"
         "  tilert run gemm.tilert --in A=a.npy --in B=b.npy --out C=c.npy --device cpu\n"
         "  tilert emit gemm.tilert --arch sm_80\n";
}

int Report(const Command* command, const absl::Status& status) {
  if (status.ok()) return kExitOk;
  // Errors of the frontend are whole listings that begin with the file.
  const std::string message(status.message());
  const bool listing = message.find(": error: ") < message.find('\n');
  std::fprintf(stderr, "%s%s%s", listing ? "" : "tilert: ", message.c_str(),
               !message.empty() && message.back() == '\n' ? "" : "\n");
  if (!IsUsageError(status)) return kExitFailure;
  std::fprintf(stderr, "Try `tilert %s%s--help`.\n", command == nullptr ? "" : command->name, command == nullptr ? "" : " ");
  return kExitUsage;
}

// An output that replaces what the command reads is a slip of the pen; only `build` works in place.
absl::Status CheckOutput(const Command& command, const Args& args) {
  if (&command == &kBuildCommand || !args.Has("-o")) return absl::OkStatus();
  std::vector<std::string> inputs = args.positional();
  if (args.Has("--spec")) inputs.push_back(args.Get("--spec"));
  for (const std::string& input : inputs) {
    if (IsSameFile(input, args.Get("-o")))
      return UsageError(Cat("-o ", args.Get("-o"), " would replace the input: name another file"));
  }
  return absl::OkStatus();
}

absl::Status Run(const Command& command, absl::Span<const std::string> words) {
  TILERT_ASSIGN_OR_RETURN(const Args args, ParseArgs(command, words));
  TILERT_RETURN_IF_ERROR(CheckOutput(command, args));
  return command.run(args);
}

// The exit code, once all is written.
int Finish(const Command* command, absl::Status status) {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!written && status.ok()) status = absl::UnavailableError("standard output: cannot write");
  return Report(command, status);
}

}  // namespace

absl::Status UsageError(std::string_view message) {
  absl::Status status = absl::InvalidArgumentError(ToAbsl(message));
  status.SetPayload(kUsagePayload, absl::Cord());
  return status;
}

bool IsUsageError(const absl::Status& status) { return status.GetPayload(kUsagePayload).has_value(); }

std::string Args::Get(std::string_view name, std::string_view fallback) const {
  const auto found = values_.find(std::string(name));
  return found == values_.end() ? std::string(fallback) : found->second.back();
}

std::vector<std::string> Args::All(std::string_view name) const {
  const auto found = values_.find(std::string(name));
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

absl::StatusOr<int64_t> Args::Int(std::string_view name, int64_t fallback, int64_t min, int64_t max) const {
  if (!Has(name)) return fallback;
  const std::string text = Get(name);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < min || value > max) {
    return UsageError(Cat(name, " needs a whole number from ", min, " to ", max, ", not '", text, "'"));
  }
  return value;
}

absl::StatusOr<Args> ParseArgs(const Command& command, absl::Span<const std::string> words) {
  Args args;
  bool options = true;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (options && word == "--") {
      options = false;
      continue;
    }
    if (!options || word.size() < 2 || word[0] != '-') {
      args.positional_.push_back(word);
      continue;
    }
    const size_t equals = word.rfind("--", 0) == 0 ? word.find('=') : std::string::npos;
    const Option* option = FindOption(command, std::string_view(word).substr(0, equals));
    if (option == nullptr) return UsageError(Cat("tilert ", command.name, " has no option '", word.substr(0, equals), "'"));
    const std::string name = option->name;
    if (!option->repeated && args.Has(name)) return UsageError(Cat(name, " is given twice"));
    std::string value;
    if (option->value[0] == '\0') {
      if (equals != std::string::npos) return UsageError(Cat(name, " takes no value"));
    } else if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (++i < words.size()) {
      value = words[i];
    } else {
      return UsageError(Cat(name, " needs ", option->value));
    }
    args.values_[name].push_back(std::move(value));
  }
  if (args.positional_.size() < command.min_arguments)
    return UsageError(Cat("tilert ", command.name, " needs ", command.arguments));
  if (args.positional_.size() > command.max_arguments) {
    return UsageError(Cat("unexpected argument '", args.positional_[command.max_arguments], "'"));
  }
  return args;
}

std::string HelpPage(const Command& command) {
  std::string text = Cat("usage: tilert ", command.name, " ", command.arguments, command.options.empty() ? "" : " [options]",
                         "\n\n", command.summary, "\n");
  if (command.details[0] != '\0') text += Cat("\n", command.details, "\n");
  size_t width = 0;
  const auto head = [](const Option& option) { return Cat(option.name, option.value[0] == '\0' ? "" : " ", option.value); };
  for (const Option& option : command.options) width = std::max(width, head(option).size());
  if (!command.options.empty()) text += "\noptions:\n";
  for (const Option& option : command.options) {
    const std::string left = head(option);
    text += Cat("  ", left, std::string(width - left.size() + 2, ' '), option.help, option.repeated ? " (may be repeated)" : "",
                "\n");
  }
  return Cat(text, "\nexamples:\n", command.examples);
}

absl::StatusOr<std::pair<std::string, std::string>> SplitAssignment(std::string_view option, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return UsageError(Cat(option, " needs NAME=VALUE, not '", text, "'"));
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

absl::StatusOr<std::map<std::string, int64_t>> IntAssignments(const Args& args, std::string_view option) {
  std::map<std::string, int64_t> values;
  for (const std::string& text : args.All(option)) {
    TILERT_ASSIGN_OR_RETURN(const auto assignment, SplitAssignment(option, text));
    const std::string& digits = assignment.second;
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size())
      return UsageError(Cat(option, " needs NAME=INTEGER, not '", text, "'"));
    if (!values.emplace(assignment.first, value).second) return UsageError(Cat(option, " sets '", assignment.first, "' twice"));
  }
  return values;
}

int RunTool(absl::Span<const std::string> words) {
  if (words.empty()) {
    std::fputs(OverviewPage().c_str(), stderr);
    return kExitUsage;
  }
  if (words[0] == "--help" || words[0] == "-h" || (words[0] == "help" && words.size() == 1)) {
    std::fputs(OverviewPage().c_str(), stdout);
    return Finish(nullptr, absl::OkStatus());
  }
  if (words[0] == "--version") {
    std::printf("tilert %s\n", tilert_get_api(TILERT_API_VERSION)->library_version);
    return Finish(nullptr, absl::OkStatus());
  }
  const bool help = words[0] == "help";
  const std::string& name = words[help ? 1 : 0];
  const auto found = std::find_if(std::begin(kCommands), std::end(kCommands), [&](const Command* c) { return name == c->name; });
  if (found == std::end(kCommands)) return Report(nullptr, UsageError(Cat("there is no command '", name, "'")));
  const absl::Span<const std::string> rest = words.subspan(1);
  const auto is_help = [](const std::string& word) { return word == "--help" || word == "-h"; };
  if (help || std::any_of(rest.begin(), std::find(rest.begin(), rest.end(), "--"), is_help)) {
    std::fputs(HelpPage(**found).c_str(), stdout);
    return Finish(*found, absl::OkStatus());
  }
  try {
    return Finish(*found, Run(**found, rest));
  } catch (const std::bad_alloc&) {
    return Report(*found, absl::ResourceExhaustedError("out of memory"));
  } catch (const std::exception& error) {
    return Report(*found, absl::InternalError(Cat("this is a fault of tilert: ", error.what())));
  }
}

}  // namespace tilert::tool
