// The text of emitted kernels, and what NVRTC and ptxas make of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "kernel_maker.h"
#include "lowering/lowered.h"
#include "nvrtc_harness.h"
#include "sample_kernels.h"
#include "sample_programs.h"
#include "tests/golden.h"

namespace tilert {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string EmitOk(const kir::Kernel& kernel, const char* arch = "sm_80") {
  const Target target = *FindTarget(arch, "ampere");
  const absl::StatusOr<std::string> text = EmitKernel(kernel, target);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : "";
}

Lowered LowerOk(const Program& program, bool fast, const char* arch = "sm_80") {
  absl::StatusOr<Lowered> lowered =
      Lower(program, fast ? FastArgClass(program) : GeneralArgClass(program), *FindTarget(arch, "ampere"));
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  return lowered.ok() ? *std::move(lowered) : Lowered();
}

// Compiles for each architecture of the family: no warning, nothing in local memory.
void ExpectClean(const std::string& source) {
  if (!HasNvrtc()) GTEST_SKIP() << "no NVRTC";
  for (const char* arch : {"sm_80", "sm_89", "sm_90a"}) {
    const TestCubin cubin = CompileForTest(source, arch);
    EXPECT_TRUE(cubin.ok) << arch << "\n" << cubin.log;
    EXPECT_EQ(cubin.complaints, "") << arch;
    EXPECT_EQ(cubin.stack_bytes, 0) << arch << "\n" << cubin.log;
    EXPECT_EQ(cubin.spill_bytes, 0) << arch << "\n" << cubin.log;
  }
}

size_t Count(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++count;
  return count;
}

TEST(Emit, GoldenTexts) {
  SampleIds ids;
  kir::Kernel gemm = SampleGemm(&ids);
  gemm.index32 = true;
  gemm.schedule = "64×64×32, 4 warps\n2 versions";
  ExpectGolden("emit_sample_gemm.cu", EmitOk(gemm));
  const Target target = *FindTarget("sm_80");
  const auto body = [&](const Lowered& lowered) { return lowered.source.substr(Prelude(target).size()); };
  ExpectGolden("emit_add.cu", body(LowerOk(AddProgram(1024, 128, DType::kFloat32), false)));
  ExpectGolden("emit_rmsnorm.cu", body(LowerOk(RmsNormProgram(2, 1024, 128), true)));
}

TEST(Emit, IsDeterministic) {
  const Program program = AttentionProgram(64, 64, 64, 2, 128, true);
  EXPECT_EQ(LowerOk(program, true).source, LowerOk(program, true).source);
}

TEST(Emit, SampleProgramsCompileClean) {
  GemmSample gemm{128, 128, 32, 3, 128};
  for (int transposition = 0; transposition < 4; ++transposition) {
    gemm.transpose_a = transposition & 1;
    gemm.transpose_b = transposition & 2;
    ExpectClean(LowerOk(GemmProgram(gemm), true).source);
  }
  gemm.dtype = DType::kFloat16;
  ExpectClean(LowerOk(GemmProgram(gemm), false).source);
  ExpectClean(LowerOk(AddProgram(1024, 128, DType::kFloat8E4M3), false).source);
  ExpectClean(LowerOk(TransposeProgram(64, 256, DType::kBFloat16), true).source);
  ExpectClean(LowerOk(RmsNormProgram(1, 8192, 256), true).source);
  ExpectClean(LowerOk(AttentionProgram(64, 64, 128, 2, 128, true), true).source);
}

TEST(Emit, GemmUsesTheInstructionsItShould) {
  if (!HasNvrtc()) GTEST_SKIP() << "no NVRTC";
  GemmSample sample{128, 128, 32, 3, 128};
  sample.transpose_b = true;
  const TestCubin ptx = CompileForTest(LowerOk(GemmProgram(sample), true).source, "compute_80");
  ASSERT_TRUE(ptx.ok) << ptx.log;
  // A warp's 64×64×32: 4 × 8 × 2 products, operands by fours, those of the first step before the main loop too; 8 copies of 16
  // bytes a thread in the loop that fills the pipeline and in the main one.
  EXPECT_EQ(Count(ptx.code, "mma.sync.aligned.m16n8k16"), 64u);
  EXPECT_EQ(Count(ptx.code, "ldmatrix.sync.aligned.m8n8.x4"), 24u);
  EXPECT_EQ(Count(ptx.code, "cp.async.cg.shared.global.L2::128B"), 16u);
  EXPECT_EQ(Count(ptx.code, "cvt.rn.bf16x2.f32"), 64u);
  EXPECT_EQ(Count(ptx.code, "cvt.rn.bf16.f32"), 0u);
  EXPECT_EQ(Count(ptx.code, "ld.local"), 0u);
}

TEST(Emit, GemmsOfBytesAndTf32UseTensorCores) {
  const auto source = [](DType type, const char* arch) {
    GemmSample sample{128, 128, 64, 3, 128};
    sample.transpose_b = true;
    sample.dtype = type, sample.result = IsFloat(type) ? DType::kFloat32 : DType::kInt32;
    const Program program = GemmProgram(sample);
    const auto lowered = Lower(program, FastArgClass(program), FindTarget(arch, "ampere").value());
    EXPECT_TRUE(lowered.ok()) << lowered.status();
    return lowered->source.substr(lowered->source.find("__global__"));
  };
  EXPECT_EQ(Count(source(DType::kFloat8E4M3, "sm_80"), "mma_e4m3"), 0u) << "sm_80 multiplies none of float8";
  EXPECT_EQ(Count(source(DType::kFloat8E4M3, "sm_89"), "mma_e4m3_e4m3("), 2u) << "two steps of K";
  EXPECT_EQ(Count(source(DType::kFloat8E5M2, "sm_90"), "mma_e5m2_e5m2("), 2u);
  EXPECT_EQ(Count(source(DType::kFloat32, "sm_80"), "mma_tf32("), 1u);
  EXPECT_EQ(Count(source(DType::kInt8, "sm_80"), "mma_s8_s8("), 2u);
  // Two operands of two steps, those of the first step before the loop too.
  EXPECT_EQ(Count(source(DType::kInt8, "sm_80"), "ldmatrix("), 6u);
  if (!HasNvrtc()) GTEST_SKIP() << "no NVRTC";
  for (const auto& [type, arch] : {std::pair(DType::kInt8, "sm_80"), {DType::kFloat8E5M2, "sm_89"}, {DType::kFloat32, "sm_80"}}) {
    GemmSample sample{128, 128, 64, 3, 128};
    sample.transpose_b = true;
    sample.dtype = type, sample.result = IsFloat(type) ? DType::kFloat32 : DType::kInt32;
    const Program program = GemmProgram(sample);
    const TestCubin made = CompileForTest(Lower(program, FastArgClass(program), FindTarget(arch).value())->source, arch);
    EXPECT_TRUE(made.ok && made.complaints.empty() && made.spill_bytes == 0) << made.log;
  }
}

TEST(Emit, AddLoadsAndStoresWholeVectors) {
  if (!HasNvrtc()) GTEST_SKIP() << "no NVRTC";
  const TestCubin ptx = CompileForTest(LowerOk(AddProgram(1024, 128, DType::kFloat32), true).source, "compute_80");
  ASSERT_TRUE(ptx.ok) << ptx.log;
  EXPECT_EQ(Count(ptx.code, "ld.global.nc.v4"), 4u);
  EXPECT_EQ(Count(ptx.code, "st.global.v4"), 2u);
}

// Statements and hostile text that no sample has.
kir::Kernel OddKernel() {
  KernelMaker m(2);
  m.k.name = "odd";
  m.k.files = {"evil\\\nfile\"?>.py"};
  m.k.scalars = {{"alpha", DType::kBFloat16, kNoId}, {"int", DType::kInt64, kNoId}, {"a b", DType::kBool, kNoId}};
  m.k.schedule = "line one\\\nline */ two";
  const Expr n = m.Dim("while");
  const BufferId out = m.Global("lane", DType::kInt32, {n, n}, true, 4);
  const BufferId same = m.Global("lane", DType::kUInt8, {n}, true, 1);
  const BufferId counter = m.Scalar("printf", DType::kInt32);
  const VarId i = m.Var("i\"); __trap(); (\"");
  const Expr alpha = m.k.exprs.Leaf(ExprOp::kScalar, 0, DType::kBFloat16),
             wide = m.k.exprs.Leaf(ExprOp::kScalar, 1, DType::kInt64);
  const Expr flag = m.k.exprs.Leaf(ExprOp::kScalar, 2, DType::kBool);
  m.Add(kir::Declare{counter, true});
  m.Add(kir::Print{"100% {{{}}} \"?\?/\" {} {} {}\n\x01", {alpha, wide, flag, m.bx()}});
  m.Add(kir::Assert{m.Op(ExprOp::kGt, n, m.Int(0)), "no \"rows\"\n\\"});
  m.With(kir::While{m.Op(ExprOp::kLt, m.Load(counter, {}), m.k.exprs.Int(5, DType::kInt32)), {}}, [&] {
    m.Store(counter, {}, m.Op(ExprOp::kAdd, m.Load(counter, {}), m.k.exprs.Int(1, DType::kInt32)));
    m.With(kir::If{flag, {}, {}}, [&] { m.Add(kir::Break{}); });
  });
  m.With(kir::For{i, m.Int(10), m.Int(0), m.Int(-3), kir::Unroll::kNo, {}}, [&] { m.Add(kir::Continue{}); });
  m.Points(BlockedLayout({40}, 2, 1), {i}, [&] {
    m.Store(out, {m.V(i), m.Op(ExprOp::kSub, m.V(i), m.Int(3))}, m.Load(counter, {}));
    m.Add(kir::Atomic{AtomicOp::kMax, out, {m.V(i), m.Int(0)}, m.k.exprs.Int(7, DType::kInt32), MemoryOrder::kAcqRel});
    m.Add(kir::Atomic{AtomicOp::kAdd, same, {m.V(i)}, m.k.exprs.Int(7, DType::kUInt8)});
  });
  for (kir::Stmt& stmt : m.k.body) stmt.loc = {0, 3, 1};
  return m.k;
}

TEST(Emit, HostileNamesAndTextsStayText) {
  const std::string text = EmitOk(OddKernel());
  EXPECT_THAT(text, HasSubstr("// evil??file\"?>.py:3"));
  EXPECT_THAT(text, Not(HasSubstr("__trap(); (")));
  if (!HasNvrtc()) GTEST_SKIP() << "no NVRTC";
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const TestCubin cubin = CompileForTest(Prelude(*FindTarget("sm_80")) + text, arch);
    EXPECT_TRUE(cubin.ok) << cubin.log << text;
    EXPECT_EQ(cubin.complaints, "");
  }
}

