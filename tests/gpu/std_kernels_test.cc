// Every standard kernel on the GPU against the executor: all entries, edge extents, random data, poisoned outputs, both classes
// of arguments. Where there is no GPU the tests are skipped. $TILERT_FAMILY chooses the lowering (auto, ampere, hopper).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <random>
#include <set>

#include "gtest/gtest.h"
#include "ir/executor.h"
#include "ir/numeric.h"
#include "ir/specialize.h"
#include "runtime/schedules.h"
#include "tests/gpu/std_bundle.h"
#include "tools/device.h"

namespace tilert::gpu {
namespace {

using Dims = std::map<std::string, int64_t>;

std::vector<double> Numbers(const tool::Array& array) {
  std::vector<Value> values(array.elements());
  LoadRow(array.dtype, array.bytes.data(), 1, array.elements(), values.data());
  std::vector<double> numbers;
  for (const Value& v : values) numbers.push_back(IsFloat(array.dtype) ? v.f : static_cast<double>(v.i));
  return numbers;
}

void SetNumbers(const std::vector<double>& numbers, tool::Array* array) {
  std::vector<Value> values(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) values[i].f = RoundToType(array->dtype, numbers[i]);
  StoreRow(array->dtype, values.data(), static_cast<int64_t>(numbers.size()), array->bytes.data(), 1);
}

// Half a unit in the last place of `x`, relative to it, at most.
double Epsilon(DType type) { return type == DType::kBFloat16 ? 0x1p-8 : type == DType::kFloat16 ? 0x1p-11 : 0x1p-22; }

class StdKernels : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    RuntimeOptions options;
    const char* family = std::getenv("TILERT_FAMILY");
    options.family = family == nullptr ? "auto" : family;
    auto device = tool::Device::Open(std::move(options));
    if (device.ok()) {
      device_ = device->release();
    } else {
      reason_ = new std::string(device.status().ToString());
    }
    auto file = OpenStd();
    if (file.ok()) file_ = file->release();
  }
  void SetUp() override {
    if (device_ == nullptr) GTEST_SKIP() << *reason_;
    ASSERT_NE(file_, nullptr) << "std.tilert was not found";
  }

  static absl::Status Expected(const Program& program, tool::CallArguments& call) {
    const auto specialised = Specialize(program, {});
    if (!specialised.ok()) return specialised.status();
    return Execute(*specialised, call.Tensors(), call.scalars);
  }

  // Runs `entry` on the device and on the executor. `magnitude_of`, if given, makes the bound from the executor's result on the
  // absolute inputs.
  void Check(const std::string& entry, const Dims& dims, double scale, bool integers = false, double absolute = 0) {
    SCOPED_TRACE(testing::Message() << entry << " " << testing::PrintToString(dims) << (integers ? " integers" : ""));
    const auto program = FindProgram(*file_, entry);
    ASSERT_TRUE(program.ok()) << program.status();
    auto call = MakeArguments(*program, dims, ++seed_);
    ASSERT_TRUE(call.ok()) << call.status();
    if (integers) MakeIntegers(*call);
    tool::CallArguments expected = *call, sizes = *call;
    ASSERT_TRUE(Expected(*program, expected).ok());
    if (scale > 0) {
      for (size_t i = 0; i < sizes.arrays.size(); ++i) {
        if (sizes.access[i] == Access::kOut) continue;
        std::vector<double> values = Numbers(sizes.arrays[i]);
        for (double& v : values) v = std::fabs(v);
        SetNumbers(values, &sizes.arrays[i]);
      }
      ASSERT_TRUE(Expected(*program, sizes).ok());
    }
    const auto run = tool::DeviceCall::Make(*device_, *program, constants_, *call);
    ASSERT_TRUE(run.ok()) << run.status();
    const absl::Status launched = (*run)->Launch();
    ASSERT_TRUE(launched.ok()) << launched;
    const absl::Status finished = (*run)->Finish(*call);
    ASSERT_TRUE(finished.ok()) << finished;
    for (size_t i = 0; i < call->arrays.size(); ++i) {
      if (call->access[i] == Access::kIn) continue;
      Compare(call->arrays[i], expected.arrays[i], sizes.arrays[i], integers ? 0 : scale, absolute);
    }
  }

