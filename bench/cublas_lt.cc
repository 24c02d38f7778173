#include "bench/cublas_lt.h"

#include <dlfcn.h>

#include <algorithm>

#include "ir/status_util.h"

namespace tilert::bench {
namespace {

// Values of cublasLt.h, cublas_api.h and library_types.h.
constexpr int kTypeF32 = 0, kTypeF16 = 2, kTypeBF16 = 14;
constexpr int kCompute32F = 68;
constexpr int kDescTransposeA = 3, kDescTransposeB = 4, kPreferenceWorkspace = 1;
constexpr uint64_t kWorkspaceBytes = uint64_t{64} << 20;

absl::Status StatusOf(const char* call, int rc) { return rc == 0 ? absl::OkStatus() : absl::InternalError(Cat(call, ": ", rc)); }

}  // namespace

struct LtGemm::Api {
  int (*Create)(void**) = nullptr;
  int (*Destroy)(void*) = nullptr;
  int (*DescCreate)(void**, int, int) = nullptr;
  int (*DescDestroy)(void*) = nullptr;
  int (*DescSet)(void*, int, const void*, size_t) = nullptr;
  int (*LayoutCreate)(void**, int, uint64_t, uint64_t, int64_t) = nullptr;
  int (*LayoutDestroy)(void*) = nullptr;
  int (*PreferenceCreate)(void**) = nullptr;
  int (*PreferenceDestroy)(void*) = nullptr;
  int (*PreferenceSet)(void*, int, const void*, size_t) = nullptr;
  int (*Heuristic)(void*, void*, void*, void*, void*, void*, void*, int, Proposal*, int*) = nullptr;
  int (*Matmul)(void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*, void*, void*,
                const void*, void*, size_t, void*) = nullptr;

  absl::Status Load() {
    void* library = nullptr;
    for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so"}) {
      if ((library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) != nullptr) break;
    }
    if (library == nullptr) return absl::NotFoundError("libcublasLt.so.13 or .12 was not found");
    std::string missing;
    const auto find = [&](auto& slot, const char* name) {
      slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(dlsym(library, name));
      if (slot == nullptr) missing += Cat(" ", name);
    };
    find(Create, "cublasLtCreate"), find(Destroy, "cublasLtDestroy");
    find(DescCreate, "cublasLtMatmulDescCreate"), find(DescDestroy, "cublasLtMatmulDescDestroy"),
        find(DescSet, "cublasLtMatmulDescSetAttribute");
    find(LayoutCreate, "cublasLtMatrixLayoutCreate"), find(LayoutDestroy, "cublasLtMatrixLayoutDestroy");
    find(PreferenceCreate, "cublasLtMatmulPreferenceCreate"), find(PreferenceDestroy, "cublasLtMatmulPreferenceDestroy");
    find(PreferenceSet, "cublasLtMatmulPreferenceSetAttribute");
    find(Heuristic, "cublasLtMatmulAlgoGetHeuristic"), find(Matmul, "cublasLtMatmul");
    return missing.empty() ? absl::OkStatus() : absl::NotFoundError("libcublasLt lacks" + missing);
  }
};

absl::StatusOr<std::unique_ptr<LtGemm>> LtGemm::Make(const cuda::Driver& driver, DType type, bool transpose_b, int64_t m,
                                                     int64_t n, int64_t k) {
  std::unique_ptr<LtGemm> gemm(new LtGemm);
  gemm->api_ = std::make_unique<Api>();
  TILERT_RETURN_IF_ERROR(gemm->api_->Load());
  TILERT_ASSIGN_OR_RETURN(gemm->workspace_, tool::DeviceMemory::Allocate(driver, kWorkspaceBytes));
  TILERT_RETURN_IF_ERROR(StatusOf("cublasLtCreate", gemm->api_->Create(&gemm->handle_)));
  TILERT_RETURN_IF_ERROR(gemm->Describe(type, transpose_b, m, n, k));
  TILERT_RETURN_IF_ERROR(gemm->Ask());
  return gemm;
}

// Row-major C is column-major Cᵀ[n,m] = op(Bᵀ) · Aᵀ: the library's A is our B.
absl::Status LtGemm::Describe(DType type, bool transpose_b, int64_t m, int64_t n, int64_t k) {
  const int cuda_type = type == DType::kBFloat16 ? kTypeBF16 : kTypeF16, transpose = transpose_b ? 1 : 0, plain = 0;
  const auto rows = [](int64_t x) { return static_cast<uint64_t>(x); };
  TILERT_RETURN_IF_ERROR(StatusOf("cublasLtMatmulDescCreate", api_->DescCreate(&operation_, kCompute32F, kTypeF32)));
  TILERT_RETURN_IF_ERROR(
      StatusOf("cublasLt transpose A", api_->DescSet(operation_, kDescTransposeA, &transpose, sizeof transpose)));
  TILERT_RETURN_IF_ERROR(StatusOf("cublasLt transpose B", api_->DescSet(operation_, kDescTransposeB, &plain, sizeof plain)));
  TILERT_RETURN_IF_ERROR(StatusOf("cublasLt layout", transpose_b ? api_->LayoutCreate(&b_, cuda_type, rows(k), rows(n), k)
                                                                 : api_->LayoutCreate(&b_, cuda_type, rows(n), rows(k), n)));
  TILERT_RETURN_IF_ERROR(StatusOf("cublasLt layout", api_->LayoutCreate(&a_, cuda_type, rows(k), rows(m), k)));
  return StatusOf("cublasLt layout", api_->LayoutCreate(&c_, cuda_type, rows(n), rows(m), n));
}

absl::Status LtGemm::Ask() {
  int count = 0;
  TILERT_RETURN_IF_ERROR(StatusOf("cublasLtMatmulPreferenceCreate", api_->PreferenceCreate(&preference_)));
  TILERT_RETURN_IF_ERROR(StatusOf(
      "cublasLt workspace", api_->PreferenceSet(preference_, kPreferenceWorkspace, &kWorkspaceBytes, sizeof kWorkspaceBytes)));
  TILERT_RETURN_IF_ERROR(
      StatusOf("cublasLtMatmulAlgoGetHeuristic",
               api_->Heuristic(handle_, operation_, b_, a_, c_, c_, preference_, kMostAlgorithms, proposals_, &count)));
  Proposal* const end = std::remove_if(proposals_, proposals_ + count, [](const Proposal& p) { return p.status != 0; });
  count_ = static_cast<size_t>(end - proposals_);
  return count_ > 0 ? absl::OkStatus() : absl::UnimplementedError("cublasLt proposes nothing");
}

absl::Status LtGemm::Run(size_t which, cuda::DevicePtr a, cuda::DevicePtr b, cuda::DevicePtr c) {
  const float one = 1, zero = 0;
  const auto at = [](cuda::DevicePtr p) { return reinterpret_cast<void*>(p); };
  return StatusOf("cublasLtMatmul", api_->Matmul(handle_, operation_, &one, at(b), b_, at(a), a_, &zero, at(c), c_, at(c), c_,
                                                 proposals_[which].algorithm, workspace_.data(), kWorkspaceBytes, nullptr));
}

LtGemm::~LtGemm() {
  for (void* layout : {a_, b_, c_}) {
    if (layout != nullptr) api_->LayoutDestroy(layout);
  }
  if (preference_ != nullptr) api_->PreferenceDestroy(preference_);
  if (operation_ != nullptr) api_->DescDestroy(operation_);
  if (handle_ != nullptr) api_->Destroy(handle_);
}

}  // namespace tilert::bench
