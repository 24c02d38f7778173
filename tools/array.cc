#include "tools/array.h"

#include <unistd.h>

#include <algorithm>

#include "ir/limits.h"
#include "ir/numeric.h"
#include "ir/status_util.h"

namespace tilert::tool {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 46;

}  // namespace

int64_t Array::elements() const { return static_cast<int64_t>(bytes.size()) / std::max(DTypeBytes(dtype), 1); }

absl::StatusOr<int64_t> ByteSize(DType dtype, const std::vector<int64_t>& shape) {
  if (shape.size() > kMaxRank) return InvalidArgument(shape.size(), " dimensions; ", kMaxRank, " are possible");
  int64_t bytes = DTypeBytes(dtype);
  bool empty = false;
  for (int64_t extent : shape) {
    if (extent < 0) return InvalidArgument("negative extent in shape ", ShapeText(shape));
    empty = empty || extent == 0;
  }
  if (empty) return 0;
  for (int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes) || bytes >= kMaxBytes) {
      return InvalidArgument("an array of ", DTypeName(dtype), " ", ShapeText(shape), " is too large");
    }
  }
  return bytes;
}

absl::StatusOr<Array> MakeArray(DType dtype, std::vector<int64_t> shape) {
  TILERT_ASSIGN_OR_RETURN(const int64_t bytes, ByteSize(dtype, shape));
  const int64_t memory = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  if (bytes > memory) {
    return absl::ResourceExhaustedError(
        Cat("an array of ", DTypeName(dtype), " ", ShapeText(shape), " needs ", bytes, " bytes; this machine has ", memory));
  }
  Array array;
  array.dtype = dtype;
  array.shape = std::move(shape);
  array.bytes.resize(static_cast<size_t>(bytes));
  return array;
}

Array Converted(const Array& array, DType dtype) {
  constexpr int64_t kRow = 4096;
  Array result;
  result.dtype = dtype;
  result.shape = array.shape;
  const int64_t n = array.elements();
  result.bytes.resize(static_cast<size_t>(n * DTypeBytes(dtype)));
  std::vector<Value> row(static_cast<size_t>(std::min(n, kRow)));
  for (int64_t begin = 0; begin < n; begin += kRow) {
    const int64_t count = std::min(kRow, n - begin);
    LoadRow(array.dtype, array.bytes.data() + begin * DTypeBytes(array.dtype), 1, count, row.data());
    ConvertRow(array.dtype, dtype, row.data(), count);
    StoreRow(dtype, row.data(), count, result.bytes.data() + begin * DTypeBytes(dtype), 1);
  }
  return result;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += Cat(i > 0 ? ", " : "", shape[i]);
  return text + "]";
}

std::string Describe(const Array& array) { return Cat(DTypeName(array.dtype), " ", ShapeText(array.shape)); }

}  // namespace tilert::tool