  void Compare(const tool::Array& got, const tool::Array& want, const tool::Array& sizes, double scale, double absolute) {
    const std::vector<double> a = Numbers(got), b = Numbers(want), m = Numbers(sizes);
    double errors = 0, squares = 0x1p-1000;
    for (size_t i = 0; i < a.size(); ++i) errors += (a[i] - b[i]) * (a[i] - b[i]), squares += b[i] * b[i];
    error_ = std::sqrt(errors / squares);
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
      // Both sides were rounded: two numbers that are close to the middle between neighbours may become those neighbours.
      const double smallest = got.dtype == DType::kFloat16 ? 0x1p-24 : 0x1p-133;  // a step among subnormals
      const double bound = scale == 0 ? 0
                                      : smallest + absolute + 2 * Epsilon(got.dtype) * std::fabs(b[i]) +
                                            scale * (std::isfinite(m[i]) ? std::fabs(m[i]) : 0);
      ASSERT_LE(std::fabs(a[i] - b[i]), bound) << "element " << i << " of " << a.size() << ": " << a[i] << " instead of " << b[i];
    }
  }

  // Integers small enough that every sum is exact in every type.
  static void MakeIntegers(tool::CallArguments& call) {
    for (size_t i = 0; i < call.arrays.size(); ++i) {
      if (call.access[i] == Access::kOut) continue;
      std::vector<double> values = Numbers(call.arrays[i]);
      for (double& v : values) v = std::clamp(std::round(v), -1.0, 1.0);
      SetNumbers(values, &call.arrays[i]);
    }
  }

  // The variants that the bundle has for this GPU and the lowering's family.
  static std::vector<Variant> Variants(const std::string& entry) {
    std::vector<Variant> variants;
    const Target& target = device_->runtime()->target();
    for (const Variant& variant : file_->bundle.variants) {
      if (file_->bundle.programs[variant.program].name != entry) continue;
      if (!variant.target.empty() && SuitsTarget(variant.target, target)) variants.push_back(variant);
    }
    return variants;
  }

  Dims constants_;    // of the schedule to run; missing ones are the defaults
  double error_ = 0;  // root mean square of what the last comparison saw, relative to the values
  static tool::Device* device_;
  static std::string* reason_;
  static tool::BundleFile* file_;
  static uint64_t seed_;
};
tool::Device* StdKernels::device_ = nullptr;
std::string* StdKernels::reason_ = nullptr;
tool::BundleFile* StdKernels::file_ = nullptr;
uint64_t StdKernels::seed_ = 0;

const char* const kTypes16[] = {"f16", "bf16"};
const char* const kTypes[] = {"f16", "bf16", "f32"};

TEST_F(StdKernels, Add) {
  for (const char* type : kTypes) {
    for (int64_t n : {0, 1, 7, 2047, 2048, 2049, 4096, 10007, 1 << 20}) Check(std::string("add_") + type, {{"N", n}}, 0);
  }
}

TEST_F(StdKernels, Transpose) {
  for (const char* type : kTypes) {
    for (int64_t m : {0, 1, 63, 64, 65, 128, 257}) {
      for (int64_t n : {0, 1, 31, 64, 72, 131}) Check(std::string("transpose_") + type, {{"M", m}, {"N", n}}, 0);
    }
  }
}

