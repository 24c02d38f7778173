// The shared library as a host loads it: opened, used, closed; again and again; across fork; and left in use at exit.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/sample_bundles.h"
#include "tilert/tilert.h"

namespace {

std::string LibraryPath() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "libtilert.so";
}

struct Library {
  Library() : handle(dlopen(LibraryPath().c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle == nullptr) return;
    auto* const get = reinterpret_cast<const tilert_api* (*)(uint32_t)>(dlsym(handle, "tilert_get_api"));
    if (get != nullptr) api = get(TILERT_API_VERSION);
  }
  ~Library() {
    if (handle != nullptr) dlclose(handle);
  }
  void* handle;
  const tilert_api* api = nullptr;
};

struct Objects {
  tilert_runtime* runtime = nullptr;
  tilert_bundle* bundle = nullptr;
  tilert_kernel* kernel = nullptr;
};

bool Make(const tilert_api* api, const std::string& bytes, Objects& objects) {
  tilert_runtime_options options = {};
  options.struct_size = sizeof options;
  options.device = TILERT_DEVICE_CPU;
  tilert_kernel_spec spec = {};
  spec.struct_size = sizeof spec;
  spec.entry = "scale";
  return api->runtime_create(&options, &objects.runtime) == nullptr &&
         api->bundle_open_memory(bytes.data(), bytes.size(), 1, &objects.bundle) == nullptr &&
         api->kernel_create(objects.runtime, objects.bundle, &spec, &objects.kernel) == nullptr;
}

bool LaunchOnce(const tilert_api* api, tilert_kernel* kernel) {
  std::vector<float> x(1000, 3.0f), y(1000);
  const int64_t shape[] = {1000};
  tilert_arg args[3] = {};
  args[0].data = x.data(), args[1].data = y.data();
  for (int i = 0; i < 2; ++i) args[i].dtype = TILERT_FLOAT32, args[i].shape = shape, args[i].rank = 1;
  args[2].kind = TILERT_REAL, args[2].real = 2.0;
  const tilert_launch launch = {sizeof launch, nullptr, args, 3, nullptr, 0};
  tilert_status* status = api->kernel_launch(kernel, &launch);
  const bool ok = status == nullptr && y[0] == 6.0f && y[999] == 6.0f;
  api->status_release(status);
  return ok;
}

void Release(const tilert_api* api, const Objects& objects) {
  api->kernel_release(objects.kernel);
  api->bundle_release(objects.bundle);
  api->runtime_release(objects.runtime);
}

#if defined(__has_feature)
#define TILERT_HAS_FEATURE(name) __has_feature(name)
#else
#define TILERT_HAS_FEATURE(name) 0
#endif

// 0 under sanitizers, which keep freed memory.
int64_t ResidentKilobytes() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || TILERT_HAS_FEATURE(address_sanitizer) || \
    TILERT_HAS_FEATURE(thread_sanitizer)
  return 0;
#endif
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE) / 1024;
}

class Lifecycle : public ::testing::Test {
 protected:
  void SetUp() override {
    if (access(LibraryPath().c_str(), R_OK) != 0) GTEST_SKIP() << LibraryPath() << " is not built";
  }
  const std::string bytes_ = tilert::ScaleBundle();
};

TEST_F(Lifecycle, OpenUseCloseManyTimes) {
  int64_t settled = 0;
  for (int i = 0; i < 60; ++i) {
    Library library;
    ASSERT_NE(library.api, nullptr) << dlerror();
    Objects objects;
    ASSERT_TRUE(Make(library.api, bytes_, objects));
    std::thread([&] { EXPECT_TRUE(LaunchOnce(library.api, objects.kernel)); }).join();
    Release(library.api, objects);
    if (i == 20) settled = ResidentKilobytes();
  }
  EXPECT_LT(ResidentKilobytes(), settled + 4096) << "memory grows";
}

TEST_F(Lifecycle, LoadAndUnloadOfKernelsIsFlat) {
  Library library;
  ASSERT_NE(library.api, nullptr);
  int64_t settled = 0;
  for (int i = 0; i < 1500; ++i) {
    Objects objects;
    ASSERT_TRUE(Make(library.api, bytes_, objects));
    if (i % 50 == 0) {
      EXPECT_TRUE(LaunchOnce(library.api, objects.kernel));
    }
    Release(library.api, objects);
    if (i == 500) settled = ResidentKilobytes();
  }
  EXPECT_LT(ResidentKilobytes(), settled + 2048) << "memory grows";
}

// Runs `body` in a child; true if it exited with 0.
bool InChild(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(9);  // body must leave by itself
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(Lifecycle, ExitWithEverythingInUse) {
  EXPECT_TRUE(InChild([&] {
    static Library library;  // closed by a static destructor, objects never released
    static Objects objects;
    if (library.api == nullptr || !Make(library.api, bytes_, objects)) _exit(1);
    std::thread([&] {
      for (;;) LaunchOnce(library.api, objects.kernel);
    }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    // quick_exit runs no static destructors of ours, exit would pull the library from under the running thread: that is
    // the host's mistake. What must hold is that the library itself does nothing at exit.
    std::quick_exit(0);
  }));
  EXPECT_TRUE(InChild([&] {
    Library* const library = new Library;  // never closed
    Objects objects;
    if (library->api == nullptr || !Make(library->api, bytes_, objects) || !LaunchOnce(library->api, objects.kernel)) _exit(1);
    std::exit(0);
  }));
}

TEST_F(Lifecycle, ForkAfterUse) {
  Library library;
  ASSERT_NE(library.api, nullptr);
  Objects objects;
  ASSERT_TRUE(Make(library.api, bytes_, objects));
  ASSERT_TRUE(LaunchOnce(library.api, objects.kernel));
  EXPECT_TRUE(InChild([&] {
    Objects own;  // a child makes its own objects
    const bool ok = Make(library.api, bytes_, own) && LaunchOnce(library.api, own.kernel);
    Release(library.api, own);
    _exit(ok ? 0 : 1);
  }));
  EXPECT_TRUE(LaunchOnce(library.api, objects.kernel));
  Release(library.api, objects);
}

}  // namespace
