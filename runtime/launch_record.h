// What a launch needs to know about compiled code: kept beside a cubin in the cache and in bundles, so that a warm load
// lowers nothing. Version: kLaunchAbi, part of every cache key.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/program.h"
#include "lowering/lowered.h"
#include "runtime/dim_expr.h"

namespace tilert {

inline constexpr uint64_t kLaunchAbi = 3;

// Arguments that a kernel may have, and tensor maps that all kernels of a program may have together.
inline constexpr size_t kMaxKernelArgs = 256;
inline constexpr size_t kMaxTensorMaps = 32;

struct KernelRecord {
  std::string symbol;           // name in the cubin
  std::vector<KernelArg> args;  // in order
  std::vector<DimExpr> grid;    // the launch is one-dimensional: Π grid blocks
  uint32_t threads = 0;
  uint32_t shared_bytes = 0;  // dynamic
  bool cooperative = false;
  bool persistent = false;  // no more blocks than fit on the GPU at once: SMs · blocks_per_sm
  uint32_t blocks_per_sm = 1;
  std::vector<uint32_t> cluster;  // blocks of a cluster along each grid dim, then those that share one block; empty: no clusters
  std::vector<LoweredTensorMap> maps;
  // CTAs of a cluster; 1 without.
  uint32_t ClusterSize() const;
  // Workspace of each block, for sums that blocks leave for each other; 0: none.
  uint32_t GivenBytes() const;
};

struct LaunchRecord {
  std::vector<KernelRecord> kernels;  // in launch order
};

// InvalidArgument: more arguments than a kernel can have. REQUIRES: `lowered` was made from `program`.
absl::StatusOr<LaunchRecord> MakeLaunchRecord(const Program& program, const Lowered& lowered);

std::string EncodeLaunchRecord(const LaunchRecord& record);

// DataLoss unless `bytes` is a whole record that refers only to what `program` has.
absl::StatusOr<LaunchRecord> DecodeLaunchRecord(const Program& program, std::string_view bytes);

}  // namespace tilert
