// Arithmetic on elements.
#include <cmath>

#include "frontend/builtin_tables.h"
#include "frontend/evaluator.h"
#include "frontend/regions.h"
#include "frontend/row_reductions.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

Value ApplyTo(Evaluator& e, const Args& args, ExprOp op, std::initializer_list<std::string_view> names) {
  std::vector<Val> operands;
  for (const std::string_view name : names) {
    operands.push_back(e.Number(args[name], args.RangeOf(name), Cat("the argument of ", args.builtin().path)));
    if (!operands.back()) return Poison{};
  }
  return e.Wrap(e.builder().Apply(op, std::move(operands)));
}

template <ExprOp op, int arity>
Value Apply(Evaluator& e, const Args& args) {
  if constexpr (arity == 1) return ApplyTo(e, args, op, {"x"});
  if constexpr (arity == 2) return ApplyTo(e, args, op, {"x", "y"});
  if constexpr (arity == 3) return ApplyTo(e, args, op, {"x", "y", "z"});
}

template <ast::BinaryOp op>
Value Operator(Evaluator& e, const Args& args) {
  return e.BinaryOperator(op, args["a"], args["b"], args.range());
}

// Is `value` several elements of a buffer?
bool IsPart(const Value& value) {
  const auto* region = value.Object<const BufferRegion>();
  const auto* buffer = value.As<Buf>();
  return (region && !region->IsElement()) || (buffer && !buffer->buffer().shape.empty());
}

// T.max(x, y, …), and T.max(A[i, :]).
Value MinOrMax(Evaluator& e, const Args& args) {
  const std::string_view name = args.builtin().path.substr(2);
  if (args.rest().size() != 1 || !IsPart(args.rest()[0])) return e.CallValue(FindBuiltin(name), args.rest(), args.range());
  return ReductionExpression(e, args, name == "max" ? ReduceOp::kMax : ReduceOp::kMin, args.rest()[0], args.rest_ranges()[0]);
}

Value Sum(Evaluator& e, const Args& args) {
  return ReductionExpression(e, args, ReduceOp::kSum, args["buffer"], args.RangeOf("buffer"));
}

Value Abs(Evaluator& e, const Args& args) { return e.CallValue(FindBuiltin("abs"), {args["x"]}, args.range()); }
Value BitNot(Evaluator& e, const Args& args) { return e.UnaryOperator(ast::UnaryOp::kInvert, args["x"], args.range()); }
Value Not(Evaluator& e, const Args& args) { return e.UnaryOperator(ast::UnaryOp::kNot, args["x"], args.range()); }

Value Pow(Evaluator& e, const Args& args) { return ApplyTo(e, args, ExprOp::kPow, {"x", "y"}); }

Value Clamp(Evaluator& e, const Args& args) {
  const Value raised = e.CallValue(FindBuiltin("max"), {args["x"], args["low"]}, args.range());
  return e.CallValue(FindBuiltin("min"), {raised, args["high"]}, args.range());
}

Value CeilDiv(Evaluator& e, const Args& args) {
  const Value &a = args["a"], &b = args["b"];
  if (!IsSymbolic(a) && !IsSymbolic(b)) {
    const auto x = e.Int(a, args.RangeOf("a"), "the argument of T.ceildiv"),
               y = e.Int(b, args.RangeOf("b"), "the argument of T.ceildiv");
    if (!x || !y) return Poison{};
    if (*y == 0) return e.Fail(args.range(), "division by zero", "test the divisor first");
    if (*y == -1) return *x == INT64_MIN ? e.Fail(args.range(), "the result does not fit 64 bits") : Value(-*x);
    return *x / *y + (*x % *y != 0 && (*x < 0) == (*y < 0) ? 1 : 0);
  }
  const Val x = e.Number(a, args.RangeOf("a"), "the argument of T.ceildiv"),
            y = e.Number(b, args.RangeOf("b"), "the argument of T.ceildiv");
  return x && y ? e.Wrap(tilert::CeilDiv(x.In(&e.builder()), y.In(&e.builder()))) : Value(Poison{});
}

Value Select(Evaluator& e, const Args& args) {
  const Value& condition = args["condition"];
  if (!IsSymbolic(condition)) {
    const auto truth = e.Truth(condition, args.RangeOf("condition"));
    return truth ? args[*truth ? "then" : "otherwise"] : Value(Poison{});
  }
  const Val c = e.Number(condition, args.RangeOf("condition"), "the condition");
  const Val a = e.Number(args["then"], args.RangeOf("then"), "a chosen value"),
            b = e.Number(args["otherwise"], args.RangeOf("otherwise"), "a chosen value");
  return c && a && b ? e.Wrap(e.builder().Select(c, a, b)) : Value(Poison{});
}

