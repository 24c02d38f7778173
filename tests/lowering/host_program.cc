#include "host_program.h"

#include <cmath>
#include <random>

#include "gtest/gtest.h"
#include "ir/executor.h"
#include "ir/numeric.h"

namespace tilert {
namespace {

std::vector<TensorArg> Args(const std::vector<HostTensor>& tensors) {
  std::vector<TensorArg> args;
  for (const HostTensor& t : tensors) args.push_back({t.memory->data(), t.dtype, t.shape, {}});
  return args;
}

}  // namespace

int64_t HostTensor::count() const {
  int64_t n = 1;
  for (int64_t extent : shape) n *= extent;
  return n;
}

double HostTensor::At(int64_t i) const {
  Value value;
  LoadRow(dtype, memory->data() + i * DTypeBytes(dtype), 1, 1, &value);
  return IsFloat(dtype) ? value.f : static_cast<double>(value.i);
}

void FillSmall(HostTensor& t, uint32_t seed) {
  std::mt19937 random(seed);
  for (int64_t i = 0; i < t.count(); ++i) {
    const int small = static_cast<int>(random() % 7) - 3;
    Value value;
    if (IsFloat(t.dtype)) {
      value.f = small;
    } else {
      value.i = small;
    }
    StoreRow(t.dtype, &value, 1, t.memory->data() + i * DTypeBytes(t.dtype), 1);
  }
}

HostProgram::HostProgram(Program program, bool fast, const std::string& arch) : program_(std::move(program)) {
  const Target target = *FindTarget(arch);
  absl::StatusOr<Lowered> lowered = Lower(program_, fast ? FastArgClass(program_) : GeneralArgClass(program_), target);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  if (!lowered.ok()) return;
  lowered_ = *std::move(lowered);
  std::string error;
  kernels_ = HostKernels::Build(lowered_, target, &error);
  EXPECT_NE(kernels_, nullptr) << error << lowered_.source.substr(Prelude(target).size());
}

void HostProgram::Check(const std::vector<std::vector<int64_t>>& shapes, const FillFunction& fill,
                        const std::function<double(DType)>& relative, double absolute) {
  if (kernels_ == nullptr) return;
  const std::vector<HostTensor> expected = Make(shapes, fill), got = Make(shapes, fill);
  const absl::Status executed = Execute(program_, Args(expected), {});
  ASSERT_TRUE(executed.ok()) << executed;
  Launch(got);
  for (size_t p = 0; p < got.size(); ++p) {
    const std::string& name = program_.buffers[program_.params[p].index].name;
    EXPECT_TRUE(got[p].memory->Intact()) << "written outside " << name;
    int reported = 0;
    for (int64_t i = 0; i < got[p].count() && reported < 5; ++i) {
      const double want = expected[p].At(i), have = got[p].At(i);
      if (want == have || (std::isnan(want) && std::isnan(have))) continue;
      if (std::fabs(want - have) <= relative(got[p].dtype) * std::fabs(want) + absolute) continue;
      ++reported;
      ADD_FAILURE() << name << " element " << i << ": " << have << " instead of " << want;
    }
  }
}

std::vector<HostTensor> HostProgram::Make(const std::vector<std::vector<int64_t>>& shapes, const FillFunction& fill) const {
  std::vector<HostTensor> tensors;
  for (const Param& param : program_.params) {
    HostTensor t{program_.buffers[param.index].dtype, shapes[tensors.size()], nullptr};
    t.memory = std::make_unique<GuardedMemory>(static_cast<size_t>(t.count() * DTypeBytes(t.dtype)));
    if (param.access != Access::kOut) fill(t, static_cast<uint32_t>(tensors.size()) + 1);
    tensors.push_back(std::move(t));
  }
  return tensors;
}

void HostProgram::Launch(const std::vector<HostTensor>& tensors) const {
  BoundArgs bound;
  ASSERT_TRUE(BindArgs(program_, Args(tensors), {}, &bound).ok());
  for (size_t k = 0; k < lowered_.kernels.size(); ++k) {
    const LoweredKernel& kernel = lowered_.kernels[k];
    int64_t blocks = 1;
    for (Expr extent : kernel.grid) blocks *= *EvalBound(program_, extent, bound);
    std::vector<void*> pointers(kernel.args.size()), args;
    std::vector<int64_t> wide(kernel.args.size());
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

}  // namespace tilert