TEST_F(StdKernels, Gemm) {
  const int64_t shapes[][3] = {{0, 64, 64},    {64, 0, 64},    {64, 64, 0},     {1, 1, 1},      {127, 128, 32},
                               {128, 127, 31}, {129, 129, 33}, {128, 128, 32},  {128, 256, 64}, {256, 128, 96},
                               {16, 24, 8},    {131, 67, 257}, {255, 264, 136}, {512, 384, 200}};
  for (const char* type : kTypes16) {
    for (const char* order : {"nn", "nt", "tn", "tt"}) {
      for (const auto& [m, n, k] : shapes) {
        const Dims dims = {{"M", m}, {"N", n}, {"K", k}};
        const std::string entry = std::string("gemm_") + order + "_" + type;
        Check(entry, dims, 4.0 * static_cast<double>(k + 1) * 0x1p-24);
        Check(entry, dims, 0, true);
      }
    }
  }
}

// Against products summed in double precision and not rounded: |d| ≤ 2⁻⁸·|ref| + 4·K·2⁻²⁴·Σ|a||b| for bfloat16, 2⁻¹¹ for float16.
TEST_F(StdKernels, GemmAgainstDouble) {
  const int64_t shapes[][3] = {{1, 1, 1}, {129, 127, 33}, {255, 264, 136}, {256, 384, 200}};
  for (const char* type : kTypes16) {
    for (const std::string order : {"nn", "nt", "tn", "tt"}) {
      for (const auto& [m, n, k] : shapes) {
        const auto program = FindProgram(*file_, "gemm_" + order + "_" + type);
        ASSERT_TRUE(program.ok());
        auto call = MakeArguments(*program, {{"M", m}, {"N", n}, {"K", k}}, ++seed_);
        ASSERT_TRUE(call.ok());
        const auto run = tool::DeviceCall::Make(*device_, *program, {}, *call);
        ASSERT_TRUE(run.ok()) << run.status();
        ASSERT_TRUE((*run)->Launch().ok());
        ASSERT_TRUE((*run)->Finish(*call).ok());
        const std::vector<double> a = Numbers(call->arrays[0]), b = Numbers(call->arrays[1]), c = Numbers(call->arrays[2]);
        const double epsilon = Epsilon(call->arrays[2].dtype);
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            double sum = 0, size = 0;
            for (int64_t p = 0; p < k; ++p) {
              const double x = a[order[0] == 't' ? p * m + i : i * k + p] * b[order[1] == 't' ? j * k + p : p * n + j];
              sum += x;
              size += std::fabs(x);
            }
            ASSERT_LE(std::fabs(c[i * n + j] - sum), epsilon * std::fabs(sum) + 4.0 * static_cast<double>(k) * 0x1p-24 * size)
                << order << " " << type << " " << m << "x" << n << "x" << k << " at " << i << ", " << j << ": " << c[i * n + j]
                << " instead of " << sum;
          }
        }
      }
    }
  }
}

// Every schedule that a launch may choose, at sizes around its tile's.
TEST_F(StdKernels, VariantsOfThisGpu) {
  for (const char* type : kTypes16) {
    for (const char* order : {"nn", "nt", "tn", "tt"}) {
      const std::string entry = std::string("gemm_") + order + "_" + type;
      for (const Variant& variant : Variants(entry)) {
        SCOPED_TRACE(variant.name);
        constants_ = variant.constants;
        const int64_t m = constants_.at("block_M"), n = constants_.at("block_N"), k = constants_.at("block_K");
        for (const auto& [rows, columns, depth] :
             {std::array{m, n, k}, {m + 1, n + 8, 3 * k + 8}, {1, 8, 8}, {2 * m, 3 * n - 8, 8 * k}}) {
          Check(entry, {{"M", rows}, {"N", columns}, {"K", depth}}, 4.0 * static_cast<double>(depth + 1) * 0x1p-24);
        }
      }
    }
    for (const char* name : {"attention_d64_", "attention_causal_d64_", "attention_d128_", "attention_causal_d128_"}) {
      const std::string entry = std::string(name) + type;
      for (const Variant& variant : Variants(entry)) {
        SCOPED_TRACE(variant.name);
        constants_ = variant.constants;
        for (const auto& [q, kv] : {std::array<int64_t, 2>{1, 1}, {200, 300}, {384, 384}, {129, 520}}) {
          const Dims dims = {{"batch", 1}, {"seq_q", q}, {"seq_kv", kv}, {"heads", 2}, {"heads_kv", 1}};
          Check(entry, dims, type == kTypes16[0] ? 0x1p-10 : 0x1p-7);
        }
      }
    }
  }
}

