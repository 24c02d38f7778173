// Mma and LaneReduce, element by element through the layouts.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/status_util.h"
#include "lowering/simulator/block.h"

namespace tilert::sim {

// As numbers of type T. Of float32 operands, which are tf32, the low 13 bits are not looked at.
template <typename T>
std::vector<T> ThreadBlock::Gather(Warp& warp, BufferId buffer, const std::vector<CMma::Element>& elements, size_t cells,
                                   bool is_operand) {
  const BufferInfo& info = Info(buffer);
  const Registers& registers = Touch(warp, buffer);
  const auto bytes = static_cast<size_t>(info.bytes);
  const DType type = info.source->dtype;
  const bool is_tf32 = is_operand && type == DType::kFloat32;
  std::vector<T> dense(cells);
  for (const CMma::Element& e : elements) {
    const auto at = static_cast<size_t>(e.reg) * kLanes + static_cast<size_t>(e.lane);
    if ((registers.defined[static_cast<size_t>(e.reg)] >> e.lane & 1) == 0) {
      Fail(warp, e.lane,
           Cat("mma uses ", info.source->name, "[", info.layout->Coord(e.reg, e.lane, warp.index, 0), ", ",
               info.layout->Coord(e.reg, e.lane, warp.index, 1), "] (register ", e.reg, "), which was never written"));
      break;
    }
    uint64_t raw = 0;
    std::memcpy(&raw, &registers.data[at * bytes], bytes);
    if (is_tf32) raw &= 0xffffe000u;
    Value value{.f = 0};
    if (IsFloat(type)) {
      value.f = DecodeFloat(type, raw);
    } else {
      LoadRow(type, &raw, 1, 1, &value);
    }
    dense[static_cast<size_t>(e.cell)] = static_cast<T>(IsFloat(type) ? value.f : static_cast<double>(value.i));
  }
  return dense;
}

// Products of narrow floats are exact in float32; sums are rounded to it one by one. Integers wrap.
void ThreadBlock::RunMma(Warp& warp, const CMma& mma) {
  if (IsFloat(Info(mma.acc).source->dtype)) return RunMmaOf<float>(warp, mma);
  RunMmaOf<int64_t>(warp, mma);
}

template <typename T>
void ThreadBlock::RunMmaOf(Warp& warp, const CMma& mma) {
  const CMma::PerWarp& part = mma.warps[static_cast<size_t>(warp.index)];
  const auto m = static_cast<size_t>(part.m), n = static_cast<size_t>(part.n), k = static_cast<size_t>(mma.k);
  const std::vector<T> a = Gather<T>(warp, mma.a, part.a, m * k, true), b = Gather<T>(warp, mma.b, part.b, k * n, true);
  std::vector<T> c = Gather<T>(warp, mma.acc, part.acc, m * n, false);
  if (failed()) return;
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < k; ++j) {
      const T factor = a[i * k + j];
      for (size_t x = 0; x < n; ++x) c[i * n + x] += factor * b[j * n + x];
    }
  }
  const BufferInfo& acc = Info(mma.acc);
  Registers& registers = Touch(warp, mma.acc);
  for (const CMma::Element& e : part.acc) {
    const T sum = c[static_cast<size_t>(e.cell)];
    const uint64_t raw =
        std::is_same_v<T, float> ? EncodeFloat(acc.source->dtype, static_cast<double>(sum)) : static_cast<uint64_t>(sum);
    std::memcpy(
        &registers.data[(static_cast<size_t>(e.reg) * kLanes + static_cast<size_t>(e.lane)) * static_cast<size_t>(acc.bytes)],
        &raw, static_cast<size_t>(acc.bytes));
  }
}

