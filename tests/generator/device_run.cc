#include "tests/generator/device_run.h"

#include "ir/status_util.h"
#include "tools/device.h"

namespace tilert {
namespace {

absl::Status RunOnce(tool::Device& device, Kernel& kernel, CallData* call) {
  const cuda::Driver& driver = device.driver();
  std::vector<tool::DeviceMemory> memory;
  std::vector<TensorArg> tensors = call->Args();
  for (size_t i = 0; i < call->tensors.size(); ++i) {
    const std::vector<uint8_t>& bytes = call->tensors[i].bytes;
    TILERT_ASSIGN_OR_RETURN(tool::DeviceMemory part, tool::DeviceMemory::Allocate(driver, bytes.size()));
    TILERT_RETURN_IF_ERROR(driver.MemcpyHtoD(part.address(), bytes.data(), bytes.size()));
    tensors[i].data = part.data();
    memory.push_back(std::move(part));
  }
  LaunchRequest request;
  request.tensors = tensors;
  request.scalars = call->scalars;
  TILERT_ASSIGN_OR_RETURN(request.workspace_bytes, kernel.WorkspaceBytes(tensors, call->scalars));
  TILERT_ASSIGN_OR_RETURN(const tool::DeviceMemory workspace, tool::DeviceMemory::Allocate(driver, request.workspace_bytes));
  request.workspace = workspace.data();
  TILERT_RETURN_IF_ERROR(kernel.Launch(request));
  TILERT_RETURN_IF_ERROR(driver.CtxSynchronize());
  for (size_t i = 0; i < memory.size(); ++i) {
    std::vector<uint8_t>& bytes = call->tensors[i].bytes;
    TILERT_RETURN_IF_ERROR(driver.MemcpyDtoH(bytes.data(), memory[i].address(), bytes.size()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunOnDevice(const Program& program, const std::string& family, int times, CallData* call) {
  RuntimeOptions options;
  options.family = family;
  options.cache_directory = "";
  TILERT_ASSIGN_OR_RETURN(const auto device, tool::Device::Open(std::move(options)));
  TILERT_ASSIGN_OR_RETURN(const std::shared_ptr<Kernel> kernel,
                          Kernel::Create(device->runtime(), program, {program.name, {}, {}}));
  TILERT_RETURN_IF_ERROR(kernel->Prepare());
  const CallData before = *call;
  for (int i = 0; i < times; ++i) {
    const CallData last = std::exchange(*call, before);
    TILERT_RETURN_IF_ERROR(RunOnce(*device, *kernel, call));
    if (i == 0) continue;
    const std::string difference = FirstDifference(program, *call, last);
    if (!difference.empty()) return Internal("two runs differ: ", difference);
  }
  return absl::OkStatus();
}

}  // namespace tilert
