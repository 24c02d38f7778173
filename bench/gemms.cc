// GEMMs beside cublasGemmEx and the fastest of cublasLt's proposals, in one process, checked against the first.
#include <cmath>
#include <cstring>

#include "bench/bench_context.h"
#include "bench/cublas.h"
#include "bench/cublas_lt.h"
#include "ir/numeric.h"
#include "ir/status_util.h"

namespace tilert::bench {
namespace {

struct Shape {
  int64_t m, n, k;
};
constexpr Shape kShapes[] = {
    {4096, 4096, 4096},  {8192, 8192, 8192}, {4096, 14336, 4096}, {4096, 4096, 14336},
    {8192, 28672, 8192}, {2048, 2048, 2048}, {1024, 1024, 1024},                       // less than a wave
    {1, 14336, 4096},    {16, 14336, 4096},  {64, 14336, 4096},   {128, 14336, 4096},  // memory-bound
    {257, 4104, 4104},                                                                 // few tiles, long K
    {4095, 4096, 4104},  {4095, 4097, 4099},                                           // rows that TMA cannot take
};

// The two results in a sample of places; both round sums of the same products to 16 bits.
absl::Status CompareResults(const cuda::Driver& driver, DType type, Shape shape, cuda::DevicePtr ours, cuda::DevicePtr theirs) {
  TILERT_RETURN_IF_ERROR(driver.CtxSynchronize());
  const int64_t elements = shape.m * shape.n, piece = std::min<int64_t>(elements, 1 << 16);
  const double step = type == DType::kBFloat16 ? 0x1p-7 : 0x1p-10, small = 0x1p-10 * std::sqrt(static_cast<double>(shape.k));
  for (const int64_t first : {int64_t{0}, (elements - piece) / 2, elements - piece}) {
    std::vector<Value> values[2];
    for (int side = 0; side < 2; ++side) {
      std::vector<uint8_t> bytes(static_cast<size_t>(2 * piece));
      TILERT_RETURN_IF_ERROR(
          driver.MemcpyDtoH(bytes.data(), (side == 0 ? ours : theirs) + static_cast<uint64_t>(2 * first), bytes.size()));
      values[side].resize(static_cast<size_t>(piece));
      LoadRow(type, bytes.data(), 1, piece, values[side].data());
    }
    for (int64_t i = 0; i < piece; ++i) {
      const double a = values[0][static_cast<size_t>(i)].f, b = values[1][static_cast<size_t>(i)].f;
      if (std::fabs(a - b) <= small + step * std::fabs(b)) continue;
      return absl::InternalError(Cat("element ", first + i, " is ", a, " where cuBLAS has ", b));
    }
  }
  return absl::OkStatus();
}

class GemmBench {
 public:
  GemmBench(BenchContext& context, Cublas* cublas) : context_(context), cublas_(cublas) {}

  absl::Status Run(Row row, DType type, Shape shape) {
    const auto [m, n, k] = shape;
    const bool transpose_b = row.layout == "nt";
    TILERT_ASSIGN_OR_RETURN(Call call, context_.MakeCall("gemm_" + row.layout + "_" + row.dtype, {{"M", m}, {"N", n}, {"K", k}}));
    const cuda::DevicePtr a = call.memory[0].address(), b = call.memory[1].address();
    tool::DeviceMemory peer_c;
    std::vector<Candidate> candidates = {{"tilert", [&] { return call.Run(); }}};
    std::unique_ptr<LtGemm> lt;
    if (cublas_ != nullptr) {
      TILERT_ASSIGN_OR_RETURN(peer_c, tool::DeviceMemory::Allocate(context_.driver(), static_cast<uint64_t>(m * n * 2)));
      const cuda::DevicePtr c = peer_c.address();
      candidates.push_back({"cublasGemmEx", [=, this] { return cublas_->Gemm(type, transpose_b, m, n, k, a, b, c); }});
      if (auto made = LtGemm::Make(context_.driver(), type, transpose_b, m, n, k); made.ok()) {
        lt = *std::move(made);
        TILERT_ASSIGN_OR_RETURN(const size_t best, Fastest(*lt, a, b, c));
        candidates.push_back({"cublasLt best of 8", [&lt, best, a, b, c] { return lt->Run(best, a, b, c); }});
      } else {
        std::fprintf(stderr, "%s: no cublasLt: %s\n", row.Name().c_str(), made.status().ToString().c_str());
      }
    }
    TILERT_ASSIGN_OR_RETURN(const Times times, Compare(context_.timer(), candidates, context_.settings().repeats));
    if (cublas_ != nullptr) {
      // The peers share their result's memory: the one to compare with runs once more.
      TILERT_RETURN_IF_ERROR(candidates[1].run());
      TILERT_RETURN_IF_ERROR(CompareResults(context_.driver(), type, shape, call.memory[2].address(), peer_c.address()));
    }
    const double x = double(m), y = double(n), z = double(k);
    row.schedule = call.schedule;
    row.us = tool::Median(times[0]);
    row.flop = 2 * x * y * z;
    row.bytes = 2 * (x * z + z * y + x * y);
    for (size_t i = 1; i < times.size(); ++i)
      row.peers.push_back({candidates[i].name, tool::Median(times[i]), RatioOf(times[i], times[0])});
    context_.Emit(row);
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<size_t> Fastest(LtGemm& lt, cuda::DevicePtr a, cuda::DevicePtr b, cuda::DevicePtr c) {
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < lt.algorithms(); ++i) candidates.push_back({"", [&lt, i, a, b, c] { return lt.Run(i, a, b, c); }});
    TILERT_ASSIGN_OR_RETURN(const Times times, Compare(context_.timer(), candidates, 5));
    size_t best = 0;
    for (size_t i = 1; i < times.size(); ++i) {
      if (tool::Median(times[i]) < tool::Median(times[best])) best = i;
    }
    return best;
  }

  BenchContext& context_;
  Cublas* cublas_;
};

}  // namespace

absl::Status BenchGemms(BenchContext& context) {
  auto cublas = Cublas::Load();
  if (!cublas.ok()) std::fprintf(stderr, "%s\n", cublas.status().ToString().c_str());
  GemmBench bench(context, cublas.ok() ? cublas->get() : nullptr);
  for (const char* type : {"bf16", "f16"}) {
    for (const char* order : {"nt", "nn"}) {
      for (const Shape& shape : kShapes) {
        const bool is_square = shape.m == 4096 && shape.n == 4096 && shape.k == 4096;
        if (std::strcmp(type, "f16") == 0 && !is_square) continue;
        const Row row{"gemm", type, Cat(shape.m, "x", shape.n, "x", shape.k), order, 0, 0, 0, {}};
        if (!context.Wants(row)) continue;
        const absl::Status status = bench.Run(row, std::strcmp(type, "f16") == 0 ? DType::kFloat16 : DType::kBFloat16, shape);
        if (!status.ok()) context.Failed(row, status);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace tilert::bench
