// Operators within operators: what is emitted for one has the type that functions of the prelude expect from the other.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/dtype.h"
#include "lowering/lowered.h"
#include "lowering/target.h"
#include "nvrtc_harness.h"

namespace tilert {
namespace {

// Every operator on values of a type of which the operands and the result can be that type again.
std::vector<Val> Terms(ProgramBuilder& b, DType type, const Val& x, const Val& y) {
  using enum ExprOp;
  std::vector<Val> terms = {x, b.Cast(b.Cast(x, DType::kFloat32), type), b.Select(x < y, x, y), b.Select(x == y, y, x)};
  std::vector<ExprOp> binary = {kAdd, kSub, kMul, kMin, kMax}, unary = {kNeg, kAbs};
  if (IsFloat(type)) {
    binary.insert(binary.end(), {kDiv, kPow});
    unary.insert(unary.end(), {kExp, kExp2, kLog, kLog2, kLog1p, kSin, kCos, kTanh, kSigmoid, kErf, kSqrt, kRsqrt, kFloor, kCeil,
                               kRound, kTrunc});
    terms.push_back(b.Apply(kFma, {x, y, x}));
    terms.push_back(b.Cast(b.Apply(kIsNan, {x}), type));
  } else {
    binary.insert(binary.end(), {kFloorDiv, kFloorMod, kBitAnd, kBitOr, kBitXor, kShl, kShr});
    unary.insert(unary.end(), {kBitNot, kPopcount});
    terms.push_back(b.Cast(b.Apply(kPopcount, {x}), type));
  }
  for (ExprOp op : binary) terms.push_back(b.Apply(op, {x, y}));
  for (ExprOp op : unary) terms.push_back(b.Apply(op, {x}));
  return terms;
}

// The operators that functions of the prelude stand for.
std::vector<Val> Around(ProgramBuilder& b, DType type, const Val& x, const Val& y) {
  using enum ExprOp;
  std::vector<Val> terms;
  for (ExprOp op : IsFloat(type) ? std::vector{kMin, kDiv} : std::vector{kMin, kFloorDiv, kShr})
    terms.push_back(b.Apply(op, {x, y}));
  terms.push_back(b.Apply(kAbs, {x}));
  return terms;
}

Program AllPairs(DType type) {
  ProgramBuilder b("pairs");
  const Buf X = b.Tensor("X", type, {64}), Y = b.Tensor("Y", type, {4096, 64}, Access::kOut);
  const std::vector<Val> block = b.OpenLaunch("pairs", {1}, 64);
  const Val i = b.OpenParallel({"i"}, {64})[0];
  int64_t row = 0;
  for (const Val& inner : Terms(b, type, X(i), X(Val(63) - i))) {
    for (const Val& outer : Around(b, type, inner, X(i))) b.Store(Y, {row++, i}, outer);
    for (const Val& outer : Around(b, type, X(i), inner)) b.Store(Y, {row++, i}, outer);
  }
  b.Close();
  b.Close();
  absl::StatusOr<Program> program = b.Build();
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

TEST(OperatorTypes, EveryPairCompiles) {
  if (!HasNvrtc()) GTEST_SKIP() << "no NVRTC";
  for (DType type : {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16, DType::kInt32, DType::kUInt32, DType::kInt64,
                     DType::kUInt64, DType::kBFloat16, DType::kFloat64}) {
    const Program program = AllPairs(type);
    const absl::StatusOr<Lowered> lowered = Lower(program, GeneralArgClass(program), *FindTarget("sm_80"));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const TestCubin ptx = CompileForTest(lowered->source, "compute_80");
    EXPECT_TRUE(ptx.ok) << DTypeName(type) << "\n" << ptx.complaints.substr(0, 2000);
  }
}

// The least of 32 bits, as an index of either width.
TEST(OperatorTypes, LeastInt) {
  if (!HasNvrtc()) GTEST_SKIP() << "no NVRTC";
  ProgramBuilder b("least");
  const Buf X = b.Tensor("X", DType::kInt32, {64}), Y = b.Tensor("Y", DType::kInt32, {64}, Access::kOut);
  const std::vector<Val> block = b.OpenLaunch("least", {1}, 64);
  const Val i = b.OpenParallel({"i"}, {64})[0];
  const Val least = b.Lit(int64_t{INT32_MIN});
  b.Store(Y, {i}, X((i - 1000) % least) + X(Min(FloorDiv(i, least), i)) + X(Max(i, least)));
  b.Close();
  b.Close();
  const Program program = b.Build().value();
  for (const ArgClass& arg_class : {GeneralArgClass(program), FastArgClass(program)}) {
    const absl::StatusOr<Lowered> lowered = Lower(program, arg_class, *FindTarget("sm_80"));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const TestCubin ptx = CompileForTest(lowered->source, "compute_80");
    EXPECT_TRUE(ptx.ok) << ptx.log.substr(0, 2000);
  }
}

}  // namespace
}  // namespace tilert
