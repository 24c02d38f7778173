// cuBLAS, opened at run time: the peer of the GEMM benches. Facts about the API: cuBLAS documentation, cublasGemmEx.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ir/dtype.h"
#include "runtime/driver_api.h"

namespace tilert::bench {

class Cublas {
 public:
  // NotFound when the library is not on this machine.
  static absl::StatusOr<std::unique_ptr<Cublas>> Load();
  ~Cublas();
  Cublas(const Cublas&) = delete;
  std::string version() const;
  // Row-major C[m,n] = A[m,k] · B, fp32 accumulation; B is [n,k] when `transpose_b`, else [k,n]. On the default stream.
  absl::Status Gemm(DType type, bool transpose_b, int64_t m, int64_t n, int64_t k, cuda::DevicePtr a, cuda::DevicePtr b,
                    cuda::DevicePtr c);

 private:
  Cublas() = default;
  void* library_ = nullptr;
  void* handle_ = nullptr;
  void* gemm_ = nullptr;
};

}  // namespace tilert::bench
