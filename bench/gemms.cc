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
constexpr Shape kShapesOf8Bits[] = {
    {4096, 4096, 4096}, {8192, 8192, 8192}, {4096, 14336, 4096}, {16, 14336, 4096}, {128, 14336, 4096}};

// An array of a result on the device.
struct Result {
  DType type;
  cuda::DevicePtr data;
};

absl::StatusOr<std::vector<double>> ReadNumbers(const cuda::Driver& driver, Result result, int64_t first, int64_t count) {
  const auto size = static_cast<uint64_t>(DTypeBytes(result.type));
  std::vector<uint8_t> bytes(size * static_cast<size_t>(count));
  TILERT_RETURN_IF_ERROR(driver.MemcpyDtoH(bytes.data(), result.data + size * static_cast<uint64_t>(first), bytes.size()));
  std::vector<Value> values(static_cast<size_t>(count));
  LoadRow(result.type, bytes.data(), 1, count, values.data());
  std::vector<double> numbers;
  for (const Value& value : values) numbers.push_back(IsFloat(result.type) ? value.f : static_cast<double>(value.i));
  return numbers;
}

// The two results in a sample of places: sums of the same products, ours rounded to 16 bits. Sums of float8 products lose a
// little with each product (docs/ir_spec.md, section 8), those of int8 nothing.
absl::Status CompareResults(const cuda::Driver& driver, DType operand, Shape shape, Result ours, Result theirs) {
  TILERT_RETURN_IF_ERROR(driver.CtxSynchronize());
  const int64_t elements = shape.m * shape.n, piece = std::min<int64_t>(elements, 1 << 16);
  const double k = static_cast<double>(shape.k), step = ours.type == DType::kBFloat16 ? 0x1p-7 : 0x1p-10;
  const double small = DTypeBytes(operand) == 2 ? 0x1p-10 * std::sqrt(k) : IsFloat(operand) ? 0x1p-11 * k : 0;
  for (const int64_t first : {int64_t{0}, (elements - piece) / 2, elements - piece}) {
    TILERT_ASSIGN_OR_RETURN(const std::vector<double> a, ReadNumbers(driver, ours, first, piece));
    TILERT_ASSIGN_OR_RETURN(const std::vector<double> b, ReadNumbers(driver, theirs, first, piece));
    for (size_t i = 0; i < a.size(); ++i) {
      if (std::fabs(a[i] - b[i]) <= small + step * std::fabs(b[i])) continue;
      return absl::InternalError(Cat("element ", first + static_cast<int64_t>(i), " is ", a[i], " where the peer has ", b[i]));
    }
  }
  return absl::OkStatus();
}

// One row: our call, and the peers that are added to it.
class GemmRow {
 public:
  static absl::StatusOr<std::unique_ptr<GemmRow>> Make(BenchContext& context, Row row, DType operand, Shape shape) {
    const std::map<std::string, int64_t> dims = {{"M", shape.m}, {"N", shape.n}, {"K", shape.k}};
    TILERT_ASSIGN_OR_RETURN(Call call, context.MakeCall("gemm_" + row.layout + "_" + row.dtype, dims));
    return std::unique_ptr<GemmRow>(new GemmRow(context, std::move(row), operand, shape, std::move(call)));
  }

  absl::Status AddCublas(Cublas& cublas) {
    TILERT_ASSIGN_OR_RETURN(const cuda::DevicePtr c, AddResult(operand_));
    candidates_.push_back({"cublasGemmEx", [=, this, &cublas] {
                             return cublas.Gemm(operand_, is_nt(), shape_.m, shape_.n, shape_.k, a(), b(), c);
                           }});
    return absl::OkStatus();
  }

  // cublasLt with results of the type: the fastest of its proposals, before that the one it names first if `with_first`.
  absl::Status AddLt(DType result, bool with_first, const std::string& name) {
    auto made = LtGemm::Make(context_.driver(), {operand_, result, is_nt(), shape_.m, shape_.n, shape_.k});
    if (!made.ok()) {
      std::fprintf(stderr, "%s: no %s: %s\n", row_.Name().c_str(), name.c_str(), made.status().ToString().c_str());
      return absl::OkStatus();
    }
    LtGemm* const lt = lts_.emplace_back(*std::move(made)).get();
    TILERT_ASSIGN_OR_RETURN(const cuda::DevicePtr c, AddResult(result));
    if (with_first) candidates_.push_back({name + " first of 8", [=, this] { return lt->Run(0, a(), b(), c); }});
    TILERT_ASSIGN_OR_RETURN(const size_t best, Fastest(*lt, c));
    candidates_.push_back({name + " best of 8", [=, this] { return lt->Run(best, a(), b(), c); }});
    return absl::OkStatus();
  }

