#include "ir/executor_eval.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/int_eval.h"
#include "ir/int_math.h"
#include "ir/status_util.h"

namespace tilert::exec {
namespace {

// Operands and result of one instruction, for n lanes. The functions on them return true, "done".
struct Args {
  const Instr& instr;
  int n;
  Value* dst;
  const Value *a, *b, *c;
};

template <typename F>
bool MapFloat1(const Args& x, F f) {
  for (int k = 0; k < x.n; ++k) x.dst[k].f = f(x.a[k].f);
  return true;
}
template <typename F>
bool MapFloat2(const Args& x, F f) {
  for (int k = 0; k < x.n; ++k) x.dst[k].f = f(x.a[k].f, x.b[k].f);
  return true;
}
template <typename F>
bool MapInt2(const Args& x, F f) {
  for (int k = 0; k < x.n; ++k) x.dst[k].i = f(x.a[k].i, x.b[k].i);
  return true;
}
template <typename F>
bool Compare(const Args& x, F f) {
  if (IsFloat(x.instr.from)) {
    for (int k = 0; k < x.n; ++k) x.dst[k].i = f(x.a[k].f, x.b[k].f);
  } else if (KindOf(x.instr.from) == DTypeKind::kSigned) {
    for (int k = 0; k < x.n; ++k) x.dst[k].i = f(x.a[k].i, x.b[k].i);
  } else {
    for (int k = 0; k < x.n; ++k) x.dst[k].i = f(static_cast<uint64_t>(x.a[k].i), static_cast<uint64_t>(x.b[k].i));
  }
  return true;
}

// −0 is less than +0, and NaN wins.
double MinFloat(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
double MaxFloat(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}

// a·b + c such that one more rounding to a type narrower than float32 is the only one: the sum is rounded to odd.
double FmaToOdd(double a, double b, double c) {
  const double product = a * b;  // exact: at most 22 bits
  const double sum = product + c;
  if (!std::isfinite(sum)) return sum;
  const double back = sum - product;
  const double error = (product - (sum - back)) + (c - back);
  const uint64_t bits = std::bit_cast<uint64_t>(sum);
  if (error == 0 || (bits & 1) != 0) return sum;
  return std::bit_cast<double>((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

bool EvalFma(const Args& x) {
  for (int k = 0; k < x.n; ++k) {
    const double a = x.a[k].f, b = x.b[k].f, c = x.c[k].f;
    if (x.instr.type == DType::kFloat64) {
      x.dst[k].f = std::fma(a, b, c);
    } else if (x.instr.type == DType::kFloat32) {
      x.dst[k].f = std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
    } else {
      x.dst[k].f = FmaToOdd(a, b, c);
    }
  }
  return true;
}

// Operators whose result is a float, before rounding to its type. False when `op` is none of them.
bool EvalFloat(const Args& x) {
  switch (x.instr.op) {
    case ExprOp::kAdd:
      return MapFloat2(x, [](double a, double b) { return a + b; });
    case ExprOp::kSub:
      return MapFloat2(x, [](double a, double b) { return a - b; });
    case ExprOp::kMul:
      return MapFloat2(x, [](double a, double b) { return a * b; });
    case ExprOp::kDiv:
      return MapFloat2(x, [](double a, double b) { return a / b; });
    case ExprOp::kMin:
      return MapFloat2(x, MinFloat);
    case ExprOp::kMax:
      return MapFloat2(x, MaxFloat);
    case ExprOp::kPow:
      return MapFloat2(x, [](double a, double b) { return std::pow(a, b); });
    case ExprOp::kFma:
      return EvalFma(x);
    case ExprOp::kNeg:
      return MapFloat1(x, [](double a) { return -a; });
    case ExprOp::kAbs:
      return MapFloat1(x, [](double a) { return std::fabs(a); });
    case ExprOp::kExp:
      return MapFloat1(x, [](double a) { return std::exp(a); });
    case ExprOp::kExp2:
      return MapFloat1(x, [](double a) { return std::exp2(a); });
    case ExprOp::kLog:
      return MapFloat1(x, [](double a) { return std::log(a); });
    case ExprOp::kLog2:
      return MapFloat1(x, [](double a) { return std::log2(a); });
    case ExprOp::kLog1p:
      return MapFloat1(x, [](double a) { return std::log1p(a); });
    case ExprOp::kSin:
      return MapFloat1(x, [](double a) { return std::sin(a); });
    case ExprOp::kCos:
      return MapFloat1(x, [](double a) { return std::cos(a); });
    case ExprOp::kTanh:
      return MapFloat1(x, [](double a) { return std::tanh(a); });
    case ExprOp::kSigmoid:
      return MapFloat1(x, [](double a) { return 1.0 / (1.0 + std::exp(-a)); });
    case ExprOp::kErf:
      return MapFloat1(x, [](double a) { return std::erf(a); });
    case ExprOp::kSqrt:
      return MapFloat1(x, [](double a) { return std::sqrt(a); });
    case ExprOp::kRsqrt:
      return MapFloat1(x, [](double a) { return 1.0 / std::sqrt(a); });
    case ExprOp::kFloor:
      return MapFloat1(x, [](double a) { return std::floor(a); });
    case ExprOp::kCeil:
      return MapFloat1(x, [](double a) { return std::ceil(a); });
    case ExprOp::kRound:
      return MapFloat1(x, [](double a) { return std::nearbyint(a); });
    case ExprOp::kTrunc:
      return MapFloat1(x, [](double a) { return std::trunc(a); });
    default:
      return false;
  }
}

void RoundLanes(DType type, Value* v, int n) {
  if (type == DType::kFloat64) return;
  if (type == DType::kFloat32) {
    for (int k = 0; k < n; ++k) v[k].f = static_cast<double>(static_cast<float>(v[k].f));
    return;
  }
  for (int k = 0; k < n; ++k) v[k].f = RoundToType(type, v[k].f);
}

// Comparisons, logic and predicates: results of type bool. False when `op` is none of them.
bool EvalBool(const Args& x) {
  switch (x.instr.op) {
    case ExprOp::kLt:
      return Compare(x, [](auto a, auto b) { return a < b; });
    case ExprOp::kLe:
      return Compare(x, [](auto a, auto b) { return a <= b; });
    case ExprOp::kGt:
      return Compare(x, [](auto a, auto b) { return a > b; });
    case ExprOp::kGe:
      return Compare(x, [](auto a, auto b) { return a >= b; });
    case ExprOp::kEq:
      return Compare(x, [](auto a, auto b) { return a == b; });
    case ExprOp::kNe:
      return Compare(x, [](auto a, auto b) { return a != b; });
    case ExprOp::kAnd:
      return MapInt2(x, [](int64_t a, int64_t b) { return a & b; });
    case ExprOp::kOr:
      return MapInt2(x, [](int64_t a, int64_t b) { return a | b; });
    case ExprOp::kNot:
      for (int k = 0; k < x.n; ++k) x.dst[k].i = x.a[k].i == 0;
      return true;
    case ExprOp::kIsNan:
    case ExprOp::kIsInf:
      for (int k = 0; k < x.n; ++k) {
        x.dst[k].i = IsFloat(x.instr.from) && (x.instr.op == ExprOp::kIsNan ? std::isnan(x.a[k].f) : std::isinf(x.a[k].f));
      }
      return true;
    default:
      return false;
  }
}

bool EvalIntLanes(const Args& x) {
  const bool index = x.instr.from == DType::kIndex;
  switch (x.instr.op) {
    case ExprOp::kAdd:
      if (index) return MapInt2(x, AddIndex);
      break;
    case ExprOp::kSub:
      if (index) return MapInt2(x, SubIndex);
      break;
    case ExprOp::kMul:
      if (index) return MapInt2(x, MulIndex);
      break;
    default:
      break;
  }
  const bool binary = x.instr.count > 1;
  for (int k = 0; k < x.n; ++k) x.dst[k].i = EvalInt(x.instr.op, x.instr.from, x.a[k].i, binary ? x.b[k].i : 0);
  return true;
}

// Moves between types and lanes. False when `op` is none of them.
bool EvalMove(const Args& x) {
  const Instr& instr = x.instr;
  switch (instr.op) {
    case ExprOp::kCast:
      std::copy(x.a, x.a + x.n, x.dst);
      ConvertRow(instr.from, instr.type, x.dst, x.n);
      return true;
    case ExprOp::kReinterpret:
      for (int k = 0; k < x.n; ++k) {
        char bytes[8] = {};
        StoreRow(instr.from, x.a + k, 1, bytes, 0);
        LoadRow(instr.type, bytes, 0, 1, x.dst + k);
      }
      return true;
    case ExprOp::kSelect:
      for (int k = 0; k < x.n; ++k) x.dst[k] = x.a[k].i != 0 ? x.b[k] : x.c[k];
      return true;
    default:
      return false;
  }
}

// An index that does not fit is an error of lanes that are active, and that use it.
void CheckIndex(const Args& x, const EvalFrame& frame) {
  for (int k = 0; k < x.n; ++k) {
    const int64_t a = x.a[k].i, b = x.instr.count > 1 ? x.b[k].i : 0;
    if (frame.lanes.active[k] != 0 && !FitsIndex(x.instr.op, x.instr.from, a, b))
      return frame.memory->ReportIndex(ToAbsl(ExprOpText(x.instr.op)), a, b);
  }
}

void EvalInstr(const Code& code, const Instr& instr, const EvalFrame& frame) {
  const int n = frame.lanes.n;
  const auto reg = [&](Reg r) { return frame.regs + static_cast<size_t>(r) * static_cast<size_t>(n); };
  Value* dst = reg(instr.dst);
  switch (instr.op) {
    case ExprOp::kIntImm:
    case ExprOp::kFloatImm:
      std::fill(dst, dst + n, instr.value);
      return;
    case ExprOp::kVar:
      if (instr.slot < 0) {
        std::fill(dst, dst + n, frame.block_vars[instr.value.i]);
      } else {
        std::copy_n(frame.lane_vars + static_cast<size_t>(instr.slot) * static_cast<size_t>(n), n, dst);
      }
      return;
    case ExprOp::kLoad: {
      absl::InlinedVector<const Value*, 4> index;
      for (uint32_t k = 0; k < instr.count; ++k) index.push_back(reg(code.operands[instr.first + k]));
      const Value* mask = instr.mask == kNoReg ? nullptr : reg(instr.mask);
      frame.memory->Load(static_cast<BufferId>(instr.value.i), index, frame.lanes, mask, dst);
      return;
    }
    default:
      break;
  }
  const auto operand = [&](uint32_t k) -> const Value* {
    return k < instr.count ? reg(code.operands[instr.first + k]) : nullptr;
  };
  const Args args{instr, n, dst, operand(0), operand(1), operand(2)};
  if (EvalMove(args) || EvalBool(args)) return;
  if (!IsFloat(instr.from)) {
    if (frame.memory->checks_index() && instr.from == DType::kIndex) CheckIndex(args, frame);
    EvalIntLanes(args);
  } else if (EvalFloat(args)) {
    RoundLanes(instr.type, dst, n);
  }
}

}  // namespace

void Evaluate(const Code& code, const EvalFrame& frame) {
  for (const Instr& instr : code.instrs) EvalInstr(code, instr, frame);
}

}  // namespace tilert::exec
