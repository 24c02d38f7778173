// Atomics that give the value before: the executor against values computed here, both families against the executor, and the
// emitted code on the host and through NVRTC.
#include <algorithm>

#include "comparison.h"
#include "compile_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "host_program.h"
#include "ir/printer.h"
#include "nvrtc_harness.h"
#include "program_sim.h"

namespace tilert {
namespace {

using Shape = std::vector<int64_t>;
using Tensors = std::vector<std::pair<DType, Shape>>;
constexpr DType kI32 = DType::kInt32;

Program Atomics(const std::string& entry, const std::string& settings = "") {
  return CompileSource("tests/lowering/atomics.py", entry, ParseSettings(settings));
}

// Simulated for each family, and compiled.
void ExpectAgrees(const std::string& entry, const std::string& settings, const Tensors& tensors, bool compiled = true) {
  const Program program = Atomics(entry, settings);
  ASSERT_FALSE(program.launches.empty());
  Comparison comparison(program);
  comparison.ExpectAgrees(MakeArgs(tensors, 9), {}, entry + " " + settings);
  EXPECT_GT(comparison.compared(), 0);
  for (const char* arch : {"sm_80", "sm_90a"}) {
    if (!compiled || !HasNvrtc()) continue;
    const absl::StatusOr<Lowered> lowered = Lower(program, GeneralArgClass(program), *FindTarget(arch));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const TestCubin cubin = CompileForTest(lowered->source, arch);
    EXPECT_TRUE(cubin.ok) << entry << " " << settings << " " << arch << "\n" << cubin.log << lowered->source;
  }
}

Args Executed(const std::string& entry, const std::string& settings, const Tensors& tensors) {
  Args args = MakeArgs(tensors, 9);
  const absl::Status status = Execute(Atomics(entry, settings), args.tensors(), {}, Checked());
  EXPECT_TRUE(status.ok()) << status;
  return args;
}

TEST(Atomics, Tickets) {
  for (const int64_t n : {1, 200, 333}) {
    const std::string settings = "N=" + std::to_string(n);
    const Tensors tensors = {{kI32, {n}}, {kI32, {n + 2}}};
    ExpectAgrees("tickets", settings, tensors);
    Args args = Executed("tickets", settings, tensors);
    int64_t taken = 0;
    for (int64_t i = 0; i < n; ++i) taken += args.arrays[0].Int(i) > 0;
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(args.out().Int(i), i < taken) << i;
    EXPECT_EQ(args.out().Int(n), taken);
    EXPECT_EQ(args.out().Int(n + 1), taken * (taken - 1) / 2);
  }
}

TEST(Atomics, IntoFragment) {
  for (const char* op : {"add", "max", "min"}) {
    for (const auto& [name, type] : {std::pair("float32", DType::kFloat32), std::pair("float16", DType::kFloat16),
                                     std::pair("bfloat16", DType::kBFloat16), std::pair("float64", DType::kFloat64),
                                     std::pair("int32", DType::kInt32), std::pair("uint32", DType::kUInt32),
                                     std::pair("int64", DType::kInt64), std::pair("uint64", DType::kUInt64)}) {
      const std::string settings = std::string("op=") + op + " dtype=" + name;
      const bool compiled = type == DType::kFloat16 || (type == DType::kInt64) == (op == std::string("add"));
      ExpectAgrees("into_fragment", settings, {{type, {48}}, {type, {2, 48}}}, compiled);
      Args args = Executed("into_fragment", settings, {{type, {48}}, {type, {2, 48}}});
      for (int64_t i = 0; i < 48; ++i) EXPECT_EQ(args.out()[i], i % 3 == 1 ? 0 : args.arrays[0][47 - i]) << settings << " " << i;
    }
  }
}

TEST(Atomics, OfTheBlock) {
  ExpectAgrees("of_the_block", "", {{kI32, {4, 64}}, {kI32, {4, 64}}});
  Args args = Executed("of_the_block", "", {{kI32, {4, 64}}, {kI32, {4, 64}}});
  for (int64_t row = 0; row < 4; ++row) {
    for (int64_t i = 0; i < 64; ++i)
      EXPECT_EQ(args.out().Int((3 - row) * 64 + i), args.arrays[0].Int(row * 64 + i) + row * (row - 1) / 2);
  }
}

TEST(Atomics, ByThread) {
  ExpectAgrees("by_thread", "", {{kI32, {80}}, {kI32, {80}}});
  Args args = Executed("by_thread", "", {{kI32, {80}}, {kI32, {80}}});
  for (int64_t t = 0; t < 80; ++t)
    EXPECT_EQ(args.out().Int(t), t < 64 ? t * 1000 + std::max(t, args.arrays[0].Int(t)) : 0) << t;
}

TEST(Atomics, InMemory) {
  ExpectAgrees("in_memory", "", {{kI32, {3, 100}}, {kI32, {3, 100}}});
  Args args = Executed("in_memory", "", {{kI32, {3, 100}}, {kI32, {3, 100}}});
  for (int64_t i = 0; i < 300; ++i) EXPECT_EQ(args.out().Int(i), 14 + args.arrays[0].Int(i)) << i;
}

TEST(Atomics, InTurn) {
  ExpectAgrees("in_turn", "", {{kI32, {100}}, {kI32, {2, 100}}});
  Args args = Executed("in_turn", "", {{kI32, {100}}, {kI32, {2, 100}}});
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(args.out().Int(100 + i), 7 + args.arrays[0].Int(99 - i)) << i;
}

// The code that is emitted, as the host runs it.
TEST(Atomics, OnTheHost) {
  const auto exact = [](DType) { return 0.0; };
  for (const char* settings : {"op=add dtype=float32", "op=add dtype=int64", "op=add dtype=float16", "op=max dtype=bfloat16",
                               "op=min dtype=float64", "op=max dtype=uint32"}) {
    HostProgram(Atomics("into_fragment", settings)).Check({{48}, {2, 48}}, FillSmall, exact, 0);
  }
  HostProgram(Atomics("by_thread")).Check({{80}, {80}}, FillSmall, exact, 0);
  HostProgram(Atomics("of_the_block")).Check({{4, 64}, {4, 64}}, FillSmall, exact, 0);
}

// What several threads run for one point would have the value in one of them.
TEST(Atomics, NoReplicaGoesWithout) {
  const Program program = Atomics("into_fragment");
  auto kernels = PlanAll(program, GeneralArgClass(program), "sm_80");
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  kir::Kernel& kernel = kernels->front();
  for (kir::Stmt& stmt : kernel.body) {
    auto* points = std::get_if<kir::Elementwise>(&stmt.op);
    if (points != nullptr && std::holds_alternative<kir::If>(points->body[0].op))
      points->layout = {{LayoutDim{48, {{48, Owner::kReg, 1}}}}, kernel.warps};
  }
  EXPECT_THAT(kir::VerifyKernel(kernel), testing::HasSubstr("several threads run it for one point"));
}

TEST(Atomics, TheirTextReadsBack) {
  for (const char* entry : {"tickets", "into_fragment", "of_the_block", "by_thread", "in_memory"}) {
    const std::string text = PrintProgram(Atomics(entry));
    EXPECT_THAT(text, testing::HasSubstr("return_prev=True"));
    const absl::StatusOr<Program> again = frontend::Compile(text, "printed.py", entry, {});
    ASSERT_TRUE(again.ok()) << entry << ": " << again.status() << text;
    EXPECT_EQ(PrintProgram(*again), text);
  }
}

}  // namespace
}  // namespace tilert
