#include "tools/device.h"

#include <utility>

#include "ir/status_util.h"

namespace tilert::tool {

absl::StatusOr<std::unique_ptr<Device>> Device::Open(RuntimeOptions options) {
  std::unique_ptr<Device> device(new Device());
  TILERT_ASSIGN_OR_RETURN(device->driver_, cuda::Driver::Load());
  TILERT_RETURN_IF_ERROR(device->driver_->DeviceGet(&device->device_, 0));
  cuda::Context context = nullptr;
  TILERT_RETURN_IF_ERROR(device->driver_->DevicePrimaryCtxRetain(&context, device->device_));
  device->retained_ = true;
  TILERT_RETURN_IF_ERROR(device->driver_->CtxSetCurrent(context));
  TILERT_ASSIGN_OR_RETURN(device->runtime_, Runtime::Create(std::move(options)));
  return device;
}

Device::~Device() {
  runtime_.reset();
  if (retained_) driver_->DevicePrimaryCtxRelease(device_).IgnoreError();
}

absl::StatusOr<DeviceMemory> DeviceMemory::Allocate(const cuda::Driver& driver, uint64_t bytes) {
  DeviceMemory memory;
  memory.driver_ = &driver;
  if (bytes > 0) TILERT_RETURN_IF_ERROR(driver.MemAlloc(&memory.address_, bytes));
  return memory;
}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(address_, other.address_);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (address_ != 0) driver_->MemFree(address_).IgnoreError();
}

absl::StatusOr<std::unique_ptr<DeviceCall>> DeviceCall::Make(Device& device, Program program,
                                                             const std::map<std::string, int64_t>& constants,
                                                             CallArguments& arguments) {
  const KernelSpec spec{program.name, constants, {}};
  return Make(device, Kernel::Create(device.runtime(), std::move(program), spec), arguments);
}

absl::StatusOr<std::unique_ptr<DeviceCall>> DeviceCall::Make(Device& device, const ChosenProgram& chosen,
                                                             CallArguments& arguments) {
  if (chosen.bundle == nullptr) return Make(device, *chosen.program, chosen.constants, arguments);
  const KernelSpec spec{chosen.program->name, chosen.constants, {}};
  return Make(device, Kernel::Create(device.runtime(), chosen.bundle, spec), arguments);
}

absl::StatusOr<std::unique_ptr<DeviceCall>> DeviceCall::Make(Device& device, absl::StatusOr<std::shared_ptr<Kernel>> kernel,
                                                             CallArguments& arguments) {
  std::unique_ptr<DeviceCall> call(new DeviceCall(device));
  TILERT_ASSIGN_OR_RETURN(call->kernel_, std::move(kernel));
  TILERT_RETURN_IF_ERROR(call->kernel_->Prepare());
  for (Array& array : arguments.arrays) {
    TILERT_ASSIGN_OR_RETURN(DeviceMemory memory, DeviceMemory::Allocate(device.driver(), array.bytes.size()));
    if (!array.bytes.empty())
      TILERT_RETURN_IF_ERROR(device.driver().MemcpyHtoD(memory.address(), array.bytes.data(), array.bytes.size()));
    call->tensors_.push_back({memory.data(), array.dtype, array.shape, {}});
    call->memory_.push_back(std::move(memory));
  }
  TILERT_ASSIGN_OR_RETURN(const uint64_t bytes, call->kernel_->WorkspaceBytes(call->tensors_, arguments.scalars));
  TILERT_ASSIGN_OR_RETURN(call->workspace_, DeviceMemory::Allocate(device.driver(), bytes));
  call->request_.tensors = call->tensors_;
  call->request_.scalars = arguments.scalars;
  call->request_.workspace = call->workspace_.data();
  call->request_.workspace_bytes = bytes;
  return call;
}

absl::StatusOr<std::string> DeviceCall::ChoiceText() const {
  TILERT_ASSIGN_OR_RETURN(const KernelChoice choice, kernel_->Choice(request_.tensors, request_.scalars));
  std::string text = choice.schedule.empty() ? "defaults" : Cat("variant ", choice.schedule);
  for (const auto& [constant, value] : choice.constants) text += Cat(" ", constant, "=", value);
  if (choice.is_restrided) text += ", inputs copied to aligned rows";
  return choice.is_general ? text + ", code for any arguments" : text;
}

absl::Status DeviceCall::Launch(cuda::Stream stream) {
  request_.stream = stream;
  return kernel_->Launch(request_);
}

absl::Status DeviceCall::Finish(CallArguments& arguments) {
  TILERT_RETURN_IF_ERROR(device_.driver().CtxSynchronize());
  for (size_t i = 0; i < memory_.size(); ++i) {
    std::vector<uint8_t>& bytes = arguments.arrays[i].bytes;
    if (!bytes.empty()) TILERT_RETURN_IF_ERROR(device_.driver().MemcpyDtoH(bytes.data(), memory_[i].address(), bytes.size()));
  }
  return absl::OkStatus();
}

}  // namespace tilert::tool
