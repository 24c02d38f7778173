// Compiled code loaded into a context.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/driver.h"

namespace tilert {

struct FunctionRequest {
  std::string symbol;
  uint32_t shared_bytes = 0;  // dynamic shared memory that launches will ask for
};

// Immutable after Load, thread safe. Unloads its code when destroyed, whatever context is current then.
class LoadedModule {
 public:
  // Loads `code` (cubin, or PTX with its NUL) into the current context and resolves `requests`, forcing the load of each
  // function so that nothing is left to be loaded at launch. Uses libraries and kernels where the driver has them (12 or
  // later), modules elsewhere.
  // REQUIRES: no stream of this context is capturing in global mode.
  static absl::StatusOr<std::unique_ptr<LoadedModule>> Load(std::shared_ptr<const cuda::Driver> driver, const std::string& code,
                                                            const std::vector<FunctionRequest>& requests);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  // In the order of the requests.
  const std::vector<cuda::Function>& functions() const { return functions_; }

 private:
  explicit LoadedModule(std::shared_ptr<const cuda::Driver> driver) : driver_(std::move(driver)) {}
  absl::Status LoadImage(const std::string& code);
  absl::StatusOr<cuda::Function> Resolve(const FunctionRequest& request) const;

  std::shared_ptr<const cuda::Driver> driver_;
  cuda::Library library_ = nullptr;
  cuda::Module module_ = nullptr;
  std::vector<cuda::Function> functions_;
};

}  // namespace tilert
