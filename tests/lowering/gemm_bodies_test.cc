// The programs of gemm_bodies.py: names, order, neighbours and epilogues of a gemm leave its schedule as it is, and results are
// the executor's.
#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "comparison.h"
#include "compile_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/status_util.h"
#include "kernel_mutation.h"
#include "lowering/target.h"
#include "nvrtc_harness.h"
#include "program_sim.h"

namespace tilert {
namespace {

using Shape = std::vector<int64_t>;
using Typed = std::vector<std::pair<DType, Shape>>;
constexpr DType kF16 = DType::kFloat16, kF32 = DType::kFloat32;

Program Compiled(const std::string& entry, const std::string& settings = "") {
  return CompileSource("tests/lowering/gemm_bodies.py", entry, ParseSettings(settings));
}

kir::Kernel HopperKernel(const Program& program) {
  const absl::StatusOr<std::vector<kir::Kernel>> kernels = PlanAll(program, FastArgClass(program), "sm_90a");
  EXPECT_TRUE(kernels.ok()) << kernels.status();
  return kernels.ok() ? kernels->front() : kir::Kernel();
}

// What is asynchronous in a kernel and how it is kept in order, statement by statement, without names and expressions.
class Outline {
 public:
  explicit Outline(const kir::Kernel& kernel) : k_(kernel) {
    for (const kir::Ring& ring : k_.rings)
      Line("ring of ", ring.slots, ", ", ring.buffers.size(), " tiles, ", ring.consumers, " consumers");
    for (const kir::TensorMap& map : k_.tensor_maps) {
      std::vector<int64_t> box = map.box;
      maps_.push_back(Cat("map ", absl::StrJoin(box, "x"), " swizzle ", map.swizzle));
    }
    std::sort(maps_.begin(), maps_.end());
    for (const std::string& map : maps_) Line(map);
    Visit(k_.body);
  }
  const std::string& text() const { return text_; }
  size_t Count(const std::string& what) const {
    size_t count = 0;
    for (size_t at = text_.find(what); at != std::string::npos; at = text_.find(what, at + 1)) ++count;
    return count;
  }

 private:
  template <typename... Parts>
  void Line(const Parts&... parts) {
    text_ += Cat(std::string(depth_ * 2, ' '), parts..., "\n");
  }
  void Visit(const kir::Block& block) {
    for (const kir::Stmt& stmt : block) Visit(stmt);
  }
  void Visit(const kir::Stmt& stmt) {
    std::visit(Overloaded{
                   [&](const kir::Roles& s) {
                     for (const kir::Role& role : s.roles) {
                       Line("role of ", role.warps, " warps, ", role.instances, " instances, ", role.max_registers, " registers");
                       Nested(role.body);
                     }
                   },
                   [&](const kir::ForTiles& s) { Line("for tiles"), Nested(s.body); },
                   [&](const kir::For& s) { Compound("for", {&s.body}); },
                   [&](const kir::If& s) {
                     Compound("if", {&s.then_body, &s.else_body});
                   },
                   [&](const kir::Wgmma& s) {
                     Line("wgmma ", s.m, "x", s.n, "x", s.k, " on ", s.grid.m, "x", s.grid.n, s.transposed ? " transposed" : "");
                   },
                   [&](const kir::WgmmaWait& s) { Line("wgmma.wait ", s.pending); },
                   [&](const kir::Acquire& s) { Line("acquire ", s.fill); },
                   [&](const kir::ExpectTx& s) { Line("expect ", s.bytes); },
                   [&](const kir::Release& s) { Line("release ", s.behind); },
                   [&](const kir::Advance&) { Line("advance"); },
                   [&](const kir::TmaLoad&) { Line("tma.load"); },
                   [&](const kir::TmaStore&) { Line("tma.store"); },
                   [&](const kir::StoreWait& s) { Line("store.wait ", s.pending); },
                   [&](const kir::OrderWait&) { Line("order.wait"); },
                   [&](const kir::OrderPass&) { Line("order.pass"); },
                   [&](const kir::Copy& s) {
                     if (s.method == kir::CopyMethod::kStmatrix) Line("stmatrix");
                     if (s.method == kir::CopyMethod::kCpAsync) Line("cp.async");
                   },
                   [](const auto&) {},
               },
               stmt.op);
  }
  void Nested(const kir::Block& block) {
    ++depth_;
    Visit(block);
    --depth_;
  }
  // Left out when there is nothing of interest in it.
  void Compound(const char* what, const std::vector<const kir::Block*>& blocks) {
    const std::string before = text_;
    Line(what);
    const std::string head = text_;
    for (const kir::Block* block : blocks) Nested(*block);
    if (text_ == head) text_ = before;
  }

