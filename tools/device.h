// A GPU as the tool uses it: the primary context of the first device, device memory for arrays.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/kernel.h"
#include "runtime/runtime.h"
#include "tools/arguments.h"
#include "tools/input.h"

namespace tilert::tool {

// Owns a reference to the primary context of device 0 and a runtime in it. Not thread safe.
class Device {
 public:
  // What is missing where there is no GPU: the errors of Driver::Load and Runtime::Create.
  static absl::StatusOr<std::unique_ptr<Device>> Open(RuntimeOptions options);
  ~Device();
  Device(const Device&) = delete;

  const std::shared_ptr<Runtime>& runtime() const { return runtime_; }
  const cuda::Driver& driver() const { return *driver_; }

 private:
  Device() = default;
  std::shared_ptr<const cuda::Driver> driver_;
  cuda::Device device_ = 0;
  bool retained_ = false;
  std::shared_ptr<Runtime> runtime_;
};

// Device memory, freed with the object, which must not outlive the device.
class DeviceMemory {
 public:
  static absl::StatusOr<DeviceMemory> Allocate(const cuda::Driver& driver, uint64_t bytes);
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();
  void* data() const { return reinterpret_cast<void*>(address_); }
  cuda::DevicePtr address() const { return address_; }

 private:
  const cuda::Driver* driver_ = nullptr;
  cuda::DevicePtr address_ = 0;
};

// One call on the device: copies of the arrays, the workspace, the prepared kernel.
class DeviceCall {
 public:
  static absl::StatusOr<std::unique_ptr<DeviceCall>> Make(Device& device, Program program,
                                                          const std::map<std::string, int64_t>& constants,
                                                          CallArguments& arguments);
  // With the variants of the bundle that the program is from.
  static absl::StatusOr<std::unique_ptr<DeviceCall>> Make(Device& device, const ChosenProgram& chosen, CallArguments& arguments);
  // Queues the launches on `stream`.
  absl::Status Launch(cuda::Stream stream = nullptr);
  // Waits, and copies every array back.
  absl::Status Finish(CallArguments& arguments);
  const Kernel& kernel() const { return *kernel_; }
  // What Launch runs, in words: "variant 128x256: block_M=128, …".
  absl::StatusOr<std::string> ChoiceText() const;

 private:
  explicit DeviceCall(Device& device) : device_(device) {}
  static absl::StatusOr<std::unique_ptr<DeviceCall>> Make(Device& device, absl::StatusOr<std::shared_ptr<Kernel>> kernel,
                                                          CallArguments& arguments);
  Device& device_;
  std::shared_ptr<Kernel> kernel_;
  std::vector<DeviceMemory> memory_;
  DeviceMemory workspace_;
  std::vector<TensorArg> tensors_;
  LaunchRequest request_;
};

}  // namespace tilert::tool