  // Times everybody and compares our result with that of the first peer, which alone writes the first of the results.
  absl::Status Run() {
    TILERT_ASSIGN_OR_RETURN(const Times times, Compare(context_.timer(), candidates_, context_.settings().rounds));
    if (candidates_.size() > 1) {
      TILERT_RETURN_IF_ERROR(candidates_[1].run());
      TILERT_RETURN_IF_ERROR(
          CompareResults(context_.driver(), operand_, shape_, {call_.tensors[2].dtype, call_.memory[2].address()}, results_[0]));
    }
    const double x = double(shape_.m), y = double(shape_.n), z = double(shape_.k);
    row_.schedule = call_.schedule;
    row_.us = tool::Median(times[0]);
    row_.flop = 2 * x * y * z;
    row_.bytes = DTypeBytes(operand_) * (x * z + z * y) + DTypeBytes(call_.tensors[2].dtype) * x * y;
    for (size_t i = 1; i < times.size(); ++i)
      row_.peers.push_back({candidates_[i].name, tool::Median(times[i]), RatioOf(times[i], times[0])});
    context_.Emit(row_);
    return absl::OkStatus();
  }

 private:
  GemmRow(BenchContext& context, Row row, DType operand, Shape shape, Call call)
      : context_(context), row_(std::move(row)), operand_(operand), shape_(shape), call_(std::move(call)) {
    candidates_.push_back({"tilert", [this] { return call_.Run(); }});
  }
  bool is_nt() const { return row_.layout == "nt"; }
  cuda::DevicePtr a() const { return call_.memory[0].address(); }
  cuda::DevicePtr b() const { return call_.memory[1].address(); }

  absl::StatusOr<cuda::DevicePtr> AddResult(DType type) {
    const auto bytes = static_cast<uint64_t>(shape_.m * shape_.n * DTypeBytes(type));
    TILERT_ASSIGN_OR_RETURN(tool::DeviceMemory memory, tool::DeviceMemory::Allocate(context_.driver(), bytes));
    results_.push_back({type, memory.address()});
    memory_.push_back(std::move(memory));
    return results_.back().data;
  }

  absl::StatusOr<size_t> Fastest(LtGemm& lt, cuda::DevicePtr c) {
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < lt.algorithms(); ++i) candidates.push_back({"", [=, this, &lt] { return lt.Run(i, a(), b(), c); }});
    TILERT_ASSIGN_OR_RETURN(const Times times, Compare(context_.timer(), candidates, {.count = 5}));
    size_t best = 0;
    for (size_t i = 1; i < times.size(); ++i) {
      if (tool::Median(times[i]) < tool::Median(times[best])) best = i;
    }
    return best;
  }

  BenchContext& context_;
  Row row_;
  const DType operand_;
  const Shape shape_;
  Call call_;
  std::vector<std::unique_ptr<LtGemm>> lts_;
  std::vector<tool::DeviceMemory> memory_;
  std::vector<Result> results_;
  std::vector<Candidate> candidates_;  // ours first
};

absl::Status Bench16Bits(BenchContext& context, Cublas* cublas, const Row& row, DType type, Shape shape) {
  TILERT_ASSIGN_OR_RETURN(const auto gemm, GemmRow::Make(context, row, type, shape));
  if (cublas != nullptr) {
    TILERT_RETURN_IF_ERROR(gemm->AddCublas(*cublas));
    TILERT_RETURN_IF_ERROR(gemm->AddLt(type, false, "cublasLt"));
  }
  return gemm->Run();
}

// What cublasGemmEx is to 16 bits, cublasLt's first proposal is here. It makes int32 or, saturating, int8 of int8; of two
// float8_e5m2 nothing.
absl::Status Bench8Bits(BenchContext& context, Cublas* cublas, const Row& row, DType type, Shape shape) {
  TILERT_ASSIGN_OR_RETURN(const auto gemm, GemmRow::Make(context, row, type, shape));
  if (cublas != nullptr && type == DType::kFloat8E4M3) TILERT_RETURN_IF_ERROR(gemm->AddLt(DType::kBFloat16, true, "cublasLt"));
  if (cublas != nullptr && type == DType::kInt8) TILERT_RETURN_IF_ERROR(gemm->AddLt(DType::kInt32, true, "cublasLt int32"));
  return gemm->Run();
}

}  // namespace

absl::Status BenchGemms(BenchContext& context) {
  auto loaded = Cublas::Load();
  if (!loaded.ok()) std::fprintf(stderr, "%s\n", loaded.status().ToString().c_str());
  Cublas* const cublas = loaded.ok() ? loaded->get() : nullptr;
  const auto bench = [&](auto run, const char* name, DType type, const char* order, Shape shape) {
    const Row row{"gemm", name, Cat(shape.m, "x", shape.n, "x", shape.k), order, 0, 0, 0, {}};
    if (!context.Wants(row)) return;
    const absl::Status status = run(context, cublas, row, type, shape);
    if (!status.ok()) context.Failed(row, status);
  };
  for (const char* order : {"nt", "nn"}) {
    for (const Shape& shape : kShapes) bench(Bench16Bits, "bf16", DType::kBFloat16, order, shape);
  }
  for (const char* order : {"nt", "nn"}) bench(Bench16Bits, "f16", DType::kFloat16, order, kShapes[0]);
  for (const Shape& shape : kShapesOf8Bits) {
    bench(Bench8Bits, "e4m3", DType::kFloat8E4M3, "nt", shape);
    bench(Bench8Bits, "e5m2", DType::kFloat8E5M2, "nt", shape);
    bench(Bench8Bits, "s8", DType::kInt8, "nt", shape);
  }
  return absl::OkStatus();
}

}  // namespace tilert::bench
