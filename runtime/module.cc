#include "runtime/module.h"

#include <cstring>

#include "ir/status_util.h"

namespace tilert {
namespace {

// Dynamic shared memory that a function may use without asking.
constexpr uint32_t kDefaultSharedBytes = 48 * 1024;

absl::Status WithLog(const absl::Status& status, const std::vector<char>& log) {
  const std::string text(log.data(), strnlen(log.data(), log.size()));
  if (status.ok() || text.empty()) return status;
  return absl::Status(status.code(), absl::StrCat(status.message(), "\n", text));
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedModule>> LoadedModule::Load(std::shared_ptr<const cuda::Driver> driver,
                                                                 const std::string& code,
                                                                 const std::vector<FunctionRequest>& requests) {
  std::unique_ptr<LoadedModule> module(new LoadedModule(std::move(driver)));
  TILERT_RETURN_IF_ERROR(module->LoadImage(code));
  for (const FunctionRequest& request : requests) {
    TILERT_ASSIGN_OR_RETURN(const cuda::Function function, module->Resolve(request));
    module->functions_.push_back(function);
  }
  return module;
}

LoadedModule::~LoadedModule() {
  // Errors are of no use here: at exit the driver may have gone before us.
  if (library_ != nullptr) (void)driver_->LibraryUnload(library_);
  if (module_ != nullptr) (void)driver_->ModuleUnload(module_);
}

absl::Status LoadedModule::LoadImage(const std::string& code) {
  std::vector<char> log(4096);
  int options[] = {cuda::kJitErrorLogBuffer, cuda::kJitErrorLogBufferSizeBytes};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
  const cuda::DriverTable& table = driver_->raw();
  if (table.LibraryLoadData != nullptr && table.LibraryGetKernel != nullptr && table.KernelGetFunction != nullptr &&
      table.LibraryUnload != nullptr) {
    return WithLog(
        driver_->LibraryLoadData(&library_, static_cast<const void*>(code.data()), options, values, 2u, nullptr, nullptr, 0u),
        log);
  }
  return WithLog(driver_->ModuleLoadDataEx(&module_, static_cast<const void*>(code.data()), 2u, options, values), log);
}

absl::StatusOr<cuda::Function> LoadedModule::Resolve(const FunctionRequest& request) const {
  cuda::Function function = nullptr;
  if (library_ != nullptr) {
    cuda::Kernel kernel = nullptr;
    TILERT_RETURN_IF_ERROR(driver_->LibraryGetKernel(&kernel, library_, request.symbol.c_str()));
    TILERT_RETURN_IF_ERROR(driver_->KernelGetFunction(&function, kernel));
  } else {
    TILERT_RETURN_IF_ERROR(driver_->ModuleGetFunction(&function, module_, request.symbol.c_str()));
  }
  // Static shared memory counts against the same limit, and whoever loads the code first may have raised it: only ever raise.
  int granted = 0;
  TILERT_RETURN_IF_ERROR(driver_->FuncGetAttribute(&granted, cuda::kFuncMaxDynamicSharedSizeBytes, function));
  if (request.shared_bytes > kDefaultSharedBytes && static_cast<int64_t>(request.shared_bytes) > granted) {
    TILERT_RETURN_IF_ERROR(
        driver_->FuncSetAttribute(function, cuda::kFuncMaxDynamicSharedSizeBytes, static_cast<int>(request.shared_bytes)));
  }
  // With lazy loading the code would otherwise be loaded by the first launch, which a capture forbids.
  if (driver_->raw().FuncLoad != nullptr) {
    TILERT_RETURN_IF_ERROR(driver_->FuncLoad(function));
  } else {
    int registers = 0;
    TILERT_RETURN_IF_ERROR(driver_->FuncGetAttribute(&registers, cuda::kFuncNumRegs, function));
  }
  return function;
}

}  // namespace tilert