  const kir::Kernel& k_;
  std::vector<std::string> maps_;
  std::string text_;
  size_t depth_ = 0;
};

// Fragments keep the layout that the instruction wants.
void ExpectNoConversions(const kir::Kernel& kernel) {
  EXPECT_EQ(kernel.schedule.find("through shared memory"), std::string::npos) << kernel.schedule;
}

TEST(GemmBodies, NamesOrderAndNeighboursLeaveTheSchedule) {
  const kir::Kernel plain = HopperKernel(Compiled("plain"));
  const Outline expected(plain);
  EXPECT_EQ(expected.Count("wgmma 64x128x64 on 1x1"), 1u) << expected.text();
  EXPECT_EQ(expected.Count("ring of 3, 2 tiles, 4 consumers"), 1u) << expected.text();
  EXPECT_EQ(expected.Count("tma.load"), 2u) << expected.text();
  EXPECT_EQ(expected.Count("stmatrix"), 2u) << expected.text();
  EXPECT_EQ(expected.Count("tma.store"), 2u) << expected.text();
  for (const char* entry : {"renamed", "straight_out", "element_stores"}) {
    const kir::Kernel kernel = HopperKernel(Compiled(entry));
    EXPECT_EQ(Outline(kernel).text(), expected.text()) << entry;
    ExpectNoConversions(kernel);
  }
}

TEST(GemmBodies, ResidualTileComesByTmaAndDoesNotHoldTheTurn) {
  const kir::Kernel kernel = HopperKernel(Compiled("bias_gelu_residual_quantise"));
  const Outline outline(kernel);
  EXPECT_EQ(outline.Count("tma.load"), 3u) << outline.text();
  EXPECT_EQ(outline.Count("tma.store"), 1u) << outline.text();
  EXPECT_EQ(outline.Count("2 instances, 232 registers"), 1u) << outline.text();
  ExpectNoConversions(kernel);
  // The other instance computes while this one works on its results.
  const std::string text = kir::ToText(kernel);
  EXPECT_LT(text.find("order.pass"), text.find("erf(")) << text;
}

TEST(GemmBodies, SeveralGemmsInALoop) {
  for (const char* entry : {"gate_up", "two_into_one"}) {
    const kir::Kernel kernel = HopperKernel(Compiled(entry));
    const Outline outline(kernel);
    EXPECT_EQ(outline.Count("wgmma 64x128x64 on 1x1"), 2u) << entry << outline.text();
    EXPECT_EQ(outline.Count("ring of 3"), 2u) << entry << outline.text();
    EXPECT_EQ(outline.Count("2 instances"), 1u) << entry << outline.text();
    EXPECT_EQ(outline.Count("stmatrix"), 2u) << entry << outline.text();
    ExpectNoConversions(kernel);
  }
}

// What an epilogue needs besides the accumulators takes registers for a piece of the columns only.
TEST(GemmBodies, EpiloguesGoInPieces) {
  const std::string text = kir::ToText(HopperKernel(Compiled("element_stores")));
  const size_t first_store = text.find("tma.store C"),
               second_half = text.find("= acc[i_2, j_2 + 64] + float32(Bias_tile[j_2 + 64])");
  ASSERT_NE(first_store, std::string::npos);
  ASSERT_NE(second_half, std::string::npos) << text;
  EXPECT_LT(first_store, second_half) << text;
}

TEST(GemmBodies, CompileClean) {
  if (!HasNvrtc()) GTEST_SKIP() << "no NVRTC";
  const Target target = *FindTarget("sm_90a");
  for (const char* entry :
       {"renamed", "straight_out", "element_stores", "bias_gelu_residual_quantise", "gate_up", "two_into_one", "gathered_rows"}) {
    for (const char* size : {"", "bm=128 bn=128 threads=256", "bm=128 bn=256 threads=256 stages=2"}) {
      const bool too_large =
          std::string(entry) == "gate_up" && std::string(size).find("bn=256") != std::string::npos;  // 256 accumulators a thread
      if (too_large) continue;
      const Program program = Compiled(entry, size);
      const absl::StatusOr<Lowered> lowered = Lower(program, FastArgClass(program), target, {});
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      const TestCubin cubin = CompileForTest(lowered->source, "sm_90a");
      EXPECT_TRUE(cubin.ok) << cubin.log;
      EXPECT_EQ(cubin.complaints, "") << entry << " " << size;
      EXPECT_EQ(cubin.spill_bytes, 0) << entry << " " << size;
    }
  }
}

// Rows that an index chooses cannot come as a box; everything else is as before.
TEST(GemmBodies, GatheredRowsFallBack) {
  const kir::Kernel kernel = HopperKernel(Compiled("gathered_rows"));
  const Outline outline(kernel);
  EXPECT_EQ(outline.Count("wgmma 64x128x64 on 1x1"), 1u) << outline.text();
  EXPECT_EQ(outline.Count("ring of 3, 1 tiles"), 1u) << outline.text();
  EXPECT_EQ(outline.Count("tma.store"), 2u) << outline.text();
  ExpectNoConversions(kernel);
}

TEST(GemmBodies, ReportSaysWhichWayCopiesGo) {
  using ::testing::ContainsRegex;
  const Program program = Compiled("bias_gelu_residual_quantise");
  const std::string schedule = HopperKernel(program).schedule;
  EXPECT_THAT(schedule, ContainsRegex("A → A_shared .*gemm_bodies.py:[0-9]+.: TMA, boxes of 64 x 64, swizzle 128\n"));
  EXPECT_THAT(schedule, ContainsRegex("R → R_shared .*: TMA, boxes of 64 x 64, swizzle 128\n"));
  EXPECT_THAT(schedule, ContainsRegex("Bias → bias .*: vectors of 4 bytes; no TMA: it is not from global to shared memory\n"));
  EXPECT_THAT(schedule, ContainsRegex("C_shared → C .*: TMA, boxes of 64 x 128, swizzle 128\n"));
  const auto lower = [&](const char* arch, const ArgClass& args) {
    const absl::StatusOr<std::vector<kir::Kernel>> kernels = PlanAll(program, args, arch);
    return kernels.ok() ? kernels->front().schedule : kernels.status().ToString();
  };
  EXPECT_THAT(lower("sm_90a", GeneralArgClass(program)),
              ContainsRegex("A → A_shared .*: vectors of 2 bytes; no TMA: the tensor is not known to be aligned to 16 bytes\n"));
  EXPECT_THAT(lower("sm_80", FastArgClass(program)), ContainsRegex("A → A_shared .*: cp.async of 16 bytes\n"));
  const std::string gathered = HopperKernel(Compiled("gathered_rows")).schedule;
  EXPECT_THAT(gathered, ContainsRegex("Rows → Rows_tile .*no TMA"));
}

const std::vector<std::array<int64_t, 3>> kShapes = {{64, 128, 64},  {1, 8, 8},   {67, 131, 45},
                                                     {72, 264, 136}, {64, 16, 0}, {200, 136, 7 * 64}};

template <typename Make>
void ExpectAgrees(const std::string& entry, Make make, const Bound& bound, const std::vector<ScalarArg>& scalars = {}) {
  Comparison comparison(Compiled(entry));
  for (const auto& [m, n, k] : kShapes) {
    comparison.ExpectAgrees(MakeArgs(make(m, n, k), 1, scalars), bound, Cat(entry, " ", m, "x", n, "x", k));
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(comparison.compared(), static_cast<int>(kShapes.size()));
}

// One rounding more or less of a float16, and of sums of up to 450 products.
constexpr Bound kHalf{0x1p-10, 450 * 0x1p-23, 0x1p-14};

// Columns that are no multiple of a swizzle: the widest piece whose rows lie an odd number of 16 bytes apart, where there is room
// for it beside the ring.
TEST(GemmBodies, OddColumnsLeaveInWidePieces) {
  const std::pair<const char*, const char*> kCases[] = {
      {"bm=64 bn=48 stages=2", "boxes of 64 x 24, no swizzle\n"},
      {"bm=128 bn=112 threads=256 stages=6", "boxes of 64 x 56, no swizzle\n"},
      {"bm=128 bn=112 threads=256 stages=7", "boxes of 64 x 56, no swizzle\n"},  // once, which is all that there is room for
      {"bm=128 bn=176 threads=128 stages=4", "boxes of 128 x 16, swizzle 32\n"},
  };
  for (const auto& [size, expected] : kCases) {
    const Program program = Compiled("plain", size);
    EXPECT_THAT(HopperKernel(program).schedule, testing::HasSubstr(expected)) << size;
    EXPECT_THAT(HopperKernel(program).schedule, testing::Not(testing::HasSubstr("at most"))) << size;
    Comparison comparison(program);
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{136, 240, 136}, {5, 64, 64}})
      comparison.ExpectAgrees(MakeArgs(Typed{{kF16, {m, k}}, {kF16, {n, k}}, {kF16, {m, n}}}, 1, {}), kHalf,
                              Cat(size, " ", m, "x", n, "x", k));
  }
}

// Tiles of a few rows, or of rows that are no multiple of 64, are computed turned around; their results leave as 8x8
// matrices all the same.
TEST(GemmBodies, TurnedProductsLeaveAsMatrices) {
  for (const char* size : {"bm=16", "bm=136 threads=256", "bm=152 stages=4"}) {
    const Program program = Compiled("plain", size);
    const Outline outline(HopperKernel(program));
    EXPECT_GE(outline.Count(" transposed"), 1u) << size << outline.text();
    EXPECT_GE(outline.Count("stmatrix"), 1u) << size << outline.text();
    Comparison comparison(program);
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{200, 264, 136}, {5, 64, 64}})
      comparison.ExpectAgrees(MakeArgs(Typed{{kF16, {m, k}}, {kF16, {n, k}}, {kF16, {m, n}}}, 1, {}), kHalf,
                              Cat(size, " ", m, "x", n, "x", k));
    if (!HasNvrtc()) continue;
    const absl::StatusOr<Lowered> lowered = Lower(program, FastArgClass(program), *FindTarget("sm_90a"), {});
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const TestCubin cubin = CompileForTest(lowered->source, "sm_90a");
    EXPECT_TRUE(cubin.ok) << cubin.log;
    EXPECT_EQ(cubin.spill_bytes, 0) << size;
  }
}