TEST(Emit, BoundsAreCheckedUnlessProven) {
  const std::string text = EmitOk(OddKernel());
  EXPECT_THAT(text, HasSubstr("(u64)"));  // a subscript that may be negative
  KernelMaker m(1);
  const BufferId out = m.Global("out", DType::kFloat32, {m.Int(32)}, true);
  const VarId i = m.Var("i");
  m.Points(BlockedLayout({32}, 1, 1), {i}, [&] { m.Store(out, {m.V(i)}, m.Real(1)); });
  EXPECT_THAT(EmitOk(m.k), Not(HasSubstr("if (")));
}

TEST(Emit, ReplicasWriteOnce) {
  KernelMaker m(2);
  const BufferId out = m.Global("out", DType::kFloat32, {m.Int(8)}, true);
  const VarId i = m.Var("i");
  m.Points(BlockedLayout({8}, 2, 1), {i}, [&] { m.Store(out, {m.V(i)}, m.Real(1)); });
  EXPECT_THAT(EmitOk(m.k), HasSubstr("const bool writes = (lane & 24) == 0 && warp == 0;"));
}

TEST(Emit, SmallIndicesAreInts) {
  KernelMaker m(1);
  const BufferId out = m.Global("out", DType::kFloat32, {m.Dim("M"), m.Dim("N")}, true);
  const VarId i = m.Var("i");
  m.Points(BlockedLayout({32}, 1, 1), {i}, [&] { m.Store(out, {m.V(i), m.bx()}, m.Real(1)); });
  EXPECT_THAT(EmitOk(m.k), HasSubstr("made(float* out, i64 M, i64 N)"));
  EXPECT_THAT(EmitOk(m.k), HasSubstr("out[i0 * (1 * N) + bx]"));
  m.k.index32 = true;
  EXPECT_THAT(EmitOk(m.k), HasSubstr("made(float* out, int M, int N)"));
}

}  // namespace
}  // namespace tilert
