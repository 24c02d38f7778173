#include "tests/generator/tile_case.h"

#include <cmath>
#include <random>

#include "ir/numeric.h"
#include "ir/status_util.h"

namespace tilert {
namespace {

constexpr uint8_t kPoison = 0xa5;

// Calls `visit(offset)`, in elements, for each element of a strided array.
template <typename Visit>
void ForEachElement(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides, Visit visit) {
  std::vector<int64_t> at(shape.size(), 0);
  for (int64_t extent : shape) {
    if (extent == 0) return;
  }
  while (true) {
    int64_t offset = 0;
    for (size_t d = 0; d < shape.size(); ++d) offset += at[d] * strides[d];
    visit(at, offset);
    size_t d = shape.size();
    while (d > 0 && ++at[d - 1] == shape[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

Value SmallInteger(DType type, std::mt19937_64& random) {
  if (type == DType::kBool) return {.i = static_cast<int64_t>(random() % 2)};
  if (IsFloat(type)) return {.f = static_cast<double>(static_cast<int64_t>(random() % 5) - 2)};
  if (KindOf(type) == DTypeKind::kUnsigned) return {.i = static_cast<int64_t>(random() % 10)};
  return {.i = static_cast<int64_t>(random() % 19) - 9};
}

bool SameValue(DType type, const uint8_t* a, const uint8_t* b) {
  Value left, right;
  LoadRow(type, a, 0, 1, &left);
  LoadRow(type, b, 0, 1, &right);
  if (!IsFloat(type)) return left.i == right.i;
  return left.f == right.f || (std::isnan(left.f) && std::isnan(right.f));
}

std::string ValueText(DType type, const uint8_t* at) {
  Value value;
  LoadRow(type, at, 0, 1, &value);
  return IsFloat(type) ? Cat(value.f) : Cat(value.i);
}

}  // namespace

std::vector<TensorArg> CallData::Args() {
  std::vector<TensorArg> args;
  for (Tensor& tensor : tensors)
    args.push_back(
        {tensor.bytes.data(), tensor.dtype, tensor.shape, tensor.is_dense ? absl::Span<const int64_t>() : tensor.strides});
  return args;
}

absl::StatusOr<CallData> MakeCall(const TileCase& tile_case, int64_t max_bytes) {
  const Program& program = tile_case.program;
  CallData call;
  BoundArgs bound;
  bound.dims = tile_case.dims;
  for (const ScalarParam& scalar : program.scalars) {
    ScalarArg arg = IsFloat(scalar.dtype) ? ScalarArg::Float(2, scalar.dtype) : ScalarArg::Int(3, scalar.dtype);
    if (scalar.dim != kNoId) arg = ScalarArg::Int(tile_case.dims[scalar.dim], scalar.dtype);
    call.scalars.push_back(arg);
    bound.scalars.push_back(arg.value);
  }
  std::mt19937_64 random(tile_case.data_seed);
  for (const Param& param : program.params) {
    if (param.kind != Param::Kind::kTensor) continue;
    const Buffer& buffer = program.buffers[param.index];
    BoundTensor shape;
    TILERT_RETURN_IF_ERROR(BindShape(program, buffer, bound, &shape));
    CallData::Tensor tensor{param.index, param.access, buffer.dtype, {shape.shape.begin(), shape.shape.end()}, {}, {}};
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      TILERT_ASSIGN_OR_RETURN(const int64_t stride,
                              buffer.strides.empty() ? shape.strides[d] : EvalBound(program, buffer.strides[d], bound));
      tensor.strides.push_back(stride);
    }
    if (buffer.strides.empty()) tensor.is_dense = true;
    int64_t elements = 1;
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      if (tensor.strides[d] < 0) return InvalidArgument("a negative stride");
      elements += std::max<int64_t>(tensor.shape[d] - 1, 0) * tensor.strides[d];
      if (elements * DTypeBytes(buffer.dtype) > max_bytes) return absl::ResourceExhaustedError("a tensor is too large");
    }
    tensor.bytes.assign(static_cast<size_t>(elements * DTypeBytes(buffer.dtype)), kPoison);
    if (param.access != Access::kOut) {
      ForEachElement(tensor.shape, tensor.strides, [&](const std::vector<int64_t>&, int64_t offset) {
        const Value value = SmallInteger(buffer.dtype, random);
        StoreRow(buffer.dtype, &value, 1, tensor.bytes.data() + offset * DTypeBytes(buffer.dtype), 0);
      });
    }
    call.tensors.push_back(std::move(tensor));
  }
  return call;
}

std::string FirstDifference(const Program& program, const CallData& got, const CallData& expected) {
  for (size_t i = 0; i < got.tensors.size(); ++i) {
    const CallData::Tensor& a = got.tensors[i];
    const CallData::Tensor& b = expected.tensors[i];
    if (a.access == Access::kIn || a.bytes == b.bytes) continue;
    std::string text;
    int64_t differing = 0, elements = 0;
    ForEachElement(a.shape, a.strides, [&](const std::vector<int64_t>& at, int64_t offset) {
      ++elements;
      const size_t byte = static_cast<size_t>(offset * DTypeBytes(a.dtype));
      if (SameValue(a.dtype, &a.bytes[byte], &b.bytes[byte])) return;
      if (++differing > 1) return;
      text = Cat(program.buffers[a.buffer].name, "[");
      for (size_t d = 0; d < at.size(); ++d) text += Cat(d > 0 ? ", " : "", at[d]);
      text += Cat("] is ", ValueText(a.dtype, &a.bytes[byte]), ", not ", ValueText(b.dtype, &b.bytes[byte]));
    });
    if (differing > 0) return Cat(text, " (", differing, " of ", elements, " elements differ)");
  }
  return {};
}

}  // namespace tilert
