#include "ir/executor_tile.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "ir/int_eval.h"
#include "ir/status_util.h"

namespace tilert::exec {
namespace {

constexpr int64_t kChunk = 4096;  // elements of a copy in flight

using Extents = absl::InlinedVector<int64_t, 4>;

Extents WithoutOnes(const Extents& extents) {
  Extents result;
  for (int64_t e : extents) {
    if (e != 1) result.push_back(e);
  }
  return result;
}

std::string Text(const Extents& extents) { return absl::StrCat("(", absl::StrJoin(extents, ", "), ")"); }

// c += a · b. Index k runs outside n, so that each row of b is read in order. Sums are float64, or integers modulo 2^64.
void MultiplyFloats(const Value* a, const Value* b, Value* c, int64_t m_extent, int64_t n_extent, int64_t k_extent) {
  for (int64_t m = 0; m < m_extent; ++m) {
    for (int64_t k = 0; k < k_extent; ++k) {
      const double left = a[m * k_extent + k].f;
      for (int64_t n = 0; n < n_extent; ++n) c[m * n_extent + n].f += left * b[k * n_extent + n].f;
    }
  }
}

void MultiplyInts(const Value* a, const Value* b, Value* c, int64_t m_extent, int64_t n_extent, int64_t k_extent) {
  for (int64_t m = 0; m < m_extent; ++m) {
    for (int64_t k = 0; k < k_extent; ++k) {
      const uint64_t left = static_cast<uint64_t>(a[m * k_extent + k].i);
      for (int64_t n = 0; n < n_extent; ++n) {
        Value& sum = c[m * n_extent + n];
        sum.i = static_cast<int64_t>(static_cast<uint64_t>(sum.i) + left * static_cast<uint64_t>(b[k * n_extent + n].i));
      }
    }
  }
}

}  // namespace

absl::Status TileOps::CheckSameShape(const Box& src, const Box& dst) const {
  if (WithoutOnes(src.extent) == WithoutOnes(dst.extent)) return absl::OkStatus();
  return InvalidArgument("the region of '", NameOf(src), "' is ", Text(src.extent), ", that of '", NameOf(dst), "' is ",
                         Text(dst.extent), ": apart from extents of 1 they must agree");
}

// Cuts off what lies outside of dst's buffer, where nothing is written, and what would go there.
void TileOps::Clip(Box* src, Box* dst) const {
  const auto& shape = memory_.view(dst->buffer).tensor.shape;
  size_t from = 0;
  for (size_t d = 0; d < dst->extent.size(); ++d) {
    const int64_t start = dst->start[d], extent = dst->extent[d];
    const int64_t begin = std::clamp<int64_t>(SubIndex(0, start), 0, extent);
    const int64_t size = std::clamp<int64_t>(SubIndex(shape[d], start), begin, extent) - begin;
    dst->start[d] = AddIndex(start, begin);
    dst->extent[d] = size;
    if (src == nullptr || extent == 1) continue;
    while (src->extent[from] == 1) ++from;
    src->start[from] = AddIndex(src->start[from], begin);
    src->extent[from++] = size;
  }
}

// Converts src to dst's type chunk by chunk and hands the chunks to write(dst, first, count, values); all at once where dst may
// overlap src.
template <typename F>
absl::Status TileOps::Stream(Box src, Box dst, Value fill, F write) {
  TILERT_RETURN_IF_ERROR(CheckSameShape(src, dst));
  Clip(&src, &dst);
  const int64_t size = dst.size(), chunk = src.buffer == dst.buffer ? size : kChunk;
  if (chunk > kChunk) TILERT_RETURN_IF_ERROR(CheckSize(dst));
  row_.resize(static_cast<size_t>(std::min(size, chunk)));
  for (int64_t first = 0; first < size; first += chunk) {
    const int64_t count = std::min(chunk, size - first);
    memory_.Read(src, first, count, fill, row_.data());
    ConvertRow(TypeOf(src), TypeOf(dst), row_.data(), count);
    write(dst, first, count, row_.data());
  }
  return absl::OkStatus();
}

absl::Status TileOps::Copy(const Box& src, const Box& dst, Value fill) {
  return Stream(src, dst, fill, [&](const Box& to, int64_t first, int64_t count, const Value* values) {
    memory_.Write(to, first, count, values);
  });
}

absl::Status TileOps::Atomic(AtomicOp op, const Box& src, const Box& dst) {
  return Stream(src, dst, OutsideOf(src), [&](const Box& to, int64_t first, int64_t count, const Value* values) {
    memory_.Atomic(op, to, first, count, values);
  });
}

void TileOps::Fill(Box dst, Value value) {
  Clip(nullptr, &dst);
  const int64_t size = dst.size();
  row_.assign(static_cast<size_t>(std::min(size, kChunk)), value);
  for (int64_t first = 0; first < size; first += kChunk) memory_.Write(dst, first, std::min(kChunk, size - first), row_.data());
}

absl::Status TileOps::CheckSize(const Box& box) const {
  if (box.size() <= options_.max_bytes / static_cast<int64_t>(sizeof(Value))) return absl::OkStatus();
  return absl::ResourceExhaustedError(Cat("the region of '", NameOf(box), "', ", Text(box.extent), ", is too large"));
}

absl::Status TileOps::ReadAll(const Box& box, DType type, Value fill, std::vector<Value>* out) {
  TILERT_RETURN_IF_ERROR(CheckSize(box));
  const int64_t size = box.size();
  out->resize(static_cast<size_t>(size));
  memory_.Read(box, 0, size, fill, out->data());
  ConvertRow(TypeOf(box), type, out->data(), size);
  return absl::OkStatus();
}

absl::Status TileOps::ReadMatrix(const Box& box, DType type, bool clear, Matrix* out) {
  const std::vector<size_t> dims = MatrixDims(box.extent.size(), [&](size_t d) { return box.extent[d] == 1; });
  if (dims.size() != 2) return InvalidArgument("the region of '", NameOf(box), "', ", Text(box.extent), ", is not a matrix");
  out->rows = box.extent[dims[0]];
  out->columns = box.extent[dims[1]];
  if (!clear) return ReadAll(box, type, Value{}, &out->values);
  TILERT_RETURN_IF_ERROR(CheckSize(box));
  out->values.assign(static_cast<size_t>(box.size()), Value{});
  return absl::OkStatus();
}

namespace {

std::vector<Value> Transposed(const std::vector<Value>& values, int64_t rows, int64_t columns) {
  std::vector<Value> result(values.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c)
      result[static_cast<size_t>(c * rows + r)] = values[static_cast<size_t>(r * columns + c)];
  }
  return result;
}

}  // namespace