bool NamesType(const Value& value) {
  const auto* text = value.Object<const StringObject>();
  return value.Is<DType>() || (text && ParseDType(text->text) != DType::kInvalid);
}

// Both orders are in use: T.cast(value, dtype) and T.Cast(dtype, value).
Value Cast(Evaluator& e, const Args& args) {
  const bool type_first = NamesType(args["value"]);
  const std::string_view value = type_first ? "dtype" : "value", dtype = type_first ? "value" : "dtype";
  // A handle stands for a pointer that nothing here reads.
  if (const auto* text = args[dtype].Object<const StringObject>(); text != nullptr && text->text == "handle") return NoneValue{};
  const auto type = e.Type(args[dtype], args.RangeOf(dtype), Cat("the dtype of ", args.builtin().path));
  const Val number = e.Number(args[value], args.RangeOf(value), Cat("the argument of ", args.builtin().path));
  if (!type || !number) return Poison{};
  if (args.builtin().path == "T.reinterpret") return e.Wrap(e.builder().Reinterpret(number, *type));
  return e.Wrap(e.builder().Cast(number, *type));
}

Value Infinity(Evaluator& e, const Args& args) {
  const auto type = args.Has("dtype") ? e.Type(args["dtype"], args.range(), "the argument of T.infinity") : DType::kFloat32;
  if (!type) return Poison{};
  if (!IsFloat(*type)) return e.Fail(args.range(), Cat(DTypeName(*type), " has no infinity"), "use T.max_value(dtype)");
  return HUGE_VAL;
}

// The greatest or least finite value of a type.
Value Limit(Evaluator& e, const Args& args) {
  const bool greatest = args.builtin().path == "T.max_value";
  const auto type = e.Type(args["dtype"], args.range(), Cat("the argument of ", args.builtin().path));
  if (!type) return Poison{};
  const int bits = DTypeBits(*type);
  double largest = 0;
  switch (*type) {
    case DType::kFloat16: largest = 65504; break;
    case DType::kBFloat16: largest = 0x1.FEp127; break;
    case DType::kFloat32: largest = 0x1.FFFFFEp127; break;
    case DType::kFloat64: largest = 0x1.FFFFFFFFFFFFFp1023; break;
    case DType::kFloat8E4M3: largest = 448; break;
    case DType::kFloat8E5M2: largest = 57344; break;
    default:
      if (KindOf(*type) == DTypeKind::kUnsigned) {
        if (bits == 64 && greatest) return e.builder().Int(-1, *type);
        return greatest ? (int64_t{1} << bits) - 1 : int64_t{0};
      }
      if (*type == DType::kBool) return greatest;
      return greatest ? INT64_MAX >> (64 - bits) : INT64_MIN >> (64 - bits);
  }
  return greatest ? largest : -largest;
}

// T.dp4a(A[i], B[j], C[k]): C[k] += the product of four neighbours from A[i] and B[j] on.
Value DotOfFour(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  auto a = e.Region(args["A"], args.RangeOf("A"), "the first operand of T.dp4a"),
       b = e.Region(args["B"], args.RangeOf("B"), "the second operand of T.dp4a"),
       c = e.Region(args["C"], args.RangeOf("C"), "the sum of T.dp4a");
  if (!a || !b || !c) return Poison{};
  if (a->start.empty() || b->start.empty())
    return e.Fail(args.range(), "T.dp4a takes four neighbours of buffers with dimensions", "write T.dp4a(A[i], B[j], C[k])");
  ProgramBuilder& builder = e.builder();
  Val sum = builder.Load(c->buffer, c->start);
  for (int64_t i = 0; i < 4; ++i) {
    const auto element = [&](const BufferRegion& region) {
      std::vector<Val> at = region.start;
      at.back() = Shifted(e, at.back(), builder.Lit(i));
      return builder.Cast(builder.Load(region.buffer, at), DType::kInt32);
    };
    sum = sum + element(*a) * element(*b);
  }
  builder.Store(c->buffer, c->start, sum);
  return NoneValue{};
}

