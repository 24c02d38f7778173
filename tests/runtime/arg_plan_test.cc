#include "runtime/arg_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "absl/strings/match.h"
#include "ir/builder.h"
#include "ir/specialize.h"

namespace tilert {
namespace {

// C[M, N] = f(A[M, K], B[K, N]; alpha, rows = M + 1 extra output of M + 1 elements), K % 8 == 0, a workspace of M * N floats.
Program MakeProgram() {
  ProgramBuilder b("subject");
  const Val m = b.Dim("M"), n = b.Dim("N"), k = b.Dim("K"), ld = b.Dim("ld");
  b.Tensor("A", DType::kFloat16, {m, k});
  b.Tensor("B", DType::kFloat16, {k, n}, Access::kIn, {ld, Val(1)});
  b.Tensor("C", DType::kFloat32, {m, n}, Access::kOut);
  b.Tensor("Rows", DType::kInt32, {m + 1}, Access::kInOut);
  b.Scalar("alpha", DType::kFloat32);
  b.Scalar("count", DType::kInt32);
  b.Workspace("partial", DType::kFloat32, {m, n}, true);
  b.Workspace("flags", DType::kInt32, {m}, false);
  b.Assume(k % 8 == 0);
  b.OpenLaunch("main", {m}, Val(128));
  b.Close();
  absl::StatusOr<Program> program = b.Build();
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

// Arguments that fit, over one block of memory, to be spoiled by tests.
struct Args {
  Args(int64_t m, int64_t n, int64_t k, int64_t ld) : memory(1 << 20) {
    shapes = {{m, k}, {k, n}, {m, n}, {m + 1}};
    strides = {{}, {ld, 1}, {}, {}};
    for (size_t t = 0; t < 4; ++t) offsets.push_back(t << 17);
    workspace = memory.data() + (1 << 19);
    workspace += (256 - reinterpret_cast<uintptr_t>(workspace) % 256) % 256;
  }
  std::vector<TensorArg> tensors() {
    static constexpr DType kTypes[] = {DType::kFloat16, DType::kFloat16, DType::kFloat32, DType::kInt32};
    std::vector<TensorArg> result;
    for (size_t t = 0; t < 4; ++t) {
      result.push_back({base() + offsets[t], kTypes[t], shapes[t], strides[t]});
    }
    return result;
  }
  char* base() { return memory.data() + (256 - reinterpret_cast<uintptr_t>(memory.data()) % 256) % 256; }
  std::vector<char> memory;
  std::vector<std::vector<int64_t>> shapes, strides;
  std::vector<size_t> offsets;
  std::vector<ScalarArg> scalars = {ScalarArg::Float(0.5, DType::kFloat32), ScalarArg::Int(3, DType::kInt32)};
  char* workspace;
};

// Extents that a GPU would compute to something else, since it wraps where the host does not, and dims from which too much would
// come.
TEST(ArgPlan, WhatTheGpuComputesToo) {
  ProgramBuilder b("subject");
  const Val m = b.Dim("M"), p = b.Dim("P");
  b.Tensor("X", DType::kInt8, {m});
  b.Tensor("Y", DType::kInt8, {FloorDiv(m * (int64_t{1} << 61), int64_t{1} << 61)}, Access::kOut);
  b.Scalar("far", DType::kInt64, p);
  b.OpenLaunch("main", {m}, Val(32));
  b.Close();
  const Program program = *b.Build();
  const ArgPlan plan = *ArgPlan::Make(program);
  std::vector<char> memory(64);
  const auto bind = [&](int64_t x, int64_t y, int64_t far) {
    const std::vector<int64_t> x_shape = {x}, y_shape = {y};
    const std::vector<TensorArg> tensors = {{memory.data(), DType::kInt8, x_shape, {}},
                                            {memory.data() + 32, DType::kInt8, y_shape, {}}};
    const std::vector<ScalarArg> scalars = {ScalarArg::Int(far, DType::kInt64)};
    LaunchValues values(plan);
    return std::string(plan.Bind(tensors, scalars, nullptr, 0, values).message());
  };
  EXPECT_EQ(bind(3, 3, 1), "");
  EXPECT_EQ(bind(3, 3, int64_t{1} << 48), "");
  EXPECT_EQ(bind(3, 3, (int64_t{1} << 48) + 1), "dim 'P' is 281474976710657; dims are at most 2^48");
  EXPECT_EQ(bind(4, 3, 1), "'4 * 2305843009213693952' among the extents of 'subject' does not fit 64 bits");
}

class ArgPlanTest : public ::testing::Test {
 protected:
  absl::Status Bind(Args& args, LaunchValues& values, uint64_t workspace_bytes = 1 << 18) {
    return plan_.Bind(args.tensors(), args.scalars, args.workspace, workspace_bytes, values);
  }
  std::string Refusal(Args& args) {
    LaunchValues values(plan_);
    const absl::Status status = Bind(args, values);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }
  const Program program_ = MakeProgram();
  const ArgPlan plan_ = ArgPlan::Make(program_).value();
};

TEST_F(ArgPlanTest, BindsDimsScalarsAndWorkspaces) {
  Args args(5, 7, 16, 9);
  LaunchValues values(plan_);
  ASSERT_TRUE(Bind(args, values).ok()) << Bind(args, values);
  EXPECT_EQ(std::vector<int64_t>(values.dims.begin(), values.dims.end()), (std::vector<int64_t>{5, 7, 16, 9}));
  EXPECT_EQ(values.scalars[0].f, 0.5);
  EXPECT_EQ(values.scalars[1].i, 3);
  EXPECT_EQ(values.tensors[1].bytes, (15 * 9 + 7) * 2);
  EXPECT_EQ(values.tensors[4].data, args.workspace);
  EXPECT_EQ(values.tensors[5].data, args.workspace + 256) << "5 * 7 floats fill 140 bytes";
  EXPECT_EQ(plan_.zeroed_workspaces(), std::vector<uint32_t>{4});
  EXPECT_EQ(plan_.WorkspaceBytes(args.tensors(), args.scalars).value(), 512u);
}

TEST_F(ArgPlanTest, EachMistakeIsRefusedWithItsName) {
  const auto contains = [](const std::string& text, const char* part) { return absl::StrContains(text, part); };
  {
    Args a(5, 7, 16, 9);
    a.shapes[0] = {5, 24};
    EXPECT_PRED2(contains, Refusal(a), "'B'");
  }
  {
    Args a(5, 7, 16, 9);
    a.shapes[2] = {5, 8};
    EXPECT_PRED2(contains, Refusal(a), "'C'");
  }
  {
    Args a(5, 7, 16, 9);
    a.shapes[3] = {5};
    EXPECT_PRED2(contains, Refusal(a), "'Rows'");
  }
  {
    Args a(5, 7, 12, 9);
    EXPECT_PRED2(contains, Refusal(a), "assumption");
  }
  {
    Args a(5, 7, 16, 9);
    a.strides[2] = {8, 1};
    EXPECT_PRED2(contains, Refusal(a), "stride");
  }
  {
    Args a(5, 7, 16, 9);
    a.strides[1] = {9, 2};
    EXPECT_PRED2(contains, Refusal(a), "stride");
  }
  {
    Args a(5, 7, 16, 9);
    a.offsets[2] += 2;
    EXPECT_PRED2(contains, Refusal(a), "align");
  }
  {
    Args a(5, 7, 16, 9);
    a.shapes[0] = {-5, 16};
    EXPECT_PRED2(contains, Refusal(a), "negative");
  }
  {
    Args a(5, 7, 16, 9);
    a.shapes[0] = {5, 16, 1};
    EXPECT_PRED2(contains, Refusal(a), "dimensions");
  }
  {
    Args a(5, 7, 16, 9);
    a.scalars[1] = ScalarArg::Int(int64_t{1} << 40, DType::kInt64);
    EXPECT_PRED2(contains, Refusal(a), "'count'");
  }
  {
    Args a(5, 7, 16, 9);
    a.scalars.pop_back();
    EXPECT_PRED2(contains, Refusal(a), "scalars");
  }
  {
    Args a(5, 7, 16, 9);
    a.workspace += 16;
    EXPECT_PRED2(contains, Refusal(a), "workspace");
  }
  {
    Args a(5, 7, 16, 9);
    a.workspace = nullptr;
    EXPECT_PRED2(contains, Refusal(a), "512 bytes");
  }
  Args args(5, 7, 16, 9);
  LaunchValues values(plan_);
  EXPECT_EQ(Bind(args, values, 511).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Bind(args, values, 512).ok());
  std::vector<TensorArg> tensors = args.tensors();
  tensors[0].data = nullptr;
  EXPECT_FALSE(plan_.Bind(tensors, args.scalars, args.workspace, 512, values).ok());
  tensors = args.tensors();
  tensors[0].dtype = DType::kBFloat16;
  EXPECT_FALSE(plan_.Bind(tensors, args.scalars, args.workspace, 512, values).ok());
  tensors.pop_back();
  EXPECT_FALSE(plan_.Bind(tensors, args.scalars, args.workspace, 512, values).ok());
}

// Each of these workspaces is one that a plan takes, but the bytes of all of them, as a number of 64 bits, are 256.
TEST(ArgPlan, WorkspacesOfMoreBytesThanThereAreAddressesAreRefused) {
  ProgramBuilder b("subject");
  const Val n = b.Dim("N");
  b.Tensor("X", DType::kFloat32, {n});
  for (const char* name : {"w0", "w1", "w2", "w3"}) b.Workspace(name, DType::kFloat64, {n, Val(int64_t{1} << 32)}, false);
  b.Workspace("small", DType::kFloat32, {64}, false);
  b.OpenLaunch("main", {n}, Val(128));
  b.Close();
  const absl::StatusOr<Program> program = b.Build();
  ASSERT_TRUE(program.ok()) << program.status();
  const auto plan = ArgPlan::Make(*program);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<char> memory(1024);
  for (const int64_t extent : {int64_t{1} << 27, int64_t{1} << 26, int64_t{1} << 25}) {
    const int64_t shape[] = {extent};
    const TensorArg x[] = {{memory.data(), DType::kFloat32, shape, {}}};
    const absl::StatusOr<uint64_t> bytes = plan->WorkspaceBytes(x, {});
    ASSERT_FALSE(bytes.ok()) << *bytes;
    EXPECT_TRUE(absl::StrContains(bytes.status().message(), "more bytes than there are addresses")) << bytes.status();
  }
  const int64_t shape[] = {1 << 22};
  const TensorArg x[] = {{memory.data(), DType::kFloat32, shape, {}}};
  EXPECT_EQ(plan->WorkspaceBytes(x, {}).value(), (uint64_t{4} << 57) + 256);
}

TEST_F(ArgPlanTest, WrittenMemoryMustNotBeSeenTwice) {
  Args args(5, 7, 16, 9);
  args.offsets[2] = args.offsets[0] + 5 * 16 * 2 - 4;  // C begins in the last four bytes of A
  EXPECT_TRUE(absl::StrContains(Refusal(args), "'C'"));
  args.offsets[2] += 4;  // directly behind
  LaunchValues values(plan_);
  EXPECT_TRUE(Bind(args, values).ok());
  args.offsets[2] = Args(1, 1, 8, 1).offsets[2];
  args.offsets[1] = args.offsets[0];  // two that are only read
  EXPECT_TRUE(Bind(args, values).ok()) << Bind(args, values);
  args.offsets[2] = static_cast<size_t>(args.workspace - args.base());
  EXPECT_TRUE(absl::StrContains(Refusal(args), "overlaps"));
  Args empty(0, 7, 16, 9);
  empty.offsets[2] = empty.offsets[0];
  EXPECT_TRUE(Bind(empty, values).ok()) << "nothing overlaps an empty tensor";
}

TEST_F(ArgPlanTest, ScalarsOfAnotherIntegerTypeThatFit) {
  Args args(5, 7, 16, 9);
  args.scalars[1] = ScalarArg::Int(-4, DType::kInt64);
  LaunchValues values(plan_);
  ASSERT_TRUE(Bind(args, values).ok()) << Bind(args, values);
  EXPECT_EQ(values.scalars[1].i, -4);
}

TEST_F(ArgPlanTest, GuardOfTheFastClass) {
  ArgClass fast;
  fast.alignment.assign(6, 16);
  fast.index32 = true;
  fast.dim_divisor.assign(4, 1);
  LaunchValues values(plan_);
  const auto satisfied = [&](Args& args) {
    const absl::Status status = Bind(args, values);
    EXPECT_TRUE(status.ok()) << status;
    return ArgPlan::Satisfies(plan_.MakeGuard(fast), values);
  };
  {
    Args a(5, 8, 16, 8);
    EXPECT_TRUE(satisfied(a));
  }
  {
    Args a(5, 8, 16, 12);
    EXPECT_FALSE(satisfied(a)) << "rows of B are 24 bytes apart";
  }
  {
    Args a(5, 7, 16, 8);
    EXPECT_FALSE(satisfied(a)) << "rows of C are 28 bytes apart";
  }
  {
    Args a(5, 8, 16, 8);
    a.offsets[0] += 2;
    EXPECT_FALSE(satisfied(a)) << "A is not aligned";
  }
  {
    Args a(5, 8, 16, 8);
    fast.dim_divisor[0] = 5;
    EXPECT_TRUE(satisfied(a));
    fast.dim_divisor[0] = 2;
    EXPECT_FALSE(satisfied(a));
  }
  fast.dim_divisor[0] = 1;
  fast.alignment.assign(6, 1);
  Args huge(5, 0, int64_t{1} << 30, 8);
  huge.shapes[0][0] = 0, huge.shapes[2][0] = 0, huge.shapes[3][0] = 1;
  EXPECT_FALSE(satisfied(huge)) << "a dim of 2^30";
  fast.index32 = false;
  EXPECT_TRUE(satisfied(huge));
}

TEST(ArgPlan, FixedDimsAreChecked) {
  ProgramBuilder b("fixed");
  const Val n = b.Dim("N");
  b.Scalar("n", DType::kInt32, n);
  b.Tensor("X", DType::kFloat32, {n}, Access::kOut);
  b.OpenLaunch("main", {n}, Val(32));
  b.Close();
  const Program program = Specialize(b.Build().value(), {}, {{"N", 4}}).value();
  const ArgPlan plan = ArgPlan::Make(program, {4}).value();
  float memory[8];
  LaunchValues values(plan);
  const auto bind = [&](int64_t given, int64_t extent) {
    const std::vector<int64_t> shape = {extent};
    return plan.Bind({TensorArg{memory, DType::kFloat32, shape, {}}}, {ScalarArg::Int(given, DType::kInt32)}, nullptr, 0, values);
  };
  EXPECT_TRUE(bind(4, 4).ok()) << bind(4, 4);
  EXPECT_EQ(values.dims[0], 4);
  EXPECT_EQ(bind(5, 4).code(), absl::StatusCode::kInvalidArgument) << bind(5, 4);
  EXPECT_EQ(bind(4, 5).code(), absl::StatusCode::kInvalidArgument) << bind(4, 5);
}

TEST(ArgPlan, FixedExtentsCanRuleTheFastClassOut) {
  const auto may = [](std::map<std::string, int64_t> dims) {
    ProgramBuilder b("matrix");
    const Val m = b.Dim("M"), n = b.Dim("N");
    b.Tensor("X", DType::kFloat16, {m, n}, Access::kOut);
    b.OpenLaunch("main", {m}, Val(32));
    b.Close();
    const Program program = Specialize(b.Build().value(), {}, dims).value();
    ArgClass fast;
    fast.alignment = {16};
    return ArgPlan::Make(program).value().MayEverSatisfy(fast);
  };
  EXPECT_TRUE(may({}));
  EXPECT_TRUE(may({{"M", 3}}));
  EXPECT_TRUE(may({{"N", 4096}}));
  EXPECT_TRUE(may({{"M", 3}, {"N", 8}}));
  EXPECT_FALSE(may({{"N", 4097}}));
  EXPECT_FALSE(may({{"N", 4}}));
}

// The plan and BindArgs accept the same arguments and bind the same dims, whatever is done to them.
TEST_F(ArgPlanTest, AgreesWithBindArgs) {
  std::mt19937_64 random(7);
  const auto pick = [&](uint64_t n) { return random() % n; };
  static constexpr int64_t kOdd[] = {0, 1, -1, 2, 7, 8, 16, int64_t{1} << 31, int64_t{1} << 58, INT64_MAX, INT64_MIN};
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    const int64_t n = static_cast<int64_t>(pick(9));
    Args args(static_cast<int64_t>(pick(6)), n, static_cast<int64_t>(pick(4)) * 8, n + static_cast<int64_t>(pick(3)));
    for (uint64_t spoils = pick(3); spoils > 0; --spoils) {
      const size_t t = pick(4);
      switch (pick(4)) {
        case 0: args.shapes[t][pick(args.shapes[t].size())] = kOdd[pick(std::size(kOdd))]; break;
        case 1: args.strides[t].assign(args.shapes[t].size(), kOdd[pick(std::size(kOdd))]); break;
        case 2: args.offsets[t] += pick(8); break;
        case 3: args.scalars[1] = ScalarArg::Int(kOdd[pick(std::size(kOdd))], pick(2) ? DType::kInt64 : DType::kInt32); break;
      }
    }
    BoundArgs bound;
    const std::vector<TensorArg> tensors = args.tensors();
    const absl::Status reference = BindArgs(program_, tensors, args.scalars, &bound);
    // The workspace is big enough for whatever is accepted, and its other errors are left out by asking for its size.
    LaunchValues values(plan_);
    const bool has_bytes = plan_.WorkspaceBytes(tensors, args.scalars).ok();
    const absl::Status status = plan_.Bind(tensors, args.scalars, args.workspace, UINT64_MAX, values);
    if (!reference.ok()) {
      EXPECT_EQ(status, reference);
      continue;
    }
    if (!status.ok()) {
      EXPECT_TRUE(absl::StrContains(status.message(), "overlaps") || absl::StrContains(status.message(), "buffer 'partial'"))
          << status;
      continue;
    }
    ++accepted;
    EXPECT_TRUE(has_bytes);
    EXPECT_EQ(std::vector<int64_t>(values.dims.begin(), values.dims.end()), bound.dims);
  }
  EXPECT_GT(accepted, 2000);
}

}  // namespace
}  // namespace tilert