// More tiles than SMs, ragged ends, few tiles with a long K, one row; and every number of K steps around the depth of a pipeline.
// A sample of the elements against sums in double precision; all of them written.
class SampledGemms : public StdKernels {
 protected:
  // Runs `entry` with the bundle's choice of a schedule, and says what that was.
  std::string CheckSampled(const std::string& entry, const std::array<int64_t, 3>& shape) {
    const auto [m, n, k] = shape;
    SCOPED_TRACE(testing::Message() << entry << " " << m << "x" << n << "x" << k);
    const auto program = FindProgram(*file_, entry);
    EXPECT_TRUE(program.ok());
    if (bundle_ == nullptr) bundle_ = OpenedBundle::FromMemory(file_->bytes, false).value();
    const tool::ChosenProgram chosen{Verify(*program).value(), {}, bundle_};
    auto call = MakeArguments(*program, {{"M", m}, {"N", n}, {"K", k}}, ++seed_);
    EXPECT_TRUE(call.ok());
    const auto run = tool::DeviceCall::Make(*device_, chosen, *call);
    EXPECT_TRUE(run.ok()) << run.status();
    if (!run.ok()) return "";
    const std::string choice = (*run)->ChoiceText().value_or("?");
    SCOPED_TRACE(choice);
    EXPECT_TRUE((*run)->Launch().ok());
    EXPECT_TRUE((*run)->Finish(*call).ok());
    CheckResult(entry, shape, *call);
    return choice;
  }

 private:
  void CheckResult(const std::string& entry, const std::array<int64_t, 3>& shape, const tool::CallArguments& call) {
    const auto [m, n, k] = shape;
    const std::vector<double> a = Numbers(call.arrays[0]), b = Numbers(call.arrays[1]), c = Numbers(call.arrays[2]);
    const auto unwritten = std::find_if(c.begin(), c.end(), [](double v) { return std::isnan(v); });
    ASSERT_EQ(unwritten, c.end()) << "element " << unwritten - c.begin() << " was not written";
    const double epsilon = Epsilon(call.arrays[2].dtype);
    std::mt19937_64 random(seed_);
    for (int sample = 0; sample < 4000; ++sample) {
      // The last rows and columns more often than the rest: that is where tiles end.
      const int64_t i = sample % 4 == 0 ? m - 1 : static_cast<int64_t>(random() % static_cast<uint64_t>(m));
      const int64_t j = sample % 4 == 1 ? n - 1 : static_cast<int64_t>(random() % static_cast<uint64_t>(n));
      double sum = 0, size = 0;
      for (int64_t p = 0; p < k; ++p) {
        const double x = a[entry[5] == 't' ? p * m + i : i * k + p] * b[entry[6] == 't' ? j * k + p : p * n + j];
        sum += x, size += std::fabs(x);
      }
      ASSERT_LE(std::fabs(c[i * n + j] - sum), epsilon * std::fabs(sum) + 4.0 * static_cast<double>(k) * 0x1p-24 * size)
          << "at " << i << ", " << j;
    }
  }

  std::shared_ptr<const OpenedBundle> bundle_;
};

TEST_F(SampledGemms, GemmManyTiles) {
  std::vector<std::array<int64_t, 3>> shapes = {{2100, 4360, 520}, {4095, 4104, 264}, {2049, 4097, 131},
                                                {257, 4104, 4104}, {1, 14336, 1024},  {100, 8192, 2048}};
  for (int64_t steps = 1; steps <= 13; ++steps) shapes.push_back({300, 520, 64 * steps});
  for (const std::string entry : {"gemm_nt_bf16", "gemm_nn_bf16", "gemm_nt_f16", "gemm_tn_bf16", "gemm_tt_f16"}) {
    for (const std::array<int64_t, 3>& shape : shapes) CheckSampled(entry, shape);
  }
}

