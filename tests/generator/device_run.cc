#include "tests/generator/device_run.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "ir/status_util.h"
#include "tools/device.h"

namespace tilert {
namespace {

constexpr uint8_t kCanary = 0x5c;
constexpr uint64_t kGuardBytes = 4096;

// Device memory between two guard regions.
class GuardedTensor {
 public:
  // `shift`: bytes behind a multiple of 256 at which it begins.
  static absl::StatusOr<GuardedTensor> Allocate(const cuda::Driver& driver, uint64_t bytes, uint64_t shift) {
    GuardedTensor tensor;
    tensor.front_ = kGuardBytes + shift;
    tensor.bytes_ = bytes;
    TILERT_ASSIGN_OR_RETURN(tensor.memory_, tool::DeviceMemory::Allocate(driver, tensor.size()));
    const std::vector<uint8_t> canaries(tensor.size(), kCanary);
    TILERT_RETURN_IF_ERROR(driver.MemcpyHtoD(tensor.memory_.address(), canaries.data(), canaries.size()));
    return tensor;
  }
  cuda::DevicePtr address() const { return memory_.address() + front_; }
  void* data() const { return reinterpret_cast<void*>(address()); }

  // DataLoss where a byte outside was written.
  absl::Status Check(const cuda::Driver& driver, const std::string& name) const {
    std::vector<uint8_t> all(size());
    TILERT_RETURN_IF_ERROR(driver.MemcpyDtoH(all.data(), memory_.address(), all.size()));
    for (uint64_t i = 0; i < all.size(); ++i) {
      if (all[i] != kCanary && (i < front_ || i >= front_ + bytes_))
        return absl::DataLossError(
            Cat("byte ", static_cast<int64_t>(i - front_), " of ", name, ", which has ", bytes_, ", was written"));
    }
    return absl::OkStatus();
  }

 private:
  uint64_t size() const { return front_ + bytes_ + kGuardBytes; }

  tool::DeviceMemory memory_;
  uint64_t front_ = 0, bytes_ = 0;
};

absl::Status RunOnce(tool::Device& device, Kernel& kernel, const DeviceRunOptions& options, CallData* call) {
  const cuda::Driver& driver = device.driver();
  std::vector<GuardedTensor> memory;
  std::vector<TensorArg> tensors = call->Args();
  for (size_t i = 0; i < call->tensors.size(); ++i) {
    const std::vector<uint8_t>& bytes = call->tensors[i].bytes;
    const uint64_t shift = options.aligned ? 0 : static_cast<uint64_t>(DTypeBytes(call->tensors[i].dtype));
    TILERT_ASSIGN_OR_RETURN(GuardedTensor part, GuardedTensor::Allocate(driver, bytes.size(), shift));
    TILERT_RETURN_IF_ERROR(driver.MemcpyHtoD(part.address(), bytes.data(), bytes.size()));
    tensors[i].data = part.data();
    memory.push_back(std::move(part));
  }
  LaunchRequest request;
  request.tensors = tensors;
  request.scalars = call->scalars;
  TILERT_ASSIGN_OR_RETURN(request.workspace_bytes, kernel.WorkspaceBytes(tensors, call->scalars));
  TILERT_ASSIGN_OR_RETURN(const GuardedTensor workspace, GuardedTensor::Allocate(driver, request.workspace_bytes, 0));
  request.workspace = workspace.data();
  TILERT_RETURN_IF_ERROR(kernel.Launch(request));
  TILERT_RETURN_IF_ERROR(driver.CtxSynchronize());
  if (options.plant && !memory.empty()) TILERT_RETURN_IF_ERROR(driver.MemcpyHtoD(memory[0].address() - 1, "", 1));
  for (size_t i = 0; i < memory.size(); ++i) {
    std::vector<uint8_t>& bytes = call->tensors[i].bytes;
    TILERT_RETURN_IF_ERROR(driver.MemcpyDtoH(bytes.data(), memory[i].address(), bytes.size()));
    TILERT_RETURN_IF_ERROR(memory[i].Check(driver, Cat("tensor ", i)));
  }
  return workspace.Check(driver, "the workspace");
}

absl::StatusOr<tool::Device*> DeviceOf(const std::string& family) {
  static auto& devices = *new std::map<std::string, std::unique_ptr<tool::Device>>;
  std::unique_ptr<tool::Device>& device = devices[family];
  if (device == nullptr) {
    RuntimeOptions options;
    options.compile_deadline = std::chrono::minutes(5);  // other processes compile, too
    options.family = family;
    options.cache_directory = "";
    TILERT_ASSIGN_OR_RETURN(device, tool::Device::Open(std::move(options)));
  }
  return device.get();
}

}  // namespace

absl::Status RunOnDevice(const Program& program, const DeviceRunOptions& options, CallData* call) {
  TILERT_ASSIGN_OR_RETURN(tool::Device* const device, DeviceOf(options.family));
  TILERT_ASSIGN_OR_RETURN(const std::shared_ptr<Kernel> kernel,
                          Kernel::Create(device->runtime(), program, {program.name, {}, {}}));
  TILERT_RETURN_IF_ERROR(kernel->Prepare());
  const CallData before = *call;
  for (int i = 0; i < options.times; ++i) {
    const CallData last = std::exchange(*call, before);
    TILERT_RETURN_IF_ERROR(RunOnce(*device, *kernel, options, call));
    if (i == 0) continue;
    const std::string difference = FirstDifference(program, *call, last);
    if (!difference.empty()) return Internal("two runs differ: ", difference);
  }
  return absl::OkStatus();
}

}  // namespace tilert