TEST(GemmBodies, RenamedAgrees) {
  ExpectAgrees(
      "renamed",
      [](int64_t m, int64_t n, int64_t k) {
        return Typed{{kF16, {m, k}}, {kF16, {n, k}}, {kF32, {m}}, {kF16, {m, n}}};
      },
      kHalf);
}
TEST(GemmBodies, StraightOutAgrees) {
  ExpectAgrees(
      "straight_out",
      [](int64_t m, int64_t n, int64_t k) {
        return Typed{{kF16, {m, k}}, {kF16, {n, k}}, {kF16, {m, n}}};
      },
      kHalf);
}
TEST(GemmBodies, ElementStoresAgree) {
  ExpectAgrees(
      "element_stores",
      [](int64_t m, int64_t n, int64_t k) {
        return Typed{{kF16, {m, k}}, {kF16, {n, k}}, {kF16, {n}}, {kF16, {m, n}}};
      },
      kHalf);
}
TEST(GemmBodies, BiasGeluResidualQuantiseAgrees) {
  // A float8 may round to its neighbour.
  ExpectAgrees("bias_gelu_residual_quantise",
               [](int64_t m, int64_t n, int64_t k) {
                 return Typed{{kF16, {m, k}}, {kF16, {n, k}}, {kF16, {n}}, {kF16, {m, n}}, {DType::kFloat8E4M3, {m, n}}};
               },
               {0x1p-3, 0, 0x1p-9}, {ScalarArg::Float(1.75, kF32)});
}
TEST(GemmBodies, GateUpAgrees) {
  ExpectAgrees("gate_up",
               [](int64_t m, int64_t n, int64_t k) {
                 return Typed{{kF16, {m, k}}, {kF16, {n, k}}, {kF16, {n, k}}, {kF16, {m, n}}};
               },
               {0x1p-10, 1000 * 0x1p-23, 0x1p-14});
}
TEST(GemmBodies, TwoIntoOneAgrees) {
  ExpectAgrees("two_into_one",
               [](int64_t m, int64_t n, int64_t k) {
                 return Typed{{kF16, {m, k}}, {kF16, {n, k}}, {kF16, {m, k}}, {kF16, {n, k}}, {kF16, {m, n}}};
               },
               {0x1p-10, 900 * 0x1p-23, 0x1p-14});
}

