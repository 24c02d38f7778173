#include "bench/cublas_lt.h"

#include <dlfcn.h>

#include <algorithm>

#include "ir/status_util.h"

namespace tilert::bench {
namespace {

// Values of cublasLt.h, cublas_api.h and library_types.h.
constexpr int kTypeF32 = 0, kTypeI32 = 10;
constexpr int kCompute32F = 68, kCompute32I = 72;
constexpr int kDescTransposeA = 3, kDescTransposeB = 4, kDescScaleOfA = 17, kDescScaleOfB = 18, kDescFastAccumulation = 25;
constexpr int kPreferenceWorkspace = 1;
constexpr uint64_t kWorkspaceBytes = uint64_t{64} << 20;

int CudaType(DType type) {
  switch (type) {
    case DType::kFloat16: return 2;
    case DType::kInt8: return 3;
    case DType::kInt32: return kTypeI32;
    case DType::kBFloat16: return 14;
    case DType::kFloat8E4M3: return 28;
    case DType::kFloat8E5M2: return 29;
    default: return kTypeF32;
  }
}

bool IsFloat8(DType type) { return type == DType::kFloat8E4M3 || type == DType::kFloat8E5M2; }

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

absl::StatusOr<std::unique_ptr<LtGemm>> LtGemm::Make(const cuda::Driver& driver, const LtProblem& problem) {
  std::unique_ptr<LtGemm> gemm(new LtGemm);
  gemm->api_ = std::make_unique<Api>();
  TILERT_RETURN_IF_ERROR(gemm->api_->Load());
  TILERT_ASSIGN_OR_RETURN(gemm->workspace_, tool::DeviceMemory::Allocate(driver, kWorkspaceBytes));
  TILERT_RETURN_IF_ERROR(StatusOf("cublasLtCreate", gemm->api_->Create(&gemm->handle_)));
  TILERT_RETURN_IF_ERROR(gemm->Describe(problem));
  if (IsFloat8(problem.operand)) TILERT_RETURN_IF_ERROR(gemm->DescribeScales(driver));
  TILERT_RETURN_IF_ERROR(gemm->Ask());
  return gemm;
}

// Row-major C is column-major Cᵀ[n,m] = op(Bᵀ) · Aᵀ: the library's A is our B.
absl::Status LtGemm::Describe(const LtProblem& problem) {
  const auto [operand, result, transpose_b, m, n, k] = problem;
  const int type = CudaType(operand), transpose = transpose_b ? 1 : 0, plain = 0;
  const bool is_integer = !IsFloat(operand);
  scales_are_integers_ = result == DType::kInt32;
  const auto rows = [](int64_t x) { return static_cast<uint64_t>(x); };
  TILERT_RETURN_IF_ERROR(StatusOf(
      "cublasLtMatmulDescCreate",
      api_->DescCreate(&operation_, is_integer ? kCompute32I : kCompute32F, scales_are_integers_ ? kTypeI32 : kTypeF32)));
  TILERT_RETURN_IF_ERROR(
      StatusOf("cublasLt transpose A", api_->DescSet(operation_, kDescTransposeA, &transpose, sizeof transpose)));
  TILERT_RETURN_IF_ERROR(StatusOf("cublasLt transpose B", api_->DescSet(operation_, kDescTransposeB, &plain, sizeof plain)));
  TILERT_RETURN_IF_ERROR(StatusOf("cublasLt layout", transpose_b ? api_->LayoutCreate(&b_, type, rows(k), rows(n), k)
                                                                 : api_->LayoutCreate(&b_, type, rows(n), rows(k), n)));
  TILERT_RETURN_IF_ERROR(StatusOf("cublasLt layout", api_->LayoutCreate(&a_, type, rows(k), rows(m), k)));
  return StatusOf("cublasLt layout", api_->LayoutCreate(&c_, CudaType(result), rows(n), rows(m), n));
}

absl::Status LtGemm::DescribeScales(const cuda::Driver& driver) {
  const float one = 1;
  const int8_t fast = 1;
  TILERT_ASSIGN_OR_RETURN(one_, tool::DeviceMemory::Allocate(driver, sizeof one));
  TILERT_RETURN_IF_ERROR(driver.MemcpyHtoD(one_.address(), &one, sizeof one));
  const void* const scale = one_.data();
  TILERT_RETURN_IF_ERROR(StatusOf("cublasLt scale of A", api_->DescSet(operation_, kDescScaleOfA, &scale, sizeof scale)));
  TILERT_RETURN_IF_ERROR(StatusOf("cublasLt scale of B", api_->DescSet(operation_, kDescScaleOfB, &scale, sizeof scale)));
  return StatusOf("cublasLt fast accumulation", api_->DescSet(operation_, kDescFastAccumulation, &fast, sizeof fast));
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
  const float ones[] = {1, 0};
  const int32_t integers[] = {1, 0};
  const auto scale = [&](int i) -> const void* {
    return scales_are_integers_ ? static_cast<const void*>(integers + i) : ones + i;
  };
  const auto at = [](cuda::DevicePtr p) { return reinterpret_cast<void*>(p); };
  return StatusOf("cublasLtMatmul", api_->Matmul(handle_, operation_, scale(0), at(b), b_, at(a), a_, scale(1), at(c), c_, at(c),
                                                 c_, proposals_[which].algorithm, workspace_.data(), kWorkspaceBytes, nullptr));
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
