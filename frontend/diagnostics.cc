#include "frontend/diagnostics.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tilert::frontend {
namespace {

// Longer lines are cut around the place they point at.
constexpr size_t kMaxShownLine = 160;

const char* SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kError: return "error";
    case Severity::kWarning: return "warning";
    case Severity::kNote: return "note";
  }
  return "error";
}

bool IsContinuationByte(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Spaces as wide as `text`, keeping tabs so that the caret lines up whatever the terminal makes of them.
std::string Blank(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (!IsContinuationByte(c)) out += c == '\t' ? '\t' : ' ';
  }
  return out;
}

std::string Underline(std::string_view text) {
  const size_t width = std::count_if(text.begin(), text.end(), [](char c) { return !IsContinuationByte(c); });
  return "^" + std::string(width > 1 ? width - 1 : 0, '~');
}

std::string Printable(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\t') c = '?';
  }
  return out;
}

}  // namespace

void Diagnostics::Add(Severity severity, SourceRange range, std::string message, std::string hint) {
  if (full()) return;
  for (const Diagnostic& old : all_) {  // a loop at compile time may find the same thing again and again
    if (old.range == range && old.message == message) return;
  }
  if (severity == Severity::kError) ++errors_;
  all_.push_back({severity, range, std::move(message), std::move(hint)});
}

void Diagnostics::Error(SourceRange range, std::string message, std::string hint) {
  Add(Severity::kError, range, std::move(message), std::move(hint));
}

void Diagnostics::Warning(SourceRange range, std::string message, std::string hint) {
  Add(Severity::kWarning, range, std::move(message), std::move(hint));
}

void Diagnostics::Note(SourceRange range, std::string message) { Add(Severity::kNote, range, std::move(message), ""); }

std::string SourceExcerpt(const SourceFile& source, SourceRange range) {
  std::string_view line = source.LineAt(range.begin);
  size_t at = std::min<size_t>(range.begin - source.LineStart(range.begin), line.size());
  if (line.size() > kMaxShownLine) {
    const size_t cut = at > kMaxShownLine / 2 ? at - kMaxShownLine / 2 : 0;
    line = line.substr(cut, kMaxShownLine);
    at -= cut;
  }
  const size_t marked =
      std::min<size_t>(std::max(range.end, range.begin + 1) - range.begin, std::max<size_t>(line.size() - at, 1));
  return absl::StrCat("  ", Printable(line), "\n  ", Blank(line.substr(0, at)), Underline(line.substr(at, marked)), "\n");
}

std::string RenderDiagnostic(const SourceFile& source, const Diagnostic& diagnostic) {
  const Position position = source.PositionOf(diagnostic.range.begin);
  std::string out =
      absl::StrCat(source.NameAt(diagnostic.range.begin), ":", position.line, ":", position.column, ": ",
                   SeverityName(diagnostic.severity), ": ", diagnostic.message, "\n", SourceExcerpt(source, diagnostic.range));
  if (!diagnostic.hint.empty()) absl::StrAppend(&out, "  hint: ", diagnostic.hint, "\n");
  return out;
}

std::string Diagnostics::Render() const {
  std::string out;
  for (const Diagnostic& diagnostic : all_) out += RenderDiagnostic(*source_, diagnostic);
  if (full()) absl::StrAppend(&out, source_->name(), ": too many errors, the rest is not shown\n");
  return out;
}

absl::Status Diagnostics::ToStatus() const { return ok() ? absl::OkStatus() : absl::InvalidArgumentError(Render()); }

}  // namespace tilert::frontend
