// The functions of Python, math, itertools and functools that outer functions use.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "frontend/builtin_tables.h"
#include "frontend/evaluator.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

std::optional<std::vector<Value>> ItemsOf(Evaluator& e, const Args& args, std::string_view name) {
  return e.Items(args[name], args.RangeOf(name), Cat("the argument of ", args.builtin().path));
}

Value Length(Evaluator& e, const Args& args) {
  const auto items = ItemsOf(e, args, "object");
  return items ? Value(static_cast<int64_t>(items->size())) : Value(Poison{});
}

Value Range(Evaluator& e, const Args& args) {
  const std::vector<Value>& rest = args.rest();
  if (rest.empty() || rest.size() > 3)
    return e.Fail(args.range(), "range takes one to three numbers",
                  "write range(end), range(begin, end) or range(begin, end, step)");
  for (size_t i = 0; i < rest.size(); ++i) {
    if (!e.IsNumber(rest[i]))
      return Value(e.Int(rest[i], args.rest_ranges()[i], "an argument of range") ? Value() : Value(Poison{}));
  }
  LoopObject loop;
  loop.begin = rest.size() > 1 ? rest[0] : Value(int64_t{0});
  loop.end = rest.size() > 1 ? rest[1] : rest[0];
  loop.step = rest.size() > 2 ? rest[2] : Value(int64_t{1});
  const auto* step = loop.step.As<int64_t>();
  if (step && *step == 0) return e.Fail(args.rest_ranges()[2], "the step of a range cannot be 0");
  return static_cast<const LoopObject*>(e.New(std::move(loop)));
}

Value ToInt(Evaluator& e, const Args& args) {
  const Value& value = args["value"];
  if (const auto* text = value.Object<const StringObject>()) {
    int64_t number = 0;
    if (absl::SimpleAtoi(text->text, &number)) return number;
  }
  if (const auto* d = value.As<double>(); d && std::abs(*d) < 9e18) return static_cast<int64_t>(*d);
  if (const auto* v = value.As<Val>(); v && IsInteger(v->dtype())) return value;
  const auto number = e.Int(value, args.range(), "the argument of int");
  return number ? Value(*number) : Value(Poison{});
}

Value ToFloat(Evaluator& e, const Args& args) {
  const Value& value = args["value"];
  if (const auto* i = value.As<int64_t>()) return static_cast<double>(*i);
  if (const auto* b = value.As<bool>()) return *b ? 1.0 : 0.0;
  if (value.Is<double>()) return value;
  if (const auto* text = value.Object<const StringObject>()) {
    if (text->text == "inf" || text->text == "infinity") return HUGE_VAL;
    if (text->text == "-inf") return -HUGE_VAL;
    if (text->text == "nan") return std::nan("");
    double number = 0;
    if (absl::SimpleAtod(text->text, &number)) return number;
  }
  const Val number = e.Number(value, args.range(), "the argument of float");
  return number ? e.Wrap(e.builder().Cast(number, DType::kFloat32)) : Value(Poison{});
}

Value ToBool(Evaluator& e, const Args& args) {
  const auto truth = e.Truth(args["value"], args.range());
  return truth ? Value(*truth) : args["value"];
}

Value ToString(Evaluator& e, const Args& args) { return args.Has("value") ? e.Text(ToText(args["value"])) : e.Text(""); }
Value Repr(Evaluator& e, const Args& args) { return e.Text(ToRepr(args["value"])); }

// min and max: of known values by comparison, else as operators of the program.
Value Extreme(Evaluator& e, const Args& args, ast::CompareOp better, ExprOp op) {
  std::vector<Value> values = args.rest();
  if (values.size() == 1) {
    const auto items = e.Items(values[0], args.range(), "the argument");
    if (!items) return Poison{};
    values = *items;
  }
  if (values.empty()) return e.Fail(args.range(), Cat(args.builtin().path, " of nothing"), "give it at least one value");
  Value best = values[0];
  for (size_t i = 1; i < values.size(); ++i) {
    if (IsSymbolic(best) || IsSymbolic(values[i])) {
      const Val a = e.Number(best, args.range(), "an argument"), b = e.Number(values[i], args.range(), "an argument");
      if (!a || !b) return Poison{};
      best = e.Wrap(e.builder().Apply(op, {a, b}));
      continue;
    }
    const Value wins = e.CompareOperator(better, values[i], best, args.range());
    const auto* is_better = wins.As<bool>();
    if (is_better == nullptr) return wins;  // an error, or a value of the host program
    if (*is_better) best = values[i];
  }
  return best;
}

Value Min(Evaluator& e, const Args& args) { return Extreme(e, args, ast::CompareOp::kLt, ExprOp::kMin); }
Value Max(Evaluator& e, const Args& args) { return Extreme(e, args, ast::CompareOp::kGt, ExprOp::kMax); }

