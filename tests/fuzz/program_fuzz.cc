// Any bytes → ReadBundle → every program that verifies → Specialize → Lower for both families and both classes of arguments (with
// the KernelIr verified after every pass) and Execute on small tensors, with limits on statements and memory: a result or an
// error value, and never one that says that the fault is ours.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "ir/bundle.h"
#include "ir/executor.h"
#include "ir/flat_reader.h"
#include "ir/int_eval.h"
#include "ir/specialize.h"
#include "ir/verifier.h"
#include "lowering/lowered.h"
#include "lowering/target.h"

namespace tilert {
namespace {

constexpr int64_t kMaxElements = 1 << 14;  // of a tensor
constexpr size_t kMaxPrograms = 4;         // of a bundle

void RequireNotOurs(const absl::Status& status, const char* what) {
  if (status.code() != absl::StatusCode::kInternal && (status.ok() || !status.message().empty())) return;
  std::fprintf(stderr, "program_fuzz: %s: %s\n", what, status.ToString().c_str());
  std::abort();
}

void CheckLowering(const Program& program) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    for (const ArgClass& arg_class : {GeneralArgClass(program), FastArgClass(program)}) {
      LowerOptions options;
      options.verify_each = true;
      RequireNotOurs(Lower(program, arg_class, *FindTarget(arch), options).status(), arch);
    }
  }
}

// Arguments for a program whose dims are all `extent`.
class SmallArgs {
 public:
  SmallArgs(const Program& program, int64_t extent) {
    bound_.dims.assign(program.dims.size(), extent);
    for (const ScalarParam& scalar : program.scalars) {
      ScalarArg arg = ScalarArg::Int(scalar.dim != kNoId ? extent : 1, scalar.dtype);
      if (IsFloat(scalar.dtype)) arg = ScalarArg::Float(0.5, scalar.dtype);
      scalars_.push_back(arg);
      bound_.scalars.push_back(arg.value);
    }
    for (const Param& param : program.params) {
      if (param.kind == Param::Kind::kTensor) fits_ = fits_ && AddTensor(program, program.buffers[param.index]);
    }
  }

  absl::Status Run(const Program& program) {
    std::vector<TensorArg> tensors;
    for (size_t i = 0; i < tensors_.size(); ++i)
      tensors.push_back({memory_[i].data(), types_[i], tensors_[i].shape, tensors_[i].strides});
    ExecOptions options;
    options.threads = 1;
    options.check_races = options.check_unwritten = true;
    options.max_bytes = 1 << 20;
    options.max_steps = 20000;
    return Execute(program, tensors, scalars_, options);
  }
  bool fits() const { return fits_; }

 private:
  bool AddTensor(const Program& program, const Buffer& buffer) {
    BoundTensor& tensor = tensors_.emplace_back();
    if (!BindShape(program, buffer, bound_, &tensor).ok()) return false;
    int64_t elements = 1;
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      if (tensor.strides[d] < 0) return false;
      elements = AddIndex(elements, MulIndex(tensor.shape[d], tensor.strides[d]));
    }
    if (elements > kMaxElements) return false;
    std::vector<uint8_t>& bytes = memory_.emplace_back(static_cast<size_t>(elements * DTypeBytes(buffer.dtype)));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37 % 61);
    types_.push_back(buffer.dtype);
    return true;
  }

  BoundArgs bound_;
  std::vector<ScalarArg> scalars_;
  std::vector<BoundTensor> tensors_;
  std::vector<DType> types_;
  std::vector<std::vector<uint8_t>> memory_;
  bool fits_ = true;
};

void CheckProgram(const Program& program) {
  const absl::StatusOr<Program> special = Specialize(program, {});
  RequireNotOurs(special.status(), "specialise");
  if (!special.ok()) return;
  CheckLowering(*special);
  for (int64_t extent : {1, 17}) {
    SmallArgs args(*special, extent);
    if (args.fits()) RequireNotOurs(args.Run(*special), "execute");
  }
}

}  // namespace
}  // namespace tilert

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tilert::ReadOptions options;
  options.check_hash = false;
  const absl::StatusOr<tilert::Bundle> bundle =
      tilert::ReadBundle(std::string_view(reinterpret_cast<const char*>(data), size), options);
  if (!bundle.ok()) return 0;
  for (size_t i = 0; i < std::min(bundle->programs.size(), tilert::kMaxPrograms); ++i) {
    if (tilert::FindErrors(bundle->programs[i]).empty()) tilert::CheckProgram(bundle->programs[i]);
  }
  return 0;
}
