// Values are computed where the source computes them, as in Python: what statements change afterwards does not show in them.
// Every case runs on the executor with A = 10, 11, …, 17 and Y = 0.
#include <gtest/gtest.h>

#include "frontend/frontend.h"
#include "tests/frontend/cases.h"
#include "tests/ir/exec_util.h"

namespace tilert::frontend {
namespace {

using Numbers = std::vector<double>;

struct OrderCase {
  const char* name;
  const char* functions;  // beside the kernel
  std::vector<std::string> lines;
  Numbers a, y;  // expected, without the trailing elements that stay what they were
};

const OrderCase kCases[] = {
    {"elements change places", "", {"A[0], A[1] = A[1], A[0]"}, {11, 10}, {}},
    {"in a ring, nested", "", {"(A[0], (A[1], A[2])) = (A[1], (A[2], A[0]))"}, {11, 12, 10}, {}},
    {"with a starred rest", "", {"A[0], *rest = A[1], A[0], A[2]", "Y[0], Y[1] = rest"}, {11}, {10, 12}},
    {"in a loop", "", {"for i in T.serial(3):", "    A[i], A[i + 1] = A[i + 1], A[i]"}, {11, 12, 13, 10}, {}},
    {"in a parallel loop",
     "",
     {"for i in T.Parallel(4):", "    A[i], A[7 - i] = A[7 - i], A[i]"},
     {17, 16, 15, 14, 13, 12, 11, 10},
     {}},
    {"variables: the numbers of Fibonacci",
     "",
     {"a = T.alloc_var(\"int32\", init=0)", "b = T.alloc_var(\"int32\", init=1)", "for i in T.serial(6):", "    a, b = b, a + b",
      "    Y[i] = a"},
     {},
     {1, 1, 2, 3, 5, 8}},
    {"variables and elements together",
     "",
     {"v = T.alloc_var(\"int32\", init=5)", "v, A[0] = A[0], v", "Y[0] = v"},
     {5},
     {10}},
    {"private memory",
     "",
     {"l = T.alloc_local((2,), \"int32\")", "l[0] = 3", "l[1] = 4", "l[0], l[1] = l[1], l[0] + l[1]", "Y[0] = l[0]",
      "Y[1] = l[1]"},
     {},
     {4, 7}},
    {"of a function's result", "def two(A):\n    return A[1], A[0] + 1\n", {"A[0], A[1] = two(A)"}, {11, 11}, {}},
    {"one value for several places", "", {"A[0] = A[1] = A[0] + 1"}, {11, 11}, {}},
    {"a place is found after the assignments before it",
     "",
     {"i = T.alloc_var(\"int32\", init=3)", "i, A[i] = 5, 77"},
     {10, 11, 12, 13, 14, 77},
     {}},
    {"fresh variables are no values",
     "",
     {"a, b = T.alloc_var(\"int32\"), T.alloc_var(\"int32\")", "a = 1", "b = 2", "Y[0] = a + b"},
     {},
     {3}},
    {"a macro's argument",
     "@T.macro\ndef m(A, Y, n):\n    A[3] = A[3] + 1\n    Y[0] = n\n",
     {"m(A, Y, A[3] * 2)"},
     {10, 11, 12, 14},
     {26}},
    {"a function's argument",
     "def f(A, Y, n):\n    A[3] = A[3] + 1\n    Y[0] = n\n",
     {"f(A, Y, A[3] * 2)"},
     {10, 11, 12, 14},
     {26}},
    {"a function's parameter is its own",
     "def f(Y, n):\n    n = n + 1\n    Y[0] = n\n",
     {"v = T.alloc_var(\"int32\", init=5)", "f(Y, v)", "Y[1] = v"},
     {},
     {6, 5}},
    {"unless it is a reference",
     "@T.macro\ndef bump(n: T.Ref):\n    n = n + 1\n\ndef f(n):\n    bump(n)\n",
     {"v = T.alloc_var(\"int32\", init=5)", "f(v)", "Y[0] = v"},
     {},
     {6}},
    {"a function's parameter may be the place",
     "def f(A, begin, Y):\n    T.copy(begin, Y[0:4])\n",
     {"f(A, A[2], Y)"},
     {},
     {12, 13, 14, 15}},
};

TEST(Order, ValuesAreComputedWhereTheyStand) {
  for (const OrderCase& test : kCases) {
    SCOPED_TRACE(test.name);
    std::string source = test.functions;
    source +=
        "@T.prim_func\n"
        "def k(A: T.Tensor((8,), \"int32\", access=\"inout\"), Y: T.Tensor((8,), \"int32\", access=\"inout\")):\n"
        "    with T.Kernel(1, threads=32) as bx:\n";
    for (const std::string& line : test.lines) source += "        " + line + "\n";
    const absl::StatusOr<Program> program = Compile(WithImports(source), "test.py", "k", {});
    ASSERT_TRUE(program.ok()) << program.status().message();
    Array a(DType::kInt32, {8}), y(DType::kInt32, {8});
    for (int64_t i = 0; i < 8; ++i) a.Set(i, 10 + i), y.Set(i, 0);
    ExpectRuns(*program, {&a, &y});
    for (int64_t i = 0; i < 8; ++i) {
      const auto at = static_cast<size_t>(i);
      EXPECT_EQ(a[i], at < test.a.size() ? test.a[at] : 10 + i) << "A " << i;
      EXPECT_EQ(y[i], at < test.y.size() ? test.y[at] : 0) << "Y " << i;
    }
  }
}

// What Python computes, at compile time.
TEST(Order, CompileTimeValuesAreThoseOfPython) {
  const std::pair<const char*, double> cases[] = {
      {"a = [1, 2, 3]\ndel a[0]\nx = a[0] * 10 + len(a)", 22},
      {"a = {1: 2, 3: 4}\ndel a[1], a[3]\nx = len(a)", 0},
      {"def twice(f):\n    return lambda *k: f(*k) * 2\n@twice\ndef g(q):\n    return q + 1\nx = g(4)", 10},
      {"def times(n):\n    return lambda f: lambda q: f(q) * n\n@times(3)\ndef g(q):\n    return q + 1\nx = g(4)", 15},
      {"a = [1]\na.append(4)\na[0] = 7\nx = a[0] * 10 + a[1]", 74},
      {"a = {1: [2]}\na[1].append(5)\na[2] = 3\na[2] += 1\nx = len(a[1]) * 10 + a[2]", 24},
      {"a = [1]\nif len(a) == 1:\n    a.append(5)\na += [6]\nx = a[1] * 10 + a[2]", 56},
      {"x = round(2.675, 2)", 2.67},
      {"x = round(2.5) * 100 + round(1234.5, -2)", 1400},
      {"x = len(repr('a')) * 10 + len(str('a'))", 31},
      {"x = int(str(100000.0) == '100000.0') + int(str(1e16) == '1e+16') + int(str(123456.75) == '123456.75')", 3},
      {"x = int(str(0.0001) == '0.0001') + int(str(0.00001) == '1e-05') + int(str(1500000.0) == '1500000.0')", 3},
  };
  for (const auto& [text, expected] : cases) {
    SCOPED_TRACE(text);
    const std::string source = std::string(text) +
                               "\n@T.prim_func\ndef k(A: T.Tensor((1,), \"float64\")):\n    with T.Kernel(1, threads=32):\n"
                               "        A[0] = T.float64(float(x))\n";
    const absl::StatusOr<Program> program = Compile(WithImports(source), "test.py", "k", {});
    ASSERT_TRUE(program.ok()) << program.status().message();
    Array a(DType::kFloat64, {1});
    ExpectRuns(*program, {&a});
    EXPECT_EQ(a[0], expected);
  }
}

}  // namespace
}  // namespace tilert::frontend
