#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "frontend/source.h"

namespace tilert::frontend {

enum class Severity { kError, kWarning, kNote };

// One message about one place of the source. `hint` says what to write instead; it may be empty.
struct Diagnostic {
  Severity severity = Severity::kError;
  SourceRange range;
  std::string message;
  std::string hint;
};

// Collects messages about one source file, in the order they were found. Not thread-safe.
class Diagnostics {
 public:
  // `source` must outlive this object.
  explicit Diagnostics(const SourceFile* source) : source_(source) {}

  void Error(SourceRange range, std::string message, std::string hint = "");
  void Warning(SourceRange range, std::string message, std::string hint = "");
  // Attaches to the message before it: "called from here".
  void Note(SourceRange range, std::string message);

  bool ok() const { return errors_ == 0; }
  int error_count() const { return errors_; }
  // True once so many errors were recorded that more would not help; further ones are dropped.
  bool full() const { return errors_ >= kMaxErrors; }
  const std::vector<Diagnostic>& all() const { return all_; }
  const SourceFile& source() const { return *source_; }

  // Every message as `file:line:column: error: text`, the source line, a caret line, and the hint.
  std::string Render() const;
  // OK, or InvalidArgument with Render() as its message.
  absl::Status ToStatus() const;

 private:
  static constexpr int kMaxErrors = 20;

  void Add(Severity severity, SourceRange range, std::string message, std::string hint);

  const SourceFile* source_;
  std::vector<Diagnostic> all_;
  int errors_ = 0;
};

// The line where `range` begins and, below it, a caret: two lines, each ending in a line break.
std::string SourceExcerpt(const SourceFile& source, SourceRange range);
// The message of one diagnostic, several lines, ending in a line break.
std::string RenderDiagnostic(const SourceFile& source, const Diagnostic& diagnostic);

}  // namespace tilert::frontend
