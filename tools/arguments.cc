#include "tools/arguments.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "ir/numeric.h"
#include "ir/status_util.h"
#include "tools/random_array.h"

namespace tilert::tool {
namespace {

bool ReadsInput(Access access) { return access == Access::kIn || access == Access::kInOut; }

// True for types that a .npy file cannot hold.
bool IsNarrow(DType type) { return type == DType::kBFloat16 || type == DType::kFloat8E4M3 || type == DType::kFloat8E5M2; }

absl::StatusOr<ScalarArg> ParseScalar(const ScalarParam& param, const std::string& text) {
  const char *begin = text.data(), *end = begin + text.size();
  if (IsFloat(param.dtype)) {
    double value = 0;
    const auto result = std::from_chars(begin, end, value);
    if (result.ec != std::errc() || result.ptr != end)
      return UsageError(Cat("--scalar ", param.name, " needs a number, not '", text, "'"));
    return ScalarArg::Float(RoundToType(param.dtype, value), param.dtype);
  }
  if (param.dtype == DType::kBool && (text == "true" || text == "false")) return ScalarArg::Int(text == "true", param.dtype);
  int64_t value = 0;
  const auto result = std::from_chars(begin, end, value);
  if (result.ec != std::errc() || result.ptr != end)
    return UsageError(Cat("--scalar ", param.name, " needs an integer, not '", text, "'"));
  Value given;
  given.i = value;
  if (ConvertValue(given, DType::kInt64, param.dtype).i != value)
    return UsageError(Cat("--scalar ", param.name, ": ", text, " does not fit ", DTypeName(param.dtype)));
  return ScalarArg::Int(value, param.dtype);
}

class Reader {
 public:
  Reader(const Program& program, const Args& args, bool random) : program_(program), args_(args), random_(random) {
    bound_.dims.assign(program.dims.size(), BoundArgs::kUnbound);
    for (const Param& param : program.params) {
      if (param.kind != Param::Kind::kTensor) continue;
      buffers_.push_back(param.index);
      call_.names.push_back(program.buffers[param.index].name);
      call_.access.push_back(param.access);
    }
    call_.arrays.resize(buffers_.size());
    given_.resize(buffers_.size());
  }

  absl::StatusOr<CallArguments> Run() {
    TILERT_RETURN_IF_ERROR(Dims());
    TILERT_RETURN_IF_ERROR(Scalars());
    TILERT_RETURN_IF_ERROR(Inputs());
    TILERT_RETURN_IF_ERROR(Rest());
    return std::move(call_);
  }

 private:
  absl::Status Dims() {
    for (const char* option : {"--dim", "--extent"}) {
      TILERT_ASSIGN_OR_RETURN(const auto dims, IntAssignments(args_, option));
      for (const auto& [name, value] : dims) {
        const auto found =
            std::find_if(program_.dims.begin(), program_.dims.end(), [&](const Dim& dim) { return dim.name == name; });
        if (found == program_.dims.end())
          return UsageError(Cat(option, ": program '", program_.name, "' has no dim '", name, "'"));
        if (value < 0) return UsageError(Cat(option, " ", name, " is negative"));
        int64_t& dim = bound_.dims[static_cast<size_t>(found - program_.dims.begin())];
        if (dim != BoundArgs::kUnbound && dim != value)
          return UsageError(Cat(option, " ", name, "=", value, ": the code is for ", name, "=", dim, " only"));
        dim = value;
      }
    }
    return absl::OkStatus();
  }

  absl::Status Scalars() {
    std::map<std::string, std::string> texts;
    for (const std::string& text : args_.All("--scalar")) {
      TILERT_ASSIGN_OR_RETURN(auto assignment, SplitAssignment("--scalar", text));
      if (!texts.insert(assignment).second) return UsageError(Cat("--scalar sets '", assignment.first, "' twice"));
    }
    for (const ScalarParam& param : program_.scalars) {
      const auto text = texts.find(param.name);
      const bool dim_known = param.dim != kNoId && bound_.dims[param.dim] != BoundArgs::kUnbound;
      if (text == texts.end() && !dim_known)
        return UsageError(Cat("the scalar '", param.name, "' is missing; give --scalar ", param.name, "=VALUE"));
      ScalarArg value = ScalarArg::Int(dim_known ? bound_.dims[param.dim] : 0, param.dtype);
      if (text != texts.end()) {
        TILERT_ASSIGN_OR_RETURN(value, ParseScalar(param, text->second));
        texts.erase(text);
      }
      if (param.dim != kNoId) bound_.dims[param.dim] = value.value.i;
      call_.scalars.push_back(value);
      bound_.scalars.push_back(value.value);
    }
    if (!texts.empty())
      return UsageError(Cat("--scalar: program '", program_.name, "' has no scalar '", texts.begin()->first, "'"));
    return absl::OkStatus();
  }