// Rows that TMA cannot take: of all tensors, of one input, of the result only.
TEST_F(SampledGemms, GemmUnaligned) {
  int restrided = 0;
  for (const std::string entry : {"gemm_nt_bf16", "gemm_nn_bf16", "gemm_tn_f16", "gemm_tt_bf16"}) {
    for (const std::array<int64_t, 3>& shape : std::vector<std::array<int64_t, 3>>{
             {1001, 1003, 1005}, {2049, 2056, 515}, {2056, 2049, 512}, {1000, 2056, 2049}, {4097, 67, 2050}, {65, 131, 77}}) {
      restrided += CheckSampled(entry, shape).find("copied to aligned rows") != std::string::npos;
    }
  }
  EXPECT_GT(restrided, 0);
}

// Shapes of 8-bit GEMMs: rows that TMA can read and rows that it cannot.
const int64_t kShapesOf8Bits[][3] = {{0, 64, 64},     {64, 64, 0},     {1, 1, 1},      {1, 16, 16},
                                     {64, 64, 64},    {127, 128, 128}, {129, 129, 48}, {131, 67, 257},
                                     {256, 264, 144}, {130, 520, 400}, {33, 257, 1040}};

// Sums of int8 products are exact, and what follows them is rounded alike on both sides.
TEST_F(StdKernels, GemmInt8) {
  const auto check = [&](int64_t m, int64_t n, int64_t k) { Check("gemm_nt_s8", {{"M", m}, {"N", n}, {"K", k}}, 0); };
  for (const auto& [m, n, k] : kShapesOf8Bits) check(m, n, k);
  for (const Variant& variant : Variants("gemm_nt_s8")) {
    SCOPED_TRACE(variant.name);
    constants_ = variant.constants;
    const int64_t m = constants_.at("block_M"), n = constants_.at("block_N"), k = constants_.at("block_K");
    check(m, n, k), check(m + 1, n + 16, 3 * k + 16), check(1, 16, 16), check(2 * m, 3 * n - 8, 8 * k);
  }
}

// Every sum of small integers is exact. Of others the bound of docs/ir_spec.md, which no tensor core comes close to: so the mean
// square of the errors, too, in which a product that is missing or counted twice would stand out.
TEST_F(StdKernels, GemmFloat8) {
  for (const char* type : {"e4m3", "e5m2"}) {
    const std::string entry = std::string("gemm_nt_") + type;
    const auto check = [&](int64_t m, int64_t n, int64_t k) {
      const Dims dims = {{"M", m}, {"N", n}, {"K", k}};
      Check(entry, dims, 33 * static_cast<double>((k + 31) / 32) * 0x1p-13);
      EXPECT_LE(error_, 0x1p-7);
      Check(entry, dims, 0, true);
    };
    for (const auto& [m, n, k] : kShapesOf8Bits) check(m, n, k);
    for (const Variant& variant : Variants(entry)) {
      SCOPED_TRACE(variant.name);
      constants_ = variant.constants;
      const int64_t m = constants_.at("block_M"), n = constants_.at("block_N"), k = constants_.at("block_K");
      check(m, n, k), check(m + 1, n + 16, 3 * k + 16), check(1, 16, 16), check(2 * m, 3 * n - 8, 8 * k);
    }
    constants_.clear();
  }
}

TEST_F(StdKernels, Gemv) {
  for (const char* type : kTypes) {
    for (int64_t n : {0, 1, 7, 8, 9, 131}) {
      for (int64_t k : {0, 1, 511, 512, 513, 4096, 1031}) {
        Check(std::string("gemv_") + type, {{"N", n}, {"K", k}}, 4.0 * static_cast<double>(k + 1) * 0x1p-24);
      }
    }
  }
}

