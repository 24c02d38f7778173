#include "bench/cublas.h"

#include <dlfcn.h>

#include "ir/status_util.h"

namespace tilert::bench {
namespace {

// Values of cublas_api.h and library_types.h.
constexpr int kNoTranspose = 0, kTranspose = 1;
constexpr int kTypeF16 = 2, kTypeBF16 = 14;
constexpr int kCompute32F = 68;
constexpr int kAlgoDefault = -1;

using GemmEx = int (*)(void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int, const void*,
                       void*, int, int, int, int);

}  // namespace

absl::StatusOr<std::unique_ptr<Cublas>> Cublas::Load() {
  std::unique_ptr<Cublas> blas(new Cublas);
  for (const char* name : {"libcublas.so.13", "libcublas.so.12", "/usr/local/cuda/lib64/libcublas.so"}) {
    blas->library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (blas->library_ != nullptr) break;
  }
  if (blas->library_ == nullptr) return absl::NotFoundError("libcublas.so.13 or .12 was not found");
  const auto create = reinterpret_cast<int (*)(void**)>(dlsym(blas->library_, "cublasCreate_v2"));
  blas->gemm_ = dlsym(blas->library_, "cublasGemmEx");
  if (create == nullptr || blas->gemm_ == nullptr) return absl::NotFoundError("libcublas lacks cublasCreate_v2 or cublasGemmEx");
  if (const int rc = create(&blas->handle_); rc != 0) return absl::UnavailableError(Cat("cublasCreate: ", rc));
  return blas;
}

Cublas::~Cublas() {
  if (handle_ == nullptr) return;
  if (const auto destroy = reinterpret_cast<int (*)(void*)>(dlsym(library_, "cublasDestroy_v2"))) destroy(handle_);
}

std::string Cublas::version() const {
  const auto get = reinterpret_cast<int (*)(void*, int*)>(dlsym(library_, "cublasGetVersion_v2"));
  int version = 0;
  if (get != nullptr) get(handle_, &version);
  return Cat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

absl::Status Cublas::Gemm(DType type, bool transpose_b, int64_t m, int64_t n, int64_t k, cuda::DevicePtr a, cuda::DevicePtr b,
                          cuda::DevicePtr c) {
  const float one = 1, zero = 0;
  const int cuda_type = type == DType::kBFloat16 ? kTypeBF16 : kTypeF16;
  // Row-major C is column-major Cᵀ = Bᵀ · Aᵀ.
  const int rc = reinterpret_cast<GemmEx>(gemm_)(
      handle_, transpose_b ? kTranspose : kNoTranspose, kNoTranspose, static_cast<int>(n), static_cast<int>(m),
      static_cast<int>(k), &one, reinterpret_cast<const void*>(b), cuda_type, static_cast<int>(transpose_b ? k : n),
      reinterpret_cast<const void*>(a), cuda_type, static_cast<int>(k), &zero, reinterpret_cast<void*>(c), cuda_type,
      static_cast<int>(n), kCompute32F, kAlgoDefault);
  return rc == 0 ? absl::OkStatus() : absl::InternalError(Cat("cublasGemmEx: ", rc));
}

}  // namespace tilert::bench
