// Python's operators on values: on numbers that are known, exactly; on symbolic ones through the builder.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "frontend/context.h"
#include "ir/status_util.h"

namespace tilert::frontend {
namespace {

using ast::BinaryOp;
using ast::CompareOp;
using ast::UnaryOp;

bool IntOf(const Value& value, int64_t* out) {
  if (const auto* b = value.As<bool>()) return *out = *b, true;
  if (const auto* i = value.As<int64_t>()) return *out = *i, true;
  return false;
}

bool FloatOf(const Value& value, double* out) {
  int64_t i = 0;
  if (IntOf(value, &i)) return *out = static_cast<double>(i), true;
  if (const auto* d = value.As<double>()) return *out = *d, true;
  return false;
}

const char* OpText(BinaryOp op) {
  static constexpr const char* kTexts[] = {"+", "-", "*", "/", "//", "%", "**", "@", "<<", ">>", "&", "|", "^"};
  return kTexts[static_cast<int>(op)];
}

int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

bool PowerOverflows(int64_t base, int64_t exponent, int64_t* out) {
  *out = 1;
  for (int64_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(*out, base, out)) return true;
    if (*out == 0 || *out == 1) return false;
    if (*out == -1 && base == -1) return *out = exponent % 2 ? -1 : 1, false;
  }
  return false;
}

// Nothing if the operator does not give an int, or the result needs more than 64 bits (`overflow`).
std::optional<int64_t> IntArithmetic(BinaryOp op, int64_t a, int64_t b, bool* overflow) {
  int64_t r = 0;
  switch (op) {
    case BinaryOp::kAdd: *overflow = __builtin_add_overflow(a, b, &r); return r;
    case BinaryOp::kSub: *overflow = __builtin_sub_overflow(a, b, &r); return r;
    case BinaryOp::kMul: *overflow = __builtin_mul_overflow(a, b, &r); return r;
    case BinaryOp::kFloorDiv:
    case BinaryOp::kMod:
      if (a == std::numeric_limits<int64_t>::min() && b == -1) return *overflow = true, 0;
      return op == BinaryOp::kMod ? a - FloorDivide(a, b) * b : FloorDivide(a, b);
    case BinaryOp::kPow:
      if (b < 0) return std::nullopt;
      *overflow = PowerOverflows(a, b, &r);
      return r;
    case BinaryOp::kShiftLeft: *overflow = b < 0 || b > 62 || __builtin_mul_overflow(a, int64_t{1} << b, &r); return r;
    case BinaryOp::kShiftRight: *overflow = b < 0; return a >> std::min<int64_t>(std::max<int64_t>(b, 0), 63);
    case BinaryOp::kAnd: return a & b;
    case BinaryOp::kOr: return a | b;
    case BinaryOp::kXor: return a ^ b;
    case BinaryOp::kDiv:
    case BinaryOp::kMatMul: return std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> FloatArithmetic(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd: return a + b;
    case BinaryOp::kSub: return a - b;
    case BinaryOp::kMul: return a * b;
    case BinaryOp::kDiv: return a / b;
    case BinaryOp::kFloorDiv: return std::floor(a / b);
    case BinaryOp::kMod: return a - std::floor(a / b) * b;
    case BinaryOp::kPow: return std::pow(a, b);
    default: return std::nullopt;
  }
}

std::optional<ExprOp> SymbolicOp(BinaryOp op) {
  static constexpr ExprOp kOps[] = {ExprOp::kAdd,      ExprOp::kSub,   ExprOp::kMul,     ExprOp::kDiv, ExprOp::kFloorDiv,
                                    ExprOp::kFloorMod, ExprOp::kPow,   ExprOp::kInvalid, ExprOp::kShl, ExprOp::kShr,
                                    ExprOp::kBitAnd,   ExprOp::kBitOr, ExprOp::kBitXor};
  const ExprOp result = kOps[static_cast<int>(op)];
  if (result == ExprOp::kInvalid) return std::nullopt;
  return result;
}

// x % y on floats, which the program has no operator for: x − floor(x / y)·y.
Val FloatModulo(ProgramBuilder& builder, Val a, Val b) {
  const Val quotient = builder.Apply(ExprOp::kFloor, {builder.Apply(ExprOp::kDiv, {a, b})});
  return builder.Apply(ExprOp::kSub, {a, builder.Apply(ExprOp::kMul, {quotient, b})});
}

// x ** 2 and the like by multiplication: exact for integers, and faster.
std::optional<Val> SmallPower(ProgramBuilder& builder, Val base, const Value& exponent) {
  const auto* n = exponent.As<int64_t>();
  if (!n || *n < 1 || *n > 4) return std::nullopt;
  Val result = base;
  for (int64_t i = 1; i < *n; ++i) result = builder.Apply(ExprOp::kMul, {result, base});
  return result;
}

std::optional<Value> OnSequences(Context& context, BinaryOp op, const Value& a, const Value& b) {
  const auto *qa = a.Object<SequenceObject>(), *qb = b.Object<SequenceObject>();
  if (qa && qb && op == BinaryOp::kAdd && qa->kind == qb->kind) {
    std::vector<Value> items = qa->items;
    items.insert(items.end(), qb->items.begin(), qb->items.end());
    return context.Sequence(qa->kind, std::move(items));
  }
  const SequenceObject* repeated = qa ? qa : qb;
  int64_t count = 0;
  if (repeated && op == BinaryOp::kMul && IntOf(qa ? b : a, &count)) {
    constexpr int64_t kMaxItems = 1 << 20;
    if (count > 0 && static_cast<int64_t>(repeated->items.size()) > kMaxItems / count) return std::nullopt;
    std::vector<Value> items;
    for (int64_t i = 0; i < count; ++i) items.insert(items.end(), repeated->items.begin(), repeated->items.end());
    return context.Sequence(repeated->kind, std::move(items));
  }
  const auto *sa = a.Object<const StringObject>(), *sb = b.Object<const StringObject>();
  if (sa && sb && op == BinaryOp::kAdd && sa->text.size() + sb->text.size() < 1 << 20) {
    context.Spend((sa->text.size() + sb->text.size()) / 16);
    return context.Text(sa->text + sb->text);
  }
  const auto *da = a.Object<DictObject>(), *db = b.Object<DictObject>();
  if (da && db && op == BinaryOp::kOr) {
    context.Spend(da->items.size() + db->items.size());
    DictObject merged = *da;
    merged.items.insert(merged.items.end(), db->items.begin(), db->items.end());
    return context.New(std::move(merged));
  }
  return std::nullopt;
}

}  // namespace

Value Context::UnaryOperator(UnaryOp op, const Value& operand, SourceRange range) {
  if (operand.poisoned()) return Poison{};
  if (operand.Is<Host>()) return operand;
  if (op == UnaryOp::kNot) {
    if (IsSymbolic(operand)) return Wrap(builder_->Apply(ExprOp::kNot, {Number(operand, range, "the operand of 'not'")}));
    const std::optional<bool> truth = Truth(operand, range);
    return truth ? Value(!*truth) : Value(Poison{});
  }
  int64_t i = 0;
  if (IntOf(operand, &i)) {
    if (op == UnaryOp::kPlus) return i;
    if (op == UnaryOp::kInvert) return ~i;
    if (i != std::numeric_limits<int64_t>::min()) return -i;
    return Fail(range, "the result does not fit 64 bits");
  }
  if (const auto* d = operand.As<double>(); d && op != UnaryOp::kInvert) return op == UnaryOp::kNegate ? -*d : *d;
  const Val value = Number(operand, range, "the operand");
  if (!value) return Poison{};
  if (op == UnaryOp::kPlus) return value;
  if (op == UnaryOp::kInvert) return Wrap(builder_->Apply(ExprOp::kBitNot, {value}));
  return Wrap(builder_->Apply(ExprOp::kNeg, {value}));
}

Value Context::BinaryOperator(BinaryOp op, const Value& a, const Value& b, SourceRange range) {
  if (a.poisoned() || b.poisoned()) return Poison{};
  if (a.Is<Host>()) return a;
  if (b.Is<Host>()) return b;
  int64_t ia = 0, ib = 0;
  double da = 0, db = 0;
  const bool ints = IntOf(a, &ia) && IntOf(b, &ib);
  if (FloatOf(a, &da) && FloatOf(b, &db)) {
    const bool divides = op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv || op == BinaryOp::kMod;
    if (divides && db == 0) return Fail(range, "division by zero", "test the divisor first");
    bool overflow = false;
    const std::optional<int64_t> whole = ints ? IntArithmetic(op, ia, ib, &overflow) : std::nullopt;
    if (overflow) return Fail(range, "the result does not fit 64 bits");
    if (whole) return *whole;
    if (const std::optional<double> result = FloatArithmetic(op, da, db)) return *result;
  }
  if (const std::optional<Value> sequence = OnSequences(*this, op, a, b)) return *sequence;
  const std::optional<ExprOp> symbolic = SymbolicOp(op);
  if (!IsNumber(a) || !IsNumber(b) || !symbolic) {
    for (const Value* side : {&a, &b}) {
      if (side->Is<Buf>() || side->Object<const BufferRegion>())
        return Wrap(Number(*side, range, absl::StrCat("an operand of '", OpText(op), "'")));
    }
    return Fail(range, absl::StrCat("'", OpText(op), "' cannot join ", Describe(a), " and ", Describe(b)));
  }
  const Val x = Number(a, range, "the left operand"), y = Number(b, range, "the right operand");
  if (!x || !y) return Poison{};
  if (op == BinaryOp::kPow) {
    if (const std::optional<Val> power = SmallPower(*builder_, x, b)) return Wrap(*power);
  }
  if (op == BinaryOp::kMod && (IsFloat(x.dtype()) || IsFloat(y.dtype()))) return Wrap(FloatModulo(*builder_, x, y));
  return Wrap(builder_->Apply(*symbolic, {x, y}));
}

namespace {

template <typename T>
std::optional<bool> Ordered(CompareOp op, const T& a, const T& b) {
  switch (op) {
    case CompareOp::kLt: return a < b;
    case CompareOp::kLe: return a <= b;
    case CompareOp::kGt: return a > b;
    case CompareOp::kGe: return a >= b;
    default: return std::nullopt;
  }
}

ExprOp RelationOp(CompareOp op) {
  static constexpr ExprOp kOps[] = {ExprOp::kEq, ExprOp::kNe, ExprOp::kLt, ExprOp::kLe, ExprOp::kGt, ExprOp::kGe};
  return kOps[static_cast<int>(op)];
}

}  // namespace

Value Context::CompareOperator(CompareOp op, const Value& a, const Value& b, SourceRange range) {
  if (a.poisoned() || b.poisoned()) return Poison{};
  if (a.Is<Host>() && !b.is_none()) return a;
  if (b.Is<Host>() && !a.is_none()) return b;
  if (op == CompareOp::kIn || op == CompareOp::kNotIn) {
    const auto *text = b.Object<const StringObject>(), *part = a.Object<const StringObject>();
    if (text && part) return (text->text.find(part->text) != std::string::npos) == (op == CompareOp::kIn);
    const std::optional<std::vector<Value>> items = Items(b, range, "the right side of 'in'");
    if (!items) return Poison{};
    for (const Value& item : *items) {
      if (Equal(a, item)) return op == CompareOp::kIn;
    }
    return op == CompareOp::kNotIn;
  }
  const bool symbolic = (IsSymbolic(a) && IsNumber(b)) || (IsSymbolic(b) && IsNumber(a));
  const bool identity = op == CompareOp::kIs || op == CompareOp::kIsNot;
  if (symbolic && !identity) {
    const Val x = Number(a, range, "the left side"), y = Number(b, range, "the right side");
    return x && y ? Wrap(builder_->Apply(RelationOp(op), {x, y})) : Value(Poison{});
  }
  if (op == CompareOp::kEq || op == CompareOp::kIs) return Equal(a, b);
  if (op == CompareOp::kNe || op == CompareOp::kIsNot) return !Equal(a, b);
  int64_t ia = 0, ib = 0;
  if (IntOf(a, &ia) && IntOf(b, &ib)) return *Ordered(op, ia, ib);
  double da = 0, db = 0;
  if (FloatOf(a, &da) && FloatOf(b, &db)) return *Ordered(op, da, db);
  const auto *sa = a.Object<const StringObject>(), *sb = b.Object<const StringObject>();
  if (sa && sb) return *Ordered(op, sa->text, sb->text);
  return Fail(range, absl::StrCat("cannot compare ", Describe(a), " with ", Describe(b)));
}

}  // namespace tilert::frontend
