#include "tools/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "ir/numeric.h"
#include "ir/status_util.h"

namespace tilert::tool {
namespace {

Value At(const Array& array, int64_t i) {
  Value value;
  LoadRow(array.dtype, array.bytes.data() + i * DTypeBytes(array.dtype), 1, 1, &value);
  return value;
}

double Number(DType type, Value value) { return IsFloat(type) ? value.f : static_cast<double>(value.i); }

std::string Short(double value) {
  if (std::isnan(value)) return "nan";  // whatever its sign
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string Coordinates(const std::vector<int64_t>& shape, int64_t i) {
  std::vector<int64_t> coords(shape.size());
  for (size_t d = shape.size(); d-- > 0; i /= shape[d]) coords[d] = i % shape[d];
  return ShapeText(coords);
}

double RootMeanSquare(const Array& array) {
  double sum = 0;
  int64_t count = 0;
  for (int64_t i = 0; i < array.elements(); ++i) {
    const double x = Number(array.dtype, At(array, i));
    if (!std::isfinite(x)) continue;
    sum += x * x;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
}

}  // namespace

double DefaultTolerance(DType dtype) {
  switch (dtype) {
    case DType::kFloat64: return 0x1p-40;
    case DType::kFloat32: return 0x1p-14;
    case DType::kFloat16: return 0x1p-9;
    case DType::kBFloat16: return 0x1p-6;
    default: return IsFloat(dtype) ? 0x1p-2 : 0;
  }
}

double DefaultTolerance(const Program& program, DType output) {
  double tolerance = DefaultTolerance(output);
  if (!IsFloat(output)) return tolerance;
  const auto through = [&](BufferId to) {
    const bool is_result = std::any_of(program.params.begin(), program.params.end(), [to](const Param& param) {
      return param.kind == Param::Kind::kTensor && param.index == to && param.access == Access::kOut;
    });
    const DType type = program.buffers[to].dtype;
    if (!is_result && IsFloat(type)) tolerance = std::max(tolerance, DefaultTolerance(type));
  };
  for (const Launch& launch : program.launches) {
    ForEachStmt(launch.body, [&](const Stmt& stmt) {
      const auto* store = std::get_if<Store>(&stmt.op);
      const auto* copy = std::get_if<Copy>(&stmt.op);
      const auto* gemm = std::get_if<Gemm>(&stmt.op);
      const auto* reduce = std::get_if<Reduce>(&stmt.op);
      if (store != nullptr && program.exprs[store->value].op != ExprOp::kLoad) through(store->buffer);
      if (copy != nullptr && program.buffers[copy->src.buffer].dtype != program.buffers[copy->dst.buffer].dtype)
        through(copy->dst.buffer);
      if (reduce != nullptr) through(reduce->dst.buffer);
      if (gemm == nullptr) return;
      through(gemm->c.buffer);
      const DType type = program.buffers[gemm->a.buffer].dtype;
      if (IsFloat(type) && DTypeBits(type) < 32) tolerance = std::max(tolerance, 0x1p-12);
    });
  }
  return tolerance;
}

Comparison Compare(const Array& actual, const Array& expected, double tolerance) {
  Comparison result;
  if (actual.dtype != expected.dtype || actual.shape != expected.shape) {
    result.worst = Cat(Describe(actual), " instead of ", Describe(expected));
    return result;
  }
  const bool floats = IsFloat(actual.dtype);
  const double bound = tolerance < 0 ? DefaultTolerance(actual.dtype) : tolerance, rms = floats ? RootMeanSquare(expected) : 0;
  double worst = -1;
  for (int64_t i = 0; i < actual.elements(); ++i) {
    const Value a = At(actual, i), e = At(expected, i);
    if (!floats && a.i == e.i) continue;
    const double x = Number(actual.dtype, a), y = Number(actual.dtype, e);
    if (floats && (x == y || (std::isnan(x) && std::isnan(y)))) continue;
    const double difference = std::isfinite(x) && std::isfinite(y) ? std::abs(x - y) : HUGE_VAL;
    result.largest = std::max(result.largest, difference);
    if (floats && std::isfinite(difference) && difference <= bound * (std::abs(y) + rms)) continue;
    ++result.differing;
    if (difference <= worst) continue;
    worst = difference;
    result.worst = Cat(Coordinates(actual.shape, i), ": ", Short(x), " instead of ", Short(y));
  }
  result.equal = result.differing == 0;
  return result;
}

std::string Statistics(const Array& array) {
  double min = HUGE_VAL, max = -HUGE_VAL, sum = 0;
  int64_t nans = 0, infinities = 0, finite = 0;
  for (int64_t i = 0; i < array.elements(); ++i) {
    const double x = Number(array.dtype, At(array, i));
    if (std::isnan(x)) {
      ++nans;
    } else if (std::isinf(x)) {
      ++infinities;
    } else {
      min = std::min(min, x);
      max = std::max(max, x);
      sum += x;
      ++finite;
    }
  }
  std::string text = finite == 0
                         ? "no finite element"
                         : Cat("min ", Short(min), ", max ", Short(max), ", mean ", Short(sum / static_cast<double>(finite)));
  if (nans > 0) text += Cat(", ", nans, " NaN");
  if (infinities > 0) text += Cat(", ", infinities, " infinite");
  return text;
}

}  // namespace tilert::tool