  absl::Status Inputs() {
    for (const std::string& text : args_.All("--in")) {
      TILERT_ASSIGN_OR_RETURN(const auto assignment, SplitAssignment("--in", text));
      const auto found = std::find(call_.names.begin(), call_.names.end(), assignment.first);
      if (found == call_.names.end())
        return UsageError(Cat("--in: program '", program_.name, "' has no tensor '", assignment.first, "'"));
      const size_t i = static_cast<size_t>(found - call_.names.begin());
      if (!ReadsInput(call_.access[i])) return UsageError(Cat("--in: '", assignment.first, "' is an output; use --out"));
      if (given_[i]) return UsageError(Cat("--in gives '", assignment.first, "' twice"));
      TILERT_ASSIGN_OR_RETURN(Array array, LoadArray(assignment.second));
      const Buffer& buffer = program_.buffers[buffers_[i]];
      if (array.dtype != buffer.dtype && IsNarrow(buffer.dtype) && IsFloat(array.dtype) && !IsNarrow(array.dtype)) {
        array = Converted(array, buffer.dtype);
      }
      if (array.shape.size() != buffer.shape.size()) {
        return InvalidArgument(assignment.second, ": ", Describe(array), " has ", array.shape.size(), " dimensions, '",
                               buffer.name, "' has ", buffer.shape.size());
      }
      BindDims(buffer, array.shape);
      call_.arrays[i] = std::move(array);
      given_[i] = true;
    }
    return absl::OkStatus();
  }

  // First occurrence wins; contradictions are found when the arguments are bound for the call.
  void BindDims(const Buffer& buffer, const std::vector<int64_t>& shape) {
    for (size_t d = 0; d < shape.size(); ++d) {
      const ExprNode& node = program_.exprs[buffer.shape[d]];
      if (node.op != ExprOp::kDim) continue;
      int64_t& dim = bound_.dims[static_cast<size_t>(node.i)];
      if (dim == BoundArgs::kUnbound) dim = shape[d];
    }
  }

  // Outputs, and inputs that are to be random.
  absl::Status Rest() {
    TILERT_ASSIGN_OR_RETURN(const int64_t seed, args_.Int("--seed", 1, 0, INT64_MAX));
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (given_[i]) continue;
      const Buffer& buffer = program_.buffers[buffers_[i]];
      if (ReadsInput(call_.access[i]) && !random_) {
        return UsageError(Cat("the input '", buffer.name, "' is missing; give --in ", buffer.name, "=FILE, or --random"));
      }
      std::vector<int64_t> shape;
      for (Expr e : buffer.shape) {
        const absl::StatusOr<int64_t> extent = EvalBound(program_, e, bound_);
        if (!extent.ok())
          return UsageError(
              Cat("the shape of '", buffer.name, "' is not known yet (", extent.status().message(), "); give ",
                  args_.Has("--simulate") ? "--extent" : "--dim", " NAME=N"));
        shape.push_back(*extent);
      }
      TILERT_ASSIGN_OR_RETURN(call_.arrays[i], MakeArray(buffer.dtype, std::move(shape)));
      if (ReadsInput(call_.access[i])) {
        FillRandom(static_cast<uint64_t>(seed) * 1000003 + i, &call_.arrays[i]);
      } else {
        FillPoison(&call_.arrays[i]);
      }
    }
    return absl::OkStatus();
  }

  const Program& program_;
  const Args& args_;
  const bool random_;  // inputs that are not given
  BoundArgs bound_;
  std::vector<BufferId> buffers_;  // of the tensor parameters
  std::vector<bool> given_;
  CallArguments call_;
};

}  // namespace

std::vector<TensorArg> CallArguments::Tensors(std::vector<Array>& arrays) {
  std::vector<TensorArg> tensors;
  for (Array& array : arrays) tensors.push_back({array.bytes.data(), array.dtype, array.shape, {}});
  return tensors;
}

absl::StatusOr<CallArguments> ReadArguments(const Program& program, const Args& args, bool random) {
  return Reader(program, args, random).Run();
}

}  // namespace tilert::tool
