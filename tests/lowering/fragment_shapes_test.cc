// The programs of fragment_shapes.py: fragments seen in another shape, guarded by row, and too large.
#include <string>

#include "comparison.h"
#include "compile_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "program_sim.h"

namespace tilert {
namespace {

using Shape = std::vector<int64_t>;
using Tensors = std::vector<std::pair<DType, Shape>>;
using testing::HasSubstr;
using testing::Not;

constexpr DType kF32 = DType::kFloat32, kF16 = DType::kFloat16;
constexpr Bound kSums{.relative = 0x1p-10, .of_magnitude = 0x1p-16, .absolute = 0x1p-10};

Program Compiled(const std::string& entry, const std::string& settings = "") {
  return CompileSource("tests/lowering/fragment_shapes.py", entry, ParseSettings(settings));
}

void ExpectAgrees(const Program& program, const std::vector<Tensors>& shapes, size_t outputs, const Bound& bound,
                  const std::string& what) {
  ASSERT_FALSE(program.launches.empty());
  Comparison comparison(program);
  for (const Tensors& tensors : shapes) comparison.ExpectAgrees(MakeArgs(tensors, 4, {}, outputs), bound, what);
  EXPECT_GT(comparison.compared(), 0);
}

std::string KernelText(const Program& program, const char* arch) {
  const auto kernels = PlanAll(program, FastArgClass(program), arch);
  EXPECT_TRUE(kernels.ok()) << kernels.status();
  return kernels.ok() ? kir::ToText(kernels->front()) : "";
}

// A reshaped accumulator stays in registers: no tile stands for it in shared memory.
TEST(FragmentShapes, HeadsOfAProduct) {
  for (const int64_t heads : {8, 16, 24, 32, 64}) {
    const std::string settings = "heads=" + std::to_string(heads) + " block_Q=" + std::to_string(heads == 24 ? 2 : 64 / heads);
    const Program program = Compiled("heads", settings);
    const auto tensors = [heads](int64_t n, int64_t s) {
      return Tensors{{kF16, {s * heads, 32}}, {kF16, {n, 32}}, {kF32, {s, heads}}, {kF32, {s, n}}};
    };
    ExpectAgrees(program, {tensors(64, 8), tensors(70, 3)}, 1, kSums, settings);
    if (heads == 24) continue;  // no digit of the instruction's layout begins at 24
    for (const char* arch : {"sm_80", "sm_90a"})
      EXPECT_THAT(KernelText(program, arch), Not(HasSubstr("shared s_stage"))) << settings << " " << arch;
  }
}

TEST(FragmentShapes, Digits) {
  const std::vector<std::vector<int64_t>> shapes = {{4, 6, 8}, {1, 1, 1}, {3, 5, 7}, {8, 1, 16}, {2, 64, 2}, {16, 4, 4}};
  for (const auto& s : shapes) {
    for (const char* threads : {"32", "64", "128"}) {
      const std::string settings =
          "shape=(" + std::to_string(s[0]) + "," + std::to_string(s[1]) + "," + std::to_string(s[2]) + ") threads=" + threads;
      const Tensors tensors = {{kF32, {2, s[0] * s[1] * s[2]}}, {kF32, {2, s[0] * s[1] * s[2]}}, {kF32, {2, s[0], s[2], s[1]}}};
      ExpectAgrees(Compiled("digits", settings), {tensors}, 2, {.of_magnitude = 0x1p-20}, settings);
    }
  }
}

// A loop over a part of a fragment follows the fragment.
TEST(FragmentShapes, Parts) {
  const auto products = [](int64_t m, int64_t n, int64_t k) { return Tensors{{kF16, {m, k}}, {kF16, {k, n}}, {kF32, {m, n}}}; };
  for (const char* settings : {"parts=1", "parts=2", "parts=4", "threads=256", "block_M=48 parts=3"}) {
    const Program program = Compiled("stored_in_parts", settings);
    ExpectAgrees(program, {products(64, 64, 64), products(100, 72, 40)}, 1, kSums, settings);
    for (const char* arch : {"sm_80", "sm_90a"})
      EXPECT_THAT(KernelText(program, arch), Not(HasSubstr("shared acc_stage"))) << settings << " " << arch;
  }
  for (const char* settings : {"threads=32", "threads=128", "rows=17 cols=41"}) {
    const int64_t rows = settings[0] == 'r' ? 17 : 24, cols = settings[0] == 'r' ? 41 : 40;
    const Shape shape = {2, rows, cols};
    ExpectAgrees(Compiled("windows", settings), {{{kF32, shape}, {kF32, shape}, {kF32, shape}}}, 2, {}, settings);
  }
}

// Rows that need nothing are jumped over as a whole, whoever holds them.
TEST(RowGuards, BetweenProducts) {
  const auto tensors = [](int64_t m, int64_t n, int64_t k) {
    return Tensors{{kF16, {m, k}}, {kF16, {k, n}}, {kF32, {m}}, {kF32, {m, n}}, {kF16, {m, n}}};
  };
  const Program program = Compiled("rescaled");
  ExpectAgrees(program, {tensors(64, 64, 32), tensors(65, 72, 160), tensors(64, 64, 0)}, 2,
               {.relative = 0x1p-9, .of_magnitude = 0x1p-10, .absolute = 0x1p-8}, "rescaled");
  for (const char* threads : {"threads=32", "threads=256"})
    ExpectAgrees(Compiled("rescaled", threads), {tensors(64, 64, 96)}, 2,
                 {.relative = 0x1p-9, .of_magnitude = 0x1p-10, .absolute = 0x1p-8}, threads);
  for (const char* threads : {"threads=32", "threads=64", "threads=256"})
    ExpectAgrees(Compiled("rescaled_rows", threads),
                 {{{kF32, {8, 512}}, {kF32, {8, 512}}}, {{kF32, {13, 512}}, {kF32, {13, 512}}}}, 1,
                 {.relative = 0x1p-18, .absolute = 0x1p-18}, threads);
  for (const char* arch : {"sm_80", "sm_90a"}) {
    for (const char* entry : {"rescaled", "rescaled_rows"}) {
      const Program guarded = Compiled(entry);
      const auto lowered = Lower(guarded, FastArgClass(guarded), *FindTarget(arch));
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      EXPECT_THAT(lowered->source, HasSubstr("if (any")) << entry << " " << arch;
    }
  }
}

TEST(Registers, TooManyAreRefusedByName) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const Program program = Compiled("too_large");
    const auto kernels = PlanAll(program, FastArgClass(program), arch);
    ASSERT_FALSE(kernels.ok());
    EXPECT_EQ(kernels.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(kernels.status().message(),
                HasSubstr("'too_large' holds 1024 registers of fragments in each thread (fragment_shapes.py:"));
    EXPECT_THAT(kernels.status().message(),
                HasSubstr("of the 255 that a thread has: x 1024; use more threads or smaller tiles, or T.alloc_shared"));
    for (const char* small : {"cols=512", "threads=256", "parts=True", "cols=4096 rows=1 threads=32"}) {
      const Program fits = Compiled("too_large", small);
      const auto planned = PlanAll(fits, FastArgClass(fits), arch);
      EXPECT_TRUE(planned.ok()) << small << ": " << planned.status();
    }
  }
}

TEST(Views, OverlappingOnesAreReadFirst) {
  for (const char* part : {"part=32", "part=31"})
    ExpectAgrees(Compiled("seen_twice", part), {{{kF32, {64, 64}}, {kF32, {64, 64}}, {kF32, {64, 64}}}}, 2, {}, part);
}

}  // namespace
}  // namespace tilert