// What TileLang computes fast and roughly, and what it writes in terms of other functions.
Value ByOthers(Evaluator& e, const Args& args) {
  const Val x = e.Number(args["x"], args.RangeOf("x"), Cat("the argument of ", args.builtin().path));
  if (!x) return Poison{};
  const std::string_view path = args.builtin().path;
  const std::string_view name = path.substr(path.substr(0, 4) == "T.__" ? 4 : 2);
  ProgramBuilder& b = e.builder();
  if (name == "exp10") return e.Wrap(b.Apply(ExprOp::kPow, {b.Lit(10.0), x}));
  if (name == "log10") return e.Wrap(b.Apply(ExprOp::kLog, {x}) * b.Lit(0.43429448190325182));
  return e.Wrap(b.Apply(ExprOp::kSin, {x}) / b.Apply(ExprOp::kCos, {x}));  // tan
}

Value Let(Evaluator& e, const Args& args) {
  if (!e.RequireLaunch(args)) return Poison{};
  const Val number = e.Number(args["value"], args.range(), "the argument of T.let");
  return number ? e.Wrap(e.builder().Let(e.NameHint("value"), number)) : Value(Poison{});
}

}  // namespace

absl::Span<const Builtin> MathIntrinsics() {
#define TILERT_PARAMS_1 "x"
#define TILERT_PARAMS_2 "x y"
#define TILERT_PARAMS_3 "x y z"
#define TILERT_ENTRY_Leaf(name, arity, text)
#define TILERT_ENTRY_Infix(name, arity, text)
#define TILERT_ENTRY_Other(name, arity, text)
#define TILERT_ENTRY_Call(name, arity, text) {"T." text, TILERT_PARAMS_##arity, Apply<ExprOp::k##name, arity>},
#define TILERT_EXPR_OP(name, id, arity, cls, text) TILERT_ENTRY_##cls(name, arity, text)
  static constexpr Builtin kBuiltins[] = {
      {"T.min", "*", MinOrMax},
      {"T.max", "*", MinOrMax},
      {"T.sum", "buffer", Sum},
      {"T.abs", "x", Abs},
      {"T.pow", "x y", Pow},
      {"T.power", "x y", Pow},
      {"T.clamp", "x low high", Clamp},
      {"T.ceildiv", "a b", CeilDiv},
      {"T.floordiv", "a b", Operator<ast::BinaryOp::kFloorDiv>},
      {"T.floormod", "a b", Operator<ast::BinaryOp::kMod>},
      {"T.shift_left", "a b", Operator<ast::BinaryOp::kShiftLeft>},
      {"T.shift_right", "a b", Operator<ast::BinaryOp::kShiftRight>},
      {"T.bitwise_and", "a b", Operator<ast::BinaryOp::kAnd>},
      {"T.bitwise_or", "a b", Operator<ast::BinaryOp::kOr>},
      {"T.bitwise_xor", "a b", Operator<ast::BinaryOp::kXor>},
      {"T.bitwise_not", "x", BitNot},
      {"T.Not", "x", Not},
      {"T.if_then_else", "condition then otherwise", Select},
      {"T.Select", "condition then otherwise", Select},
      {"T.cast", "value dtype", Cast},
      {"T.Cast", "value dtype", Cast},
      {"T.reinterpret", "value dtype", Cast},
      {"T.infinity", "dtype?", Infinity},
      {"T.max_value", "dtype", Limit},
      {"T.min_value", "dtype", Limit},
      {"T.let", "value", Let},
      {"T.dp4a", "A B C", DotOfFour},
      {"T.__exp", "x", Apply<ExprOp::kExp, 1>},
      {"T.__exp2", "x", Apply<ExprOp::kExp2, 1>},
      {"T.__exp10", "x", ByOthers},
      {"T.exp10", "x", ByOthers},
      {"T.__log", "x", Apply<ExprOp::kLog, 1>},
      {"T.__log2", "x", Apply<ExprOp::kLog2, 1>},
      {"T.__log10", "x", ByOthers},
      {"T.log10", "x", ByOthers},
      {"T.__sin", "x", Apply<ExprOp::kSin, 1>},
      {"T.__cos", "x", Apply<ExprOp::kCos, 1>},
      {"T.__tan", "x", ByOthers},
      {"T.tan", "x", ByOthers},
      {"T.__pow", "x y", Apply<ExprOp::kPow, 2>},
#include "ir/expr_op.def"
  };
  return kBuiltins;
}

}  // namespace tilert::frontend