TEST_F(StdKernels, Rows) {
  for (const char* type : kTypes) {
    for (int64_t m : {0, 1, 3}) {
      for (int64_t n : {1, 2, 31, 127, 1000, 4095, 4096, 4097, 8192, 8200, 20011}) {
        const Dims dims = {{"M", m}, {"N", n}};
        Check(std::string("rms_norm_") + type, dims, 0x1p-18);
        Check(std::string("softmax_") + type, dims, 0x1p-18);
        // Differences from the mean cancel: the error is that of numbers of size 1, not of the result.
        Check(std::string("layer_norm_") + type, dims, 0x1p-18, false, 0x1p-18);
      }
    }
  }
}

TEST_F(StdKernels, Attention) {
  struct Shape {
    int64_t batch, q, kv, heads, heads_kv;
  };
  const Shape shapes[] = {{1, 1, 1, 1, 1},     {2, 64, 64, 4, 2},  {1, 127, 127, 2, 1}, {1, 128, 128, 2, 2},
                          {1, 129, 200, 3, 1}, {1, 300, 65, 2, 1}, {1, 257, 513, 4, 4}, {0, 8, 8, 1, 1}};
  for (const char* type : kTypes16) {
    for (const char* head : {"d64", "d128"}) {
      for (const char* mask : {"", "causal_"}) {
        for (const Shape& s : shapes) {
          const Dims dims = {{"batch", s.batch}, {"seq_q", s.q}, {"seq_kv", s.kv}, {"heads", s.heads}, {"heads_kv", s.heads_kv}};
          // The weights are rounded to 16 bits before the second product, on either side: a rounding of Σ p·|v|.
          Check(std::string("attention_") + mask + head + "_" + type, dims, type == kTypes16[0] ? 0x1p-10 : 0x1p-7);
        }
      }
    }
  }
}

// Gradients on the GPU and on the executor, from what a forward pass on the executor gave: within a hundredth of the largest.
class Gradients : public StdKernels {
 protected:
  static tool::Array& Named(const Program& program, tool::CallArguments& call, const std::string& name) {
    size_t tensor = 0;
    for (const Param& param : program.params) {
      if (program.buffers[param.index].name == name) break;
      ++tensor;
    }
    return call.arrays[tensor];
  }

  void CheckGradients(const std::string& kind, const Dims& dims) {
    SCOPED_TRACE(testing::Message() << kind << " " << testing::PrintToString(dims));
    const auto forward = FindProgram(*file_, "attention_lse_" + kind);
    const auto backward = FindProgram(*file_, "attention_backward_" + kind);
    ASSERT_TRUE(forward.ok() && backward.ok());
    auto first = MakeArguments(*forward, dims, ++seed_), second = MakeArguments(*backward, dims, ++seed_);
    ASSERT_TRUE(first.ok() && second.ok());
    ASSERT_TRUE(Expected(*forward, *first).ok());
    for (const char* name : {"Q", "K", "V", "O", "lse"}) Named(*backward, *second, name) = Named(*forward, *first, name);
    tool::CallArguments expected = *second;
    ASSERT_TRUE(Expected(*backward, expected).ok());
    const auto run = tool::DeviceCall::Make(*device_, *backward, constants_, *second);
    ASSERT_TRUE(run.ok()) << run.status();
    const absl::Status launched = (*run)->Launch();
    ASSERT_TRUE(launched.ok()) << launched;
    ASSERT_TRUE((*run)->Finish(*second).ok());
    for (const char* name : {"dQ", "dK", "dV"}) {
      const std::vector<double> got = Numbers(Named(*backward, *second, name)), want = Numbers(Named(*backward, expected, name));
      double largest = 1e-3;
      for (const double x : want) largest = std::max(largest, std::fabs(x));
      for (size_t i = 0; i < want.size(); ++i) ASSERT_LE(std::fabs(got[i] - want[i]), 1e-2 * largest) << name << " " << i;
    }
  }
};

