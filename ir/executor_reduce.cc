// Reductions and scans: sums in float64 (integers modulo 2^64), rounded once; the others in the destination's type.
#include <algorithm>
#include <cmath>

#include "ir/executor_tile.h"
#include "ir/int_eval.h"
#include "ir/reduction.h"
#include "ir/status_util.h"

namespace tilert::exec {
namespace {

bool IsSum(ReduceOp op) { return op == ReduceOp::kSum || op == ReduceOp::kAbsSum; }
bool IsAbs(ReduceOp op) { return op == ReduceOp::kAbsSum || op == ReduceOp::kAbsMax; }

double FloatStep(ReduceOp op, bool nan_propagate, double acc, double x) {
  if (IsSum(op)) return acc + x;
  if (std::isnan(acc) || std::isnan(x)) {
    if (nan_propagate) return std::nan("");
    return std::isnan(x) ? acc : x;
  }
  if (op == ReduceOp::kMin) return x < acc || (x == acc && std::signbit(x)) ? x : acc;
  return x > acc || (x == acc && !std::signbit(x)) ? x : acc;
}

int64_t IntStep(ReduceOp op, DType type, int64_t acc, int64_t x) {
  switch (op) {
    case ReduceOp::kMax:
    case ReduceOp::kAbsMax:
      return EvalInt(ExprOp::kMax, type, acc, x);
    case ReduceOp::kMin:
      return EvalInt(ExprOp::kMin, type, acc, x);
    case ReduceOp::kBitAnd:
      return acc & x;
    case ReduceOp::kBitOr:
      return acc | x;
    case ReduceOp::kBitXor:
      return acc ^ x;
    default:
      return static_cast<int64_t>(static_cast<uint64_t>(acc) + static_cast<uint64_t>(x));
  }
}

// The type in which values are accumulated: sums are rounded to the destination's type at their end.
DType WorkType(bool sum, DType src, DType dst) {
  if (!sum) return dst;
  return IsFloat(src) || IsFloat(dst) ? DType::kFloat64 : DType::kInt64;
}

void TakeAbs(DType type, std::vector<Value>& values) {
  for (Value& v : values) {
    if (IsFloat(type)) {
      v.f = std::fabs(v.f);
    } else {
      v.i = EvalInt(ExprOp::kAbs, type, v.i, 0);
    }
  }
}

// A box of shape (outer, length, inner), the reduced dimension in the middle.
struct Split {
  int64_t outer = 1, length = 1, inner = 1;
  Split(const Box& box, size_t axis) {
    for (size_t d = 0; d < box.extent.size(); ++d) (d < axis ? outer : d == axis ? length : inner) *= box.extent[d];
  }
};

}  // namespace

absl::Status TileOps::Reduce(const tilert::Reduce& op, const Box& src, const Box& dst) {
  if (op.axis >= src.extent.size())
    return InvalidArgument("dimension ", op.axis, " of a region with ", src.extent.size(), " dimensions");
  Box kept = src;
  kept.extent[op.axis] = 1;
  if (absl::Status status = CheckSameShape(kept, dst); !status.ok()) {
    return InvalidArgument("without dimension ", op.axis, " ", status.message());
  }
  const DType src_type = TypeOf(src), dst_type = TypeOf(dst), work = WorkType(IsSum(op.op), src_type, dst_type);
  std::vector<Value>& acc = c_.values;
  if (op.clear) {
    TILERT_RETURN_IF_ERROR(CheckSize(dst));
    acc.assign(static_cast<size_t>(dst.size()), IdentityOf(op.op, work));
  } else {
    TILERT_RETURN_IF_ERROR(ReadAll(dst, work, OutsideOf(dst), &acc));
  }
  std::vector<Value>& in = a_.values;
  TILERT_RETURN_IF_ERROR(ReadAll(src, src_type, OutsideOf(src), &in));
  if (IsAbs(op.op)) TakeAbs(src_type, in);
  ConvertRow(src_type, work, in.data(), static_cast<int64_t>(in.size()));
  const Split split(src, op.axis);
  for (int64_t o = 0; o < split.outer; ++o) {
    for (int64_t k = 0; k < split.length; ++k) {
      const Value* row = in.data() + (o * split.length + k) * split.inner;
      Value* sums = acc.data() + o * split.inner;
      for (int64_t i = 0; i < split.inner; ++i) {
        if (IsFloat(work)) {
          sums[i].f = FloatStep(op.op, op.nan_propagate, sums[i].f, row[i].f);
        } else {
          sums[i].i = IntStep(op.op, work, sums[i].i, row[i].i);
        }
      }
    }
  }
  ConvertRow(work, dst_type, acc.data(), static_cast<int64_t>(acc.size()));
  memory_.Write(dst, 0, static_cast<int64_t>(acc.size()), acc.data());
  return absl::OkStatus();
}

absl::Status TileOps::Scan(const tilert::Scan& op, const Box& src, const Box& dst) {
  if (op.axis >= src.extent.size())
    return InvalidArgument("dimension ", op.axis, " of a region with ", src.extent.size(), " dimensions");
  TILERT_RETURN_IF_ERROR(CheckSameShape(src, dst));
  const DType work = WorkType(true, TypeOf(src), TypeOf(dst));
  std::vector<Value>& values = a_.values;
  TILERT_RETURN_IF_ERROR(ReadAll(src, work, OutsideOf(src), &values));
  const Split split(src, op.axis);
  for (int64_t o = 0; o < split.outer; ++o) {
    for (int64_t k = 1; k < split.length; ++k) {
      const int64_t at = op.reverse ? split.length - 1 - k : k, before = op.reverse ? at + 1 : at - 1;
      Value* row = values.data() + (o * split.length + at) * split.inner;
      const Value* previous = values.data() + (o * split.length + before) * split.inner;
      for (int64_t i = 0; i < split.inner; ++i) {
        if (IsFloat(work)) {
          row[i].f += previous[i].f;
        } else {
          row[i].i = IntStep(ReduceOp::kSum, work, row[i].i, previous[i].i);
        }
      }
    }
  }
  ConvertRow(work, TypeOf(dst), values.data(), static_cast<int64_t>(values.size()));
  memory_.Write(dst, 0, static_cast<int64_t>(values.size()), values.data());
  return absl::OkStatus();
}

}  // namespace tilert::exec
