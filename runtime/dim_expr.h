// Integer expressions over dims and scalars, flattened to postfix code: what a launch evaluates for shapes, strides,
// assumptions, workspaces and grids. Evaluating allocates nothing; the meaning is EvalBound's of ir/bind_args.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/numeric.h"
#include "ir/program.h"
#include "runtime/byte_stream.h"

namespace tilert {

// Values by index into Program::dims and Program::scalars.
struct DimValues {
  absl::Span<const int64_t> dims;
  absl::Span<const Value> scalars;
};

class DimExpr {
 public:
  static constexpr int kMaxDepth = 64;  // of the evaluation stack

  // Constant zero.
  DimExpr() { code_.push_back({ExprOp::kIntImm, DType::kIndex, 0}), Classify(); }

  // InvalidArgument: `e` mentions loads, variables or floats, or needs more than kMaxDepth stack cells. Constants count
  // as their first candidate.
  static absl::StatusOr<DimExpr> Compile(const Program& program, Expr e);

  // REQUIRES: `values` has every dim and scalar of the program that this was compiled from.
  int64_t Eval(const DimValues& values) const {
    if (form_ == Form::kDim) return values.dims[static_cast<size_t>(value_)];
    return form_ == Form::kConstant ? value_ : EvalCode(values);
  }

  // The same, and kTooLarge where a value on the way to it does not fit 64 bits: code for the GPU, which wraps there, may have
  // another.
  static constexpr int64_t kTooLarge = INT64_MIN;
  int64_t EvalExact(const DimValues& values) const {
    bool fits = true;
    const int64_t value = form_ == Form::kCode ? EvalCode(values, &fits) : Eval(values);
    return fits ? value : kTooLarge;
  }

  bool IsConstant() const { return form_ == Form::kConstant; }
  // The dim that this expression is, alone; −1 when it is anything else.
  int64_t BareDim() const { return form_ == Form::kDim ? value_ : -1; }

  void Encode(ByteWriter& out) const;
  // Code that refers to no dim ≥ `dims` or scalar ≥ `scalars` and keeps its stack balanced, or a DataLoss error.
  static absl::StatusOr<DimExpr> Decode(ByteReader& in, size_t dims, size_t scalars);

  bool operator==(const DimExpr&) const = default;

 private:
  struct Op {
    ExprOp op = ExprOp::kInvalid;
    DType dtype = DType::kInvalid;  // of the first operand; kCast: of the result
    int64_t value = 0;              // kIntImm: the value; kDim, kScalar: the index
    bool operator==(const Op&) const = default;
  };

  // Nearly all expressions of a launch are a dim or a number.
  enum class Form : uint8_t { kConstant, kDim, kCode };

  // `fits`, if given: whether all that the value depends on fits 64 bits.
  int64_t EvalCode(const DimValues& values, bool* fits = nullptr) const;
  void Classify();  // sets form_ and value_ from code_
  // The stack cells that the code needs; 0 if it is unbalanced or holds something that cannot be evaluated.
  int Depth(size_t dims, size_t scalars) const;

  std::vector<Op> code_;
  Form form_ = Form::kCode;
  int64_t value_ = 0;  // kConstant: the value; kDim: the dim
};

}  // namespace tilert
