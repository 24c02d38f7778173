// The programs of threads.py: code by thread, roles and declared barriers in both families equal the executor, and need every
// barrier they have.
#include <string>

#include "absl/strings/str_cat.h"
#include "comparison.h"
#include "compile_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/printer.h"
#include "program_sim.h"

namespace tilert {
namespace {

using Shape = std::vector<int64_t>;
using Tensors = std::vector<std::pair<DType, Shape>>;

constexpr DType kF32 = DType::kFloat32, kF16 = DType::kFloat16, kI32 = DType::kInt32;
constexpr Bound kSums{.of_magnitude = 0x1p-18, .absolute = 0x1p-20};

Program Threads(const std::string& entry, const std::string& settings = "") {
  return CompileSource("tests/lowering/threads.py", entry, ParseSettings(settings));
}

void ExpectAgrees(const Program& program, const std::vector<Tensors>& shapes, const Bound& bound, const std::string& what) {
  ASSERT_FALSE(program.launches.empty());
  Comparison comparison(program);
  for (const Tensors& tensors : shapes) comparison.ExpectAgrees(MakeArgs(tensors, 4), bound, what);
  EXPECT_GT(comparison.compared(), 0);
}

void ExpectAllNeeded(const Program& program, const std::vector<Tensors>& shapes, const std::string& only = "") {
  ASSERT_FALSE(program.launches.empty());
  std::vector<Args> args;
  for (const Tensors& tensors : shapes) args.push_back(MakeArgs(tensors, 4));
  Comparison(program).ExpectAllSynchronisationNeeded(args, only);
}

Tensors RowSums(int64_t m, int64_t n) { return {{kF32, {m, n}}, {kF32, {m}}}; }
Tensors Products(int64_t m, int64_t n, int64_t k, DType type = kF16) { return {{type, {m, k}}, {type, {k, n}}, {type, {m, n}}}; }

TEST(ThreadRegions, RowSums) {
  for (const char* threads : {"threads=32", "threads=64", "threads=256"})
    ExpectAgrees(Threads("row_sums", threads), {RowSums(1, 1), RowSums(3, 63), RowSums(2, 130), RowSums(0, 5)}, kSums, threads);
  ExpectAllNeeded(Threads("row_sums"), {RowSums(2, 132)});
}

TEST(ThreadRegions, Gemv) {
  const auto tensors = [](int64_t n, int64_t k) { return Tensors{{kF16, {k}}, {kF16, {n, k}}, {kF16, {n}}}; };
  const Bound bound{.relative = 0x1p-10, .of_magnitude = 0x1p-18};
  ExpectAgrees(Threads("gemv"), {tensors(1, 1), tensors(5, 255), tensors(8, 300)}, bound, "gemv");
  ExpectAgrees(Threads("gemv", "BLOCK_N=1"), {tensors(2, 300)}, bound, "gemv by shuffles");
}

TEST(ThreadRegions, Butterfly) { ExpectAgrees(Threads("butterfly"), {{{kF32, {3, 256}}, {kF32, {3, 256}}}}, kSums, "butterfly"); }

TEST(ThreadRegions, Ranks) {
  const auto tensors = [](int64_t n) { return Tensors{{kI32, {n}}, {kI32, {n}}}; };
  ExpectAgrees(Threads("ranks"), {tensors(1), tensors(96), tensors(200)}, {}, "ranks");
}

// Whole warps may come to a barrier under a condition; no barrier of the block may stand there.
TEST(ThreadRegions, WarpArrives) {
  const std::vector<Tensors> shapes = {{{kF32, {96}}, {kF32, {96}}}};
  ExpectAgrees(Threads("warp_arrives"), shapes, kSums, "warp arrives");
  ExpectAllNeeded(Threads("warp_arrives"), shapes);
}

// So may single threads, in the block's name or in their own.
TEST(ThreadRegions, SingleThreadArrives) {
  for (const char* threads : {"n=32", "n=64"}) {
    const int64_t n = std::string(threads) == "n=32" ? 32 : 64;
    const std::vector<Tensors> shapes = {{{kF32, {n}}, {kF32, {n}}}};
    ExpectAgrees(Threads("thread_arrives", threads), shapes, {}, threads);
    // Behind the barrier the wait finds what it waits for.
    ExpectAllNeeded(Threads("thread_arrives", threads), shapes, "MbarArrive");
    ExpectAllNeeded(Threads("thread_arrives", threads), shapes, "BarSync");
  }
}
TEST(ThreadRegions, LanesArrive) {
  const std::vector<Tensors> shapes = {{{kF32, {64}}, {kF32, {64}}}};
  ExpectAgrees(Threads("lanes_arrive"), shapes, {}, "lanes arrive");
  ExpectAllNeeded(Threads("lanes_arrive"), shapes, "MbarArrive");
}
TEST(ThreadRegions, RoundsOfArrivals) {
  const std::vector<Tensors> shapes = {{{kF32, {40}}, {kF32, {40}}}};
  ExpectAgrees(Threads("rounds_of_arrivals"), shapes, kSums, "rounds of arrivals");
  ExpectAllNeeded(Threads("rounds_of_arrivals"), shapes, "MbarArrive");
}

void EraseBarSyncs(kir::Block& block) {
  std::erase_if(block, [](const kir::Stmt& stmt) { return std::holds_alternative<kir::BarSync>(stmt.op); });
  for (kir::Stmt& stmt : block) {
    for (kir::Block* child : kir::ChildBlocks(stmt)) EraseBarSyncs(*child);
  }
}
absl::Status WithoutBarSyncs(const Program& program, int64_t n) {
  absl::StatusOr<std::vector<kir::Kernel>> kernels = PlanAll(program, GeneralArgClass(program), "sm_80");
  if (!kernels.ok()) return kernels.status();
  EraseBarSyncs(kernels->front().body);
  Args args = MakeArgs({{kF32, {n}}, {kF32, {n}}}, 4);
  return SimulateAll(program, *kernels, args.tensors(), {}, {});
}

// An arrival tells what its thread has done, and of no other lane of the warp.
TEST(ThreadRegions, AnArrivalTellsOfItsThread) {
  EXPECT_EQ(WithoutBarSyncs(Threads("lanes_arrive"), 64), absl::OkStatus());
  EXPECT_THAT(WithoutBarSyncs(Threads("thread_arrives", "n=32"), 32).message(),
              testing::HasSubstr("reads what is written, not ordered before it, by warp 0 lane "));
  EXPECT_FALSE(WithoutBarSyncs(Threads("thread_arrives", "n=64"), 64).ok());  // the other warp may not even have written yet
}

// A wait of a single thread holds it back, and no other lane of its warp.
TEST(ThreadRegions, SingleThreadsWait) {
  const std::vector<Tensors> shapes = {{{kF32, {64}}, {kF32, {64}}}};
  ExpectAgrees(Threads("threads_wait"), shapes, {}, "threads wait");
  ExpectAllNeeded(Threads("threads_wait"), shapes, "MbarArrive");
  ExpectAllNeeded(Threads("threads_wait"), shapes, "MbarWait");
}
TEST(ThreadRegions, OneWaitsForAll) {
  for (const int64_t n : {64, 96}) {
    const std::string n_is = absl::StrCat("n=", n);
    for (const int64_t rounds : {0, 1, 2, 5}) {
      const Program program = Threads("one_waits_for_all", absl::StrCat(n_is, " rounds=", rounds));
      ExpectAgrees(program, {{{kF32, {rounds, n}}, {kF32, {rounds, n}}}}, {}, n_is);
    }
    const Program program = Threads("one_waits_for_all", absl::StrCat(n_is, " rounds=3"));
    for (const char* what : {"Mbar", "BarSync"}) ExpectAllNeeded(program, {{{kF32, {3, n}}, {kF32, {3, n}}}}, what);
  }
}

// What one thread waits for it alone knows, and tells by its arrivals.
TEST(ThreadRegions, AWaitTellsItsThread) {
  const auto source = [](const std::string& second) {
    return "import tilelang.language as T\n"
           "@T.prim_func\n"
           "def k(A: T.Tensor((64,), \"float32\", access=\"in\"), B: T.Tensor((64,), \"float32\", access=\"out\")):\n"
           "    with T.Kernel(1, threads=64) as bx:\n"
           "        s = T.alloc_shared((64,), \"float32\")\n"
           "        bar = T.alloc_barrier(1, shape=(2,))\n"
           "        with T.thread_region() as tx:\n"
           "            if tx == 3:\n"
           "                s[0] = A[0]\n"
           "                T.barrier_arrive(bar[0])\n"
           "            if tx == 5:\n"
           "                T.barrier_wait(bar[0], 0)\n"
           "                T.barrier_arrive(bar[1])\n"
           "            if tx == 9:\n"
           "                T.barrier_wait(bar[1], 0)\n"
           "            B[tx] = A[tx]\n"
           "            if tx == " + second + ":\n"
           "                B[tx] = s[0]\n";
  };
  for (const auto& [reader, ok] : {std::pair("5", true), std::pair("9", true), std::pair("8", false), std::pair("40", false)}) {
    const absl::StatusOr<Program> program = frontend::Compile(source(reader), "k.py", "k", {});
    ASSERT_TRUE(program.ok()) << program.status();
    Args args = MakeArgs({{kF32, {64}}, {kF32, {64}}});
    EXPECT_EQ(Execute(*program, args.tensors(), {}, Checked()).ok(), ok) << reader;
    for (const char* arch : {"sm_80", "sm_90a"}) {
      const auto kernels = PlanAll(*program, GeneralArgClass(*program), arch);
      ASSERT_TRUE(kernels.ok()) << kernels.status();
      EXPECT_EQ(SimulateAll(*program, *kernels, args.tensors(), {}, {}).ok(), ok) << reader << " " << arch;
    }
  }
}

// The executor tells a program that forgets to meet before one thread arrives for all.
TEST(ThreadRegions, TheExecutorKnowsWhoArrived) {
  for (const bool meet : {false, true}) {
    const std::string sync = meet ? "            T.sync_threads()\n" : "";
    const absl::StatusOr<Program> program = frontend::Compile(
        "import tilelang.language as T\n"
        "@T.prim_func\n"
        "def k(A: T.Tensor((64,), \"float32\", access=\"in\"), B: T.Tensor((64,), \"float32\", access=\"out\")):\n"
        "    with T.Kernel(1, threads=64) as bx:\n"
        "        s = T.alloc_shared((64,), \"float32\")\n"
        "        bar = T.alloc_barrier(1, shape=(1,))\n"
        "        with T.thread_region() as tx:\n"
        "            s[tx] = A[tx]\n" + sync +
        "            if tx == 0:\n"
        "                T.barrier_arrive(bar[0])\n"
        "            T.barrier_wait(bar[0], 0)\n"
        "            B[tx] = s[63 - tx]\n",
        "k.py", "k", {});
    ASSERT_TRUE(program.ok()) << program.status();
    Args args = MakeArgs({{kF32, {64}}, {kF32, {64}}});
    const absl::Status status = Execute(*program, args.tensors(), {}, Checked());
    EXPECT_EQ(status.ok(), meet) << status;
    EXPECT_EQ(status.message().find("is accessed by two threads without a barrier between them") != std::string::npos, !meet);
  }
}

// Behind copies and products of all threads of a role one of them arrives: the others' are done.
TEST(ProgramRoles, OneThreadArrivesForItsRole) {
  const std::vector<Tensors> shapes = {Products(64, 64, 0), Products(1, 8, 32), Products(65, 72, 64), Products(64, 64, 160)};
  ExpectAgrees(Threads("matmul_elected"), shapes, {.relative = 0x1p-10, .of_magnitude = 0x1p-18}, "elected");
  ExpectAllNeeded(Threads("matmul_elected"), {Products(64, 64, 96)}, "Mbar");
  ExpectAllNeeded(Threads("matmul_elected"), {Products(64, 64, 96)}, "BarSync");
  ExpectAllNeeded(Threads("matmul_elected"), {Products(64, 64, 96)}, "Proxy");
}

TEST(ProgramRoles, TwoRoles) {
  // Trip counts 0, 1, 2, 3 and 5.
  const std::vector<Tensors> shapes = {Products(64, 64, 0), Products(1, 8, 32), Products(65, 72, 64), Products(64, 64, 96),
                                       Products(64, 64, 160)};
  ExpectAgrees(Threads("matmul_two_roles"), shapes, {.relative = 0x1p-10, .of_magnitude = 0x1p-18}, "two roles");
  ExpectAgrees(Threads("matmul_two_roles", "dtype=bfloat16"), {Products(64, 64, 64, DType::kBFloat16)},
               {.relative = 0x1p-7, .of_magnitude = 0x1p-18}, "two roles");
  ExpectAllNeeded(Threads("matmul_two_roles"), {Products(64, 64, 96)}, "Mbar");
  ExpectAllNeeded(Threads("matmul_two_roles"), {Products(64, 64, 96)}, "Async");
  ExpectAllNeeded(Threads("matmul_two_roles"), {Products(64, 64, 96)}, "Proxy");
}

TEST(ProgramRoles, TwoStages) {
  const std::vector<Tensors> shapes = {Products(64, 64, 0), Products(64, 64, 32), Products(65, 72, 64), Products(64, 64, 96),
                                       Products(64, 64, 160)};
  ExpectAgrees(Threads("matmul_two_stages"), shapes, {.relative = 0x1p-10, .of_magnitude = 0x1p-18}, "two stages");
}

TEST(ProgramRoles, InFlight) {
  const std::vector<Tensors> shapes = {Products(64, 64, 64), Products(65, 72, 200), Products(64, 64, 320)};
  ExpectAgrees(Threads("matmul_in_flight"), shapes, {.relative = 0x1p-10, .of_magnitude = 0x1p-18}, "in flight");
}

TEST(ProgramRoles, Gathered) {
  const auto tensors = [](int64_t m, int64_t n, int64_t k, int64_t rows) {
    return Tensors{{kF16, {rows, k}}, {kI32, {m}}, {kF16, {k, n}}, {kF16, {m, n}}};
  };
  const Program program = Threads("matmul_gathered");
  ExpectAgrees(program, {tensors(64, 64, 0, 8), tensors(65, 72, 64, 8), tensors(64, 64, 200, 5), tensors(64, 64, 320, 8)},
               {.relative = 0x1p-10, .of_magnitude = 0x1p-18}, "gathered");
  ExpectAllNeeded(program, {tensors(64, 64, 320, 8)}, "Mbar");
  ExpectAllNeeded(program, {tensors(64, 64, 320, 8)}, "Proxy");
}

// The warpgroup that copies gives registers to those that multiply.
TEST(ProgramRoles, ThreeRoles) {
  const Program program = Threads("matmul_three_roles");
  ExpectAgrees(program, {Products(64, 64, 0), Products(65, 200, 64), Products(64, 128, 200)},
               {.relative = 0x1p-10, .of_magnitude = 0x1p-18}, "three roles");
  const auto kernels = PlanAll(program, FastArgClass(program), "sm_90a");
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  const std::string text = kir::ToText(kernels->front());
  for (const char* part : {"232 registers", ", 40 registers"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

TEST(ProgramRoles, Halves) {
  const std::vector<Tensors> shapes = {Products(64, 64, 32), Products(65, 72, 100)};
  ExpectAgrees(Threads("matmul_halves"), shapes, {.relative = 0x1p-10, .of_magnitude = 0x1p-18}, "halves");
}

TEST(ProgramRoles, CopiesWaitedForByHand) {
  const auto tensors = [](int64_t m, int64_t n) { return Tensors{{kF32, {m, n}}, {kF32, {m, n}}}; };
  ExpectAgrees(Threads("staged_copy"), {tensors(64, 64), tensors(65, 70), tensors(190, 64)}, {}, "staged copy");
}

// Bytes that the program announces: before the copies or after them, by one thread or by many; copies by TMA, or by threads where
// the target has none.
TEST(ProgramRoles, AnnouncedBytes) {
  const Bound bound{.relative = 0x1p-10, .of_magnitude = 0x1p-18};
  for (const char* settings : {"stages=1", "stages=2", "stages=3", "stages=2 late=True"}) {
    // Trip counts 0 to 2S + 1, and rows that TMA cannot take.
    std::vector<Tensors> shapes = {Products(65, 72, 96), Products(64, 64, 40), Products(65, 67, 100)};
    for (int64_t trips = 0; trips <= 7; ++trips) shapes.push_back(Products(64, 64, 32 * trips));
    ExpectAgrees(Threads("matmul_announced", settings), shapes, bound, settings);
  }
  ExpectAllNeeded(Threads("matmul_announced"), {Products(64, 64, 160)}, "Mbar");
  ExpectAgrees(Threads("matmul_announced_by_all"),
               {Products(64, 64, 0), Products(64, 64, 32), Products(65, 72, 160), Products(65, 67, 64)}, bound, "by all");
}

// Too few bytes and too many are found, by the executor and on the way to the GPU.
TEST(ProgramRoles, WronglyAnnouncedBytes) {
  struct Case {
    const char* settings;
    const char* executor;
    std::vector<const char*> simulator;
  };
  const Case cases[] = {
      {"bytes=-16", "copies bring 16 bytes more than this phase of the barrier has announced", {"bytes", "deadlock"}},
      {"bytes=16", "and 16 bytes are missing)", {"deadlock"}},
      {"bytes=-16 late=True", "copies bring 16 bytes more than this phase of the barrier has announced", {"bytes", "deadlock"}},
      {"bytes=16 late=True", "and 16 bytes are missing)", {"deadlock"}},
  };
  for (const Case& wrong : cases) {
    const Program program = Threads("matmul_announced", wrong.settings);
    ASSERT_FALSE(program.launches.empty());
    Args args = MakeArgs(Products(64, 64, 160), 4);
    const absl::Status executed = Execute(program, args.tensors(), {}, Checked());
    EXPECT_THAT(executed.message(), testing::HasSubstr(wrong.executor)) << wrong.settings;
    EXPECT_THAT(executed.message(), testing::HasSubstr("threads.py:")) << wrong.settings;
    for (const char* arch : {"sm_80", "sm_90a"}) {
      const auto kernels = PlanAll(program, FastArgClass(program), arch);
      ASSERT_TRUE(kernels.ok()) << kernels.status();
      const absl::Status simulated = SimulateAll(program, *kernels, args.tensors(), {}, {});
      EXPECT_FALSE(simulated.ok()) << wrong.settings << " " << arch;
      const bool says = std::any_of(wrong.simulator.begin(), wrong.simulator.end(),
                                    [&](const char* part) { return simulated.message().find(part) != std::string::npos; });
      EXPECT_TRUE(says) << wrong.settings << " " << arch << ": " << simulated;
    }
  }
}

TEST(ProgramRoles, AnnouncedBytesGoByTma) {
  const auto kernels = PlanAll(Threads("matmul_announced"), FastArgClass(Threads("matmul_announced")), "sm_90a");
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  const std::string text = kir::ToText(kernels->front());
  for (const char* part : {"tma.load A_shared", "tma.load B_shared", "expect full["})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  EXPECT_EQ(text.find("complete full["), std::string::npos) << text;
}

// Here Y is X: what a part of the threads does by element code is done by that part.
TEST(ThreadRegions, PartsOfThreads) {
  const Program program = Threads("parts_of_threads");
  const Tensors tensors = {{kF32, {6, 50}}, {kF32, {6, 50}}};
  ExpectAgrees(program, {tensors}, {}, "parts_of_threads");
  Args args = MakeArgs(tensors);
  ASSERT_TRUE(Execute(program, args.tensors(), {}, Checked()).ok());
  for (int64_t k = 0; k < 300; ++k) EXPECT_EQ(args.out()[k], args.arrays[0][k]) << k;
}

// The printed form says with tilert's own words what the sources say with TileLang's.
TEST(ProgramRoles, TheirTextReadsBack) {
  for (const char* entry :
       {"row_sums", "gemv", "butterfly", "ranks", "matmul_two_roles", "matmul_two_stages", "matmul_in_flight", "matmul_gathered",
        "matmul_three_roles", "matmul_halves", "staged_copy", "thread_arrives", "matmul_elected", "threads_wait",
        "one_waits_for_all", "matmul_announced", "matmul_announced_by_all"}) {
    const std::string text = PrintProgram(Threads(entry));
    const absl::StatusOr<Program> again = frontend::Compile(text, "printed.py", entry, {});
    ASSERT_TRUE(again.ok()) << entry << ": " << again.status();
    EXPECT_EQ(PrintProgram(*again), text);
  }
}

// The products by tensor cores and the copies by TMA, where the target has them.
TEST(ProgramRoles, WhatTheyBecome) {
  const Program program = Threads("matmul_in_flight");
  ASSERT_FALSE(program.launches.empty());
  const auto kernels = PlanAll(program, FastArgClass(program), "sm_90a");
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  const std::string text = kir::ToText(kernels->front());
  for (const char* part : {"tma.load A_shared", "wgmma ", "wait full[", "arrive empty[", "expect full["})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

}  // namespace
}  // namespace tilert
