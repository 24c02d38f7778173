#include "runtime/dim_expr.h"

#include <algorithm>

#include "ir/int_eval.h"
#include "ir/int_math.h"
#include "ir/status_util.h"

namespace tilert {
namespace {

// Number of operands in postfix code; −1: not an operator of this code.
int OperandCount(ExprOp op) {
  switch (op) {
    case ExprOp::kIntImm:
    case ExprOp::kDim:
    case ExprOp::kScalar:
      return 0;
    case ExprOp::kCast:
      return 1;
    case ExprOp::kSelect:
      return 3;
    default:
      return IsIntOp(op) ? ExprArity(op) : -1;
  }
}

}  // namespace

absl::StatusOr<DimExpr> DimExpr::Compile(const Program& program, Expr root) {
  if (!root || root.id >= program.exprs.size()) return Internal("a missing expression in '", program.name, "'");
  DimExpr result;
  result.code_.clear();
  // Operands first, without recursion: a node is pushed twice, once to visit its operands and once to be emitted.
  std::vector<std::pair<Expr, bool>> pending = {{root, false}};
  while (!pending.empty()) {
    const auto [e, is_visited] = pending.back();
    pending.pop_back();
    const ExprNode& node = program.exprs[e];
    if (result.code_.size() > 10000) return InvalidArgument("an expression over the dims of '", program.name, "' is too large");
    if (node.op == ExprOp::kConstant) {
      const auto& candidates = program.constants[static_cast<size_t>(node.i)].candidates;
      result.code_.push_back({ExprOp::kIntImm, DType::kIndex, candidates.empty() ? 0 : candidates[0]});
      continue;
    }
    if (OperandCount(node.op) < 0 || IsFloat(node.dtype)) {
      return InvalidArgument("'", ExprOpText(node.op), "' of type ", DTypeName(node.dtype),
                             " can't be evaluated at launch: use dims, constants and integer arithmetic");
    }
    if (!is_visited) {
      pending.push_back({e, true});
      for (size_t k = node.args.size(); k-- > 0;) pending.push_back({node.args[k], false});
      continue;
    }
    const DType type = node.op == ExprOp::kCast || node.args.empty() ? node.dtype : program.exprs[node.args[0]].dtype;
    result.code_.push_back({node.op, type, node.i});
  }
  result.Classify();
  if (result.Depth(program.dims.size(), program.scalars.size()) > 0) return result;
  return InvalidArgument("an expression over the dims of '", program.name, "' is nested too deeply to be evaluated at launch");
}

void DimExpr::Classify() {
  form_ = Form::kCode;
  if (code_.size() != 1) return;
  if (code_[0].op == ExprOp::kIntImm) form_ = Form::kConstant;
  if (code_[0].op == ExprOp::kDim) form_ = Form::kDim;
  value_ = code_[0].value;
}

int DimExpr::Depth(size_t dims, size_t scalars) const {
  int depth = 0, most = 0;
  for (const Op& op : code_) {
    const int operands = OperandCount(op.op);
    if (operands < 0 || operands > depth) return 0;
    if (op.op == ExprOp::kDim && static_cast<uint64_t>(op.value) >= dims) return 0;
    if (op.op == ExprOp::kScalar && static_cast<uint64_t>(op.value) >= scalars) return 0;
    depth += 1 - operands;
    most = std::max(most, depth);
  }
  return depth == 1 && most <= kMaxDepth ? most : 0;
}

int64_t DimExpr::EvalCode(const DimValues& values, bool* fits) const {
  struct Cell {
    int64_t value;
    bool fits;
  };
  Cell stack[kMaxDepth];
  Cell* top = stack;  // one past the last value
  for (const Op& op : code_) {
    switch (op.op) {
      case ExprOp::kIntImm: *top++ = {op.value, true}; break;
      case ExprOp::kDim: *top++ = {values.dims[static_cast<size_t>(op.value)], true}; break;
      case ExprOp::kScalar: *top++ = {values.scalars[static_cast<size_t>(op.value)].i, true}; break;
      case ExprOp::kCast: top[-1].value = WrapInt(top[-1].value, op.dtype); break;
      case ExprOp::kSelect: {
        // Both sides were evaluated: integer arithmetic has no side effects and cannot fail.
        const Cell chosen = top[-3].value != 0 ? top[-2] : top[-1];
        top[-3] = {chosen.value, top[-3].fits && chosen.fits};
        top -= 2;
        break;
      }
      default: {
        const bool binary = ExprArity(op.op) == 2;
        if (binary) --top;
        const Cell b = binary ? *top : Cell{0, true};
        top[-1] = {EvalInt(op.op, op.dtype, top[-1].value, b.value),
                   top[-1].fits && b.fits && FitsIndex(op.op, op.dtype, top[-1].value, b.value)};
      }
    }
  }
  if (fits != nullptr) *fits = stack[0].fits;
  return stack[0].value;
}

void DimExpr::Encode(ByteWriter& out) const {
  out.U64(code_.size());
  for (const Op& op : code_) {
    out.U64(static_cast<uint64_t>(op.op) | static_cast<uint64_t>(op.dtype) << 32);
    out.I64(op.value);
  }
}

absl::StatusOr<DimExpr> DimExpr::Decode(ByteReader& in, size_t dims, size_t scalars) {
  DimExpr result;
  result.code_.resize(in.Count(16));
  for (Op& op : result.code_) {
    const uint64_t head = in.U64();
    op.value = in.I64();
    const uint32_t raw_op = static_cast<uint32_t>(head), raw_type = static_cast<uint32_t>(head >> 32);
    if (!IsValidExprOp(raw_op) || !IsValidDType(raw_type)) return absl::DataLossError("an unknown operator in a launch record");
    op.op = static_cast<ExprOp>(raw_op);
    op.dtype = static_cast<DType>(raw_type);
  }
  if (!in.ok() || result.Depth(dims, scalars) == 0) return absl::DataLossError("a damaged expression in a launch record");
  result.Classify();
  return result;
}

}  // namespace tilert
