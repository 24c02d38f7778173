#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/source.h"
#include "frontend/value.h"

namespace tilert::frontend {

class Evaluator;

// The arguments of a call, bound to the parameters of a Builtin.
class Args {
 public:
  Args(const Builtin* builtin, SourceRange range) : builtin_(builtin), range_(range) {}

  // None if it was left out.
  const Value& operator[](std::string_view name) const;
  bool Has(std::string_view name) const { return !(*this)[name].is_none(); }
  // Where the argument stands; the whole call if it was left out.
  SourceRange RangeOf(std::string_view name) const;
  const std::vector<Value>& rest() const { return rest_; }
  const std::vector<SourceRange>& rest_ranges() const { return rest_ranges_; }
  const std::vector<std::pair<std::string, Value>>& keywords() const { return keywords_; }
  SourceRange range() const { return range_; }
  const Builtin& builtin() const { return *builtin_; }

 private:
  friend class Evaluator;
  struct Slot {
    std::string_view name;
    bool required = false;
    bool given = false;
    Value value;
    SourceRange range;
  };
  const Builtin* builtin_;
  SourceRange range_;
  std::vector<Slot> slots_;
  std::vector<Value> rest_;
  std::vector<SourceRange> rest_ranges_;
  std::vector<std::pair<std::string, Value>> keywords_;
};

using Handler = Value (*)(Evaluator&, const Args&);

// A function that the language provides. `params`: names in order; `name?` may be left out, `*` takes the remaining positional
// arguments, what follows it or `|` is by keyword only, `**` takes any other keyword.
struct Builtin {
  std::string_view path;  // "T.copy", "math.sqrt", "len"
  std::string_view params;
  Handler handler;
};

// Null if there is none.
const Builtin* FindBuiltin(std::string_view path);
// Every path that begins with `prefix`, in order.
std::vector<std::string_view> BuiltinsUnder(std::string_view prefix);
// What is known of TileLang but not supported here, and what to do instead; empty if the path is not known.
std::optional<std::string_view> KnownButUnsupported(std::string_view path);

}  // namespace tilert::frontend
