// The programs of row_reductions.py: the executor against values computed here, and the lowering against the executor.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "comparison.h"
#include "compile_source.h"
#include "gtest/gtest.h"

namespace tilert {
namespace {

using Shape = std::vector<int64_t>;
constexpr DType kI32 = DType::kInt32, kF16 = DType::kFloat16, kF32 = DType::kFloat32;

Program Compiled(const std::string& entry, const std::string& settings = "") {
  return CompileSource("tests/lowering/row_reductions.py", entry, ParseSettings(settings));
}

// The largest extents: 16 rows a tile, which hold 24 columns.
const Shape kRows = {1, 13, 16, 33};
const Shape kColumns = {24, 20, 31};

// Runs `entry` for matrices of kRows × kColumns into one of kRows × `width`, and compares each output with `expected(a, m, n, i,
// c)`: the executor's exactly, the simulator's with the executor's.
template <typename Expected>
void ExpectValues(const std::string& entry, int64_t width, Expected expected) {
  const Program program = Compiled(entry);
  Comparison comparison(program);
  for (const int64_t m : kRows) {
    for (const int64_t n : kColumns) {
      Args args = MakeArgs({{kI32, {m, n}}, {kI32, {m, width}}}, 9);
      comparison.ExpectAgrees(args, {}, absl::StrCat(entry, " ", m, "x", n));
      ASSERT_TRUE(Execute(program, args.tensors(), {}, {}).ok());
      // What a tile holds: zeros outside the matrix.
      const auto a = [&](int64_t i, int64_t j) -> int64_t { return i < m && j < n ? args.arrays[0].Int(i * n + j) : 0; };
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t c = 0; c < width; ++c)
          ASSERT_EQ(args.out().Int(i * width + c), expected(a, i, c, n))
              << entry << " " << m << "x" << n << " at " << i << ", " << c;
      }
    }
  }
  EXPECT_GT(comparison.compared(), 0);
}

// f over [begin, end) by `op`, from `value`.
template <typename F, typename Op>
int64_t Over(int64_t begin, int64_t end, int64_t value, Op op, F f) {
  for (int64_t k = begin; k < end; ++k) value = op(value, f(k));
  return value;
}
const auto kSum = [](int64_t a, int64_t b) { return a + b; };
const auto kMax = [](int64_t a, int64_t b) { return std::max(a, b); };
const auto kMin = [](int64_t a, int64_t b) { return std::min(a, b); };
constexpr int64_t kLow = INT32_MIN, kHigh = INT32_MAX;

TEST(RowReductions, Rows) {
  ExpectValues("rows", 4, [](const auto& a, int64_t i, int64_t c, int64_t) -> int64_t {
    const auto at = [&](int64_t j) { return a(i, j); };
    if (c == 0) return Over(0, 24, 0, kSum, at) * 2 + Over(0, 24, kLow, kMax, at);
    if (c == 1) return Over(3, 9, kHigh, kMin, at);
    return c == 2 ? a(i, 5) : std::max<int64_t>(a(i, 1), 7);
  });
}

TEST(RowReductions, Columns) {
  ExpectValues("columns", 24, [](const auto& a, int64_t i, int64_t c, int64_t) -> int64_t {
    const int64_t tile = i / 16 * 16, r = i % 16;
    const auto at = [&](int64_t k) { return k < 16 ? a(tile + k, c) : 0; };
    return Over(0, 16, 0, kSum, at) - Over(r + 1, r + 3, kLow, kMax, at) + r;
  });
}

TEST(RowReductions, Boxes) {
  ExpectValues("boxes", 2, [](const auto& a, int64_t i, int64_t c, int64_t) -> int64_t {
    const int64_t tile = i / 16 * 16, r = i % 16;
    const auto in_tile = [&](int64_t row, int64_t j) { return row < 16 ? a(tile + row, j) : 0; };
    const auto box = [&](int64_t k, int64_t row, int64_t j) { return in_tile(row, j + k); };
    if (r < 14 && c == 0) {
      return Over(0, 24, 0, kSum, [&](int64_t j) { return in_tile(r + 2, j); }) +
             Over(0, 15, kLow, kMax, [&](int64_t at) { return box(at / 5, r, at % 5); });
    }
    if (r < 14) return Over(0, 4, 0, kSum, [&](int64_t j) { return box(1, r, j); });
    if (c == 0) return Over(0, 3 * 14 * 5, 0, kSum, [&](int64_t at) { return box(at / 70, at / 5 % 14, at % 5); });
    return Over(0, 3 * 14, kHigh, kMin, [&](int64_t at) { return box(at / 14, at % 14, r - 14); });
  });
}

