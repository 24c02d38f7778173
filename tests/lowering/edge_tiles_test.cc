// The programs of edge_tiles.py: what the lowering makes of each equals the executor, in the simulator, and can be emitted.
#include <map>

#include "absl/strings/str_cat.h"
#include "comparison.h"
#include "compile_source.h"
#include "gtest/gtest.h"
#include "program_sim.h"

namespace tilert {
namespace {

using Shape = std::vector<int64_t>;
using Shapes = std::vector<std::pair<int64_t, int64_t>>;

// `make`: the tensors for extents M and N, the output last.
template <typename Make>
void ExpectAgrees(const std::string& entry, const Shapes& shapes, Make make, const Bound& bound = {}) {
  const Program program = CompileSource("tests/lowering/edge_tiles.py", entry);
  ASSERT_FALSE(program.launches.empty());
  ExpectLowers(program);
  Comparison comparison(program);
  for (const auto& [m, n] : shapes) comparison.ExpectAgrees(MakeArgs(make(m, n), 9), bound, absl::StrCat(entry, " ", m, "x", n));
  EXPECT_GT(comparison.compared(), 0);
}

auto Matrices(DType type) {
  return [type](int64_t m, int64_t n) { return std::vector<std::pair<DType, Shape>>{{type, {m, n}}, {type, {m, n}}}; };
}

constexpr DType kF32 = DType::kFloat32, kI32 = DType::kInt32;
const Shapes kShapes = {{1, 1}, {4, 16}, {9, 31}, {17, 20}, {8, 64}};

TEST(EdgeTiles, FillParts) { ExpectAgrees("fill_parts", kShapes, Matrices(kI32)); }
TEST(EdgeTiles, CopyParts) { ExpectAgrees("copy_parts", kShapes, Matrices(kF32)); }
TEST(EdgeTiles, Outside) { ExpectAgrees("outside", kShapes, Matrices(kF32)); }
TEST(EdgeTiles, Unread) { ExpectAgrees("unread", kShapes, Matrices(kF32)); }
TEST(EdgeTiles, OneElement) { ExpectAgrees("one_element", {{1, 1}, {3, 5}}, Matrices(kF32)); }
TEST(EdgeTiles, SumsOfSums) { ExpectAgrees("sums_of_sums", kShapes, Matrices(kI32)); }
TEST(EdgeTiles, Jumps) { ExpectAgrees("jumps", {{1, 1}, {5, 33}, {8, 40}}, Matrices(kI32)); }

TEST(EdgeTiles, PrivateMemory) { ExpectAgrees("private_memory", kShapes, Matrices(kF32), {.relative = 0x1p-20}); }
TEST(EdgeTiles, SafeValue) { ExpectAgrees("safe_value", kShapes, Matrices(kF32)); }
TEST(EdgeTiles, SafeValuesInTurn) { ExpectAgrees("safe_values_in_turn", kShapes, Matrices(kF32)); }
TEST(EdgeTiles, SkipsNan) { ExpectAgrees("skips_nan", kShapes, Matrices(kF32), {.relative = 0x1p-20}); }

TEST(EdgeTiles, BeginsByValues) {
  ExpectAgrees("begins_by_values", kShapes, Matrices(kF32), {.relative = 0x1p-20, .of_magnitude = 0x1p-20});
}
TEST(EdgeTiles, OntoItself) { ExpectAgrees("onto_itself", {{8, 40}, {17, 33}}, Matrices(kF32)); }
TEST(EdgeTiles, PartsOntoItself) { ExpectAgrees("parts_onto_itself", {{2, 4}, {8, 40}, {17, 33}}, Matrices(kF32)); }
TEST(EdgeTiles, TensorOntoItself) {
  const auto make = [](int64_t m, int64_t) { return std::vector<std::pair<DType, Shape>>{{kF32, {m, 40}}}; };
  ExpectAgrees("tensor_onto_itself", {{5, 1}, {16, 1}}, make);
}
// No loop of the emitted code is unrolled, nor an array of registers made, as often as the loop has points.
TEST(EdgeTiles, ManyPoints) {
  for (const auto& [entry, shape] : std::map<std::string, Shape>{{"many_points", {70, 1000}}, {"many_copies", {100000}}}) {
    const std::vector<std::pair<DType, Shape>> tensors = {{kI32, shape}, {kI32, shape}};
    ExpectAgrees(entry, {{1, 1}}, [&](int64_t, int64_t) { return tensors; });
    const Program program = CompileSource("tests/lowering/edge_tiles.py", entry);
    const auto kernels = PlanAll(program, FastArgClass(program), "sm_80");
    ASSERT_TRUE(kernels.ok()) << kernels.status();
    for (const kir::Kernel& kernel : *kernels) {
      for (const kir::Buffer& buffer : kernel.buffers) {
        if (buffer.space != kir::Space::kRegister) continue;
        EXPECT_LE(buffer.layout.regs(), 64) << entry << " " << buffer.name;
      }
    }
  }
}
TEST(EdgeTiles, FewerStages) { ExpectAgrees("fewer_stages", {{5, 400}}, Matrices(kF32), {.of_magnitude = 0x1p-20}); }

TEST(EdgeTiles, NarrowPanels) {
  const auto make = [](int64_t m, int64_t) {
    return std::vector<std::pair<DType, Shape>>{{DType::kFloat16, {m, 64}}, {DType::kFloat16, {64, 32}}, {kF32, {32, m}}};
  };
  ExpectAgrees("narrow_panels", {{64, 1}, {70, 1}}, make, {.of_magnitude = 0x1p-16});
}

TEST(EdgeTiles, NoTma) {
  const auto make = [](int64_t m, int64_t) {
    const DType half = DType::kFloat16;
    return std::vector<std::pair<DType, Shape>>{{half, {m, 64}}, {half, {64, 64}}, {half, {m, 64}}};
  };
  ExpectAgrees("no_tma", {{64, 1}, {100, 1}}, make, {.relative = 0x1p-10, .of_magnitude = 0x1p-10});
}

TEST(EdgeTiles, MadeAnew) {
  ExpectAgrees("made_anew", {{128, 256}}, Matrices(kF32), {.of_magnitude = 0x1p-20});
  const Program program = CompileSource("tests/lowering/edge_tiles.py", "made_anew");
  const absl::StatusOr<Lowered> lowered = Lower(program, GeneralArgClass(program), *FindTarget("sm_80", "auto"), {});
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_LE(lowered->kernels[0].shared_bytes, 2 * 128 * 132 * 4) << "two tiles, padded";
}

TEST(EdgeTiles, Histogram) {
  ExpectAgrees("histogram", {{0, 1}, {1, 1}, {3, 65}, {2, 128}}, [](int64_t m, int64_t n) {
    return std::vector<std::pair<DType, Shape>>{{kI32, {m, n}}, {kI32, {37}}};
  });
}

TEST(EdgeTiles, Argmax) {
  ExpectAgrees("argmax", kShapes, [](int64_t m, int64_t n) {
    return std::vector<std::pair<DType, Shape>>{{kF32, {m, n}}, {kI32, {m}}};
  });
}

TEST(EdgeTiles, Rotate) {
  ExpectAgrees("rotate", {{1, 1}, {4, 8}, {5, 17}, {0, 3}}, [](int64_t m, int64_t n) {
    return std::vector<std::pair<DType, Shape>>{{DType::kFloat16, {m, n, 5}}, {DType::kFloat16, {5, m, n}}};
  });
}

TEST(EdgeTiles, Across) { ExpectAgrees("across", {{1, 1}, {32, 128}, {33, 130}, {70, 257}}, Matrices(DType::kFloat16)); }

TEST(EdgeTiles, Chained) {
  const auto make = [](int64_t m, int64_t n) {
    const DType half = DType::kFloat16;
    return std::vector<std::pair<DType, Shape>>{{half, {m, 64}}, {half, {64, n}}, {half, {n, 64}}, {kF32, {m, 64}}};
  };
  ExpectAgrees("chained", {{31, 64}, {70, 96}, {33, 67}, {5, 0}}, make, {.of_magnitude = 0x1p-9});
}

// Statements are in order in global memory too, whichever threads run them.
TEST(EdgeTiles, Overwrites) { ExpectAgrees("overwrites", kShapes, Matrices(kI32)); }
TEST(EdgeTiles, ReadsBack) { ExpectAgrees("reads_back", kShapes, Matrices(kI32)); }
TEST(EdgeTiles, Prefetched) { ExpectAgrees("prefetched", {{8, 32}, {9, 40}}, Matrices(kF32)); }

// … and no barrier stands between parts of a tensor that are apart.
TEST(EdgeTiles, TilesApartNeedNoBarrier) {
  ExpectAgrees("in_order", kShapes, Matrices(kI32));
  const Program program = CompileSource("tests/lowering/edge_tiles.py", "in_order");
  for (const ArgClass& args : {FastArgClass(program), GeneralArgClass(program)}) {
    const absl::StatusOr<Lowered> lowered = Lower(program, args, *FindTarget("sm_80", "auto"), {});
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_EQ(lowered->source.find("__syncthreads", lowered->source.find("in_order_kernel")), std::string::npos);
  }
}

// The code of a kernel of `entry`, from its name on.
std::string CodeOf(const std::string& entry, const std::string& arch, const std::string& kernel) {
  const Program program = CompileSource("tests/lowering/edge_tiles.py", entry);
  const absl::StatusOr<Lowered> lowered = Lower(program, FastArgClass(program), *FindTarget(arch, "ampere"), {});
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  return lowered.ok() ? lowered->source.substr(lowered->source.find(kernel + "(")) : "";
}

TEST(EdgeTiles, MadeOperand) {
  ExpectAgrees("made_operand", {{64, 0}, {70, 0}}, [](int64_t m, int64_t) {
    return std::vector<std::pair<DType, Shape>>{{DType::kFloat16, {m, 64}}, {DType::kFloat16, {64, 64}}, {kF32, {m, 64}}};
  }, {.of_magnitude = 0x1p-16});
  const std::string code = CodeOf("made_operand", "sm_80", "made_operand_kernel");
  const size_t barrier = code.find("__syncthreads"), steps = code.find("for (int k = 0;");
  ASSERT_NE(barrier, std::string::npos);
  ASSERT_NE(steps, std::string::npos);
  EXPECT_LT(barrier, steps);
  EXPECT_EQ(code.find("__syncthreads", steps), std::string::npos);
}

TEST(EdgeTiles, MaskedProducts) {
  std::vector<std::pair<int64_t, int64_t>> sizes;
  for (int64_t n = 14; n <= 34; ++n) sizes.push_back({n + 13, n});
  ExpectAgrees("masked_products", sizes, [](int64_t m, int64_t n) {
    return std::vector<std::pair<DType, Shape>>{{DType::kFloat16, {m, 16}}, {DType::kFloat16, {n, 16}}, {kF32, {m, 16}}};
  }, {.of_magnitude = 0x1p-16});
  // By mma.sync both loops over elements are there twice, once without their masks.
  const std::string code = CodeOf("masked_products", "sm_80", "masked_products_kernel");
  EXPECT_NE(code.find("if (M + bx * -16 + -15 > 0 && N + -15 + k * -16 > 0) {"), std::string::npos) << code;
  EXPECT_NE(code.find("if (-14 + bx * -16 + 5 + k * 16 > 0) {"), std::string::npos) << code;
}

TEST(EdgeTiles, SafePartsOfTiles) {
  const Program program = CompileSource("tests/lowering/edge_tiles.py", "safe_parts");
  ExpectLowers(program);
  Comparison comparison(program);
  const Args args = MakeArgs({{kF32, {20, 16}}, {kI32, {20}}, {kF32, {4, 8}}, {kI32, {2, 8}}}, 9, {}, 2);
  comparison.ExpectAgrees(args, {.absolute = 1e-4}, "safe_parts");
  EXPECT_GT(comparison.compared(), 0);
}

TEST(EdgeTiles, SumsInPairs) {
  ExpectAgrees("tile_sums", {{32, 0}, {70, 0}}, [](int64_t m, int64_t) {
    return std::vector<std::pair<DType, Shape>>{{kF32, {m, 64}}, {kF32, {32, 64}}};
  }, {.of_magnitude = 0x1p-20});
  ExpectAgrees("ragged_sums", {{32, 64}, {70, 67}, {33, 1}}, [](int64_t m, int64_t n) {
    return std::vector<std::pair<DType, Shape>>{{kF32, {m, n}}, {kF32, {32, n}}};
  }, {.of_magnitude = 0x1p-20});
  EXPECT_NE(CodeOf("tile_sums", "sm_90a", "tile_sums_k1_1_kernel").find("atomic_add2("), std::string::npos);
  EXPECT_EQ(CodeOf("tile_sums", "sm_80", "tile_sums_k1_1_kernel").find("atomic_add2("), std::string::npos);
  EXPECT_EQ(CodeOf("ragged_sums", "sm_90a", "ragged_sums_k1_1_kernel").find("atomic_add2("), std::string::npos);
}

}  // namespace
}  // namespace tilert
