// Gemms of bytes and of tf32 on the tensor cores, in the simulator, against the executor: by mma.sync in the Ampere family, by
// wgmma or mma.sync in the Hopper family.
#include "comparison.h"
#include "gtest/gtest.h"
#include "program_sim.h"
#include "sample_programs.h"

namespace tilert {
namespace {

struct Case {
  DType a, b;
  const char* arch;
  bool transpose_a, transpose_b;
};

// What Mma and Wgmma there are.
int TensorStatements(const kir::Block& block) {
  int found = 0;
  for (const kir::Stmt& stmt : block) {
    found += std::holds_alternative<kir::Mma>(stmt.op) || std::holds_alternative<kir::Wgmma>(stmt.op);
    for (const kir::Block* child : kir::ChildBlocks(stmt)) found += TensorStatements(*child);
  }
  return found;
}

void Check(const Case& c, const std::vector<int64_t>& shape, bool fast) {
  const int64_t m = shape[0], n = shape[1], k = shape[2];
  SCOPED_TRACE(testing::Message() << DTypeName(c.a) << " " << DTypeName(c.b) << " " << c.arch
                                  << (c.transpose_a ? " A transposed" : "") << (c.transpose_b ? " B transposed " : " ") << m
                                  << "x" << n << "x" << k);
  GemmSample sample{64, 64, 64, 3, 128};
  sample.transpose_a = c.transpose_a, sample.transpose_b = c.transpose_b;
  sample.dtype = c.a, sample.dtype_b = c.b, sample.result = IsFloat(c.a) ? DType::kFloat32 : DType::kInt32;
  const Program program = GemmProgram(sample);
  const auto shape_of = [](bool turned, int64_t rows, int64_t columns) {
    return turned ? std::vector<int64_t>{columns, rows} : std::vector<int64_t>{rows, columns};
  };
  // Integers of two bits more than a product may lose: every sum is exact.
  Array a = Array(c.a, shape_of(c.transpose_a, m, k)).Random(1, -4, 4),
        b = Array(c.b, shape_of(c.transpose_b, k, n)).Random(2, -4, 4);
  for (Array* array : {&a, &b}) {
    for (int64_t i = 0; i < array->size(); ++i) array->Set(i, std::round(std::fabs((*array)[i]) < 5 ? (*array)[i] : 3));
  }
  Array expected(sample.result, {m, n}), simulated(sample.result, {m, n});
  ExpectRuns(program, {&a, &b, &expected});
  const ArgClass arg_class = fast ? FastArgClass(program) : GeneralArgClass(program);
  const auto kernels = PlanAll(program, arg_class, c.arch);
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  EXPECT_GT(TensorStatements((*kernels)[0].body), 0);
  const std::vector<TensorArg> tensors = {a.arg(), b.arg(), simulated.arg()};
  const absl::Status status = SimulateAll(program, *kernels, tensors, {}, {});
  ASSERT_TRUE(status.ok()) << status;
  for (int64_t i = 0; i < expected.size(); ++i) ASSERT_EQ(simulated[i], expected[i]) << i;
}

TEST(MmaTypes, AgreeWithTheExecutor) {
  const std::pair<DType, DType> types[] = {{DType::kInt8, DType::kInt8},
                                           {DType::kUInt8, DType::kInt8},
                                           {DType::kFloat8E4M3, DType::kFloat8E4M3},
                                           {DType::kFloat8E5M2, DType::kFloat8E4M3},
                                           {DType::kFloat32, DType::kFloat32}};
  for (const auto& [a, b] : types) {
    for (const char* arch : {"sm_89", "sm_90a"}) {
      for (const auto& [transpose_a, transpose_b] : {std::pair(false, true), {true, false}}) {
        const Case c = {a, b, arch, transpose_a, transpose_b};
        Check(c, {80, 48, 144}, true);
        Check(c, {65, 63, 131}, false);
      }
    }
  }
}

// Without leave for tf32, float32 is multiplied exactly.
TEST(MmaTypes, Float32NeedsLeave) {
  GemmSample sample{64, 64, 32, 2, 128};
  sample.dtype = sample.result = DType::kFloat32;
  Program program = GemmProgram(sample);
  program.fast_math = false;
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const auto kernels = PlanAll(program, FastArgClass(program), arch);
    ASSERT_TRUE(kernels.ok()) << kernels.status();
    EXPECT_EQ(TensorStatements((*kernels)[0].body), 0);
  }
}

}  // namespace
}  // namespace tilert
