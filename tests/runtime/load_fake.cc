#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "tests/runtime/fake_libcuda.h"

namespace tilert {

FakeCuda* LoadFakeCuda(bool old_driver) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string path = self.parent_path() / (old_driver ? "fake_libcuda_old.so" : "fake_libcuda.so");
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  setenv("TILERT_LIBCUDA", path.c_str(), 1);
  auto* const get = reinterpret_cast<FakeCuda* (*)()>(dlsym(handle, "fake_cuda"));
  return get != nullptr ? get() : nullptr;
}

}  // namespace tilert
