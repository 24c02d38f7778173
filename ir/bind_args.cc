#include "ir/bind_args.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "ir/int_eval.h"
#include "ir/int_math.h"
#include "ir/limits.h"
#include "ir/status_util.h"

namespace tilert {
namespace {

constexpr int kMaxDepth = 256;  // the verifier allows less
constexpr int64_t kMaxElements = int64_t{1} << 62;

class Evaluator {
 public:
  Evaluator(const Program& program, const BoundArgs& bound) : program_(program), bound_(bound) {}

  absl::StatusOr<int64_t> Eval(Expr e, int depth = 0) {
    if (!e || e.id >= program_.exprs.size()) return Internal("a missing expression among the shapes of '", program_.name, "'");
    if (depth > kMaxDepth) return InvalidArgument("an expression among the shapes of '", program_.name, "' is nested too deeply");
    const ExprNode& node = program_.exprs[e];
    switch (node.op) {
      case ExprOp::kIntImm:
        return node.i;
      case ExprOp::kConstant:
        return program_.constants[static_cast<size_t>(node.i)].candidates.at(0);
      case ExprOp::kDim:
        return Dim(static_cast<size_t>(node.i));
      case ExprOp::kScalar:
        return Scalar(static_cast<size_t>(node.i));
      case ExprOp::kSelect: {
        TILERT_ASSIGN_OR_RETURN(const int64_t cond, Eval(node.args[0], depth + 1));
        return Eval(node.args[cond != 0 ? 1 : 2], depth + 1);
      }
      case ExprOp::kCast: {
        TILERT_ASSIGN_OR_RETURN(const int64_t v, Eval(node.args[0], depth + 1));
        if (IsFloat(node.dtype)) break;
        return WrapInt(v, node.dtype);
      }
      default:
        break;
    }
    if (!IsIntOp(node.op) || node.args.empty() || node.args.size() > 2) {
      return InvalidArgument("'", ExprOpText(node.op),
                             "' can't be evaluated when arguments are bound: use dims, constants and integer arithmetic");
    }
    int64_t operands[2] = {0, 0};
    for (size_t k = 0; k < node.args.size(); ++k) {
      TILERT_ASSIGN_OR_RETURN(operands[k], Eval(node.args[k], depth + 1));
    }
    const DType type = program_.exprs[node.args[0]].dtype;
    if (!FitsIndex(node.op, type, operands[0], operands[1])) {
      return InvalidArgument("'", operands[0], " ", ExprOpText(node.op),
                             node.args.size() > 1 ? absl::StrCat(" ", operands[1]) : "", "' among the extents of '",
                             program_.name, "' does not fit 64 bits");
    }
    return EvalInt(node.op, type, operands[0], operands[1]);
  }

 private:
  absl::StatusOr<int64_t> Dim(size_t index) const {
    if (bound_.dims[index] != BoundArgs::kUnbound) return bound_.dims[index];
    return InvalidArgument("dim '", program_.dims[index].name, "' is not bound: no shape names it alone and no scalar gives it");
  }
  absl::StatusOr<int64_t> Scalar(size_t index) const {
    if (!IsFloat(program_.scalars[index].dtype)) return bound_.scalars[index].i;
    return InvalidArgument("scalar '", program_.scalars[index].name,
                           "' is a float and can't be part of a shape or an assumption");
  }

  const Program& program_;
  const BoundArgs& bound_;
};

std::string ShapeText(absl::Span<const int64_t> shape) { return absl::StrCat("(", absl::StrJoin(shape, ", "), ")"); }

class Binder {
 public:
  Binder(const Program& program, absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars, BoundArgs* bound)
      : program_(program), tensors_(tensors), scalars_(scalars), bound_(*bound) {}

