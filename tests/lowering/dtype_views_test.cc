// The programs of dtype_views.py: the executor against values computed here, the lowering against the executor.
#include <cmath>

#include "comparison.h"
#include "compile_source.h"
#include "gtest/gtest.h"

namespace tilert {
namespace {

constexpr DType kI32 = DType::kInt32, kF32 = DType::kFloat32;

Args Ran(const std::string& entry, Args args, const Bound& bound = {}) {
  const Program program = CompileSource("tests/lowering/dtype_views.py", entry);
  Comparison comparison(program);
  comparison.ExpectAgrees(args, bound, entry);
  EXPECT_GT(comparison.compared(), 0) << entry;
  EXPECT_TRUE(Execute(program, args.tensors(), {}, {}).ok()) << entry;
  return args;
}

TEST(DtypeViews, HoldWiderNumbers) {
  const Args args =
      Ran("reuse", MakeArgs({{DType::kBFloat16, {16, 32}}, {kF32, {16, 32}}}), {.relative = 0x1p-20, .absolute = 0x1p-20});
  for (int64_t k = 0; k < 16 * 32; ++k) ASSERT_NEAR(args.arrays[1][k], args.arrays[0][k] * 3 + 0.1 - 1, 1e-6) << k;
}

TEST(DtypeViews, HoldPartsOfNumbers) {
  Args args = MakeArgs({{kI32, {8, 4}}, {kI32, {8, 28}}});
  for (int64_t k = 0; k < 32; ++k) args.arrays[0].SetInt(k, static_cast<int32_t>(0x9e3779b9u * static_cast<uint32_t>(k + 1)));
  args = Ran("parts", args);
  for (int64_t i = 0; i < 8; ++i) {
    const auto at = [&](int64_t j) { return static_cast<uint32_t>(args.arrays[0].Int(i * 4 + j)); };
    for (int64_t j = 0; j < 4; ++j) ASSERT_EQ(args.out().Int(i * 28 + j), static_cast<int32_t>(at(j)));
    for (int64_t j = 0; j < 16; ++j) ASSERT_EQ(args.out().Int(i * 28 + 4 + j), at(j / 4) >> (j % 4 * 8) & 255);
    for (int64_t j = 0; j < 8; ++j)
      ASSERT_EQ(args.out().Int(i * 28 + 20 + j), 2 * static_cast<int16_t>(at(j / 2) >> (j % 2 * 16)));
  }
}

TEST(DtypeViews, AreOperands) {
  Args args = MakeArgs({{DType::kUInt16, {32, 32}}, {kF32, {32, 32}}});
  Array halves(DType::kFloat16, {32, 32});
  halves.Random(5);
  std::memcpy(args.arrays[0].data(), halves.data(), 32 * 32 * 2);
  args = Ran("operand", args, {.absolute = 1e-4});
  for (int64_t i = 0; i < 32; ++i) {
    for (int64_t j = 0; j < 32; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < 32; ++k) sum += halves[i * 32 + k] * halves[j * 32 + k];
      ASSERT_NEAR(args.out()[i * 32 + j], sum, 1e-4);
    }
  }
}

}  // namespace
}  // namespace tilert