TEST_F(Gradients, OfAttention) {
  const int64_t shapes[][5] = {{1, 1, 1, 1, 1},    {2, 64, 64, 4, 2},   {1, 129, 200, 3, 1},
                               {1, 300, 65, 2, 1}, {1, 257, 257, 2, 2}, {1, 8, 0, 1, 1}};
  for (const char* type : kTypes16) {
    for (const char* head : {"d64_", "d128_"}) {
      for (const char* mask : {"", "causal_"}) {
        const std::string kind = std::string(mask) + head + type;
        std::vector<Variant> variants = Variants("attention_backward_" + kind);
        variants.emplace_back();  // the defaults
        for (const Variant& variant : variants) {
          constants_ = variant.constants;
          for (const auto& [batch, q, kv, heads, heads_kv] : shapes)
            CheckGradients(kind, {{"batch", batch}, {"seq_q", q}, {"seq_kv", kv}, {"heads", heads}, {"heads_kv", heads_kv}});
        }
        constants_.clear();
      }
    }
  }
}

TEST_F(Gradients, SanitizerShape) {
  const Dims dims = {{"batch", 1}, {"seq_q", 130}, {"seq_kv", 136}, {"heads", 2}, {"heads_kv", 1}};
  for (const char* kind : {"d64_bf16", "causal_d128_bf16"}) CheckGradients(kind, dims);
}

// One small shape of each kernel: what runs under compute-sanitizer.
TEST_F(StdKernels, SanitizerShapes) {
  Check("transpose_bf16", {{"M", 65}, {"N", 72}}, 0);
  for (const char* order : {"nn", "nt", "tn", "tt"}) {
    Check(std::string("gemm_") + order + "_bf16", {{"M", 136}, {"N", 72}, {"K", 168}}, 4.0 * 169 * 0x1p-24);
    Check(std::string("gemm_") + order + "_f16", {{"M", 65}, {"N", 67}, {"K", 35}}, 4.0 * 36 * 0x1p-24);
  }
  Check("gemv_bf16", {{"N", 9}, {"K", 520}}, 4.0 * 521 * 0x1p-24);
  for (const char* rows : {"rms_norm_bf16", "softmax_bf16", "layer_norm_bf16"}) {
    Check(rows, {{"M", 2}, {"N", 8200}}, 0x1p-14);
    Check(rows, {{"M", 2}, {"N", 77}}, 0x1p-14);
  }
  for (const char* entry : {"attention_d64_bf16", "attention_causal_d128_bf16"}) {
    Check(entry, {{"batch", 1}, {"seq_q", 130}, {"seq_kv", 136}, {"heads", 2}, {"heads_kv", 1}}, 0x1p-7);
  }
}

// The same call gives the same bits every time.
TEST_F(StdKernels, Deterministic) {
  for (const char* entry : {"gemm_nt_bf16", "attention_causal_d128_bf16", "rms_norm_bf16", "softmax_f16"}) {
    const auto program = FindProgram(*file_, entry);
    ASSERT_TRUE(program.ok());
    const Dims dims = {{"M", 300},     {"N", 520},      {"K", 1000},  {"batch", 2},
                       {"seq_q", 300}, {"seq_kv", 300}, {"heads", 4}, {"heads_kv", 2}};
    auto call = MakeArguments(*program, dims, 5);
    ASSERT_TRUE(call.ok()) << call.status();
    std::set<std::vector<uint8_t>> results;
    for (int repeat = 0; repeat < 100; ++repeat) {
      const auto run = tool::DeviceCall::Make(*device_, *program, {}, *call);
      ASSERT_TRUE(run.ok()) << run.status();
      ASSERT_TRUE((*run)->Launch().ok());
      ASSERT_TRUE((*run)->Finish(*call).ok());
      results.insert(call->arrays.back().bytes);
    }
    EXPECT_EQ(results.size(), 1u) << entry;
  }
}

}  // namespace
}  // namespace tilert::gpu