  absl::Status Bind() {
    bound_.dims.assign(program_.dims.size(), BoundArgs::kUnbound);
    TILERT_RETURN_IF_ERROR(BindScalars());
    TILERT_RETURN_IF_ERROR(ForEachTensor(&Binder::CheckRank));
    TILERT_RETURN_IF_ERROR(ForEachTensor(&Binder::BindDimsOf));
    TILERT_RETURN_IF_ERROR(ForEachTensor(&Binder::CheckTensor));
    TILERT_RETURN_IF_ERROR(CheckDims());
    return CheckAssumptions();
  }

 private:
  using Step = absl::Status (Binder::*)(const Buffer&, const TensorArg&, BoundTensor&);

  absl::Status ForEachTensor(Step step) {
    size_t count = 0;
    for (const Param& param : program_.params) count += param.kind == Param::Kind::kTensor;
    if (count != tensors_.size()) {
      return InvalidArgument("'", program_.name, "' takes ", count, " tensors, got ", tensors_.size());
    }
    bound_.tensors.resize(count);
    size_t next = 0;
    for (const Param& param : program_.params) {
      if (param.kind != Param::Kind::kTensor) continue;
      TILERT_RETURN_IF_ERROR((this->*step)(program_.buffers[param.index], tensors_[next], bound_.tensors[next]));
      ++next;
    }
    return absl::OkStatus();
  }

  absl::Status BindScalars() {
    if (scalars_.size() != program_.scalars.size()) {
      return InvalidArgument("'", program_.name, "' takes ", program_.scalars.size(), " scalars, got ", scalars_.size());
    }
    bound_.scalars.resize(scalars_.size());
    for (size_t k = 0; k < scalars_.size(); ++k) {
      const ScalarParam& param = program_.scalars[k];
      const ScalarArg& arg = scalars_[k];
      if (!IsValidDType(static_cast<uint32_t>(arg.dtype)) || IsFloat(arg.dtype) != IsFloat(param.dtype)) {
        return InvalidArgument("scalar '", param.name, "' is ", DTypeName(param.dtype), ", got ", DTypeName(arg.dtype));
      }
      bound_.scalars[k] = ConvertValue(arg.value, arg.dtype, param.dtype);
      if (!IsFloat(param.dtype) && !SameInteger(arg, param.dtype, bound_.scalars[k].i)) {
        return InvalidArgument("scalar '", param.name, "': ", arg.value.i, " does not fit ", DTypeName(param.dtype));
      }
      if (param.dim != kNoId) TILERT_RETURN_IF_ERROR(BindDim(param.dim, bound_.scalars[k].i, param.name));
    }
    return absl::OkStatus();
  }

  // Whether the integer that `arg` means is the one that `bits` means in `type`; bools take anything.
  static bool SameInteger(const ScalarArg& arg, DType type, int64_t bits) {
    if (type == DType::kBool) return true;
    const auto negative = [](DType t, int64_t v) { return v < 0 && KindOf(t) == DTypeKind::kSigned; };
    return bits == arg.value.i && negative(arg.dtype, arg.value.i) == negative(type, bits);
  }

  absl::Status BindDim(size_t dim, int64_t value, absl::string_view where) {
    if (value < 0) return InvalidArgument("dim '", program_.dims[dim].name, "' can't be negative: ", where, " gives ", value);
    if (bound_.dims[dim] == BoundArgs::kUnbound) bound_.dims[dim] = value;
    if (bound_.dims[dim] == value) return absl::OkStatus();
    return InvalidArgument("dim '", program_.dims[dim].name, "' is ", bound_.dims[dim], " already, but ", where, " gives ",
                           value);
  }

  // Lowered code relies on it where it proves that what is computed from dims fits 64 bits.
  absl::Status CheckDims() const {
    for (size_t d = 0; d < bound_.dims.size(); ++d) {
      if (bound_.dims[d] > kMaxDim)
        return InvalidArgument("dim '", program_.dims[d].name, "' is ", bound_.dims[d], "; dims are at most 2^48");
    }
    return absl::OkStatus();
  }

