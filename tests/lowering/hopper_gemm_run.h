// Runs of the hand-built gemms of the Hopper family in the simulator, against a reference in double precision.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "hopper_kernels.h"
#include "lowering/simulator.h"

namespace tilert {

using Bytes = std::vector<uint8_t>;
// Floats in [−1, 1], integers in [−7, 7].
Bytes RandomElements(DType type, int64_t n, uint64_t seed);
double At(const Bytes& bytes, DType type, int64_t i);

struct GemmRun {
  GemmRun(const HopperGemm& g, int64_t rows, int64_t columns, int64_t depth, uint64_t seed);
  absl::StatusOr<SimReport> Simulated(const kir::Kernel& kernel, const SimOptions& options);
  // What was simulated last is the product, as far as rounding allows.
  void ExpectProduct() const;

  HopperGemm gemm;
  int64_t m, n, k;
  Bytes a, b, c;
};

// 64×128×64, 3 stages, one consumer warpgroup.
HopperGemm Small();
// Two that split 128×128×64.
HopperGemm Cooperative();
// Two that take turns with 64×128×64, 4 stages.
HopperGemm PingPong();

}  // namespace tilert
