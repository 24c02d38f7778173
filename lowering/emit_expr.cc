// Expressions as C++: docs/ir_spec.md sections 2 and 3 in terms of the prelude's functions.
#include <charconv>
#include <cmath>

#include "absl/strings/str_join.h"
#include "ir/numeric.h"
#include "ir/status_util.h"
#include "lowering/emit_place.h"

namespace tilert {
namespace {

std::string Call(std::string_view function, const std::vector<std::string>& args) {
  return Cat(function, "(", absl::StrJoin(args, ", "), ")");
}

CText FloatText(double value, DType type) {
  if (std::isnan(value))
    return {type == DType::kFloat64 ? "__longlong_as_double(0x7ff8000000000000ll)" : "__uint_as_float(0x7fffffffu)"};
  if (std::isinf(value)) {
    const char* infinity =
        type == DType::kFloat64 ? "__longlong_as_double(0x7ff0000000000000ll)" : "__uint_as_float(0x7f800000u)";
    return {Cat(value < 0 ? "-" : "", infinity), value < 0 ? CText::kUnary : CText::kPrimary};
  }
  char digits[64];
  const bool is_double = type == DType::kFloat64;
  const std::to_chars_result end = is_double ? std::to_chars(digits, digits + sizeof digits, value)
                                             : std::to_chars(digits, digits + sizeof digits, static_cast<float>(value));
  std::string text(digits, end.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (!is_double) text += "f";
  return {text, text[0] == '-' ? CText::kUnary : CText::kPrimary};
}

CText IntImmediate(const ExprNode& node, bool wide) {
  switch (node.dtype) {
    case DType::kBool: return {node.i != 0 ? "true" : "false"};
    case DType::kUInt64: return {Cat(static_cast<uint64_t>(node.i), "ull")};
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kUInt32: return {Cat(static_cast<uint32_t>(node.i), "u")};
    default: break;
  }
  if (node.i == INT64_MIN) return {"(-9223372036854775807ll - 1)"};
  const bool is_int = node.dtype == DType::kInt32 || (node.dtype == DType::kIndex && !wide);  // the number alone is a long
  if (is_int && node.i == INT32_MIN) return {"(-2147483647 - 1)"};
  return {Cat(node.i, wide ? "ll" : ""), node.i < 0 ? CText::kUnary : CText::kPrimary};
}

// One expression tree. Values of index type are int or long long, as IsWide says; others have the C++ type ValueType names.
class ExprEmitter {
 public:
  explicit ExprEmitter(EmitContext& c) : c_(c) {}

  CText Value(Expr e) {
    const DType type = Node(e).dtype;
    if (!IsNarrowFloat(type) || IsRounded(e)) return Emit(e);
    return {Call(Cat("rounded<", MemoryType(type), ">"), {Emit(e).text})};
  }
  // A narrow float may be unrounded.
  CText Emit(Expr e) {
    const ExprNode& node = Node(e);
    switch (node.op) {
      case ExprOp::kIntImm:
        return IntImmediate(node, node.dtype == DType::kInt64 || (node.dtype == DType::kIndex && IsWide(c_, e)));
      case ExprOp::kFloatImm: return FloatText(RoundToType(node.dtype, node.f), node.dtype);
      case ExprOp::kDim: return {c_.dims[node.i]};
      case ExprOp::kScalar: return Scalar(node);
      case ExprOp::kVar: return {c_.vars[node.i].name};
      case ExprOp::kLoad: return Load(node);
      case ExprOp::kCast: return Cast(e, node);
      case ExprOp::kReinterpret: return Reinterpret(node);
      case ExprOp::kSelect: return Select(e, node);
      case ExprOp::kAnd: return CBinary(Value(node.args[0]), "&&", CText::kAnd, Guarded(node.args[1], node.args[0]));
      case ExprOp::kOr: return CBinary(Value(node.args[0]), "||", CText::kOr, Value(node.args[1]));
      case ExprOp::kLt: return Compare(node, "<", CText::kRelation);
      case ExprOp::kLe: return Compare(node, "<=", CText::kRelation);
      case ExprOp::kGt: return Compare(node, ">", CText::kRelation);
      case ExprOp::kGe: return Compare(node, ">=", CText::kRelation);
      case ExprOp::kEq: return Compare(node, "==", CText::kEquality);
      case ExprOp::kNe: return Compare(node, "!=", CText::kEquality);
      default: break;
    }
    if (node.dtype == DType::kBool) return Logic(node);
    return IsFloat(node.dtype) ? Float(node) : Integer(e, node);
  }

 private:
  const ExprNode& Node(Expr e) const { return c_.node(e); }
  // Whether Emit gives a representable value by itself: it was in memory, or comes from such by operators that round nothing.
  bool IsRounded(Expr e) const {
    const ExprNode& node = Node(e);
    switch (node.op) {
      case ExprOp::kLoad:
      case ExprOp::kVar:
      case ExprOp::kScalar:
      case ExprOp::kReinterpret:
      case ExprOp::kFloatImm:
      case ExprOp::kSelect:
      case ExprOp::kNeg:
      case ExprOp::kAbs:
      case ExprOp::kMin:
      case ExprOp::kMax:
      case ExprOp::kFloor:
      case ExprOp::kCeil:
      case ExprOp::kRound:
      case ExprOp::kTrunc: return true;
      default: return false;
    }
  }
  CText Guarded(Expr e, Expr cond) {
    Ranges::Assume assume(c_.ranges, cond);
    return Value(e);
  }
  // An index operand as long long, when it is not already.
  CText Wide(Expr e) {
    const CText text = Value(e);
    if (Node(e).dtype != DType::kIndex || IsWide(c_, e)) return text;
    return {Cat("(i64)", text.In(CText::kUnary)), CText::kUnary};
  }
  std::vector<std::string> Args(const ExprNode& node) {
    std::vector<std::string> args;
    for (Expr arg : node.args) args.push_back(Value(arg).text);
    return args;
  }

  CText Scalar(const ExprNode& node) {
    const DType type = c_.kernel.scalars[node.i].dtype;
    const std::string& name = c_.scalars[node.i];
    return PerWord(type) > 1 ? CText{Cat("value(", name, ")")} : CText{name};
  }

  CText Load(const ExprNode& node) {
    const kir::Buffer& buffer = c_.buffer(node.i);
    const std::string& name = c_.buffers[node.i];
    if (buffer.space == kir::Space::kRegister && buffer.layout.dims.empty()) return {name};
    std::vector<Coordinate> at;
    const size_t first = buffer.space == kir::Space::kShared ? 1 : 0;
    for (size_t d = first; d < node.args.size(); ++d) at.push_back(EmitCoordinate(c_, node.args[d]));
    if (buffer.space == kir::Space::kRegister) {
      const CText index = RegisterIndex(buffer.layout, at);
      if (PerWord(buffer.dtype) == 1) return {Cat(name, "[", index.text, "]")};
      return {Call(Cat("get<", MemoryType(buffer.dtype), ">"), {name, index.text})};
    }
    const absl::Span<const Expr> subscripts = absl::MakeConstSpan(node.args).subspan(first);
    // What is guarded is read once, as an argument, where it may change.
    std::vector<std::string> parameters, arguments;
    const bool guarded = !InsideCondition(c_, buffer, at, subscripts).text.empty();
    for (size_t d = 0; guarded && d < at.size(); ++d) {
      if (!MayChange(c_, subscripts[d])) continue;
      const std::string name = c_.names.Fresh("at");
      parameters.push_back(Cat(IsWide(c_, subscripts[d]) ? "i64 " : "int ", name));
      arguments.push_back(at[d].whole.text);
      at[d] = Named(at[d], name);
    }
    CText element;
    if (buffer.space == kir::Space::kShared) {
      const SharedOffset offset = SharedByteOffset(buffer, EmitInt(c_, node.args[0]), at);
      element = {Cat("*", SharedPointer(buffer.dtype, offset.Whole()).text), CText::kUnary};
    } else {
      element = ElementAt(buffer.dtype, {name}, GlobalOffset(c_, buffer, at));
    }
    if (PerWord(buffer.dtype) > 1) element = {Cat("value(", element.text, ")")};
    const CText inside = InsideCondition(c_, buffer, at, subscripts);
    if (inside.text.empty()) return element;
    const std::string text = Cat(inside.In(CText::kOr), " ? ", element.text, " : ", Zero(buffer.dtype));
    if (parameters.empty()) return {text, CText::kConditional};
    return {Call(Cat("[&](", absl::StrJoin(parameters, ", "), ") { return ", text, "; }"), arguments)};
  }
  std::string Zero(DType type) {
    if (type == DType::kBool) return "false";
    return IsFloat(type) ? FloatText(0, type).text : IntImmediate({ExprOp::kIntImm, type}, type == DType::kInt64).text;
  }

  CText Cast(Expr e, const ExprNode& node) {
    const DType from = Node(node.args[0]).dtype, to = node.dtype;
    if (from == to) return Emit(node.args[0]);
    const CText value = Value(node.args[0]);
    if (SameValue(from, to)) return value;
    if (to == DType::kIndex && !IsFloat(from)) {
      const bool is_long = from == DType::kInt64 || from == DType::kUInt64;
      if (is_long != IsWide(c_, e) || KindOf(from) != DTypeKind::kSigned) return CastTo(IsWide(c_, e) ? "i64" : "int", value);
      return value;
    }
    if (from == DType::kIndex && to == DType::kInt32) return IsWide(c_, node.args[0]) ? CastTo("int", value) : value;
    if (to == DType::kIndex) return {Call("cast<i64>", {value.text})};
    if (to == DType::kFloat32 && !IsFloat(from)) return CastTo("float", value);
    return {Call(Cat("cast<", MemoryType(to), ">"), {value.text})};
  }
  static CText CastTo(std::string_view type, const CText& value) {
    return {Cat("(", type, ")", value.In(CText::kUnary)), CText::kUnary};
  }

  CText Reinterpret(const ExprNode& node) {
    const DType from = Node(node.args[0]).dtype, to = node.dtype;
    const std::string value = Value(node.args[0]).text;
    const auto wide_name = [](DType type) { return type == DType::kIndex ? std::string("i64") : std::string(MemoryType(type)); };
    return {Call(Cat("reinterpret<", wide_name(to), ", ", wide_name(from), ">"), {value})};
  }

  CText Select(Expr e, const ExprNode& node) {
    const CText cond = Value(node.args[0]);
    const bool wide = node.dtype == DType::kIndex && IsWide(c_, e);
    CText yes, no;
    {
      Ranges::Assume assume(c_.ranges, node.args[0]);
      yes = wide ? Wide(node.args[1]) : Value(node.args[1]);
    }
    no = wide ? Wide(node.args[2]) : Value(node.args[2]);
    return {Cat(cond.In(CText::kOr), " ? ", yes.In(CText::kOr), " : ", no.In(CText::kConditional)), CText::kConditional};
  }

  CText Compare(const ExprNode& node, std::string_view op, int precedence) {
    CText a = Value(node.args[0]), b = Value(node.args[1]);
    return CBinary(a, op, precedence, b);
  }

  CText Logic(const ExprNode& node) {
    const CText a = Value(node.args[0]);
    const bool is_float = IsFloat(Node(node.args[0]).dtype);
    switch (node.op) {
      case ExprOp::kNot: return {Cat("!", a.In(CText::kUnary)), CText::kUnary};
      case ExprOp::kIsNan: return is_float ? CText{Cat("is_nan(", a.text, ")")} : CText{"false"};
      case ExprOp::kIsInf: return is_float ? CText{Cat("is_inf(", a.text, ")")} : CText{"false"};
      case ExprOp::kBitAnd:
      case ExprOp::kMin: return CBinary(a, "&&", CText::kAnd, Value(node.args[1]));
      case ExprOp::kBitOr:
      case ExprOp::kMax: return CBinary(a, "||", CText::kOr, Value(node.args[1]));
      case ExprOp::kBitXor: return CBinary(a, "!=", CText::kEquality, Value(node.args[1]));
      case ExprOp::kBitNot: return {Cat("!", a.In(CText::kUnary)), CText::kUnary};
      default: c_.Fail(Cat("operator ", std::string(ExprOpText(node.op)), " on bool")); return a;
    }
  }

  CText Integer(Expr e, const ExprNode& node) {
    const DType type = node.dtype;
    const bool wide = type == DType::kIndex && IsWide(c_, e);
    const bool mixed = type == DType::kIndex && !wide && AnyWide(node);  // computed in long long, but the result fits
    CText result = IntegerOp(e, node, wide || mixed);
    if (mixed) return CastTo("int", result);
    // C++ computes 8- and 16-bit integers in int. The result is a value again, so that the operands of each operator have one type.
    if (DTypeBits(type) < 32 && !Fits(e, type)) return CastTo(ValueType(type), CastTo(MemoryType(type), result));
    return result;
  }
  bool AnyWide(const ExprNode& node) const {
    for (Expr arg : node.args) {
      if (Node(arg).dtype == DType::kIndex && IsWide(c_, arg)) return true;
    }
    return false;
  }
  // The exact result of the operator is representable (an 8- or 16-bit one: without wrapping).
  bool Fits(Expr e, DType type) const {
    const ExprNode& node = Node(e);
    if (node.op != ExprOp::kAdd && node.op != ExprOp::kSub && node.op != ExprOp::kMul) return false;
    const Range r = c_.ranges.Of(e), all = TypeRange(type);
    return r.lo > all.lo && r.hi < all.hi;
  }

  CText IntegerOp(Expr e, const ExprNode& node, bool wide) {
    const DType type = node.dtype;
    const bool is_signed = KindOf(type) == DTypeKind::kSigned;
    const bool exact =
        type == DType::kIndex ? c_.narrow || c_.ranges.Fits64(e) : !is_signed || DTypeBits(type) < 32 || Fits(e, type);
    // In sums and products one wide operand is enough.
    const bool arithmetic_op =
        (node.op == ExprOp::kAdd || node.op == ExprOp::kSub || node.op == ExprOp::kMul) && (exact || type != DType::kIndex);
    const bool second_wide = arithmetic_op && type == DType::kIndex && IsWide(c_, node.args[1]);
    const bool first_wide = arithmetic_op && type == DType::kIndex && (second_wide || wide);
    const CText a = wide && !second_wide ? Wide(node.args[0]) : Value(node.args[0]);
    const CText b = node.args.size() < 2 ? CText{} : wide && !first_wide ? Wide(node.args[1]) : Value(node.args[1]);
    const auto arithmetic = [&](std::string_view op, std::string_view wrapping, int precedence) {
      return exact ? CBinary(a, op, precedence, b) : CText{Call(wrapping, {a.text, b.text})};
    };
    const std::string bits = Cat("<", DTypeBits(type), ">");
    switch (node.op) {
      case ExprOp::kAdd: return arithmetic("+", "wrap_add", CText::kSum);
      case ExprOp::kSub: return arithmetic("-", "wrap_sub", CText::kSum);
      case ExprOp::kMul: return arithmetic("*", "wrap_mul", CText::kProduct);
      case ExprOp::kFloorDiv:
      case ExprOp::kFloorMod: return Division(node, a, b);
      case ExprOp::kBitAnd: return CBinary(a, "&", CText::kBitAnd, b);
      case ExprOp::kBitOr: return CBinary(a, "|", CText::kBitOr, b);
      case ExprOp::kBitXor: return CBinary(a, "^", CText::kBitXor, b);
      case ExprOp::kShl: return {Call("shift_left" + bits, {a.text, b.text})};
      case ExprOp::kShr: return Shift(node, a, b);
      case ExprOp::kMin: return {Call("least", {a.text, b.text})};
      case ExprOp::kMax: return {Call("greatest", {a.text, b.text})};
      case ExprOp::kNeg:
        if (DTypeBits(type) < 32 || (type == DType::kIndex && exact)) return {Cat("-", a.In(CText::kPrimary)), CText::kUnary};
        return is_signed ? CText{Call("wrap_negate", {a.text})} : CText{Cat("0 - ", a.In(CText::kProduct)), CText::kSum};
      case ExprOp::kBitNot: return {Cat("~", a.In(CText::kUnary)), CText::kUnary};
      case ExprOp::kAbs: return is_signed ? CText{Call("magnitude", {a.text})} : a;
      case ExprOp::kFloor:
      case ExprOp::kCeil:
      case ExprOp::kRound:
      case ExprOp::kTrunc: return a;
      case ExprOp::kPopcount: return Popcount(node);
      default: c_.Fail(Cat("operator ", std::string(ExprOpText(node.op)), " on integers")); return a;
    }
  }
  CText Popcount(const ExprNode& node) {
    const DType from = Node(node.args[0]).dtype;
    const std::string a = Value(node.args[0]).text;
    // An int in CUDA, whatever it counts in: of the node's type for the functions that look at types.
    const std::string type = Cat("(", std::string(ValueType(node.dtype)), ")");
    const char* const name = DTypeBits(from) == 64 ? "__popcll" : "__popc";
    const std::string bits = DTypeBits(from) >= 32 ? a : Cat("(", DTypeBits(from) == 8 ? "u8" : "u16", ")(", a, ")");
    return {Cat(type, Call(name, {bits})), CText::kUnary};
  }
  CText Shift(const ExprNode& node, const CText& a, const CText& b) {
    const Range amount = c_.ranges.Of(node.args[1]);
    if (amount.lo >= 0 && amount.hi < std::min(DTypeBits(node.dtype), 32)) return CBinary(a, ">>", CText::kShift, b);
    return {Call(Cat("shift_right<", DTypeBits(node.dtype), ">"), {a.text, b.text})};
  }
  CText Division(const ExprNode& node, const CText& a, const CText& b) {
    const Range dividend = c_.ranges.Of(node.args[0]), divisor = c_.ranges.Of(node.args[1]);
    const bool is_div = node.op == ExprOp::kFloorDiv;
    // Shifts and masks round towards minus infinity whatever the sign.
    if (divisor.IsConstant() && divisor.lo > 0 && (divisor.lo & (divisor.lo - 1)) == 0) {
      return is_div ? CDivided(a, divisor.lo) : CModulo(a, divisor.lo);
    }
    if (KindOf(node.dtype) == DTypeKind::kUnsigned && divisor.lo > 0) return CBinary(a, is_div ? "/" : "%", CText::kProduct, b);
    if (dividend.lo >= 0 && divisor.lo > 0) return {Call(is_div ? "div_positive" : "mod_positive", {a.text, b.text})};
    return {Call(is_div ? "floor_div" : "floor_mod", {a.text, b.text})};
  }

  CText Float(const ExprNode& node) {
    const bool is_double = node.dtype == DType::kFloat64, fast = c_.kernel.fast_math && !is_double;
    const auto binary = [&](std::string_view op, int precedence) {
      return CBinary(Value(node.args[0]), op, precedence, Value(node.args[1]));
    };
    const auto call = [&](std::string_view name, std::string_view double_name) {
      return CText{Call(is_double ? double_name : name, Args(node))};
    };
    switch (node.op) {
      case ExprOp::kAdd: return binary("+", CText::kSum);
      case ExprOp::kSub: return binary("-", CText::kSum);
      case ExprOp::kMul: return binary("*", CText::kProduct);
      case ExprOp::kDiv: return is_double ? binary("/", CText::kProduct) : call(fast ? "fast_divide" : "divide", "");
      case ExprOp::kNeg: return {Cat("-", Value(node.args[0]).In(CText::kPrimary)), CText::kUnary};
      case ExprOp::kMin: return call("least", "least");
      case ExprOp::kMax: return call("greatest", "greatest");
      case ExprOp::kAbs: return call("fabsf", "fabs");
      case ExprOp::kFma:
        if (node.dtype == DType::kFloat16) return call("fma_f16", "");
        return call(node.dtype == DType::kBFloat16 ? "fma_bf16" : "fmaf", "fma");
      case ExprOp::kPow: return call("powf", "pow");
      case ExprOp::kExp: return call(fast ? "fast_exp" : "expf", "exp");
      case ExprOp::kExp2: return call("exp2_", "exp2");
      case ExprOp::kLog: return call(fast ? "__logf" : "logf", "log");
      case ExprOp::kLog2: return call(fast ? "fast_log2" : "log2f", "log2");
      case ExprOp::kLog1p: return call("log1pf", "log1p");
      case ExprOp::kSin: return call(fast ? "__sinf" : "sinf", "sin");
      case ExprOp::kCos: return call(fast ? "__cosf" : "cosf", "cos");
      case ExprOp::kTanh: return call(fast ? "fast_tanh" : "tanhf", "tanh");
      case ExprOp::kSigmoid: return call("sigmoid", "sigmoid");
      case ExprOp::kErf: return call("erff", "erf");
      case ExprOp::kSqrt: return call("sqrt_", "sqrt");
      case ExprOp::kRsqrt: return call("rsqrt_", "rsqrt");
      case ExprOp::kFloor: return call("floorf", "floor");
      case ExprOp::kCeil: return call("ceilf", "ceil");
      case ExprOp::kRound: return call("rintf", "rint");
      case ExprOp::kTrunc: return call("truncf", "trunc");
      default: c_.Fail(Cat("operator ", std::string(ExprOpText(node.op)), " on floats")); return {"0.0f"};
    }
  }

  EmitContext& c_;
};

}  // namespace

std::string_view MemoryType(DType type) {
  switch (type) {
    case DType::kBool: return "b8";
    case DType::kInt8: return "i8";
    case DType::kInt16: return "i16";
    case DType::kInt32: return "int";
    case DType::kInt64:
    case DType::kIndex: return "i64";
    case DType::kUInt8: return "u8";
    case DType::kUInt16: return "u16";
    case DType::kUInt32: return "u32";
    case DType::kUInt64: return "u64";
    case DType::kFloat16: return "f16";
    case DType::kBFloat16: return "bf16";
    case DType::kFloat32: return "float";
    case DType::kFloat64: return "double";
    case DType::kFloat8E4M3: return "e4m3";
    case DType::kFloat8E5M2: return "e5m2";
    case DType::kInvalid: break;
  }
  return "void";
}

std::string_view RegisterType(DType type) { return PerWord(type) > 1 ? "u32" : MemoryType(type); }

std::string_view ValueType(DType type) {
  if (type == DType::kBool) return "bool";
  if (IsNarrowFloat(type)) return "float";
  if (type == DType::kInt8 || type == DType::kInt16) return "int";
  if (type == DType::kUInt8 || type == DType::kUInt16) return "u32";
  return MemoryType(type);
}

int PerWord(DType type) { return DTypeBytes(type) >= 4 ? 1 : 4 / DTypeBytes(type); }

bool IsNarrowFloat(DType type) { return IsFloat(type) && DTypeBits(type) < 32; }

bool SameValue(DType from, DType to) {
  if (from == to) return true;
  // A conversion to float8_e5m2 makes infinity finite.
  return IsFloat(from) && from != DType::kFloat64 && to != DType::kFloat8E5M2 && (IsNarrowFloat(to) || to == DType::kFloat32);
}

bool IsWide(const EmitContext& c, Expr e) {
  const ExprNode& node = c.node(e);
  if (node.dtype != DType::kIndex) return node.dtype == DType::kInt64 || node.dtype == DType::kUInt64;
  switch (node.op) {
    case ExprOp::kVar: return c.vars[node.i].wide;
    case ExprOp::kDim: return !c.kernel.index32;
    case ExprOp::kScalar:
    case ExprOp::kLoad: return true;
    default: return !c.narrow && !c.ranges.Of(e).FitsInt();
  }
}

CText EmitExpr(EmitContext& c, Expr e) { return ExprEmitter(c).Value(e); }

CText EmitUnrounded(EmitContext& c, Expr e) { return ExprEmitter(c).Emit(e); }

CText EmitInt(EmitContext& c, Expr e) {
  const CText text = EmitExpr(c, e);
  return IsWide(c, e) ? CText{Cat("(int)", text.In(CText::kUnary)), CText::kUnary} : text;
}

}  // namespace tilert
