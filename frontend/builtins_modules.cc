// Functions of math, itertools, functools and of tilelang outside its language module.
#include <cmath>
#include <numeric>

#include "frontend/builtin_tables.h"
#include "frontend/evaluator.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

using RealFunction = double (*)(double);

template <RealFunction function>
Value Real(Evaluator& e, const Args& args) {
  const Value& value = args["x"];
  const auto* d = value.As<double>();
  const auto* i = value.As<int64_t>();
  if (d == nullptr && i == nullptr) {
    if (value.poisoned() || value.Is<Host>()) return value;
    return e.Fail(args.range(), Cat(args.builtin().path, " takes a number that is known at compile time, not ", Describe(value)),
                  "in a kernel, use the function of the same name of T");
  }
  const double result = function(d ? *d : static_cast<double>(*i));
  if (std::isnan(result)) return e.Fail(args.range(), Cat(args.builtin().path, " of this number has no value"));
  return result;
}

// ceil and floor give ints in Python.
template <RealFunction function>
Value Whole(Evaluator& e, const Args& args) {
  if (args["x"].Is<int64_t>()) return args["x"];
  const Value result = Real<function>(e, args);
  const auto* d = result.As<double>();
  return d && std::abs(*d) < 9e18 ? Value(static_cast<int64_t>(*d)) : result;
}

Value Log(Evaluator& e, const Args& args) {
  const Value result = Real<std::log>(e, args);
  if (!args.Has("base") || !result.Is<double>()) return result;
  const auto* d = args["base"].As<double>();
  const auto* i = args["base"].As<int64_t>();
  if (!d && !i) return e.Fail(args.RangeOf("base"), "the base of math.log must be a number");
  return *result.As<double>() / std::log(d ? *d : static_cast<double>(*i));
}

Value Gcd(Evaluator& e, const Args& args) {
  const auto a = e.Int(args["a"], args.RangeOf("a"), "the argument of math.gcd"),
             b = e.Int(args["b"], args.RangeOf("b"), "the argument of math.gcd");
  if (!a || !b) return Poison{};
  if (*a == INT64_MIN || *b == INT64_MIN) return e.Fail(args.range(), "the result does not fit 64 bits");
  return std::gcd(*a, *b);
}

Value MathPow(Evaluator& e, const Args& args) {
  return e.BinaryOperator(ast::BinaryOp::kPow, args["x"], args["y"], args.range());
}

Value CartesianProduct(Evaluator& e, const Args& args) {
  std::vector<std::vector<Value>> rows = {{}};
  constexpr size_t kMaxRows = 1 << 16;
  for (const Value& argument : args.rest()) {
    const auto items = e.Items(argument, args.range(), "an argument of itertools.product");
    if (!items) return Poison{};
    if (rows.size() * items->size() > kMaxRows)
      return e.Fail(args.range(), Cat("this product has more than ", kMaxRows, " rows"),
                    "leave out what is not needed, or write loops");
    std::vector<std::vector<Value>> longer;
    for (const auto& row : rows) {
      for (const Value& item : *items) {
        longer.push_back(row);
        longer.back().push_back(item);
      }
    }
    rows = std::move(longer);
  }
  std::vector<Value> tuples;
  for (auto& row : rows) tuples.push_back(e.Tuple(std::move(row)));
  return e.List(std::move(tuples));
}

Value Partial(Evaluator& e, const Args& args) {
  const auto* function = args["function"].Object<const FunctionObject>();
  if (function == nullptr)
    return args["function"].Is<Host>()
               ? args["function"]
               : e.Fail(args.range(), "functools.partial takes a function of this file", "write a lambda");
  FunctionObject* bound = e.New(FunctionObject(*function));
  bound->partial.insert(bound->partial.end(), args.rest().begin(), args.rest().end());
  for (const auto& keyword : args.keywords()) bound->partial_keywords.push_back(keyword);
  return static_cast<const FunctionObject*>(bound);
}