TEST(GemmBodies, OneByOneAgrees) {
  ExpectAgrees("one_by_one",
               [](int64_t m, int64_t n, int64_t k) {
                 return Typed{{kF16, {m, k}}, {kF16, {n, k}}, {kF16, {m, k}}, {kF16, {n, k}}, {kF16, {m, n}}};
               },
               {0x1p-10, 900 * 0x1p-23, 0x1p-14});
}

// By cp.async: copies that follow one another are waited for together, even if a later product is the first to need some of them.
TEST(GemmBodies, CopiesThatStandTogetherShareAWait) {
  const auto groups = [](const char* entry) {
    const Program program = Compiled(entry);
    const absl::StatusOr<std::vector<kir::Kernel>> kernels = PlanAll(program, FastArgClass(program), "sm_80");
    return kernels.ok() ? kernels->front().schedule : kernels.status().ToString();
  };
  EXPECT_THAT(groups("gate_up"), testing::HasSubstr("3 copies in 1 groups"));
  EXPECT_THAT(groups("two_into_one"), testing::HasSubstr("4 copies in 1 groups"));
  EXPECT_THAT(groups("one_by_one"), testing::HasSubstr("4 copies in 2 groups"));
}

// By cp.async: the copies of an iteration are shared out to its k steps but the first, and one barrier is enough; with two
// versions of the tiles they stand together behind it.
TEST(GemmBodies, CopiesAreSharedOutToSteps) {
  for (const auto& [stages, parts] : {std::pair(2, 1), {3, 3}, {4, 3}, {5, 3}}) {
    const Program program = Compiled("plain", Cat("bm=64 bn=64 stages=", stages));
    const absl::StatusOr<std::vector<kir::Kernel>> kernels = PlanAll(program, FastArgClass(program), "sm_80");
    ASSERT_TRUE(kernels.ok()) << kernels.status();
    const auto is_product = [](const kir::Stmt& stmt) { return std::holds_alternative<kir::Mma>(stmt.op); };
    int loops = 0;
    for (const kir::Stmt& stmt : kernels->front().body) {
      const auto* loop = std::get_if<kir::For>(&stmt.op);
      if (loop == nullptr || std::none_of(loop->body.begin(), loop->body.end(), is_product)) continue;
      ++loops;
      int barriers = 0, copies = 0, products = 0;
      for (const kir::Stmt& inner : loop->body) {
        barriers += std::holds_alternative<kir::BarSync>(inner.op);
        products += is_product(inner);
        const auto* guarded = std::get_if<kir::If>(&inner.op);
        const auto* copy = guarded == nullptr ? nullptr : std::get_if<kir::Copy>(&guarded->then_body.front().op);
        if (copy == nullptr || copy->method != kir::CopyMethod::kCpAsync) continue;
        ++copies;
        EXPECT_GE(products, stages == 2 ? 3 : 1) << stages;
      }
      EXPECT_EQ(barriers, 1) << stages;
      EXPECT_EQ(copies, parts) << stages;
      EXPECT_EQ(products, 4) << stages;
    }
    EXPECT_EQ(loops, 1) << stages;
    Comparison comparison(program);  // iterations: none, fewer than versions, as many, more
    for (const int64_t k : {0, 60, 120, 64 * stages, 64 * stages + 100})
      comparison.ExpectAgrees(MakeArgs(Typed{{kF16, {70, k}}, {kF16, {64, k}}, {kF16, {70, 64}}}, 1, {}), kHalf,
                              Cat(stages, " stages, K = ", k));
  }
}

