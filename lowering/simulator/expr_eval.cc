// The operators of docs/ir_spec.md sections 3 and 8 over rows of values.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "lowering/simulator/expr_code.h"

namespace tilert::sim {
namespace {

struct Operands {
  const Value* a;
  const Value* b;
  const Value* c;
  Value* out;
  int n;
};

template <typename F>
bool Floats(const Operands& o, F f) {
  for (int l = 0; l < o.n; ++l) o.out[l].f = f(o.a[l].f, o.b[l].f);
  return true;
}
template <typename F>
bool Ints(const Operands& o, F f) {
  for (int l = 0; l < o.n; ++l) o.out[l].i = f(o.a[l].i, o.b[l].i);
  return true;
}

// Every operator is as if computed in float32 (float64 for float64) and converted.
void RoundRow(DType type, const Operands& o) {
  if (type == DType::kFloat64) return;
  for (int l = 0; l < o.n; ++l) o.out[l].f = static_cast<double>(static_cast<float>(o.out[l].f));
  if (type == DType::kFloat32) return;
  for (int l = 0; l < o.n; ++l) o.out[l].f = RoundToType(type, o.out[l].f);
}

double Extreme(double a, double b, bool greater) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) == greater ? b : a;  // −0 is less than +0
  return (a > b) == greater ? a : b;
}

bool EvalFunction(ExprOp op, const Operands& o) {
  switch (op) {
    case ExprOp::kExp: return Floats(o, [](double a, double) { return std::exp(a); });
    case ExprOp::kExp2: return Floats(o, [](double a, double) { return std::exp2(a); });
    case ExprOp::kLog: return Floats(o, [](double a, double) { return std::log(a); });
    case ExprOp::kLog2: return Floats(o, [](double a, double) { return std::log2(a); });
    case ExprOp::kLog1p: return Floats(o, [](double a, double) { return std::log1p(a); });
    case ExprOp::kSin: return Floats(o, [](double a, double) { return std::sin(a); });
    case ExprOp::kCos: return Floats(o, [](double a, double) { return std::cos(a); });
    case ExprOp::kTanh: return Floats(o, [](double a, double) { return std::tanh(a); });
    case ExprOp::kSigmoid: return Floats(o, [](double a, double) { return 1 / (1 + std::exp(-a)); });
    case ExprOp::kErf: return Floats(o, [](double a, double) { return std::erf(a); });
    case ExprOp::kSqrt: return Floats(o, [](double a, double) { return std::sqrt(a); });
    case ExprOp::kRsqrt: return Floats(o, [](double a, double) { return 1 / std::sqrt(a); });
    case ExprOp::kFloor: return Floats(o, [](double a, double) { return std::floor(a); });
    case ExprOp::kCeil: return Floats(o, [](double a, double) { return std::ceil(a); });
    case ExprOp::kRound: return Floats(o, [](double a, double) { return std::nearbyint(a); });
    case ExprOp::kTrunc: return Floats(o, [](double a, double) { return std::trunc(a); });
    default: return false;
  }
}

// The operators whose result is a float.
bool EvalFloat(const Instr& instr, const Operands& o) {
  switch (instr.op) {
    case ExprOp::kAdd: return Floats(o, [](double a, double b) { return a + b; });
    case ExprOp::kSub: return Floats(o, [](double a, double b) { return a - b; });
    case ExprOp::kMul: return Floats(o, [](double a, double b) { return a * b; });
    case ExprOp::kDiv: return Floats(o, [](double a, double b) { return a / b; });
    case ExprOp::kMin: return Floats(o, [](double a, double b) { return Extreme(a, b, false); });
    case ExprOp::kMax: return Floats(o, [](double a, double b) { return Extreme(a, b, true); });
    case ExprOp::kPow: return Floats(o, [](double a, double b) { return std::pow(a, b); });
    case ExprOp::kNeg: return Floats(o, [](double a, double) { return -a; });
    case ExprOp::kAbs: return Floats(o, [](double a, double) { return std::fabs(a); });
    case ExprOp::kFma:
      for (int l = 0; l < o.n; ++l) {
        o.out[l].f = instr.type == DType::kFloat64
                         ? std::fma(o.a[l].f, o.b[l].f, o.c[l].f)
                         : std::fma(static_cast<float>(o.a[l].f), static_cast<float>(o.b[l].f), static_cast<float>(o.c[l].f));
      }
      return true;
    default: return EvalFunction(instr.op, o);
  }
}