Value FunctoolsReduce(Evaluator& e, const Args& args) {
  const auto items = e.Items(args["items"], args.RangeOf("items"), "the argument of functools.reduce");
  if (!items) return Poison{};
  size_t next = 0;
  Value total = args["initial"];
  if (!args.Has("initial")) {
    if (items->empty()) return e.Fail(args.range(), "functools.reduce of nothing", "give it an initial value");
    total = (*items)[next++];
  }
  for (; next < items->size(); ++next) total = e.CallValue(args["function"], {total, (*items)[next]}, args.range());
  return total;
}

Value CeilDivide(Evaluator& e, const Args& args) {
  return e.CallValue(FindBuiltin("T.ceildiv"), {args["a"], args["b"]}, args.range());
}

Value NextPowerOf2(Evaluator& e, const Args& args) {
  const auto n = e.Int(args["n"], args.RangeOf("n"), "the argument of next_power_of_2");
  if (!n) return Poison{};
  int64_t power = 1;
  while (power < *n && power < INT64_C(1) << 61) power *= 2;
  return power;
}

Value First(Evaluator&, const Args& args) { return args.rest().empty() ? Value() : args.rest()[0]; }

// AutoTuner.from_kernel(kernel, configs): the function that makes the kernel, with the first configuration.
Value FromKernel(Evaluator& e, const Args& args) {
  const auto* function = args["kernel"].Object<const FunctionObject>();
  if (function == nullptr)
    return e.Fail(args.RangeOf("kernel"), Cat("a tuner takes a function of this file, not ", Describe(args["kernel"])));
  FunctionObject* tuned = e.New(FunctionObject(*function));
  tuned->config_list = args["configs"];
  return static_cast<const FunctionObject*>(tuned);
}

// tirx.const(value, dtype).
Value TypedNumber(Evaluator& e, const Args& args) {
  const auto type =
      args.Has("dtype") ? e.Type(args["dtype"], args.RangeOf("dtype"), "the dtype of a constant") : std::optional(DType::kInt32);
  return type ? e.CallValue(*type, {args["value"]}, args.range()) : Value(Poison{});
}

Value SwizzledLayout(Evaluator& e, const Args& args) {
  return e.CallValue(FindBuiltin("T.make_swizzled_layout"), {args["buffer"]}, args.range());
}

}  // namespace

absl::Span<const Builtin> ModuleBuiltins() {
  static constexpr Builtin kBuiltins[] = {
      {"math.sqrt", "x", Real<std::sqrt>},
      {"math.exp", "x", Real<std::exp>},
      {"math.exp2", "x", Real<std::exp2>},
      {"math.log", "x base?", Log},
      {"math.log2", "x", Real<std::log2>},
      {"math.log10", "x", Real<std::log10>},
      {"math.sin", "x", Real<std::sin>},
      {"math.cos", "x", Real<std::cos>},
      {"math.tanh", "x", Real<std::tanh>},
      {"math.fabs", "x", Real<std::fabs>},
      {"math.ceil", "x", Whole<std::ceil>},
      {"math.floor", "x", Whole<std::floor>},
      {"math.trunc", "x", Whole<std::trunc>},
      {"math.pow", "x y", MathPow},
      {"math.gcd", "a b", Gcd},
      {"itertools.product", "*", CartesianProduct},
      {"functools.partial", "function * **", Partial},
      {"functools.reduce", "function items initial?", FunctoolsReduce},
      {"tilelang.cdiv", "a b", CeilDivide},
      {"tilelang.next_power_of_2", "n", NextPowerOf2},
      {"tilelang.jit", "* **", First},
      {"tilelang.lazy_jit", "* **", First},
      {"tilelang.autotune", "* **", First},
      {"tilelang.compile", "* **", First},
      {"tilelang.AutoTuner", "* **", First},
      {"tilelang.from_kernel", "kernel configs", FromKernel},
      {"tirx.const", "value dtype?", TypedNumber},
      {"tilelang.make_swizzled_layout", "buffer k_major? allow_pad?", SwizzledLayout},
  };
  return kBuiltins;
}

}  // namespace tilert::frontend