  absl::Status CheckRank(const Buffer& buffer, const TensorArg& arg, BoundTensor&) {
    if (arg.dtype != buffer.dtype) {
      return InvalidArgument("tensor '", buffer.name, "' is ", DTypeName(buffer.dtype), ", got ", DTypeName(arg.dtype));
    }
    if (arg.shape.size() != buffer.shape.size()) {
      return InvalidArgument("tensor '", buffer.name, "' has ", buffer.shape.size(), " dimensions, got ", arg.shape.size(), ": ",
                             ShapeText(arg.shape));
    }
    if (!arg.strides.empty() && arg.strides.size() != arg.shape.size()) {
      return InvalidArgument("tensor '", buffer.name, "': ", arg.strides.size(), " strides for ", arg.shape.size(),
                             " dimensions");
    }
    int64_t elements = 1;
    for (int64_t extent : arg.shape) {
      if (extent < 0) return InvalidArgument("tensor '", buffer.name, "' has a negative extent: ", ShapeText(arg.shape));
      elements = MulIndex(elements, extent);
    }
    if (elements >= kMaxElements) return InvalidArgument("tensor '", buffer.name, "' is too large: ", ShapeText(arg.shape));
    if (arg.data == nullptr && elements != 0) return InvalidArgument("tensor '", buffer.name, "' has no memory (null pointer)");
    if (reinterpret_cast<uintptr_t>(arg.data) % static_cast<uintptr_t>(std::max(DTypeBytes(buffer.dtype), 1)) != 0) {
      return InvalidArgument("tensor '", buffer.name, "' is not aligned to its elements of ", DTypeBytes(buffer.dtype), " bytes");
    }
    return absl::OkStatus();
  }

  // Binds dims by bare occurrences that are the first; every other occurrence is checked later.
  void BindBare(Expr e, int64_t value) {
    const ExprNode& node = program_.exprs[e];
    if (node.op != ExprOp::kDim) return;
    int64_t& dim = bound_.dims[static_cast<size_t>(node.i)];
    if (dim == BoundArgs::kUnbound) dim = value;
  }

  absl::Status BindDimsOf(const Buffer& buffer, const TensorArg& arg, BoundTensor& out) {
    out.data = arg.data;
    out.shape.assign(arg.shape.begin(), arg.shape.end());
    out.strides.assign(arg.strides.begin(), arg.strides.end());
    if (arg.strides.empty()) Contiguous(out);
    for (size_t d = 0; d < buffer.shape.size(); ++d) BindBare(buffer.shape[d], out.shape[d]);
    for (size_t d = 0; d < buffer.strides.size() && d < out.strides.size(); ++d) {
      const ExprNode& node = program_.exprs[buffer.strides[d]];
      if (node.op != ExprOp::kDim || bound_.dims[static_cast<size_t>(node.i)] != BoundArgs::kUnbound) continue;
      TILERT_RETURN_IF_ERROR(
          BindDim(static_cast<size_t>(node.i), out.strides[d], absl::StrCat("a stride of tensor '", buffer.name, "'")));
    }
    return absl::OkStatus();
  }

  static void Contiguous(BoundTensor& tensor) {
    tensor.strides.resize(tensor.shape.size());
    int64_t stride = 1;
    for (size_t d = tensor.shape.size(); d-- > 0;) {
      tensor.strides[d] = stride;
      stride = MulIndex(stride, std::max<int64_t>(tensor.shape[d], 1));
    }
  }

