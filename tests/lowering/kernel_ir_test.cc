#include "lowering/kernel_ir.h"

#include <algorithm>
#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sample_kernels.h"
#include "tests/golden.h"

namespace tilert {
namespace {

using testing::HasSubstr;

// Statements of the sample's loop.
enum LoopStmt { kWait, kBarrier, kIssueA, kIssueB, kCommit, kDeclareA, kDeclareB, kLoadA, kLoadB, kMma };
// Statements of its body.
enum BodyStmt { kDeclareAcc, kPrologueA, kPrologueB, kPrologueCommit, kLoop, kStore };

kir::Block& Loop(kir::Kernel& kernel) { return std::get<kir::For>(kernel.body[kLoop].op).body; }
kir::Copy& CopyAt(kir::Block& block, int index) { return std::get<kir::Copy>(block[static_cast<size_t>(index)].op); }

TEST(KernelIrTest, SampleIsAccepted) {
  SampleIds ids;
  EXPECT_EQ(kir::VerifyKernel(SampleGemm(&ids)), "");
}

TEST(KernelIrTest, Prints) {
  SampleIds ids;
  ExpectGolden("kernel_ir_sample.txt", kir::ToText(SampleGemm(&ids)));
}

TEST(KernelIrTest, SharedUsesOfNestedStatements) {
  SampleIds ids;
  kir::Kernel kernel = SampleGemm(&ids);
  const auto uses = kir::SharedUses(kernel, kernel.body[kLoop]);
  // Per buffer: the asynchronous write of the next slot and the read of this one.
  ASSERT_EQ(uses.size(), 4u);
  for (BufferId buffer : {ids.a_shared, ids.b_shared}) {
    const auto write = [&](const kir::SharedUse& u) { return u.buffer == buffer && u.write && u.async; };
    const auto read = [&](const kir::SharedUse& u) { return u.buffer == buffer && !u.write && !u.async; };
    ASSERT_EQ(std::count_if(uses.begin(), uses.end(), write), 1);
    ASSERT_EQ(std::count_if(uses.begin(), uses.end(), read), 1);
    EXPECT_NE(std::find_if(uses.begin(), uses.end(), write)->version, std::find_if(uses.begin(), uses.end(), read)->version);
  }
  EXPECT_TRUE(kir::SharedUses(kernel, kernel.body[kStore]).empty());
  // Loads inside expressions and stores count too; a store and a load of one version are one write.
  auto& store = std::get<kir::Store>(std::get<kir::Elementwise>(kernel.body[kStore].op).body[0].op);
  const Expr zero = kernel.exprs.Int(0);
  store.value = kernel.exprs.Load(ids.a_shared, DType::kBFloat16, {zero, zero, zero});
  ASSERT_EQ(kir::SharedUses(kernel, kernel.body[kStore]).size(), 1u);
  EXPECT_FALSE(kir::SharedUses(kernel, kernel.body[kStore])[0].write);
  store.buffer = ids.a_shared;
  store.indices = {zero, zero, zero};
  ASSERT_EQ(kir::SharedUses(kernel, kernel.body[kStore]).size(), 1u);
  EXPECT_TRUE(kir::SharedUses(kernel, kernel.body[kStore])[0].write);
}

TEST(KernelIrTest, ForEachExprSeesAllOperands) {
  SampleIds ids;
  kir::Kernel kernel = SampleGemm(&ids);
  const auto count = [](const kir::Stmt& stmt) {
    int n = 0;
    kir::ForEachExpr(stmt, [&n](Expr) { ++n; });
    return n;
  };
  EXPECT_EQ(count(kernel.body[kDeclareAcc]), 0);
  EXPECT_EQ(count(kernel.body[kPrologueA]), 5);  // three starts and two
  EXPECT_EQ(count(kernel.body[kLoop]), 3);
  EXPECT_EQ(count(Loop(kernel)[kWait]), 2);
  EXPECT_EQ(count(kir::Stmt{kir::Assert{kernel.exprs.Int(1, DType::kBool), ""}, {}}), 1);
  EXPECT_EQ(count(kir::Stmt{kir::Print{"", {kernel.exprs.Int(1), kernel.exprs.Int(2)}}, {}}), 2);
  EXPECT_EQ(kir::ChildBlocks(kernel.body[kLoop]).size(), 1u);
  EXPECT_EQ(kir::ChildBlocks(kir::Stmt{kir::If{}, {}}).size(), 2u);
}

// A way to spoil the sample, and what the verifier must say.
struct Fault {
  const char* name;
  std::function<void(kir::Kernel&, const SampleIds&)> plant;
  const char* message;
};

class KernelIrFaultTest : public testing::TestWithParam<Fault> {};

TEST_P(KernelIrFaultTest, IsFound) {
  SampleIds ids;
  kir::Kernel kernel = SampleGemm(&ids);
  GetParam().plant(kernel, ids);
  EXPECT_THAT(kir::VerifyKernel(kernel), HasSubstr(GetParam().message));
}

using K = kir::Kernel&;
using I = const SampleIds&;

kir::Elementwise& StoreLoop(K k) { return std::get<kir::Elementwise>(k.body[kStore].op); }
kir::Store& StoreIn(K k) { return std::get<kir::Store>(StoreLoop(k).body[0].op); }
void Append(kir::Block& block, kir::StmtOp op) { block.push_back({std::move(op), {}}); }
Expr VarOf(K k, VarId id) { return k.exprs.Leaf(ExprOp::kVar, id, DType::kIndex); }
Expr AccAt(K k, I ids, Expr i, Expr j) { return k.exprs.Load(ids.acc, DType::kFloat32, {i, j}); }

const Fault kStructure[] = {
    {"BadName", [](K k, I) { k.name = "x y"; }, "no C identifier"},
    {"GridRank", [](K k, I) { k.grid.pop_back(); }, "block variables"},
    {"SharedTooSmall", [](K k, I) { k.shared_bytes -= 1; }, "'B_shared' ends at byte"},
    {"SharedMisplaced", [](K k, I ids) { k.buffers[ids.b_shared].offset += 64; }, "no multiple of 128"},
    {"SwizzlePitch", [](K k, I ids) { k.buffers[ids.a_shared].shared.pitch = 80; }, "is swizzled with panels of"},
    {"LayoutWarps", [](K k, I ids) { k.buffers[ids.acc].layout.warps = 8; }, "is for 8 warps"},
    {"IllFormedLayout", [](K k, I ids) { k.buffers[ids.acc].layout.dims[0].factors[0].size = 64; }, "ill-formed"},
    {"UndeclaredBuffer", [](K k, I) { k.body.erase(k.body.begin()); }, "'acc' is not declared"},
    {"DeclaredInner",
     [](K k, I ids) {
       Append(k.body, kir::Mma{ids.acc, ids.a_reg, ids.b_reg});
     },
     "operand 'A_reg' is not declared"},
    {"DeclaredTwice",
     [](K k, I ids) {
       Append(k.body, kir::Declare{ids.acc, false});
     },
     "twice"},
    {"DeclareShared",
     [](K k, I ids) {
       Append(k.body, kir::Declare{ids.a_shared, false});
     },
     "not in registers"},
    {"UnboundVariable",
     [](K k, I ids) {
       Append(k.body, kir::Let{ids.i, VarOf(k, ids.ko)});
     },
     "uses 'ko' where it is not bound"},
    {"BoundTwice",
     [](K k, I ids) {
       Append(Loop(k), kir::Let{ids.ko, k.exprs.Int(1)});
     },
     "bound already"},
    {"BreakOutside", [](K k, I) { Append(k.body, kir::Break{}); }, "outside a loop"},
    {"BreakOutOfPoints",
     [](K k, I) {
       kir::Elementwise points = StoreLoop(k);
       Append(points.body, kir::Break{});
       Append(Loop(k), points);
     },
     "outside a loop"},
    {"BarrierAtAPoint", [](K k, I) { Append(StoreLoop(k).body, kir::BarSync{}); },
     "for the whole block inside an elementwise loop"},
    {"CopyAtAPoint", [](K k, I) { Append(StoreLoop(k).body, CopyAt(k.body, kPrologueA)); }, "for the whole block"},
    {"StoreByTheBlock",
     [](K k, I ids) {
       Append(k.body, kir::Store{ids.c, {k.exprs.Int(0), k.exprs.Int(0)}, k.exprs.Float(1, DType::kBFloat16)});
     },
     "outside an elementwise loop"},
    {"WriteOfInput", [](K k, I ids) { StoreIn(k).buffer = ids.a; }, "'A', which is not marked as written"},
    {"NegativeStep", [](K k, I) { std::get<kir::For>(k.body[kLoop].op).step = k.exprs.Int(-1); }, "step is -1"},
    {"MissingOperand", [](K k, I) { std::get<kir::For>(k.body[kLoop].op).end = {}; }, "operand is missing"},
    {"PointRank", [](K k, I) { StoreLoop(k).vars.pop_back(); }, "binds 1 variables to a layout of rank 2"},
};

const Fault kExpressions[] = {
    {"SubscriptRank", [](K k, I) { StoreIn(k).indices.pop_back(); }, "'C' takes 2 subscripts, not 1"},
    {"SharedWithoutVersion",
     [](K k, I ids) {
       StoreIn(k).value = k.exprs.Load(ids.a_shared, DType::kBFloat16, {k.exprs.Int(0), k.exprs.Int(0)});
     },
     "'A_shared' takes 3 subscripts, not 2"},
    {"VersionOutOfRange",
     [](K k, I ids) {
       StoreIn(k).value = k.exprs.Load(ids.a_shared, DType::kBFloat16, {k.exprs.Int(2), k.exprs.Int(0), k.exprs.Int(0)});
     },
     "2 versions, not version 2"},
    {"BufferIndex", [](K k, I) { StoreIn(k).buffer = 99; }, "buffer 99 (of 8)"},
    {"LoadType",
     [](K k, I ids) {
       StoreIn(k).value = k.exprs.Load(ids.acc, DType::kFloat16, {VarOf(k, ids.i), VarOf(k, ids.j)});
     },
     "as float16"},
    {"FloatSubscript", [](K k, I) { StoreIn(k).indices[0] = k.exprs.Float(1); }, "subscript is float32, no integer"},
    {"MixedTypes",
     [](K k, I) { StoreIn(k).value = k.exprs.Binary(ExprOp::kAdd, k.exprs.Float(1), k.exprs.Float(1, DType::kFloat16)); },
     "operand 2 of '+' is float16, not float32"},
    {"CondType",
     [](K k, I) {
       Append(k.body, kir::If{k.exprs.Int(1), {}, {}});
     },
     "condition is index, not bool"},
    {"Constant", [](K k, I) { StoreIn(k).indices[0] = k.exprs.Leaf(ExprOp::kConstant, 0, DType::kIndex); }, "constant"},
    {"DimIndex", [](K k, I) { StoreIn(k).indices[0] = k.exprs.Leaf(ExprOp::kDim, 3, DType::kIndex); }, "dim 3 of 3"},
    {"ElementNotHeld", [](K k, I ids) { StoreIn(k).value = AccAt(k, ids, VarOf(k, ids.j), VarOf(k, ids.i)); }, "does not hold"},
    {"OtherLoopLayout",
     [](K k, I) {
       StoreLoop(k).layout = BlockedLayout({64, 64}, 4, 2);
     },
     "does not hold"},
    {"PartOfTheReplicas",
     [](K k, I ids) {  // each row sum lives in four lanes; a loop that runs each point once must not write it
       k.buffers[ids.acc].layout = Project(k.buffers[ids.acc].layout, {0});
       FragmentLayout rows = k.buffers[ids.acc].layout;
       rows.dims.push_back({4, {{4, Owner::kLane, 1}}});
       k.body = {k.body[kDeclareAcc]};
       kir::Elementwise loop{Project(rows, {0}), {ids.i}, {}};
       loop.layout.dims[0].factors.insert(loop.layout.dims[0].factors.begin(), {1, Owner::kLane, 1});
       loop.layout.dims[0].factors.push_back({4, Owner::kLane, 1});
       Append(loop.body, kir::Store{ids.acc, {VarOf(k, ids.i)}, k.exprs.Float(0)});
       Append(k.body, loop);
     },
     "some of its replicas only"},
};

const Fault kData[] = {
    {"AsyncWidth", [](K k, I) { CopyAt(k.body, kPrologueA).width = 1; }, "4, 8 or 16 bytes, not 2"},
    {"AsyncFromShared", [](K k, I) { CopyAt(k.body, kPrologueA).src = CopyAt(k.body, kPrologueB).dst; }, "from global to shared"},
    {"AsyncFill", [](K k, I) { CopyAt(k.body, kPrologueA).fill = k.exprs.Float(1, DType::kBFloat16); }, "fills with zeros only"},
    {"AsyncType", [](K k, I ids) { k.buffers[ids.a_shared].dtype = DType::kFloat16; }, "does not convert"},
    {"Alignment", [](K k, I ids) { k.buffers[ids.a].alignment = 8; }, "aligned to 8"},
    {"NotContiguous",
     [](K k, I) {
       CopyAt(k.body, kPrologueA).layout = BlockedLayout({64, 32}, 4, 4);
     },
     "8 consecutive elements"},
    {"WidthNoPower", [](K k, I) { CopyAt(k.body, kPrologueA).width = 6; }, "width is 6"},
    {"FollowsRank", [](K k, I) { CopyAt(k.body, kPrologueA).src.follows.pop_back(); }, "source 'A' has 2 dimensions"},
    {"FollowsTwice",
     [](K k, I) {
       CopyAt(k.body, kPrologueA).src.follows = {1, 1};
     },
     "follows dimension 1 twice"},
    {"FollowsOutside",
     [](K k, I) {
       CopyAt(k.body, kPrologueA).src.follows = {0, 2};
     },
     "follows dimension 2 of 2"},
    {"WritesManyTimes",
     [](K k, I) {
       CopyAt(k.body, kPrologueA).dst.follows = {-1, -1, 1};
     },
     "does not follow dimension 0"},
    {"VersionFollows",
     [](K k, I) {
       CopyAt(k.body, kPrologueA).dst.follows = {0, -1, 1};
     },
     "varies its version"},
    {"VectorAcrossRows",
     [](K k, I) {
       CopyAt(k.body, kPrologueA).src.follows = {1, 0};
     },
     "does not follow the last one"},
    {"LdmatrixLayout",
     [](K k, I) {
       CopyAt(Loop(k), kLoadA).layout = BlockedLayout({64, 32}, 4, 8);
     },
     "do not hold the elements of 'A_reg'"},
    {"LdmatrixTransposed", [](K k, I) { CopyAt(Loop(k), kLoadA).method = kir::CopyMethod::kLdmatrixTrans; },
     "must follow dimension 0"},
    {"LdmatrixPitch",
     [](K k, I ids) {
       k.buffers[ids.a_shared].shared = RowMajorShared({64, 32}, 2, 4);
       CopyAt(k.body, kPrologueA).width = CopyAt(Loop(k), kIssueA).width = 2;
       k.shared_bytes += 4096;
     },
     "no multiple of 16"},
    {"RegisterCopyOfMemory", [](K k, I) { CopyAt(Loop(k), kLoadA).method = kir::CopyMethod::kRegister; }, "must be in registers"},
    {"RetiresRegister", [](K k, I ids) { std::get<kir::CpAsyncWait>(Loop(k)[kWait].op).retires[0].buffer = ids.acc; },
     "not in shared memory"},
    {"MmaOperandsSwapped",
     [](K k, I ids) {
       Loop(k)[kMma].op = kir::Mma{ids.acc, ids.b_reg, ids.a_reg};
     },
     "not those of mma over"},
    {"MmaAccumulator", [](K k, I ids) { k.buffers[ids.acc].dtype = DType::kFloat16; }, "products in float16"},
    {"MmaGrid",
     [](K k, I ids) {
       k.buffers[ids.acc].layout = MmaAccumulatorLayout(64, 64, {4, 1});
       StoreLoop(k).layout = k.buffers[ids.acc].layout;
     },
     "not those of mma over"},
    {"ReduceAxis",
     [](K k, I ids) {
       Append(k.body, kir::LaneReduce{ReduceOp::kSum, ids.acc, ids.acc, 2});
     },
     "reduces axis 2"},
    {"ReduceOverWarps",
     [](K k, I ids) {
       Append(k.body, kir::LaneReduce{ReduceOp::kSum, ids.acc, ids.acc, 1});
     },
     "partial results"},
    {"ReduceInto",
     [](K k, I ids) {
       Append(k.body, kir::LaneReduce{ReduceOp::kSum, ids.acc, ids.acc, 1, true});
     },
     "does not hold what the reduction of 'acc' leaves"},
};

std::string NameOf(const testing::TestParamInfo<Fault>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Structure, KernelIrFaultTest, testing::ValuesIn(kStructure), NameOf);
INSTANTIATE_TEST_SUITE_P(Expressions, KernelIrFaultTest, testing::ValuesIn(kExpressions), NameOf);
INSTANTIATE_TEST_SUITE_P(Data, KernelIrFaultTest, testing::ValuesIn(kData), NameOf);

TEST(KernelIrTest, PathsNameTheStatement) {
  SampleIds ids;
  kir::Kernel kernel = SampleGemm(&ids);
  Loop(kernel)[kMma].loc.line = 12;
  kernel.buffers[ids.a_reg].dtype = DType::kFloat32;
  CopyAt(Loop(kernel), kLoadA).method = kir::CopyMethod::kVector;
  CopyAt(Loop(kernel), kLoadA).width = 1;
  EXPECT_THAT(kir::VerifyKernel(kernel), HasSubstr("body[4].body[9] (mma, line 12): operands are float32 and bfloat16"));
}

TEST(KernelIrTest, ReductionsAreAccepted) {
  SampleIds ids;
  kir::Kernel kernel = SampleGemm(&ids);
  const FragmentLayout acc = kernel.buffers[ids.acc].layout;
  FragmentLayout parts = acc;
  parts.dims[1] = {2, {{2, Owner::kWarp, 2}}};
  const auto add = [&](const char* name, FragmentLayout layout) {
    kir::Buffer buffer;
    buffer.name = name;
    buffer.dtype = DType::kFloat32;
    buffer.space = kir::Space::kRegister;
    buffer.layout = std::move(layout);
    kernel.buffers.push_back(buffer);
    Append(kernel.body, kir::Declare{static_cast<BufferId>(kernel.buffers.size() - 1), false});
    return static_cast<BufferId>(kernel.buffers.size() - 1);
  };
  const BufferId kept = add("parts", Project(parts, {0, 1}));
  Append(kernel.body, kir::LaneReduce{ReduceOp::kMax, kept, ids.acc, 1, true});
  EXPECT_EQ(kir::VerifyKernel(kernel), "");
  const BufferId rows = add("rows", Project(acc, {0}));
  Append(kernel.body, kir::LaneReduce{ReduceOp::kMax, rows, ids.acc, 1, false});
  EXPECT_THAT(kir::VerifyKernel(kernel), HasSubstr("several warps hold axis 1"));
}

}  // namespace
}  // namespace tilert
