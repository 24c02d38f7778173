// Every operator and conversion of every type: the emitted source, run on the host, against the executor.
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "host_program.h"
#include "ir/builder.h"

namespace tilert {
namespace {

constexpr int64_t kCount = 256;
constexpr DType kTypes[] = {DType::kBool,     DType::kInt8,    DType::kInt16,   DType::kInt32,      DType::kInt64,
                            DType::kUInt8,    DType::kUInt16,  DType::kUInt32,  DType::kUInt64,     DType::kFloat16,
                            DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kFloat8E4M3, DType::kFloat8E5M2};

// Values that matter (limits, zeros, infinities, NaN, halves) and random ones.
void FillInteresting(HostTensor& t, uint32_t seed) {
  std::mt19937_64 random(seed);
  const double special[] = {0,   -0.0,  1,     -1,   0.5,   1.5,          2.5,    -2.5, 3,        127,       128, 255,
                            256, 65504, 70000, 1e30, -1e30, 2147483648.0, 9.3e18, 1e-6, INFINITY, -INFINITY, NAN};
  for (int64_t i = 0; i < t.count(); ++i) {
    Value value;
    if (IsFloat(t.dtype)) {
      value.f = random() % 3 == 0 ? special[random() % std::size(special)]
                                  : std::ldexp(static_cast<double>(random() % 4096) - 2048, static_cast<int>(random() % 16) - 10);
      if (!std::isinf(value.f) || !HasInfinity(t.dtype)) value.f = RoundToType(t.dtype, value.f);
    } else {
      value.i = static_cast<int64_t>(random()) >> random() % 64;
      if (random() % 8 == 0) value.i = random() & 1 ? MinInt(t.dtype) : MaxInt(t.dtype);
      value = ConvertValue(value, DType::kInt64, t.dtype);
    }
    StoreRow(t.dtype, &value, 1, t.memory->data() + i * DTypeBytes(t.dtype), 1);
  }
}

std::vector<ExprOp> OpsOf(DType type) {
  if (type == DType::kBool) return {ExprOp::kAnd, ExprOp::kOr};
  if (type == DType::kFloat8E4M3 || type == DType::kFloat8E5M2) return {};
  std::vector<ExprOp> ops = {ExprOp::kAdd, ExprOp::kSub, ExprOp::kMul, ExprOp::kMin, ExprOp::kMax};
  if (IsFloat(type)) {
    ops.push_back(ExprOp::kDiv);
  } else {
    for (ExprOp op :
         {ExprOp::kFloorDiv, ExprOp::kFloorMod, ExprOp::kBitAnd, ExprOp::kBitOr, ExprOp::kBitXor, ExprOp::kShl, ExprOp::kShr})
      ops.push_back(op);
  }
  return ops;
}

std::vector<ExprOp> UnaryOpsOf(DType type) {
  if (type == DType::kBool || type == DType::kFloat8E4M3 || type == DType::kFloat8E5M2) return {};
  std::vector<ExprOp> ops = {ExprOp::kNeg, ExprOp::kAbs};
  if (!IsFloat(type)) {
    ops.insert(ops.end(), {ExprOp::kBitNot, ExprOp::kPopcount});
    return ops;
  }
  ops.insert(ops.end(),
             {ExprOp::kFloor, ExprOp::kCeil, ExprOp::kRound, ExprOp::kTrunc, ExprOp::kExp, ExprOp::kExp2, ExprOp::kLog,
              ExprOp::kLog2, ExprOp::kLog1p, ExprOp::kTanh, ExprOp::kSigmoid, ExprOp::kErf, ExprOp::kSqrt, ExprOp::kRsqrt});
  return ops;
}

TEST(EmitOps, OperatorsOfEveryType) {
  ProgramBuilder b("operators");
  std::vector<std::vector<int64_t>> shapes;
  struct Row {
    Buf a, c, out;
    DType type;
  };
  std::vector<Row> rows;
  for (DType type : kTypes) {
    const int64_t ops = static_cast<int64_t>(OpsOf(type).size() + UnaryOpsOf(type).size());
    if (ops == 0) continue;
    const std::string name(DTypeName(type));
    rows.push_back({b.Tensor("a_" + name, type, {kCount}), b.Tensor("b_" + name, type, {kCount}),
                    b.Tensor("out_" + name, type, {ops, kCount}, Access::kOut), type});
    shapes.insert(shapes.end(), {{kCount}, {kCount}, {ops, kCount}});
  }
  b.Launch<1>("main", {1}, 128);
  const std::vector<Val> i = b.OpenParallel({"i"}, {kCount});
  for (const Row& row : rows) {
    int64_t index = 0;
    for (ExprOp op : OpsOf(row.type))
      b.Store(row.out, {index++, i[0]}, b.Wrap(b.exprs().Make(op, row.type, {b.E(row.a(i[0])), b.E(row.c(i[0]))})));
    for (ExprOp op : UnaryOpsOf(row.type)) {
      const Val value = b.Wrap(b.exprs().Make(op, row.type, {b.E(row.a(i[0]))}));
      b.Store(row.out, {index++, i[0]}, value);
    }
  }
  b.Close();
  b.Close();
  HostProgram program(*b.Build());
  // Functions may differ in the last places, which a rounding to a narrow type can make one of its own.
  program.Check(
      shapes, FillInteresting,
      [](DType type) { return type == DType::kFloat16    ? 1.0 / 1024
                              : type == DType::kBFloat16 ? 1.0 / 128
                                                         : 1e-6; }, 1e-7);
}

// Operators on results of operators: 8- and 16-bit ones are computed in wider types, whose results must not meet.
TEST(EmitOps, IntegerOperatorsOnResults) {
  ProgramBuilder b("nested");
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::array<Buf, 3>> rows;
  for (DType type : kTypes) {
    if (IsFloat(type) || type == DType::kBool) continue;
    const std::string name(DTypeName(type));
    const int64_t count = static_cast<int64_t>((2 + UnaryOpsOf(type).size()) * OpsOf(type).size() + UnaryOpsOf(type).size());
    rows.push_back({b.Tensor("a_" + name, type, {kCount}), b.Tensor("b_" + name, type, {kCount}),
                    b.Tensor("out_" + name, type, {count, kCount}, Access::kOut)});
    shapes.insert(shapes.end(), {{kCount}, {kCount}, {count, kCount}});
  }
  b.Launch<1>("main", {1}, 128);
  const std::vector<Val> i = b.OpenParallel({"i"}, {kCount});
  for (const auto& [a, c, out] : rows) {
    const DType type = b.exprs()[b.E(a(i[0]))].dtype;
    const Expr plain = b.E(c(i[0]));
    const Expr product = b.exprs().Make(ExprOp::kMul, type, {b.E(a(i[0])), plain});
    const Expr sum = b.exprs().Make(ExprOp::kAdd, type, {product, product});
    int64_t index = 0;
    for (ExprOp op : OpsOf(type)) {
      b.Store(out, {index++, i[0]}, b.Wrap(b.exprs().Make(op, type, {sum, plain})));
      b.Store(out, {index++, i[0]}, b.Wrap(b.exprs().Make(op, type, {plain, sum})));
      for (ExprOp unary : UnaryOpsOf(type)) {
        const Expr value = b.exprs().Make(unary, type, {sum});
        b.Store(out, {index++, i[0]}, b.Wrap(b.exprs().Make(op, type, {value, plain})));
      }
    }
    for (ExprOp op : UnaryOpsOf(type)) b.Store(out, {index++, i[0]}, b.Wrap(b.exprs().Make(op, type, {sum})));
  }
  b.Close();
  b.Close();
  HostProgram(*b.Build())
      .Check(
          shapes, FillInteresting, [](DType) { return 0.0; }, 0);
}

TEST(EmitOps, ConversionsBetweenAllTypes) {
  ProgramBuilder b("conversions");
  std::vector<std::vector<int64_t>> shapes;
  std::vector<Buf> in, out;
  for (DType type : kTypes) {
    in.push_back(b.Tensor("in_" + std::string(DTypeName(type)), type, {kCount}));
    shapes.push_back({kCount});
  }
  for (DType type : kTypes) {
    out.push_back(
        b.Tensor("out_" + std::string(DTypeName(type)), type, {static_cast<int64_t>(std::size(kTypes)), kCount}, Access::kOut));
    shapes.push_back({static_cast<int64_t>(std::size(kTypes)), kCount});
  }
  b.Launch<1>("main", {1}, 128);
  const std::vector<Val> i = b.OpenParallel({"i"}, {kCount});
  for (size_t to = 0; to < out.size(); ++to) {
    for (size_t from = 0; from < in.size(); ++from)
      b.Store(out[to], {static_cast<int64_t>(from), i[0]}, b.Cast(in[from](i[0]), kTypes[to]));
  }
  b.Close();
  b.Close();
  HostProgram(*b.Build())
      .Check(
          shapes, FillInteresting, [](DType) { return 0.0; }, 0);
}

TEST(EmitOps, ReductionsAlongEitherAxis) {
  ProgramBuilder b("reductions");
  std::vector<std::vector<int64_t>> shapes;
  const int64_t m = 24, n = 40;
  const ReduceOp float_ops[] = {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kAbsSum, ReduceOp::kAbsMax};
  const ReduceOp int_ops[] = {ReduceOp::kSum,    ReduceOp::kMax,   ReduceOp::kMin,
                              ReduceOp::kBitAnd, ReduceOp::kBitOr, ReduceOp::kBitXor};
  struct Job {
    DType type;
    ReduceOp op;
    Buf in, rows, columns;
  };
  std::vector<Job> jobs;
  const auto add = [&](DType type, ReduceOp op) {
    const std::string name = std::string(DTypeName(type)) + std::to_string(static_cast<int>(op));
    jobs.push_back({type, op, b.Tensor("in" + name, type, {m, n}), b.Tensor("rows" + name, type, {m}, Access::kOut),
                    b.Tensor("columns" + name, type, {n}, Access::kOut)});
    shapes.insert(shapes.end(), {{m, n}, {m}, {n}});
  };
  for (ReduceOp op : float_ops) add(DType::kFloat32, op);
  for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax}) add(DType::kBFloat16, op);
  for (ReduceOp op : int_ops) add(DType::kInt32, op);
  b.Launch<1>("main", {1}, 128);
  for (const Job& job : jobs) {
    const Buf tile = b.Fragment("tile", job.type, {m, n}), rows = b.Fragment("rows", job.type, {m}),
              columns = b.Fragment("columns", job.type, {n});
    b.Copy(job.in, tile);
    b.Reduce(job.op, tile, rows, 1);
    b.Reduce(job.op, tile, columns, 0);
    b.Copy(rows, job.rows);
    b.Copy(columns, job.columns);
  }
  b.Close();
  // Small integers: the order of a sum does not matter.
  HostProgram(*b.Build())
      .Check(
          shapes, FillSmall, [](DType) { return 0.0; }, 0);
}

}  // namespace
}  // namespace tilert
