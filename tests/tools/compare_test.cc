#include "tools/compare.h"

#include <cmath>
#include <cstring>

#include "frontend/frontend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/random_array.h"

namespace tilert::tool {
namespace {

Array Floats(const std::vector<float>& values) {
  Array array = *MakeArray(DType::kFloat32, {static_cast<int64_t>(values.size())});
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

TEST(CompareTest, WithinTheBoundIsEqual) {
  EXPECT_TRUE(Compare(Floats({1, 2, 3}), Floats({1, 2, 3})).equal);
  EXPECT_TRUE(Compare(Floats({1, 2, 3.0001f}), Floats({1, 2, 3})).equal);
  EXPECT_FALSE(Compare(Floats({1, 2, 3.0001f}), Floats({1, 2, 3}), 0).equal);
}

TEST(CompareTest, DifferencesAreNamed) {
  const Comparison comparison = Compare(Floats({1, 5, 2, 9}), Floats({1, 2, 2, 3}));
  EXPECT_FALSE(comparison.equal);
  EXPECT_EQ(comparison.differing, 2);
  EXPECT_EQ(comparison.largest, 6);
  EXPECT_EQ(comparison.worst, "[3]: 9 instead of 3");
}

TEST(CompareTest, NanAndInfinity) {
  EXPECT_TRUE(Compare(Floats({NAN, INFINITY}), Floats({NAN, INFINITY})).equal);
  EXPECT_FALSE(Compare(Floats({NAN}), Floats({1})).equal);
  EXPECT_FALSE(Compare(Floats({1}), Floats({NAN})).equal);
  EXPECT_FALSE(Compare(Floats({INFINITY}), Floats({-INFINITY})).equal);
  EXPECT_FALSE(Compare(Floats({INFINITY}), Floats({3e38f})).equal);
}

TEST(CompareTest, IntegersMustBeEqual) {
  Array a = *MakeArray(DType::kInt32, {1000}), b = a;
  FillRandom(3, &a);
  b = a;
  EXPECT_TRUE(Compare(a, b, 100).equal);
  ++b.bytes[400];
  EXPECT_FALSE(Compare(a, b, 100).equal);
}

TEST(CompareTest, ShapesMustAgree) {
  EXPECT_FALSE(Compare(Floats({1}), Floats({1, 1})).equal);
  EXPECT_FALSE(Compare(*MakeArray(DType::kInt32, {1}), Floats({0})).equal);
}

TEST(RandomArrayTest, IsRandomAndReproducible) {
  Array a = *MakeArray(DType::kBFloat16, {10000}), b = a;
  FillRandom(1, &a);
  FillRandom(1, &b);
  EXPECT_EQ(a.bytes, b.bytes);
  FillRandom(2, &b);
  EXPECT_NE(a.bytes, b.bytes);
  Array wide = Converted(a, DType::kFloat64);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < wide.elements(); ++i) {
    double x;
    std::memcpy(&x, wide.bytes.data() + 8 * i, 8);
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 10000, 0, 0.05);
  EXPECT_NEAR(squares / 10000, 1, 0.05);
}

TEST(RandomArrayTest, PoisonIsNan) {
  for (DType type :
       {DType::kFloat8E4M3, DType::kFloat8E5M2, DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    Array array = *MakeArray(type, {3});
    FillPoison(&array);
    EXPECT_THAT(Statistics(array), testing::HasSubstr("3 NaN")) << DTypeName(type);
  }
}

// What is lost on the way to an output decides, not what it is stored as.
TEST(CompareTest, TolerancesOfPrograms) {
  const auto tolerance = [](const std::string& body) {
    const auto program = frontend::Compile(
        "import tilelang.language as T\n"
        "@T.prim_func\n"
        "def k(X: T.Tensor((16, 16), \"float16\"), Y: T.Tensor((16, 16), \"float32\"),\n"
        "      Z: T.Tensor((16, 16), \"float16\")):\n"
        "    with T.Kernel(1, threads=32) as bx:\n"
        "        a = T.alloc_shared((16, 16), \"float16\")\n"
        "        f = T.alloc_fragment((16, 16), \"float32\")\n"
        "        T.copy(X, a)\n" +
            body,
        "k.py", "k", {});
    EXPECT_TRUE(program.ok()) << program.status();
    return program.ok() ? DefaultTolerance(*program, DType::kFloat32) : 0;
  };
  EXPECT_EQ(tolerance("        T.copy(a, Y)\n"), 0x1p-14);
  EXPECT_EQ(tolerance("        T.copy(a, f)\n        T.copy(f, Y)\n        T.copy(f, Z)\n"), 0x1p-14);
  EXPECT_EQ(tolerance("        T.gemm(a, a, f, clear_accum=True)\n        T.copy(f, Y)\n"), 0x1p-12);
  EXPECT_EQ(tolerance("        T.gemm(a, a, f, clear_accum=True)\n        T.copy(f, a)\n        T.copy(a, Y)\n"), 0x1p-9);
  EXPECT_EQ(tolerance("        for i, j in T.Parallel(16, 16):\n            a[i, j] = a[i, j] * a[i, j]\n        T.copy(a, Y)\n"),
            0x1p-9);
}

}  // namespace
}  // namespace tilert::tool