// By cp.async: where the sums of two products leave no registers for a second block on the SM, each tile is copied before the
// product that is the first to use it; else all stand behind the barrier.
TEST(GemmBodies, CopiesStandBeforeTheirProducts) {
  for (const auto& [columns, stages] : {std::pair(160, 2), {160, 3}, {64, 3}}) {
    const Program program = Compiled("gate_up", Cat("bm=128 bk=32 bn=", columns, " stages=", stages));
    const absl::StatusOr<std::vector<kir::Kernel>> kernels = PlanAll(program, FastArgClass(program), "sm_80");
    ASSERT_TRUE(kernels.ok()) << kernels.status();
    const auto is_product = [](const kir::Stmt& stmt) {
      const auto* steps = std::get_if<kir::For>(&stmt.op);
      return steps != nullptr && std::any_of(steps->body.begin(), steps->body.end(),
                                             [](const kir::Stmt& inner) { return std::holds_alternative<kir::Mma>(inner.op); });
    };
    std::string order;  // of barriers, copies, commits and products
    for (const kir::Stmt& stmt : kernels->front().body) {
      const auto* loop = std::get_if<kir::For>(&stmt.op);
      if (loop == nullptr || std::none_of(loop->body.begin(), loop->body.end(), is_product)) continue;
      for (const kir::Stmt& inner : loop->body) {
        if (std::holds_alternative<kir::BarSync>(inner.op)) order += 'b';
        if (std::holds_alternative<kir::CpAsyncCommit>(inner.op)) order += ';';
        if (const auto* guarded = std::get_if<kir::If>(&inner.op)) order += std::string(guarded->then_body.size(), 'c');
        if (is_product(inner)) order += 'p';
      }
    }
    EXPECT_EQ(order, columns == 160 ? "bccpc;p" : "bccc;pp") << columns << " columns, " << stages << " stages";
    const auto args = [columns = columns](int64_t k) {
      return MakeArgs(Typed{{kF16, {70, k}}, {kF16, {columns, k}}, {kF16, {columns, k}}, {kF16, {70, columns}}});
    };
    Comparison comparison(program);  // iterations: none, fewer than versions, as many, more
    for (const int64_t k : {0, 20, 32 * stages, 32 * stages + 50}) {
      comparison.ExpectAgrees(args(k), {0x1p-10, 1000 * 0x1p-23, 0x1p-14},
                              Cat(columns, " columns, ", stages, " stages, K = ", k));
      if (HasFatalFailure()) return;
    }
    for (const Mutant& mutant : SynchronisationMutants(kernels->front())) {
      Args run = args(32 * 5);
      const SimOptions options{.seed = 1, .interleavings = 1, .blocks = 1};
      const absl::Status status = SimulateAll(program, {mutant.kernel}, run.tensors(), run.scalars, options);
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << "nothing is wrong " << mutant.what;
    }
  }
}