absl::Status TileOps::Gemm(const tilert::Gemm& op, const Box& a, const Box& b, const Box& c) {
  const bool floats = IsFloat(TypeOf(c));
  const DType type = floats ? DType::kFloat64 : DType::kInt64;
  TILERT_RETURN_IF_ERROR(ReadMatrix(a, type, false, &a_));
  TILERT_RETURN_IF_ERROR(ReadMatrix(b, type, false, &b_));
  TILERT_RETURN_IF_ERROR(ReadMatrix(c, type, op.clear_accum, &c_));
  for (auto [matrix, transpose] : {std::pair(&a_, op.transpose_a), std::pair(&b_, op.transpose_b)}) {
    if (!transpose) continue;
    matrix->values = Transposed(matrix->values, matrix->rows, matrix->columns);
    std::swap(matrix->rows, matrix->columns);
  }
  if (a_.columns != b_.rows || a_.rows != c_.rows || b_.columns != c_.columns) {
    return InvalidArgument("the operands are ", a_.rows, " by ", a_.columns, " and ", b_.rows, " by ", b_.columns,
                           ", the accumulator is ", c_.rows, " by ", c_.columns, ": they do not fit");
  }
  const auto multiply = floats ? MultiplyFloats : MultiplyInts;
  multiply(a_.values.data(), b_.values.data(), c_.values.data(), c_.rows, c_.columns, a_.columns);
  const int64_t size = c_.rows * c_.columns;
  ConvertRow(type, TypeOf(c), c_.values.data(), size);
  memory_.Write(c, 0, size, c_.values.data());
  return absl::OkStatus();
}

}  // namespace tilert::exec
