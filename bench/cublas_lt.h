// cuBLASLt, opened at run time: what its own heuristics offer for a GEMM. Facts about the API: cuBLASLt documentation.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/dtype.h"
#include "tools/device.h"

namespace tilert::bench {

// Row-major C[m,n] = A[m,k] · B as in bench/cublas.h. Sums are float32, of integers int32. float8 operands have a scale each (1,
// in device memory) and are accumulated fast, as the tensor cores do it; they and int8 take B as [n,k] only, m, n and k multiples
// of 16.
struct LtProblem {
  DType operand, result;  // int8 into int32 or, saturating, int8; float8 into bfloat16; 16-bit floats into their own type
  bool transpose_b;
  int64_t m, n, k;
};

// The ways to compute it that cublasLtMatmulAlgoGetHeuristic proposes, best guess first.
class LtGemm {
 public:
  static constexpr int kMostAlgorithms = 8;

  // NotFound when the library is not on this machine; Unimplemented when it proposes nothing.
  static absl::StatusOr<std::unique_ptr<LtGemm>> Make(const cuda::Driver& driver, const LtProblem& problem);
  ~LtGemm();
  LtGemm(const LtGemm&) = delete;

  size_t algorithms() const { return count_; }
  // Queues algorithm number `which` on the default stream.
  absl::Status Run(size_t which, cuda::DevicePtr a, cuda::DevicePtr b, cuda::DevicePtr c);

 private:
  // cublasLtMatmulHeuristicResult_t.
  struct Proposal {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int status;
    float waves;
    int reserved[4];
  };
  struct Api;
  LtGemm() = default;
  absl::Status Describe(const LtProblem& problem);
  absl::Status DescribeScales(const cuda::Driver& driver);
  absl::Status Ask();

  std::unique_ptr<Api> api_;
  void *handle_ = nullptr, *operation_ = nullptr, *preference_ = nullptr;
  void *a_ = nullptr, *b_ = nullptr, *c_ = nullptr;  // layouts of A, B, C
  Proposal proposals_[kMostAlgorithms] = {};
  size_t count_ = 0;
  bool scales_are_integers_ = false;  // alpha and beta
  tool::DeviceMemory workspace_, one_;
};

}  // namespace tilert::bench