Value Absolute(Evaluator& e, const Args& args) {
  const Value& value = args["value"];
  if (const auto* i = value.As<int64_t>(); i && *i != INT64_MIN) return *i < 0 ? -*i : *i;
  if (const auto* d = value.As<double>()) return std::abs(*d);
  const Val number = e.Number(value, args.range(), "the argument of abs");
  return number ? e.Wrap(e.builder().Apply(ExprOp::kAbs, {number})) : Value(Poison{});
}

Value Sum(Evaluator& e, const Args& args) {
  const auto items = ItemsOf(e, args, "items");
  if (!items) return Poison{};
  Value total = args.Has("start") ? args["start"] : Value(int64_t{0});
  for (const Value& item : *items) total = e.BinaryOperator(ast::BinaryOp::kAdd, total, item, args.range());
  return total;
}

Value Product(Evaluator& e, const Args& args) {
  const auto items = ItemsOf(e, args, "items");
  if (!items) return Poison{};
  Value total = int64_t{1};
  for (const Value& item : *items) total = e.BinaryOperator(ast::BinaryOp::kMul, total, item, args.range());
  return total;
}

Value Quantify(Evaluator& e, const Args& args, bool all) {
  const auto items = ItemsOf(e, args, "items");
  if (!items) return Poison{};
  for (const Value& item : *items) {
    const auto truth = e.Truth(item, args.range());
    if (!truth) return e.Fail(args.range(), "this is known only at run time", "join the conditions with `and` or `or`");
    if (*truth != all) return !all;
  }
  return all;
}
Value All(Evaluator& e, const Args& args) { return Quantify(e, args, true); }
Value Any(Evaluator& e, const Args& args) { return Quantify(e, args, false); }

Value Zip(Evaluator& e, const Args& args) {
  std::vector<std::vector<Value>> columns;
  size_t count = SIZE_MAX;
  for (const Value& column : args.rest()) {
    const auto items = e.Items(column, args.range(), "an argument of zip");
    if (!items) return Poison{};
    columns.push_back(*items);
    count = std::min(count, items->size());
  }
  std::vector<Value> rows;
  for (size_t i = 0; i < count && !columns.empty(); ++i) {
    std::vector<Value> row;
    for (const auto& column : columns) row.push_back(column[i]);
    rows.push_back(e.Tuple(std::move(row)));
  }
  return e.List(std::move(rows));
}

Value Enumerate(Evaluator& e, const Args& args) {
  const auto items = ItemsOf(e, args, "items");
  const auto start = args.Has("start") ? e.Int(args["start"], args.RangeOf("start"), "start") : std::optional<int64_t>(0);
  if (!items || !start) return Poison{};
  std::vector<Value> rows;
  Value number = *start;
  for (const Value& item : *items) {
    rows.push_back(e.Tuple({number, item}));
    number = e.BinaryOperator(ast::BinaryOp::kAdd, number, int64_t{1}, args.range());
  }
  return e.List(std::move(rows));
}

Value MapValues(Evaluator& e, const Args& args) {
  const auto items = ItemsOf(e, args, "items");
  if (!items) return Poison{};
  std::vector<Value> out;
  for (const Value& item : *items) out.push_back(e.CallValue(args["function"], {item}, args.range()));
  return e.List(std::move(out));
}

Value Sequence(Evaluator& e, const Args& args, SequenceKind kind) {
  if (!args.Has("items")) return e.New(SequenceObject{kind, {}});
  const auto items = ItemsOf(e, args, "items");
  if (!items) return Poison{};
  SequenceObject sequence{kind, {}};
  for (const Value& item : *items) {
    const auto same = [&](const Value& other) { return Equal(item, other); };
    if (kind == SequenceKind::kSet && std::any_of(sequence.items.begin(), sequence.items.end(), same)) continue;
    sequence.items.push_back(item);
  }
  return e.New(std::move(sequence));
}
Value ToList(Evaluator& e, const Args& args) { return Sequence(e, args, SequenceKind::kList); }
Value ToTuple(Evaluator& e, const Args& args) { return Sequence(e, args, SequenceKind::kTuple); }
Value ToSet(Evaluator& e, const Args& args) { return Sequence(e, args, SequenceKind::kSet); }

Value Reversed(Evaluator& e, const Args& args) {
  auto items = ItemsOf(e, args, "items");
  if (!items) return Poison{};
  std::reverse(items->begin(), items->end());
  return e.List(std::move(*items));
}