  absl::Status CheckTensor(const Buffer& buffer, const TensorArg&, BoundTensor& tensor) {
    BoundTensor expected;
    expected.shape.resize(buffer.shape.size());
    for (size_t d = 0; d < buffer.shape.size(); ++d) {
      TILERT_ASSIGN_OR_RETURN(expected.shape[d], EvalBound(program_, buffer.shape[d], bound_));
      if (tensor.shape[d] != expected.shape[d]) {
        return InvalidArgument("tensor '", buffer.name, "': dimension ", d, " must be ", expected.shape[d], ", got ",
                               tensor.shape[d], " in ", ShapeText(tensor.shape), DimsText());
      }
    }
    Contiguous(expected);
    for (size_t d = 0; d < buffer.strides.size(); ++d) {
      TILERT_ASSIGN_OR_RETURN(expected.strides[d], EvalBound(program_, buffer.strides[d], bound_));
    }
    for (size_t d = 0; d < buffer.shape.size(); ++d) {
      if (expected.shape[d] > 1 && tensor.strides[d] != expected.strides[d]) {
        return InvalidArgument("tensor '", buffer.name, "': the stride of dimension ", d, " must be ", expected.strides[d],
                               " elements, got ", tensor.strides[d],
                               buffer.strides.empty() ? " (declare it as T.StridedTensor to accept others)" : "", DimsText());
      }
    }
    return CheckReach(buffer, tensor);
  }

  // No offset inside the tensor may leave 64 bits of bytes.
  static absl::Status CheckReach(const Buffer& buffer, const BoundTensor& tensor) {
    int64_t reach = 0;
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      const int64_t stride = tensor.strides[d] < 0 ? SubIndex(0, tensor.strides[d]) : tensor.strides[d];
      if (tensor.shape[d] > 1) reach = AddIndex(reach, MulIndex(tensor.shape[d] - 1, stride));
    }
    if (MulIndex(reach, 8) < kMaxElements) return absl::OkStatus();
    return InvalidArgument("tensor '", buffer.name, "' spans more than the address space: strides ", ShapeText(tensor.strides));
  }

  std::string DimsText() const {
    std::string text;
    for (size_t d = 0; d < bound_.dims.size(); ++d) {
      if (bound_.dims[d] != BoundArgs::kUnbound)
        absl::StrAppend(&text, text.empty() ? "" : ", ", program_.dims[d].name, " = ", bound_.dims[d]);
    }
    return text.empty() ? text : absl::StrCat("; ", text);
  }

  absl::Status CheckAssumptions() {
    for (size_t k = 0; k < program_.assumptions.size(); ++k) {
      TILERT_ASSIGN_OR_RETURN(const int64_t holds, EvalBound(program_, program_.assumptions[k], bound_));
      if (holds == 0) return InvalidArgument("assumption ", k, " of '", program_.name, "' does not hold", DimsText());
    }
    return absl::OkStatus();
  }

  const Program& program_;
  absl::Span<const TensorArg> tensors_;
  absl::Span<const ScalarArg> scalars_;
  BoundArgs& bound_;
};

}  // namespace

absl::Status BindArgs(const Program& program, absl::Span<const TensorArg> tensors, absl::Span<const ScalarArg> scalars,
                      BoundArgs* bound) {
  return Binder(program, tensors, scalars, bound).Bind();
}

absl::StatusOr<int64_t> EvalBound(const Program& program, Expr e, const BoundArgs& bound) {
  return Evaluator(program, bound).Eval(e);
}

absl::Status BindShape(const Program& program, const Buffer& buffer, const BoundArgs& bound, BoundTensor* out) {
  out->shape.resize(buffer.shape.size());
  out->strides.resize(buffer.shape.size());
  int64_t elements = 1;
  for (size_t d = buffer.shape.size(); d-- > 0;) {
    TILERT_ASSIGN_OR_RETURN(out->shape[d], EvalBound(program, buffer.shape[d], bound));
    if (out->shape[d] < 0) return InvalidArgument("buffer '", buffer.name, "': extent ", d, " is negative: ", out->shape[d]);
    out->strides[d] = elements;
    elements = MulIndex(elements, out->shape[d]);
  }
  if (elements < kMaxElements) return absl::OkStatus();
  return InvalidArgument("buffer '", buffer.name, "' is too large: ", ShapeText(out->shape));
}

}  // namespace tilert
