#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "frontend/ast.h"
#include "frontend/value.h"

namespace tilert::frontend {

class Evaluator;

// T.Tensor(...) and T.scalar(...) as annotations, and T.empty(...).
struct TensorSpec {
  enum class Kind : uint8_t { kTensor, kEmpty, kScalar };
  Kind kind = Kind::kTensor;
  DType dtype = DType::kInvalid;
  std::vector<Val> shape, strides;
  Access access = Access::kInvalid;  // kInvalid: whatever the body does with it
  Val dim;                           // that a scalar binds
};

class NameScope;

struct FunctionObject {
  std::string name;
  const std::vector<ast::Param>* params = nullptr;
  const ast::FunctionDef* definition = nullptr;  // null for a lambda
  ast::ExprPtr lambda_body = nullptr;
  NameScope* closure = nullptr;  // null: the module
  std::vector<Value> defaults;   // one a parameter; Unset for none
  std::vector<Value> partial;    // functools.partial
  std::vector<std::pair<std::string, Value>> partial_keywords;
  bool is_macro = false;
  bool is_prim_func = false;
  bool is_jit = false;
  bool fast_math = false;
  ast::ExprPtr configs = nullptr;  // of @autotune
};

// A loop of the program: T.serial(...), T.Parallel(...), and so on; range(...) too.
struct LoopObject {
  enum class Kind : uint8_t { kRange, kFor, kParallel, kGrid };
  Kind kind = Kind::kRange;
  ForKind for_kind = ForKind::kSerial;
  Value begin, end, step;
  std::vector<Val> extents;  // kParallel, kGrid
  Value num_stages = int64_t{0};
  uint32_t coalesced_width = 0;
  std::vector<int32_t> order, stage;
};

// What `with` opens.
struct ContextObject {
  enum class Kind : uint8_t { kKernel, kThreadRegion, kRoles, kRole };
  Kind kind = Kind::kKernel;
  std::vector<Val> grid;
  Val threads;
  std::string name;
  bool cooperative = false;
  Val thread_begin, thread_end;
};

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
