#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/source.h"

// Leaves and simple operators of the syntax tree; see frontend/ast.h.
namespace tilert::frontend::ast {

struct Expr;
struct Stmt;
using ExprPtr = const Expr*;
using Body = std::vector<const Stmt*>;

enum class UnaryOp : uint8_t { kNegate, kPlus, kInvert, kNot };
enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDiv,
  kMod,
  kPow,
  kMatMul,
  kShiftLeft,
  kShiftRight,
  kAnd,
  kOr,
  kXor
};
enum class CompareOp : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kIs, kIsNot, kIn, kNotIn };

struct Name {
  std::string id;
};
struct IntLit {
  int64_t value = 0;
  bool too_large = false;      // does not fit int64; an error only where the value is needed
  bool fits_unsigned = false;  // fits uint64: `value` holds its bits
};
struct FloatLit {
  double value = 0;
  bool imaginary = false;
};
struct StringLit {
  std::string value;
  bool bytes = false;
};
struct BoolLit {
  bool value = false;
};
struct NoneLit {};
struct EllipsisLit {};
// Literal text alternates with replacement fields.
struct FStringPart {
  std::string text;
  ExprPtr field = nullptr;   // null for text
  char conversion = 0;       // r, s, a
  ExprPtr format = nullptr;  // an FString of its own
};
struct FString {
  std::vector<FStringPart> parts;
};
struct Unary {
  UnaryOp op;
  ExprPtr operand;
};
struct Binary {
  BinaryOp op;
  ExprPtr left, right;
};
struct BoolOp {
  bool is_and;
  std::vector<ExprPtr> values;
};
}  // namespace tilert::frontend::ast