namespace {

bool IsSum(ReduceOp op) { return op == ReduceOp::kSum || op == ReduceOp::kAbsSum; }

// The value of a reduction over nothing.
Value Identity(ReduceOp op, DType type) {
  Value value{.i = 0};
  const bool lowest = op == ReduceOp::kMax;
  if (op == ReduceOp::kBitAnd) {
    value.i = type == DType::kBool || KindOf(type) == DTypeKind::kUnsigned ? MaxInt(type) : -1;
  } else if (lowest || op == ReduceOp::kMin) {
    const double greatest = IsFloat(type) ? (HasInfinity(type) ? std::numeric_limits<double>::infinity() : MaxFinite(type)) : 0;
    if (IsFloat(type)) {
      value.f = lowest ? -greatest : greatest;
    } else {
      value.i = lowest ? MinInt(type) : MaxInt(type);
    }
  }
  return value;
}

Value Combine(ReduceOp op, DType type, Value a, Value b) {
  const ExprOp expr_op = IsSum(op)                                         ? ExprOp::kAdd
                         : op == ReduceOp::kMax || op == ReduceOp::kAbsMax ? ExprOp::kMax
                         : op == ReduceOp::kMin                            ? ExprOp::kMin
                         : op == ReduceOp::kBitAnd                         ? ExprOp::kBitAnd
                         : op == ReduceOp::kBitOr                          ? ExprOp::kBitOr
                                                                           : ExprOp::kBitXor;
  Value result;
  EvalOp({.op = expr_op, .type = type, .result = type}, &a, &b, nullptr, &result, 1);
  return result;
}

Value LoadRegister(const Registers& registers, const BufferInfo& info, int32_t reg, int32_t lane) {
  Value value;
  LoadRow(info.source->dtype,
          &registers.data[(static_cast<size_t>(reg) * kLanes + static_cast<size_t>(lane)) * static_cast<size_t>(info.bytes)], 1,
          1, &value);
  return value;
}

}  // namespace

// Sums are taken in float32 at least and converted last; other reductions in the type of the result.
void ThreadBlock::RunLaneReduce(Warp& warp, const CLaneReduce& reduce) {
  const CLaneReduce::PerWarp& part = reduce.warps[static_cast<size_t>(warp.index)];
  const BufferInfo &src = Info(reduce.src), &dst = Info(reduce.dst);
  const DType from = src.source->dtype, to = dst.source->dtype;
  const DType type = IsSum(reduce.op) && IsFloat(to) && to != DType::kFloat64 ? DType::kFloat32 : to;
  const bool absolute = reduce.op == ReduceOp::kAbsSum || reduce.op == ReduceOp::kAbsMax;
  Touch(warp, reduce.src);
  Touch(warp, reduce.dst);
  std::vector<Value> cells(static_cast<size_t>(part.cells), Identity(reduce.op, type));
  auto undefined = [&](BufferId buffer, int32_t reg, int32_t lane) {
    const bool wrong = (warp.registers[buffer].defined[static_cast<size_t>(reg)] >> lane & 1) == 0;
    if (wrong)
      Fail(warp, lane, Cat("the reduction uses register ", reg, " of ", Info(buffer).source->name, ", which was never written"));
    return wrong;
  };
  for (const CLaneReduce::Source& source : part.sources) {
    if (undefined(reduce.src, source.reg, source.lane)) return;
    Value value = LoadRegister(warp.registers[reduce.src], src, source.reg, source.lane);
    if (absolute) EvalOp({.op = ExprOp::kAbs, .type = from, .result = from}, &value, nullptr, nullptr, &value, 1);
    ConvertRow(from, type, &value, 1);
    Value& cell = cells[static_cast<size_t>(source.cell)];
    cell = Combine(reduce.op, type, cell, value);
  }
  Registers& registers = Touch(warp, reduce.dst);
  for (const CLaneReduce::Target& target : part.targets) {
    Value value = cells[static_cast<size_t>(target.cell)];
    if (reduce.accumulate) {
      if (undefined(reduce.dst, target.reg, target.lane)) return;
      Value old = LoadRegister(registers, dst, target.reg, target.lane);
      ConvertRow(to, type, &old, 1);
      value = Combine(reduce.op, type, old, value);
    }
    ConvertRow(type, to, &value, 1);
    const auto at =
        (static_cast<size_t>(target.reg) * kLanes + static_cast<size_t>(target.lane)) * static_cast<size_t>(dst.bytes);
    StoreRow(to, &value, 1, &registers.data[at], 1);
    registers.defined[static_cast<size_t>(target.reg)] |= uint32_t{1} << target.lane;
  }
}

}  // namespace tilert::sim