TEST(GemmBodies, GatheredRowsAgree) {
  Comparison comparison(Compiled("gathered_rows"));
  for (const auto& [m, n, k] : kShapes) {
    const int64_t rows = 50;
    Args args = MakeArgs({{kF16, {rows, k}}, {DType::kInt32, {m}}, {kF16, {n, k}}, {kF16, {m, n}}});
    for (int64_t i = 0; i < m; ++i) args.arrays[1].SetInt(i, (i * 37 + 11) % (rows + 5) - 2);  // some of them outside
    comparison.ExpectAgrees(args, kHalf, Cat("gathered_rows ", m, "x", n, "x", k));
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(comparison.compared(), static_cast<int>(kShapes.size()));
}

TEST(GemmBodies, SynchronisationIsNeeded) {
  const auto args = [](int64_t m, int64_t n, int64_t k) {
    return MakeArgs({{kF16, {m, k}}, {kF16, {n, k}}, {kF16, {n}}, {kF16, {m, n}}, {DType::kFloat8E4M3, {m, n}}}, 1,
                    {ScalarArg::Float(1.75, kF32)});
  };
  Comparison(Compiled("bias_gelu_residual_quantise")).ExpectAllSynchronisationNeeded(
      {args(64, 128, 64), args(64, 128, 64 * 3), args(256, 256, 64 * 7)});
  for (const char* entry : {"two_into_one", "one_by_one"}) {
    Typed tensors(4, {kF16, {64, 320}});
    tensors.push_back({kF16, {64, 64}});
    Comparison(Compiled(entry, "bn=64 bk=32")).ExpectAllSynchronisationNeeded({MakeArgs(tensors)}, "CpAsyncWait");
  }
}

}  // namespace
}  // namespace tilert
