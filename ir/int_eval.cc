#include "ir/int_eval.h"

#include "ir/int_math.h"

namespace tilert {
namespace {

uint64_t U(int64_t v) { return static_cast<uint64_t>(v); }

int64_t ShiftLeft(DType type, int64_t a, int64_t b) {
  if (b < 0 || b >= DTypeBits(type)) return 0;
  if (type == DType::kIndex) return b == 63 ? (a == 0 ? 0 : a < 0 ? INT64_MIN : INT64_MAX) : MulIndex(a, int64_t{1} << b);
  return static_cast<int64_t>(U(a) << b);
}

int64_t ShiftRight(DType type, int64_t a, int64_t b) {
  if (b < 0 || b >= DTypeBits(type)) return a < 0 && KindOf(type) == DTypeKind::kSigned ? -1 : 0;
  return KindOf(type) == DTypeKind::kSigned ? a >> b : static_cast<int64_t>(U(a) >> b);
}

bool Less(DType type, int64_t a, int64_t b) { return KindOf(type) == DTypeKind::kSigned ? a < b : U(a) < U(b); }

int64_t Divide(DType type, int64_t a, int64_t b) {
  if (KindOf(type) == DTypeKind::kSigned) {
    if (type == DType::kIndex && b == -1) return SubIndex(0, a);
    return FloorDivInt(a, b);
  }
  return b == 0 ? 0 : static_cast<int64_t>(U(a) / U(b));
}

int64_t Modulo(DType type, int64_t a, int64_t b) {
  if (KindOf(type) == DTypeKind::kSigned) return FloorModInt(a, b);
  return b == 0 ? 0 : static_cast<int64_t>(U(a) % U(b));
}

// The result before it is reduced modulo 2^bits.
int64_t Wide(ExprOp op, DType type, int64_t a, int64_t b) {
  const bool index = type == DType::kIndex;
  switch (op) {
    case ExprOp::kAdd:
      return index ? AddIndex(a, b) : static_cast<int64_t>(U(a) + U(b));
    case ExprOp::kSub:
      return index ? SubIndex(a, b) : static_cast<int64_t>(U(a) - U(b));
    case ExprOp::kMul:
      return index ? MulIndex(a, b) : static_cast<int64_t>(U(a) * U(b));
    case ExprOp::kFloorDiv:
      return Divide(type, a, b);
    case ExprOp::kFloorMod:
      return Modulo(type, a, b);
    case ExprOp::kBitAnd:
      return a & b;
    case ExprOp::kBitOr:
      return a | b;
    case ExprOp::kBitXor:
      return a ^ b;
    case ExprOp::kShl:
      return ShiftLeft(type, a, b);
    case ExprOp::kShr:
      return ShiftRight(type, a, b);
    case ExprOp::kMin:
      return Less(type, b, a) ? b : a;
    case ExprOp::kMax:
      return Less(type, a, b) ? b : a;
    case ExprOp::kNeg:
      return index ? SubIndex(0, a) : static_cast<int64_t>(0 - U(a));
    case ExprOp::kAbs:
      return Less(type, a, 0) ? Wide(ExprOp::kNeg, type, a, 0) : a;
    case ExprOp::kBitNot:
      return ~a;
    case ExprOp::kPopcount: {
      const int bits = DTypeBits(type);
      return __builtin_popcountll(bits >= 64 ? U(a) : U(a) & ((uint64_t{1} << bits) - 1));
    }
    default:
      return a;  // floor, ceil, round, trunc
  }
}

}  // namespace

bool IsIntOp(ExprOp op) {
  switch (op) {
    case ExprOp::kFloor:
    case ExprOp::kCeil:
    case ExprOp::kRound:
    case ExprOp::kTrunc:
    case ExprOp::kMin:
    case ExprOp::kMax:
    case ExprOp::kNeg:
    case ExprOp::kNot:
    case ExprOp::kBitNot:
    case ExprOp::kAbs:
    case ExprOp::kPopcount:
      return true;
    default:
      return IsInfixOp(op) && op != ExprOp::kDiv;
  }
}

bool FitsIndex(ExprOp op, DType type, int64_t a, int64_t b) {
  if (type != DType::kIndex) return true;
  int64_t r;
  switch (op) {
    case ExprOp::kAdd: return !__builtin_add_overflow(a, b, &r);
    case ExprOp::kSub: return !__builtin_sub_overflow(a, b, &r);
    case ExprOp::kMul: return !__builtin_mul_overflow(a, b, &r);
    case ExprOp::kShl: return b < 0 || b > 63 || a == 0 || (b < 63 && !__builtin_mul_overflow(a, int64_t{1} << b, &r));
    case ExprOp::kNeg:
    case ExprOp::kAbs: return a != INT64_MIN;
    case ExprOp::kFloorDiv: return a != INT64_MIN || b != -1;
    default: return true;
  }
}

int64_t EvalInt(ExprOp op, DType type, int64_t a, int64_t b) {
  switch (op) {
    case ExprOp::kLt:
      return Less(type, a, b);
    case ExprOp::kLe:
      return !Less(type, b, a);
    case ExprOp::kGt:
      return Less(type, b, a);
    case ExprOp::kGe:
      return !Less(type, a, b);
    case ExprOp::kEq:
      return a == b;
    case ExprOp::kNe:
      return a != b;
    case ExprOp::kAnd:
      return a != 0 && b != 0;
    case ExprOp::kOr:
      return a != 0 || b != 0;
    case ExprOp::kNot:
      return a == 0;
    default:
      return WrapInt(Wide(op, type, a, b), type);
  }
}

}  // namespace tilert
