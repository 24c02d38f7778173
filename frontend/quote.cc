#include "frontend/quote.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "frontend/diagnostics.h"

namespace tilert::frontend {
namespace {

using Ends = absl::flat_hash_map<uint32_t, uint32_t>;

// Where the statements and parameters of `body` end, by where they begin.
void CollectEnds(const ast::Body& body, Ends* ends) {
  for (const ast::Stmt* stmt : body) {
    (*ends)[stmt->range.begin] = stmt->range.end;
    std::visit(
        [&](const auto& node) {
          if constexpr (requires { node.body; }) CollectEnds(node.body, ends);
          if constexpr (requires { node.otherwise; }) CollectEnds(node.otherwise, ends);
          if constexpr (requires { node.then; }) CollectEnds(node.then, ends);
          if constexpr (requires { node.params; }) {
            for (const ast::Param& param : node.params) {
              (*ends)[param.range.begin] = param.range.end;
              if (param.annotation) (*ends)[param.annotation->range.begin] = param.annotation->range.end;
            }
          }
        },
        stmt->node);
  }
}

// Takes `number:` off the front of `text`.
std::optional<int> TakeNumber(std::string_view* text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end == text->data() + text->size() || *end != ':') return std::nullopt;
  text->remove_prefix(static_cast<size_t>(end - text->data()) + 1);
  return number;
}

// The offset of the place that `line` begins with.
std::optional<uint32_t> PlaceIn(const SourceFile& source, std::string_view line) {
  for (size_t colon = line.find(':'); colon != std::string_view::npos; colon = line.find(':', colon + 1)) {
    std::string_view rest = line.substr(colon + 1);
    const std::optional<int> number = TakeNumber(&rest);
    const std::optional<int> column = number ? TakeNumber(&rest) : std::nullopt;
    if (column) return source.OffsetOf(line.substr(0, colon), {*number, *column});
  }
  return std::nullopt;
}

}  // namespace

std::string WithSourceLines(const SourceFile& source, const ast::Module& module, std::string_view message) {
  Ends ends;
  CollectEnds(module.body, &ends);
  std::string out;
  while (!message.empty()) {
    const std::string_view line = message.substr(0, message.find('\n'));
    message.remove_prefix(std::min(line.size() + 1, message.size()));
    out.append(line).append("\n");
    const std::optional<uint32_t> begin = PlaceIn(source, line);
    if (!begin) continue;
    const auto end = ends.find(*begin);
    out += SourceExcerpt(source, {*begin, end == ends.end() ? *begin + 1 : end->second});
  }
  return out;
}

}  // namespace tilert::frontend