bool EvalFloatTest(ExprOp op, const Operands& o) {
  auto test = [&](auto f) {
    for (int l = 0; l < o.n; ++l) o.out[l].i = f(o.a[l].f, o.b[l].f);
    return true;
  };
  switch (op) {
    case ExprOp::kLt: return test([](double a, double b) { return a < b; });
    case ExprOp::kLe: return test([](double a, double b) { return a <= b; });
    case ExprOp::kGt: return test([](double a, double b) { return a > b; });
    case ExprOp::kGe: return test([](double a, double b) { return a >= b; });
    case ExprOp::kEq: return test([](double a, double b) { return a == b; });
    case ExprOp::kNe: return test([](double a, double b) { return a != b; });
    case ExprOp::kIsNan: return test([](double a, double) { return std::isnan(a); });
    case ExprOp::kIsInf: return test([](double a, double) { return std::isinf(a); });
    default: return false;
  }
}

uint64_t U(int64_t i) { return static_cast<uint64_t>(i); }

// Wraps to `type`: what does not fit its width is cut off and the sign or zero extended again.
int64_t Wrapped(DType type, int64_t i) {
  if (type == DType::kBool) return i != 0;
  const int unused = 64 - DTypeBits(type);
  if (unused == 0) return i;
  const uint64_t high = U(i) << unused;
  return KindOf(type) == DTypeKind::kSigned ? static_cast<int64_t>(high) >> unused : static_cast<int64_t>(high >> unused);
}

void WrapRow(DType type, Value* row, int n) {
  const int unused = 64 - DTypeBits(type);
  if (unused != 0 && KindOf(type) == DTypeKind::kSigned) {
    for (int l = 0; l < n; ++l) row[l].i = static_cast<int64_t>(U(row[l].i) << unused) >> unused;
  } else if (unused != 0) {
    for (int l = 0; l < n; ++l) row[l].i = static_cast<int64_t>(U(row[l].i) << unused >> unused);
  }
}

int64_t FloorQuotient(int64_t a, int64_t b, bool is_unsigned) {
  if (b == 0) return 0;
  if (is_unsigned) return static_cast<int64_t>(U(a) / U(b));
  if (b == -1) return static_cast<int64_t>(0 - U(a));
  const int64_t quotient = a / b;
  return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
int64_t FloorRemainder(int64_t a, int64_t b, bool is_unsigned) {
  if (b == 0) return 0;
  return static_cast<int64_t>(U(a) - U(FloorQuotient(a, b, is_unsigned)) * U(b));
}

bool EvalIntCompare(ExprOp op, bool is_unsigned, const Operands& o) {
  // Flipping the top bit turns unsigned order into signed order.
  const int64_t flip = is_unsigned ? std::numeric_limits<int64_t>::min() : 0;
  switch (op) {
    case ExprOp::kLt: return Ints(o, [=](int64_t a, int64_t b) { return (a ^ flip) < (b ^ flip); });
    case ExprOp::kLe: return Ints(o, [=](int64_t a, int64_t b) { return (a ^ flip) <= (b ^ flip); });
    case ExprOp::kGt: return Ints(o, [=](int64_t a, int64_t b) { return (a ^ flip) > (b ^ flip); });
    case ExprOp::kGe: return Ints(o, [=](int64_t a, int64_t b) { return (a ^ flip) >= (b ^ flip); });
    case ExprOp::kMin: return Ints(o, [=](int64_t a, int64_t b) { return (a ^ flip) < (b ^ flip) ? a : b; });
    case ExprOp::kMax: return Ints(o, [=](int64_t a, int64_t b) { return (a ^ flip) > (b ^ flip) ? a : b; });
    case ExprOp::kEq: return Ints(o, [](int64_t a, int64_t b) { return a == b; });
    case ExprOp::kNe: return Ints(o, [](int64_t a, int64_t b) { return a != b; });
    case ExprOp::kIsNan:
    case ExprOp::kIsInf: return Ints(o, [](int64_t, int64_t) { return 0; });
    default: return false;
  }
}

int64_t Power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
  uint64_t result = 1, square = U(base);
  for (; exponent != 0; exponent >>= 1, square *= square) result *= exponent & 1 ? square : 1;
  return static_cast<int64_t>(result);
}

bool EvalShift(const Instr& instr, bool is_unsigned, const Operands& o) {
  const int bits = DTypeBits(instr.type);
  auto outside = [bits](int64_t amount) { return amount < 0 || amount >= bits; };
  if (instr.op == ExprOp::kShl) {
    return Ints(o, [=](int64_t a, int64_t b) { return outside(b) ? 0 : static_cast<int64_t>(U(a) << b); });
  }
  if (is_unsigned) return Ints(o, [=](int64_t a, int64_t b) { return outside(b) ? 0 : static_cast<int64_t>(U(a) >> b); });
  return Ints(o, [=](int64_t a, int64_t b) { return outside(b) ? (a < 0 ? -1 : 0) : a >> b; });
}

