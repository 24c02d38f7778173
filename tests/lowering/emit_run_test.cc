// Emitted sources, run on the host, give the executor's results.
#include <array>
#include <cmath>
#include <memory>
#include <random>

#include "gtest/gtest.h"
#include "host_kernel.h"
#include "ir/executor.h"
#include "sample_programs.h"

namespace tilert {
namespace {

struct Tensor {
  DType dtype = DType::kInvalid;
  std::vector<int64_t> shape;
  std::unique_ptr<GuardedMemory> memory;
  int64_t count() const {
    int64_t n = 1;
    for (int64_t extent : shape) n *= extent;
    return n;
  }
};

// Small integers: sums of their products are exact.
void FillRandom(Tensor& t, uint32_t seed, int range) {
  std::mt19937 random(seed);
  for (int64_t i = 0; i < t.count(); ++i) {
    Value value{.f = static_cast<double>(static_cast<int>(random() % (2 * range + 1)) - range)};
    if (!IsFloat(t.dtype)) value.i = static_cast<int>(random() % (2 * range + 1)) - range;
    StoreRow(t.dtype, &value, 1, t.memory->data() + i * DTypeBytes(t.dtype), 1);
  }
}

double At(const Tensor& t, int64_t i) {
  Value value;
  LoadRow(t.dtype, t.memory->data() + i * DTypeBytes(t.dtype), 1, 1, &value);
  return IsFloat(t.dtype) ? value.f : static_cast<double>(value.i);
}

class Runner {
 public:
  Runner(Program program, const ArgClass& args) : program_(std::move(program)) {
    target_ = *FindTarget("sm_80");
    absl::StatusOr<Lowered> lowered = Lower(program_, args, target_);
    EXPECT_TRUE(lowered.ok()) << lowered.status();
    if (!lowered.ok()) return;
    lowered_ = *std::move(lowered);
    std::string error;
    kernels_ = HostKernels::Build(lowered_, target_, &error);
    EXPECT_NE(kernels_, nullptr) << error << lowered_.source.substr(Prelude(target_).size());
  }

  // Runs with the tensors' shapes given in parameter order; every output element must be within `relative`·|expected| + `absolute`.
  void Check(const std::vector<std::vector<int64_t>>& shapes, int range, double relative, double absolute) {
    if (kernels_ == nullptr) return;
    std::vector<Tensor> expected = Make(shapes, range), got = Make(shapes, range);
    const std::vector<TensorArg> args = Args(expected);
    const absl::Status executed = Execute(program_, args, {});
    ASSERT_TRUE(executed.ok()) << executed;
    Launch(got);
    for (size_t p = 0; p < got.size(); ++p) {
      EXPECT_TRUE(got[p].memory->Intact()) << "written outside tensor " << p;
      int reported = 0;
      for (int64_t i = 0; i < got[p].count() && reported < 5; ++i) {
        const double want = At(expected[p], i), have = At(got[p], i);
        if (std::fabs(want - have) <= relative * std::fabs(want) + absolute || (std::isnan(want) && std::isnan(have))) continue;
        ++reported;
        ADD_FAILURE() << "tensor " << p << " element " << i << ": " << have << " instead of " << want;
      }
    }
  }

 private:
  std::vector<Tensor> Make(const std::vector<std::vector<int64_t>>& shapes, int range) {
    std::vector<Tensor> tensors;
    for (const Param& param : program_.params) {
      Tensor t{program_.buffers[param.index].dtype, shapes[tensors.size()], nullptr};
      t.memory = std::make_unique<GuardedMemory>(static_cast<size_t>(t.count() * DTypeBytes(t.dtype)));
      if (param.access != Access::kOut) FillRandom(t, static_cast<uint32_t>(tensors.size()) + 1, range);
      tensors.push_back(std::move(t));
    }
    return tensors;
  }
  static std::vector<TensorArg> Args(const std::vector<Tensor>& tensors) {
    std::vector<TensorArg> args;
    for (const Tensor& t : tensors) args.push_back({t.memory->data(), t.dtype, t.shape, {}});
    return args;
  }
  void Launch(const std::vector<Tensor>& tensors) {
    BoundArgs bound;
    ASSERT_TRUE(BindArgs(program_, Args(tensors), {}, &bound).ok());
    for (size_t k = 0; k < lowered_.kernels.size(); ++k) {
      const LoweredKernel& kernel = lowered_.kernels[k];
      int64_t blocks = 1;
      for (Expr extent : kernel.grid) blocks *= *EvalBound(program_, extent, bound);
      std::vector<void*> pointers(kernel.args.size());
      std::vector<int64_t> wide(kernel.args.size());
      std::vector<void*> args;
      for (size_t i = 0; i < kernel.args.size(); ++i) {
        const KernelArg& arg = kernel.args[i];
        if (arg.kind == KernelArg::Kind::kTensor) {
          for (size_t p = 0; p < program_.params.size(); ++p) {
            if (program_.params[p].index == arg.index) pointers[i] = tensors[p].memory->data();
          }
          args.push_back(&pointers[i]);
        } else {
          wide[i] = bound.dims[arg.index];  // little-endian: the low half is the 32-bit value
          args.push_back(&wide[i]);
        }
      }
      EXPECT_TRUE(kernels_->Run(k, static_cast<uint32_t>(blocks), 17, args)) << "threads wait for each other";
    }
  }

