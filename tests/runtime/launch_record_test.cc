#include "runtime/launch_record.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "runtime/tensor_map.h"
#include "tests/runtime/runtime_fixture.h"

namespace tilert {
namespace {

LaunchRecord SampleRecord(const Program& program) {
  KernelRecord kernel;
  kernel.symbol = "maps_kernel";
  kernel.args = {{KernelArg::Kind::kTensor, 0, 8},
                 {KernelArg::Kind::kTensorMap, 1, 128},
                 {KernelArg::Kind::kTensorMap, 0, 128},
                 {KernelArg::Kind::kDim, 2, 4},
                 {KernelArg::Kind::kScalar, 0, 8},
                 {KernelArg::Kind::kGiven, 4352, 8}};
  for (const Expr extent : program.launches[0].grid) kernel.grid.push_back(DimExpr::Compile(program, extent).value());
  kernel.threads = 384;
  kernel.shared_bytes = 200000;
  kernel.persistent = true;
  kernel.blocks_per_sm = 2;
  kernel.cluster = {2, 1, 2};
  kernel.maps = {{0, DType::kFloat16, {64, 64}, 128}, {2, DType::kFloat32, {64, 32}, 0}};
  return {{kernel, kernel}};
}

TEST(LaunchRecordTest, RoundTrip) {
  const Program program = MapProgram();
  const std::string bytes = EncodeLaunchRecord(SampleRecord(program));
  const absl::StatusOr<LaunchRecord> back = DecodeLaunchRecord(program, bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(EncodeLaunchRecord(*back), bytes);
  ASSERT_EQ(back->kernels.size(), 2u);
  const KernelRecord& kernel = back->kernels[1];
  EXPECT_TRUE(kernel.persistent);
  EXPECT_EQ(kernel.blocks_per_sm, 2u);
  EXPECT_EQ(kernel.cluster, (std::vector<uint32_t>{2, 1, 2}));
  EXPECT_EQ(kernel.ClusterSize(), 4u);
  EXPECT_EQ(kernel.maps, SampleRecord(program).kernels[1].maps);
  EXPECT_EQ(kernel.args[1].kind, KernelArg::Kind::kTensorMap);
  EXPECT_EQ(kernel.GivenBytes(), 4352u);
  EXPECT_EQ(kernel.args[1].index, 1u);
  EXPECT_EQ(kernel.args[1].bytes, 128u);
}

TEST(LaunchRecordTest, OtherVersionsAndTruncationsAreRefused) {
  const Program program = MapProgram();
  const std::string bytes = EncodeLaunchRecord(SampleRecord(program));
  std::string older = bytes;
  older[0] = 1;
  EXPECT_EQ(DecodeLaunchRecord(program, older).status().code(), absl::StatusCode::kDataLoss);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(DecodeLaunchRecord(program, std::string_view(bytes).substr(0, size)).status().code(), absl::StatusCode::kDataLoss)
        << size;
  }
}

// What a flipped byte leaves is refused or is a record that could be: never one that a launch would trip over.
TEST(LaunchRecordTest, DamageNeverGetsThroughUnchecked) {
  const Program program = MapProgram();
  const std::string bytes = EncodeLaunchRecord(SampleRecord(program));
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {1, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      const absl::StatusOr<LaunchRecord> record = DecodeLaunchRecord(program, damaged);
      if (!record.ok()) continue;
      size_t maps = 0;
      for (const KernelRecord& kernel : record->kernels) {
        maps += kernel.maps.size();
        EXPECT_GE(kernel.blocks_per_sm, 1u);
        EXPECT_TRUE(kernel.cluster.empty() ||
                    (kernel.cluster.size() == 3 && kernel.ClusterSize() >= 1 && kernel.ClusterSize() <= 8));
        for (const LoweredTensorMap& map : kernel.maps) EXPECT_TRUE(CheckTensorMap(program, map).ok());
        for (const KernelArg& arg : kernel.args) {
          EXPECT_TRUE(arg.kind != KernelArg::Kind::kTensorMap || arg.index < kernel.maps.size());
          EXPECT_TRUE(arg.kind != KernelArg::Kind::kGiven || (kernel.GivenBytes() == arg.index && arg.index % 256 == 0));
        }
      }
      EXPECT_LE(maps, kMaxTensorMaps);
    }
  }
}

TEST(LaunchRecordTest, TooManyArgumentsAreRefusedWithTheLimit) {
  const Program program = MapProgram();
  Lowered lowered;
  LoweredKernel kernel;
  kernel.symbol = "k";
  kernel.grid = program.launches[0].grid;
  kernel.threads = 128;
  for (uint32_t m = 0; m < 33; ++m) {
    kernel.maps.push_back({0, DType::kFloat16, {64, 64}, 128});
    kernel.args.push_back({KernelArg::Kind::kTensorMap, m, 128});
  }
  lowered.kernels = {kernel};
  const absl::Status status = MakeLaunchRecord(program, lowered).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "33 of them tensor maps; at most")) << status;
  lowered.kernels[0].args.resize(16);
  lowered.kernels[0].maps.resize(16);
  lowered.kernels.push_back(lowered.kernels[0]);
  EXPECT_TRUE(MakeLaunchRecord(program, lowered).ok()) << MakeLaunchRecord(program, lowered).status();
  lowered.kernels.push_back(lowered.kernels[0]);
  EXPECT_EQ(MakeLaunchRecord(program, lowered).status().code(), absl::StatusCode::kInvalidArgument) << "48 maps";
}

}  // namespace
}  // namespace tilert