bool EvalInt(const Instr& instr, const Operands& o) {
  const bool is_unsigned = KindOf(instr.type) != DTypeKind::kSigned;
  switch (instr.op) {
    case ExprOp::kAdd: return Ints(o, [](int64_t a, int64_t b) { return static_cast<int64_t>(U(a) + U(b)); });
    case ExprOp::kSub: return Ints(o, [](int64_t a, int64_t b) { return static_cast<int64_t>(U(a) - U(b)); });
    case ExprOp::kMul: return Ints(o, [](int64_t a, int64_t b) { return static_cast<int64_t>(U(a) * U(b)); });
    case ExprOp::kFloorDiv: return Ints(o, [=](int64_t a, int64_t b) { return FloorQuotient(a, b, is_unsigned); });
    case ExprOp::kFloorMod: return Ints(o, [=](int64_t a, int64_t b) { return FloorRemainder(a, b, is_unsigned); });
    case ExprOp::kBitAnd: return Ints(o, [](int64_t a, int64_t b) { return a & b; });
    case ExprOp::kBitOr: return Ints(o, [](int64_t a, int64_t b) { return a | b; });
    case ExprOp::kBitXor: return Ints(o, [](int64_t a, int64_t b) { return a ^ b; });
    case ExprOp::kShl:
    case ExprOp::kShr: return EvalShift(instr, is_unsigned, o);
    case ExprOp::kPow: return Ints(o, [](int64_t a, int64_t b) { return Power(a, b); });
    case ExprOp::kNeg: return Ints(o, [](int64_t a, int64_t) { return static_cast<int64_t>(0 - U(a)); });
    case ExprOp::kNot: return Ints(o, [](int64_t a, int64_t) { return a == 0; });
    case ExprOp::kBitNot: return Ints(o, [](int64_t a, int64_t) { return ~a; });
    case ExprOp::kAbs:
      return Ints(o, [=](int64_t a, int64_t) { return a < 0 && !is_unsigned ? static_cast<int64_t>(0 - U(a)) : a; });
    case ExprOp::kFloor:
    case ExprOp::kCeil:
    case ExprOp::kRound:
    case ExprOp::kTrunc: return Ints(o, [](int64_t a, int64_t) { return a; });
    case ExprOp::kPopcount: {
      const int unused = 64 - DTypeBits(instr.type);
      return Ints(o, [=](int64_t a, int64_t) { return std::popcount(U(a) << unused); });
    }
    case ExprOp::kFma:
      for (int l = 0; l < o.n; ++l) o.out[l].i = static_cast<int64_t>(U(o.a[l].i) * U(o.b[l].i) + U(o.c[l].i));
      return true;
    default: return EvalIntCompare(instr.op, is_unsigned, o);
  }
}

void Reinterpret(DType from, DType to, const Operands& o) {
  for (int l = 0; l < o.n; ++l) {
    const uint64_t bits = IsFloat(from) ? EncodeFloat(from, o.a[l].f) : U(o.a[l].i);
    if (IsFloat(to)) {
      o.out[l].f = DecodeFloat(to, bits);
    } else {
      o.out[l].i = Wrapped(to, static_cast<int64_t>(bits));
    }
  }
}

}  // namespace

void EvalOp(const Instr& instr, const Value* a, const Value* b, const Value* c, Value* out, int n) {
  const Operands o{a, b, c, out, n};
  switch (instr.op) {
    case ExprOp::kSelect:
      for (int l = 0; l < n; ++l) out[l] = a[l].i != 0 ? b[l] : c[l];
      return;
    case ExprOp::kAnd: Ints(o, [](int64_t x, int64_t y) { return x != 0 && y != 0; }); return;
    case ExprOp::kOr: Ints(o, [](int64_t x, int64_t y) { return x != 0 || y != 0; }); return;
    case ExprOp::kCast:
      std::copy(a, a + n, out);
      ConvertRow(instr.type, instr.result, out, n);
      return;
    case ExprOp::kReinterpret: Reinterpret(instr.type, instr.result, o); return;
    default: break;
  }
  if (!IsFloat(instr.type)) {
    EvalInt(instr, o);
    if (IsInteger(instr.result)) WrapRow(instr.result, out, n);
  } else if (IsFloat(instr.result)) {
    EvalFloat(instr, o);
    RoundRow(instr.result, o);
  } else {
    EvalFloatTest(instr.op, o);
  }
}

}  // namespace tilert::sim