Value Sorted(Evaluator& e, const Args& args) {
  auto items = ItemsOf(e, args, "items");
  if (!items) return Poison{};
  // Insertion: the comparison reports what cannot be compared, which std::sort could not stand.
  for (size_t i = 1; i < items->size(); ++i) {
    for (size_t j = i; j > 0; --j) {
      const Value less = e.CompareOperator(ast::CompareOp::kLt, (*items)[j], (*items)[j - 1], args.range());
      if (less.Is<Val>())
        return e.Fail(args.range(), "values that are known only at run time cannot be sorted",
                      "give the names in them fixed values with --set");
      if (!less.As<bool>()) return less;
      if (!*less.As<bool>()) break;
      std::swap((*items)[j], (*items)[j - 1]);
    }
  }
  const auto reverse = e.Bool(args["reverse"], args.RangeOf("reverse"), "reverse");
  if (reverse.value_or(false)) std::reverse(items->begin(), items->end());
  return e.List(std::move(*items));
}

// dict(zip(keys, values)) and dict(a=1): the pairs.
Value ToDict(Evaluator& e, const Args& args) {
  DictObject dict;
  if (const auto* other = args["items"].Object<DictObject>()) return e.New(DictObject(*other));
  const auto items = args.Has("items") ? ItemsOf(e, args, "items") : std::vector<Value>{};
  if (!items) return Poison{};
  for (const Value& item : *items) {
    const auto pair = e.Items(item, args.range(), "an item of dict");
    if (!pair) return Poison{};
    if (pair->size() != 2) return e.Fail(args.range(), "dict takes pairs", "write dict([(key, value), ...])");
    dict.items.emplace_back((*pair)[0], (*pair)[1]);
  }
  for (const auto& [name, value] : args.keywords()) dict.items.emplace_back(e.Text(name), value);
  return e.New(std::move(dict));
}

bool IsInstanceOf(const Value& value, const Value& type) {
  if (const auto* types = type.Object<SequenceObject>()) {
    return std::any_of(types->items.begin(), types->items.end(), [&](const Value& t) { return IsInstanceOf(value, t); });
  }
  const auto* builtin = type.Object<const Builtin>();
  if (builtin == nullptr) return false;
  const auto* sequence = value.Object<SequenceObject>();
  if (builtin->path == "int") return value.Is<int64_t>() || value.Is<bool>();
  if (builtin->path == "bool") return value.Is<bool>();
  if (builtin->path == "float") return value.Is<double>();
  if (builtin->path == "str") return value.Object<const StringObject>() != nullptr;
  if (builtin->path == "list") return sequence && sequence->kind == SequenceKind::kList;
  if (builtin->path == "tuple") return sequence && sequence->kind == SequenceKind::kTuple;
  if (builtin->path == "dict") return value.Object<DictObject>() != nullptr;
  return false;
}

Value IsInstance(Evaluator&, const Args& args) { return IsInstanceOf(args["value"], args["type"]); }
Value Ignore(Evaluator&, const Args&) { return NoneValue{}; }

Value Power(Evaluator& e, const Args& args) { return e.BinaryOperator(ast::BinaryOp::kPow, args["x"], args["y"], args.range()); }

Value Round(Evaluator& e, const Args& args) {
  const Value& value = args["value"];
  if (value.Is<int64_t>()) return value;
  const auto* d = value.As<double>();
  if (d == nullptr) return e.Fail(args.range(), Cat("round takes a number, not ", Describe(value)), "use T.round in a kernel");
  if (!args.Has("digits")) return std::abs(*d) < 9e18 ? Value(static_cast<int64_t>(std::nearbyint(*d))) : value;
  const auto digits = e.Int(args["digits"], args.RangeOf("digits"), "digits");
  if (!digits) return Poison{};
  if (*digits >= 0) {
    const int decimals = static_cast<int>(std::min<int64_t>(*digits, 400));
    return std::strtod(absl::StrFormat("%.*f", decimals, *d).c_str(), nullptr);
  }
  const double scale = std::pow(10.0, static_cast<double>(*digits));
  return std::nearbyint(*d * scale) / scale;
}

}  // namespace

absl::Span<const Builtin> PythonBuiltins() {
  static constexpr Builtin kBuiltins[] = {
      {"len", "object", Length},
      {"range", "*", Range},
      {"int", "value", ToInt},
      {"float", "value", ToFloat},
      {"bool", "value", ToBool},
      {"str", "value?", ToString},
      {"repr", "value", Repr},
      {"min", "*", Min},
      {"max", "*", Max},
      {"abs", "value", Absolute},
      {"sum", "items start?", Sum},
      {"math.prod", "items", Product},
      {"all", "items", All},
      {"any", "items", Any},
      {"zip", "* strict?", Zip},
      {"enumerate", "items start?", Enumerate},
      {"map", "function items", MapValues},
      {"list", "items?", ToList},
      {"tuple", "items?", ToTuple},
      {"set", "items?", ToSet},
      {"reversed", "items", Reversed},
      {"sorted", "items key? reverse?", Sorted},
      {"dict", "items? **", ToDict},
      {"isinstance", "value type", IsInstance},
      {"print", "* sep? end? file? flush?", Ignore},
      {"pow", "x y", Power},
      {"round", "value digits?", Round},
  };
  return kBuiltins;
}

}  // namespace tilert::frontend
