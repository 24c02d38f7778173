#include "tests/generator/tile_case.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "ir/int_math.h"
#include "ir/numeric.h"
#include "ir/status_util.h"

namespace tilert {
namespace {

constexpr uint8_t kPoison = 0xa5;

int64_t OffsetOf(const std::vector<int64_t>& at, const std::vector<int64_t>& strides) {
  return std::inner_product(at.begin(), at.end(), strides.begin(), int64_t{0});
}

// Calls `visit(at, offset)`, in elements, for each element of a strided array.
template <typename Visit>
void ForEachElement(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides, Visit visit) {
  std::vector<int64_t> at(shape.size(), 0);
  for (int64_t extent : shape) {
    if (extent == 0) return;
  }
  while (true) {
    visit(at, OffsetOf(at, strides));
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

// About half of them near 0, the others at the ends of the types, at the powers of two in between, and such that a product with a
// small number leaves 64 bits and comes back to where a subscript might be.
Value HostileValue(DType type, std::mt19937_64& random) {
  const auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  const int64_t small = pick(164) - 4;
  if (IsFloat(type)) {
    constexpr double kFar[] = {0x1p31, -0x1p31, 0x1p62, 0x1p63, -0x1p64, 1e30, -0.75, INFINITY, -INFINITY, NAN};
    return {.f = pick(2) == 0 ? static_cast<double>(small) : kFar[pick(10)]};
  }
  int64_t value = small;
  switch (pick(10)) {
    case 0: value = (int64_t{1} << pick(63)) + small; break;
    case 1: value = small - (int64_t{1} << pick(63)); break;
    case 2: value = pick(2) == 0 ? INT64_MIN + pick(100) : INT64_MAX - pick(100); break;
    case 3: value = static_cast<int64_t>(UINT64_MAX / static_cast<uint64_t>(2 + pick(130))) + pick(3); break;
    case 4: value = pick(2) == 0 ? INT32_MIN + pick(100) : INT32_MAX - pick(100); break;
    default: break;
  }
  return {.i = WrapInt(value, type)};
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
  std::mt19937_64 random(tile_case.data_seed);
  for (const ScalarParam& scalar : program.scalars) {
    ScalarArg arg = IsFloat(scalar.dtype) ? ScalarArg::Float(2, scalar.dtype) : ScalarArg::Int(3, scalar.dtype);
    if (!tile_case.hostile.empty() && scalar.dtype == DType::kInt64) arg = {scalar.dtype, HostileValue(scalar.dtype, random)};
    if (scalar.dim != kNoId) arg = ScalarArg::Int(tile_case.dims[scalar.dim], scalar.dtype);
    call.scalars.push_back(arg);
    bound.scalars.push_back(arg.value);
  }
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
      const bool hostile = std::count(tile_case.hostile.begin(), tile_case.hostile.end(), param.index) > 0;
      ForEachElement(tensor.shape, tensor.strides, [&](const std::vector<int64_t>&, int64_t offset) {
        const Value value = hostile ? HostileValue(buffer.dtype, random) : SmallInteger(buffer.dtype, random);
        StoreRow(buffer.dtype, &value, 1, tensor.bytes.data() + offset * DTypeBytes(buffer.dtype), 0);
      });
    }
    call.tensors.push_back(std::move(tensor));
  }
  return call;
}

absl::StatusOr<CallData> WithStridesOf(const Program& program, const TileCase& tile_case, const CallData& call) {
  BoundArgs bound;
  bound.dims = tile_case.dims;
  for (const ScalarArg& scalar : call.scalars) bound.scalars.push_back(scalar.value);
  CallData result = call;
  for (CallData::Tensor& tensor : result.tensors) {
    const std::vector<Expr>& strides = program.buffers[tensor.buffer].strides;
    if (strides.empty()) continue;
    const CallData::Tensor old = tensor;
    const size_t element = static_cast<size_t>(DTypeBytes(tensor.dtype));
    int64_t last = 0;
    for (size_t d = 0; d < strides.size(); ++d) {
      TILERT_ASSIGN_OR_RETURN(tensor.strides[d], EvalBound(program, strides[d], bound));
      last += std::max<int64_t>(tensor.shape[d] - 1, 0) * tensor.strides[d];
    }
    tensor.is_dense = false;
    tensor.bytes.assign(old.bytes.empty() ? 0 : static_cast<size_t>(last + 1) * element, kPoison);
    ForEachElement(tensor.shape, tensor.strides, [&](const std::vector<int64_t>& at, int64_t to) {
      const int64_t from = OffsetOf(at, old.strides);
      std::copy_n(&old.bytes[static_cast<size_t>(from) * element], element, &tensor.bytes[static_cast<size_t>(to) * element]);
    });
  }
  return result;
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
