#include "ir/bind_args.h"

#include "tests/ir/exec_util.h"

namespace tilert {
namespace {

// X: (M, 2·N) float32; Y: (N,) with stride s; alpha: int32 that gives K; M must be even.
Program Sample() {
  ProgramBuilder b("sample");
  Val M = b.Dim("M"), N = b.Dim("N"), K = b.Dim("K"), s = b.Dim("s");
  b.Tensor("X", DType::kFloat32, {M, N * 2});
  b.Scalar("count", DType::kInt32, K);
  b.Tensor("Y", DType::kInt8, {N}, Access::kOut, {s});
  b.Assume(M % 2 == 0);
  b.Assume(K < 100);
  b.Launch<1>("main", {M}, 32);
  b.Close();
  return Built(b);
}

struct Call {
  std::vector<float> x = std::vector<float>(64);
  std::vector<int8_t> y = std::vector<int8_t>(64);
  std::vector<int64_t> x_shape = {4, 6}, y_shape = {3}, x_strides, y_strides;
  ScalarArg count = ScalarArg::Int(7, DType::kInt64);
  DType x_type = DType::kFloat32;
  void* x_data = x.data();

  absl::Status Bind(const Program& program, BoundArgs* bound) const {
    const TensorArg tensors[] = {{x_data, x_type, x_shape, x_strides},
                                 {const_cast<int8_t*>(y.data()), DType::kInt8, y_shape, y_strides}};
    const ScalarArg scalars[] = {count};
    return BindArgs(program, tensors, scalars, bound);
  }
};

TEST(BindArgs, BindsDimsThatAreUsedBeforeTheirBinding) {
  const Program program = Sample();
  BoundArgs bound;
  Call call;
  call.y_strides = {5};
  const absl::Status status = call.Bind(program, &bound);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(bound.dims, (std::vector<int64_t>{4, 3, 7, 5}));  // N comes from Y, a later parameter than X
  EXPECT_EQ(bound.scalars[0].i, 7);
  EXPECT_EQ(bound.tensors[0].strides, (absl::InlinedVector<int64_t, 4>{6, 1}));
  EXPECT_EQ(bound.tensors[1].strides[0], 5);
  ASSERT_TRUE(Call().Bind(program, &bound).ok()) << "a BoundArgs can be used again";
  EXPECT_EQ(bound.dims[3], 1);
}

TEST(BindArgs, SaysWhatIsWrong) {
  const Program program = Sample();
  const auto error = [&](const std::function<void(Call&)>& spoil) {
    Call call;
    spoil(call);
    BoundArgs bound;
    const absl::Status status = call.Bind(program, &bound);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(error([](Call& c) {
              c.x_shape = {4, 7};
            }),
            "tensor 'X': dimension 1 must be 6, got 7 in (4, 7); M = 4, N = 3, K = 7, s = 1");
  EXPECT_EQ(error([](Call& c) { c.x_shape = {24}; }), "tensor 'X' has 2 dimensions, got 1: (24)");
  EXPECT_EQ(error([](Call& c) { c.x_type = DType::kFloat16; }), "tensor 'X' is float32, got float16");
  EXPECT_EQ(error([](Call& c) {
              c.x_strides = {8, 1};
            }),
            "tensor 'X': the stride of dimension 0 must be 6 elements, got 8 (declare it as T.StridedTensor to accept others); M "
            "= 4, N = 3, K = 7, s = 1");
  EXPECT_EQ(error([](Call& c) { c.x_strides = {1}; }), "tensor 'X': 1 strides for 2 dimensions");
  EXPECT_EQ(error([](Call& c) { c.x_data = nullptr; }), "tensor 'X' has no memory (null pointer)");
  EXPECT_EQ(error([](Call& c) { c.x_data = reinterpret_cast<char*>(c.x.data()) + 2; }),
            "tensor 'X' is not aligned to its elements of 4 bytes");
  EXPECT_EQ(error([](Call& c) { c.x_shape = {5, 6}; }), "assumption 0 of 'sample' does not hold; M = 5, N = 3, K = 7, s = 1");
  EXPECT_EQ(error([](Call& c) { c.count = ScalarArg::Int(100, DType::kInt32); }),
            "assumption 1 of 'sample' does not hold; M = 4, N = 3, K = 100, s = 1");
  EXPECT_EQ(error([](Call& c) { c.count = ScalarArg::Int(-1, DType::kInt32); }), "dim 'K' can't be negative: count gives -1");
  EXPECT_EQ(error([](Call& c) { c.count = ScalarArg::Int(int64_t{1} << 40, DType::kInt64); }),
            "scalar 'count': 1099511627776 does not fit int32");
  EXPECT_EQ(error([](Call& c) { c.count = ScalarArg::Float(7, DType::kFloat32); }), "scalar 'count' is int32, got float32");
  EXPECT_EQ(error([](Call& c) { c.x_shape = {-4, 6}; }), "tensor 'X' has a negative extent: (-4, 6)");
  EXPECT_EQ(error([](Call& c) {
              c.x_shape = {int64_t{1} << 40, int64_t{1} << 40};
            }),
            "tensor 'X' is too large: (1099511627776, 1099511627776)");
  EXPECT_NE(error([](Call& c) { c.y_strides = {int64_t{1} << 62}; }).find("spans more than the address space"),
            std::string::npos);
}

TEST(BindArgs, CountsArguments) {
  const Program program = Sample();
  BoundArgs bound;
  EXPECT_EQ(BindArgs(program, {}, {}, &bound).message(), "'sample' takes 1 scalars, got 0");
  const ScalarArg scalar = ScalarArg::Int(1, DType::kInt32);
  EXPECT_EQ(BindArgs(program, {}, {&scalar, 1}, &bound).message(), "'sample' takes 2 tensors, got 0");
}

TEST(BindArgs, EmptyTensorsNeedNoMemoryAndExtentsOfOneNoStride) {
  const Program program = Sample();
  BoundArgs bound;
  Call call;
  call.x_data = nullptr;
  call.x_shape = {0, 6};
  EXPECT_TRUE(call.Bind(program, &bound).ok());
  call = Call();
  call.x_shape = {2, 2};
  call.y_shape = {1};
  call.y_strides = {77};
  EXPECT_TRUE(call.Bind(program, &bound).ok());
}

TEST(BindArgs, ADimThatNothingBinds) {
  ProgramBuilder b("unbound");
  Val N = b.Dim("N");
  b.Tensor("X", DType::kFloat32, {N + 1});
  b.Launch<1>("main", {1}, 32);
  b.Close();
  const Program program = Built(b);
  Array x(DType::kFloat32, {4});
  EXPECT_EQ(RunOn(program, {&x}).message(), "dim 'N' is not bound: no shape names it alone and no scalar gives it");
}

TEST(BindArgs, UnsignedScalarsKeepTheirRange) {
  ProgramBuilder b("scalars");
  b.Scalar("u", DType::kUInt64);
  b.Scalar("i", DType::kInt64);
  b.Scalar("h", DType::kFloat16);
  b.Launch<1>("main", {1}, 32);
  b.Close();
  const Program program = Built(b);
  BoundArgs bound;
  const ScalarArg good[] = {ScalarArg::Int(-1, DType::kUInt64), ScalarArg::Int(-1, DType::kInt64),
                            ScalarArg::Float(0.1, DType::kFloat64)};
  ASSERT_TRUE(BindArgs(program, {}, good, &bound).ok());
  EXPECT_EQ(bound.scalars[2].f, RoundToType(DType::kFloat16, 0.1));
  const ScalarArg bad_u[] = {ScalarArg::Int(-1, DType::kInt64), good[1], good[2]},
                  bad_i[] = {good[0], ScalarArg::Int(-1, DType::kUInt64), good[2]};
  EXPECT_FALSE(BindArgs(program, {}, bad_u, &bound).ok());
  EXPECT_FALSE(BindArgs(program, {}, bad_i, &bound).ok());
}

}  // namespace
}  // namespace tilert