TEST(RowReductions, WalkedWhereTheyStand) {
  ExpectValues("walked", 5, [](const auto& a, int64_t i, int64_t c, int64_t n) -> int64_t {
    const int64_t r = i % 16, tile = i - r;
    const auto own = [&](int64_t j) { return a(i, j) + (j == 0 ? 5 : 0); };
    if (c == 0) return Over(0, 24, 0, kSum, own);
    if (c == 1) return Over(0, n, kLow, kMax, [&](int64_t j) { return a(i, j); });
    if (c == 2) return r % 3 == 1 ? Over(2, 24, 0, kSum, [&](int64_t j) { return a(tile + 15 - r, j); }) : 1;
    if (c == 3) {
      return Over(0, 3, 0, kSum, [&](int64_t k) { return Over(k * 2, k * 2 + r % 4, 0, kSum, own); });
    }
    const bool any = own(0) != 0 || own(1) != 0, all = any && own(0) != 0 && own(1) != 0 && own(2) != 0;
    return (any ? 1 : 0) + (all ? 2 : 0);
  });
}

TEST(RowReductions, InNestedLoops) {
  ExpectValues("nested", 24, [](const auto& a, int64_t i, int64_t c, int64_t) -> int64_t {
    return a(i, c) + 3 * Over(0, 24, 0, kSum, [&](int64_t j) { return a(i, j); });
  });
}

TEST(RowReductions, InTheConditionOfALoop) {
  ExpectValues("halves", 24, [](const auto& a, int64_t i, int64_t c, int64_t) -> int64_t {
    const int64_t tile = i / 16 * 16;
    int64_t largest = Over(0, 16 * 24, kLow, kMax, [&](int64_t at) { return a(tile + at / 24, at % 24); });
    int64_t value = a(i, c);
    for (; largest > 2; largest /= 2) value = value >> 1;
    return value;
  });
}

TEST(RowReductions, SumsOfHalvesAreFloats) {
  const Program program = Compiled("halves_to_floats");
  Comparison comparison(program);
  for (const int64_t m : kRows)
    comparison.ExpectAgrees(MakeArgs({{kF16, {m, 24}}, {kF32, {m, 2}}}, 60000), {.of_magnitude = 0x1p-20}, absl::StrCat(m));
  Args args = MakeArgs({{kF16, {1, 24}}, {kF32, {1, 2}}});
  args.arrays[0].Fill(60000);
  ASSERT_TRUE(Execute(program, args.tensors(), {}, {}).ok());
  EXPECT_EQ(args.out()[0], 24 * 60000.0) << "more than a float16 holds";
}

TEST(Listings, AttentionOfFragments) {
  Comparison comparison(Compiled("attention"));
  Args args =
      MakeArgs({{kF16, {64, 32}}, {kF16, {96, 32}}, {kF16, {96, 32}}, {kF16, {64, 32}}}, 1, {ScalarArg::Float(0.25, kF32)});
  comparison.ExpectAgrees(args, {.absolute = 0.01}, "attention");
  EXPECT_GT(comparison.compared(), 0);
}

TEST(Listings, GemmIntoFloat16) {
  Comparison comparison(Compiled("narrow_gemm"));
  comparison.ExpectAgrees(MakeArgs({{kF16, {96, 80}}, {kF16, {80, 64}}, {kF16, {96, 64}}}), {.of_magnitude = 82 * 0x1p-10},
                          "gemm");
  EXPECT_GT(comparison.compared(), 0);
}

TEST(Listings, BothOperandsOfAGemmInFragments) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (const std::string types :
           {"dtype=float16 accum=float16", "dtype=float16 accum=float32", "dtype=bfloat16 accum=float32"}) {
        const std::string settings =
            absl::StrCat(types, ta ? " transpose_A=true" : " transpose_A=false", tb ? " transpose_B=true" : " transpose_B=false");
        Comparison comparison(Compiled("fragment_gemm", settings));
        const DType type = types.find("bfloat16") == std::string::npos ? kF16 : DType::kBFloat16;
        const bool is_narrow = types.find("accum=float16") != std::string::npos;
        comparison.ExpectAgrees(MakeArgs({{type, ta ? Shape{48, 32} : Shape{32, 48}},
                                          {type, tb ? Shape{64, 48} : Shape{48, 64}},
                                          {is_narrow ? kF16 : kF32, {32, 64}}}),
                                {.of_magnitude = 50 * (is_narrow ? 0x1p-10 : 0x1p-23)}, settings);
        EXPECT_GT(comparison.compared(), 0) << settings;
      }
    }
  }
}

}  // namespace
}  // namespace tilert