  Program program_;
  Target target_;
  Lowered lowered_;
  std::unique_ptr<HostKernels> kernels_;
};

void CheckGemm(const GemmSample& sample, bool fast, const std::vector<std::array<int64_t, 3>>& sizes) {
  Program program = GemmProgram(sample);
  const ArgClass args = fast ? FastArgClass(program) : GeneralArgClass(program);
  Runner runner(std::move(program), args);
  for (auto [m, n, k] : sizes) {
    SCOPED_TRACE(testing::Message() << "M " << m << " N " << n << " K " << k);
    const std::vector<int64_t> a = {m, k}, at = {k, m}, b = {k, n}, bt = {n, k};
    runner.Check({sample.transpose_a ? at : a, sample.transpose_b ? bt : b, {m, n}}, 2, 0, 0);
  }
}

TEST(EmitRun, GemmOfEveryTransposition) {
  for (bool ta : {false, true}) {
    for (bool tb : {false, true}) {
      SCOPED_TRACE(testing::Message() << "transposed " << ta << tb);
      GemmSample sample;
      sample.transpose_a = ta;
      sample.transpose_b = tb;
      CheckGemm(sample, true, {{64, 64, 32}, {72, 88, 104}, {64, 128, 0}});
    }
  }
}

TEST(EmitRun, GemmOfAnyExtent) {
  GemmSample sample;
  sample.dtype = sample.result = DType::kFloat16;
  CheckGemm(sample, false, {{1, 1, 1}, {65, 63, 33}, {17, 131, 71}});
}

TEST(EmitRun, GemmWithPanelsAndManyWarps) {
  GemmSample sample{128, 64, 64, 4, 256};
  sample.transpose_b = true;
  sample.swizzle = 2;
  sample.result = DType::kFloat32;
  CheckGemm(sample, true, {{640, 192, 128}});
}

TEST(EmitRun, GemmOfOddTiles) {
  GemmSample sample{48, 24, 32, 2, 96};
  sample.transpose_b = true;
  CheckGemm(sample, true, {{48, 24, 64}, {56, 40, 8}});
}

TEST(EmitRun, AddWithTail) {
  for (DType type : {DType::kBFloat16, DType::kInt8, DType::kFloat64}) {
    for (bool fast : {true, false}) {
      SCOPED_TRACE(std::string(DTypeName(type)));
      Program program = AddProgram(512, 128, type);
      const ArgClass args = fast ? FastArgClass(program) : GeneralArgClass(program);
      Runner runner(std::move(program), args);
      for (int64_t n : {1, 511, 512, 513, 1021}) runner.Check({{n}, {n}, {n}}, 50, 0, 0);
    }
  }
}

TEST(EmitRun, Transpose) {
  for (DType type : {DType::kBFloat16, DType::kInt8}) {
    Program fast = TransposeProgram(64, 128, type), general = TransposeProgram(64, 128, type);
    const ArgClass fast_args = FastArgClass(fast), general_args = GeneralArgClass(general);
    Runner(std::move(fast), fast_args).Check({{128, 80}, {80, 128}}, 100, 0, 0);
    Runner(std::move(general), general_args).Check({{67, 131}, {131, 67}}, 100, 0, 0);
  }
}

TEST(EmitRun, RmsNorm) {
  Program program = RmsNormProgram(2, 520, 128);
  const ArgClass args = FastArgClass(program);
  Runner(std::move(program), args).Check({{5, 520}, {520}, {5, 520}}, 3, 1.0 / 128, 1e-3);
}

TEST(EmitRun, Attention) {
  for (bool causal : {false, true}) {
    Program program = AttentionProgram(64, 32, 64, 2, 128, causal);
    const ArgClass args = FastArgClass(program);
    Runner(std::move(program), args).Check({{1, 2, 100, 64}, {1, 2, 100, 64}, {1, 2, 100, 64}, {1, 2, 100, 64}}, 1, 1.0 / 64, 1e-2);
  }
}

}  // namespace
}  // namespace tilert
