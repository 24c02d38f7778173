#include "tests/runtime/fake_libcuda.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

namespace tilert {
namespace cuda {

struct ContextHandle {
  int device = 0;
};
struct StreamHandle {
  bool capturing = false, broken = false;
};
struct EventHandle {};
struct GraphHandle {};
struct GraphExecHandle {};
struct LibraryHandle {
  std::string image;
};
struct FunctionHandle {
  std::string name;
  const void* owner;
  bool loaded = false;
  int max_dynamic = 49152;
};

}  // namespace cuda

using namespace cuda;

// TILERT_FAKE_OLD_DRIVER: the symbols that came with later drivers are not exported.
#define FAKE_EXPORT_kRequired "default"
#ifdef TILERT_FAKE_OLD_DRIVER
#define FAKE_EXPORT_kOptional "hidden"
#else
#define FAKE_EXPORT_kOptional "default"
#endif

// One declaration per symbol of the list, under the exported name: a definition below that differs in type, or is
// missing, does not link.
#define TILERT_DRIVER_SYMBOL(method, symbol, presence, ...) \
  extern "C" __attribute__((visibility(FAKE_EXPORT_##presence))) Result fake_##method(__VA_ARGS__) asm(symbol);
#include "runtime/driver_symbols.def"
#undef TILERT_DRIVER_SYMBOL

namespace {

struct Script {
  int result, skip;
  bool forever;
};

thread_local Context current_context = nullptr;

class State final : public FakeCuda {
 public:
  void Reset() override {
    const std::lock_guard<std::mutex> lock(mutex);
    scripts.clear(), calls.clear(), launches.clear(), parameter_counts.clear(), map_parameters.clear();
    major = 8, minor = 0, max_shared = 166912;
    recording = true;
    broken_captures = misuses = 0;
  }
  void Fail(const std::string& symbol, int result, int skip, bool forever) override {
    const std::lock_guard<std::mutex> lock(mutex);
    scripts[symbol] = {result, skip, forever};
  }
  void SetDevice(int new_major, int new_minor, int shared) override { major = new_major, minor = new_minor, max_shared = shared; }
  void SetParameterCount(const std::string& kernel, int count) override {
    const std::lock_guard<std::mutex> lock(mutex);
    parameter_counts[kernel] = count;
  }
  void SetMapParameters(const std::string& kernel, int first, int count) override {
    const std::lock_guard<std::mutex> lock(mutex);
    map_parameters[kernel] = {first, count};
  }
  Context MakeContext() override { return current_context = &context; }
  void SetRecording(bool on) override { recording = on; }
  void ForgetImages() override {
    const std::lock_guard<std::mutex> lock(mutex);
    for (LibraryHandle* image : images) delete image;
    images.clear(), functions.clear();
  }
  int Calls(const std::string& symbol) override {
    const std::lock_guard<std::mutex> lock(mutex);
    return calls[symbol];
  }
  std::vector<FakeLaunch> Launches() override {
    const std::lock_guard<std::mutex> lock(mutex);
    return launches;
  }
  int64_t LiveImages() override {
    const std::lock_guard<std::mutex> lock(mutex);
    return static_cast<int64_t>(images.size());
  }
  int64_t BrokenCaptures() override { return broken_captures; }
  int64_t Misuses() override { return misuses; }

  // Counts the call and says what it is to return, if anything but success.
  Result Enter(const char* symbol) {
    if (!recording) return kSuccess;
    const std::lock_guard<std::mutex> lock(mutex);
    const auto count = calls.find(symbol);
    if (count == calls.end()) {
      calls.emplace(symbol, 1);
    } else {
      ++count->second;
    }
    const auto it = scripts.find(symbol);
    if (it == scripts.end() || it->second.skip-- > 0) return kSuccess;
    const Result result = it->second.result;
    it->second.skip = 0;
    if (!it->second.forever) scripts.erase(it);
    return result;
  }
  Result Misuse(Result result) {
    ++misuses;
    return result;
  }
  // What loading does: forbidden while any stream captures, and it breaks that capture.
  Result Loading() {
    if (capturing_streams.empty()) return kSuccess;
    for (Stream stream : capturing_streams) stream->broken = true;
    ++broken_captures;
    return kStreamCaptureUnsupported;
  }

  std::mutex mutex;
  std::map<std::string, Script, std::less<>> scripts;
  std::map<std::string, int, std::less<>> calls, parameter_counts;
  std::atomic<bool> recording = true;
  std::map<std::string, std::pair<int, int>, std::less<>> map_parameters;
  std::vector<FakeLaunch> launches;
  std::set<LibraryHandle*> images;
  std::map<std::pair<LibraryHandle*, std::string>, FunctionHandle> functions;
  std::set<Stream> capturing_streams;
  ContextHandle context;
  int major = 8, minor = 0, max_shared = 166912;
  int64_t broken_captures = 0, misuses = 0;
};

State& GetState() {
  static State* const state = new State;  // never destroyed: callers may outlive static destructors
  return *state;
}

#define ENTER(symbol)        \
  State& state = GetState(); \
  (void)state;               \
  if (const Result scripted = state.Enter(symbol)) return scripted

#define ENTER_WITH_CONTEXT(symbol) \
  ENTER(symbol);                   \
  if (current_context == nullptr) return kInvalidContext

// An image is anything that starts like an ELF file or PTX; its kernels are the names that occur in it.
Result LoadImage(LibraryHandle** out, const void* data) {
  State& state = GetState();
  const char* bytes = static_cast<const char*>(data);
  static constexpr char kElf[] = {0x7f, 'E', 'L', 'F'};
  const bool elf = std::memcmp(bytes, kElf, sizeof kElf) == 0;
  if (!elf && std::memchr(bytes, '.', 3) == nullptr && std::memchr(bytes, '/', 3) == nullptr && bytes[0] != '\n')
    return kInvalidImage;
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (const Result result = state.Loading()) return result;
  auto* image = new LibraryHandle;
  state.images.insert(image);
  *out = image;
  return kSuccess;
}

Result UnloadImage(LibraryHandle* image) {
  State& state = GetState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (state.images.erase(image) == 0) return state.Misuse(kInvalidHandle);
  std::erase_if(state.functions, [image](const auto& entry) { return entry.first.first == image; });
  delete image;
  return kSuccess;
}

Result FindFunction(FunctionHandle** out, LibraryHandle* image, const char* name) {
  State& state = GetState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (state.images.count(image) == 0) return state.Misuse(kInvalidHandle);
  if (std::strncmp(name, "missing", 7) == 0) return kNotFound;
  FunctionHandle& function = state.functions[{image, name}];
  function.name = name, function.owner = image;
  *out = &function;
  return kSuccess;
}

// The function behind a handle, if it is alive. REQUIRES: the state's mutex is held.
FunctionHandle* Alive(Function handle) {
  for (auto& [key, function] : GetState().functions) {
    if (&function == handle) return &function;
  }
  return nullptr;
}

Result Launch(Function handle, unsigned gx, unsigned gy, unsigned gz, unsigned threads, unsigned shared, Stream stream,
              void** params, unsigned cluster = 1) {
  State& state = GetState();
  if (!state.recording) return kSuccess;
  const std::lock_guard<std::mutex> lock(state.mutex);
  FunctionHandle* function = Alive(handle);
  if (function == nullptr) return state.Misuse(kInvalidHandle);
  if (!function->loaded) {
    if (const Result result = state.Loading()) return result;
    function->loaded = true;
  }
  if (gx == 0 || gy == 0 || gz == 0 || gx > 0x7fffffff || gy > 65535 || gz > 65535 || threads == 0 || threads > 1024 ||
      shared > static_cast<unsigned>(function->max_dynamic)) {
    return state.Misuse(kInvalidValue);
  }
  FakeLaunch launch{function->name, gx, gy, gz, threads, shared, {}, stream, cluster, {}};
  const auto count = state.parameter_counts.find(function->name);
  for (int i = 0; count != state.parameter_counts.end() && i < count->second; ++i) {
    uint64_t value;
    std::memcpy(&value, params[i], sizeof value);
    launch.args.push_back(value);
  }
  if (const auto maps = state.map_parameters.find(function->name); maps != state.map_parameters.end()) {
    const auto [first, maps_count] = maps->second;
    for (int i = 0; i < maps_count; ++i) std::memcpy(&launch.maps.emplace_back(), params[first + i], sizeof(TensorMap));
  }
  if (state.launches.size() < 100000) state.launches.push_back(std::move(launch));
  return kSuccess;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) FakeCuda* fake_cuda() { return &GetState(); }

extern "C" {

Result fake_Init(unsigned) {
  ENTER("cuInit");
  return kSuccess;
}
Result fake_DriverGetVersion(int* version) {
  ENTER("cuDriverGetVersion");
  *version = 13000;
  return kSuccess;
}
Result fake_DeviceGetCount(int* count) {
  ENTER("cuDeviceGetCount");
  *count = 1;
  return kSuccess;
}
Result fake_DeviceGet(Device* device, int index) {
  ENTER("cuDeviceGet");
  *device = 0;
  return index == 0 ? kSuccess : kInvalidDevice;
}
Result fake_DeviceGetName(char* name, int size, Device) {
  ENTER("cuDeviceGetName");
  strncpy(name, "Fake GPU", size);
  return kSuccess;
}
Result fake_DeviceGetAttribute(int* value, int attribute, Device) {
  ENTER("cuDeviceGetAttribute");
  switch (attribute) {
    case kDeviceComputeCapabilityMajor: *value = state.major; break;
    case kDeviceComputeCapabilityMinor: *value = state.minor; break;
    case kDeviceMultiprocessorCount: *value = 108; break;
    case kDeviceMaxSharedMemoryPerBlockOptin: *value = state.max_shared; break;
    default: *value = 1024; break;
  }
  return kSuccess;
}
Result fake_CtxGetCurrent(Context* context) {
  ENTER("cuCtxGetCurrent");
  *context = current_context;
  return kSuccess;
}
Result fake_CtxSetCurrent(Context context) {
  ENTER("cuCtxSetCurrent");
  current_context = context;
  return kSuccess;
}
Result fake_CtxGetDevice(Device* device) {
  ENTER_WITH_CONTEXT("cuCtxGetDevice");
  *device = 0;
  return kSuccess;
}
Result fake_CtxSynchronize() {
  ENTER_WITH_CONTEXT("cuCtxSynchronize");
  return kSuccess;
}
Result fake_DevicePrimaryCtxRetain(Context* context, Device) {
  ENTER("cuDevicePrimaryCtxRetain");
  *context = &state.context;
  return kSuccess;
}
Result fake_DevicePrimaryCtxRelease(Device) {
  ENTER("cuDevicePrimaryCtxRelease_v2");
  return kSuccess;
}

Result fake_LibraryLoadData(Library* library, const void* data, int*, void**, unsigned, int*, void**, unsigned) {
  ENTER("cuLibraryLoadData");
  return LoadImage(library, data);
}
Result fake_LibraryUnload(Library library) {
  ENTER("cuLibraryUnload");
  return UnloadImage(library);
}
Result fake_LibraryGetKernel(Kernel* kernel, Library library, const char* name) {
  ENTER("cuLibraryGetKernel");
  return FindFunction(reinterpret_cast<FunctionHandle**>(kernel), library, name);
}
Result fake_KernelGetFunction(Function* function, Kernel kernel) {
  ENTER_WITH_CONTEXT("cuKernelGetFunction");
  const std::lock_guard<std::mutex> lock(state.mutex);
  *function = Alive(reinterpret_cast<Function>(kernel));
  return *function != nullptr ? state.Loading() : state.Misuse(kInvalidHandle);
}
Result fake_FuncLoad(Function handle) {
  ENTER_WITH_CONTEXT("cuFuncLoad");
  const std::lock_guard<std::mutex> lock(state.mutex);
  FunctionHandle* function = Alive(handle);
  if (function == nullptr) return state.Misuse(kInvalidHandle);
  if (const Result result = state.Loading()) return result;
  function->loaded = true;
  return kSuccess;
}
Result fake_ModuleLoadDataEx(Module* module, const void* data, unsigned, int*, void**) {
  ENTER_WITH_CONTEXT("cuModuleLoadDataEx");
  return LoadImage(reinterpret_cast<LibraryHandle**>(module), data);
}
Result fake_ModuleUnload(Module module) {
  ENTER("cuModuleUnload");
  return UnloadImage(reinterpret_cast<LibraryHandle*>(module));
}
Result fake_ModuleGetFunction(Function* function, Module module, const char* name) {
  ENTER_WITH_CONTEXT("cuModuleGetFunction");
  return FindFunction(function, reinterpret_cast<LibraryHandle*>(module), name);
}
Result fake_FuncGetAttribute(int* value, int, Function) {
  ENTER("cuFuncGetAttribute");
  *value = 0;
  return kSuccess;
}
Result fake_FuncSetAttribute(Function handle, int attribute, int value) {
  ENTER("cuFuncSetAttribute");
  const std::lock_guard<std::mutex> lock(state.mutex);
  FunctionHandle* function = Alive(handle);
  if (function == nullptr) return state.Misuse(kInvalidHandle);
  if (attribute == kFuncMaxDynamicSharedSizeBytes && value > state.max_shared) return kInvalidValue;
  if (attribute == kFuncMaxDynamicSharedSizeBytes) function->max_dynamic = value;
  return kSuccess;
}

Result fake_LaunchKernel(Function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                         unsigned shared, Stream stream, void** params, void**) {
  ENTER_WITH_CONTEXT("cuLaunchKernel");
  return Launch(function, gx, gy, gz, bx * by * bz, shared, stream, params);
}
Result fake_LaunchCooperativeKernel(Function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                    unsigned bz, unsigned shared, Stream stream, void** params) {
  ENTER_WITH_CONTEXT("cuLaunchCooperativeKernel");
  return Launch(function, gx, gy, gz, bx * by * bz, shared, stream, params);
}
Result fake_LaunchKernelEx(const LaunchConfig* config, Function function, void** params, void**) {
  ENTER_WITH_CONTEXT("cuLaunchKernelEx");
  unsigned cluster = 1;
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const LaunchAttribute& attribute = config->attributes[i];
    if (attribute.id == kLaunchClusterDimension) cluster = attribute.cluster[0] * attribute.cluster[1] * attribute.cluster[2];
  }
  if (cluster == 0 || cluster > 8 || config->grid[0] % cluster != 0) return state.Misuse(kInvalidValue);
  return Launch(function, config->grid[0], config->grid[1], config->grid[2],
                config->block[0] * config->block[1] * config->block[2], config->shared_bytes, config->stream, params, cluster);
}
Result fake_OccupancyMaxActiveClusters(int* clusters, Function, const LaunchConfig* config) {
  ENTER("cuOccupancyMaxActiveClusters");
  *clusters = static_cast<int>(15 / config->attributes[0].cluster[0]);
  return kSuccess;
}
Result fake_TensorMapEncodeTiled(TensorMap* out, int type, unsigned rank, void* address, const uint64_t* extents,
                                 const uint64_t* strides, const uint32_t* box, const uint32_t* element_strides, int interleave,
                                 int swizzle, int promotion, int fill) {
  ENTER("cuTensorMapEncodeTiled");
  const bool is_legal =
      EncodeFakeMap(out, type, rank, address, extents, strides, box, element_strides, interleave, swizzle, promotion, fill);
  return is_legal ? kSuccess : state.Misuse(kInvalidValue);
}
Result fake_MemsetD8Async(DevicePtr pointer, unsigned char value, size_t size, Stream) {
  ENTER_WITH_CONTEXT("cuMemsetD8Async");
  std::memset(reinterpret_cast<void*>(pointer), value, size);
  return kSuccess;
}
Result fake_StreamIsCapturing(Stream stream, int* status) {
  ENTER_WITH_CONTEXT("cuStreamIsCapturing");
  *status = stream != nullptr && stream->capturing ? 1 : kCaptureStatusNone;
  return kSuccess;
}
Result fake_StreamCreate(Stream* stream, unsigned) {
  ENTER_WITH_CONTEXT("cuStreamCreate");
  *stream = new StreamHandle;
  return kSuccess;
}
Result fake_StreamDestroy(Stream stream) {
  ENTER("cuStreamDestroy_v2");
  delete stream;
  return kSuccess;
}
Result fake_StreamSynchronize(Stream) {
  ENTER_WITH_CONTEXT("cuStreamSynchronize");
  return kSuccess;
}
Result fake_StreamBeginCapture(Stream stream, int) {
  ENTER_WITH_CONTEXT("cuStreamBeginCapture_v2");
  const std::lock_guard<std::mutex> lock(state.mutex);
  stream->capturing = true, stream->broken = false;
  state.capturing_streams.insert(stream);
  return kSuccess;
}
Result fake_StreamEndCapture(Stream stream, Graph* graph) {
  ENTER_WITH_CONTEXT("cuStreamEndCapture");
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.capturing_streams.erase(stream);
  stream->capturing = false;
  *graph = stream->broken ? nullptr : new GraphHandle;
  return stream->broken ? kStreamCaptureUnsupported + 1 : kSuccess;
}
Result fake_GraphInstantiate(GraphExec* exec, Graph, unsigned long long) {
  ENTER_WITH_CONTEXT("cuGraphInstantiateWithFlags");
  *exec = new GraphExecHandle;
  return kSuccess;
}
Result fake_GraphLaunch(GraphExec, Stream) {
  ENTER_WITH_CONTEXT("cuGraphLaunch");
  return kSuccess;
}
Result fake_GraphExecDestroy(GraphExec exec) {
  ENTER("cuGraphExecDestroy");
  delete exec;
  return kSuccess;
}
Result fake_GraphDestroy(Graph graph) {
  ENTER("cuGraphDestroy");
  delete graph;
  return kSuccess;
}

Result fake_MemAlloc(DevicePtr* pointer, size_t size) {
  ENTER_WITH_CONTEXT("cuMemAlloc_v2");
  void* memory = nullptr;
  if (posix_memalign(&memory, 256, size) != 0) return kOutOfMemory;
  *pointer = reinterpret_cast<DevicePtr>(memory);
  return kSuccess;
}
Result fake_MemFree(DevicePtr pointer) {
  ENTER("cuMemFree_v2");
  std::free(reinterpret_cast<void*>(pointer));
  return kSuccess;
}
Result fake_MemGetInfo(size_t* free, size_t* total) {
  ENTER("cuMemGetInfo_v2");
  *free = *total = size_t{1} << 34;
  return kSuccess;
}
Result fake_MemcpyHtoD(DevicePtr to, const void* from, size_t size) {
  ENTER_WITH_CONTEXT("cuMemcpyHtoD_v2");
  std::memcpy(reinterpret_cast<void*>(to), from, size);
  return kSuccess;
}
Result fake_MemcpyDtoH(void* to, DevicePtr from, size_t size) {
  ENTER_WITH_CONTEXT("cuMemcpyDtoH_v2");
  std::memcpy(to, reinterpret_cast<void*>(from), size);
  return kSuccess;
}
Result fake_MemcpyDtoDAsync(DevicePtr to, DevicePtr from, size_t size, Stream) {
  ENTER_WITH_CONTEXT("cuMemcpyDtoDAsync_v2");
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), size);
  return kSuccess;
}
Result fake_EventCreate(Event* event, unsigned) {
  ENTER_WITH_CONTEXT("cuEventCreate");
  *event = new EventHandle;
  return kSuccess;
}
Result fake_EventDestroy(Event event) {
  ENTER("cuEventDestroy_v2");
  delete event;
  return kSuccess;
}
Result fake_EventRecord(Event, Stream) {
  ENTER_WITH_CONTEXT("cuEventRecord");
  return kSuccess;
}
Result fake_EventSynchronize(Event) {
  ENTER_WITH_CONTEXT("cuEventSynchronize");
  return kSuccess;
}
Result fake_EventElapsedTime(float* ms, Event, Event) {
  ENTER("cuEventElapsedTime");
  *ms = 1;
  return kSuccess;
}
Result fake_GetErrorName(Result result, const char** name) {
  *name = result == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
  return kSuccess;
}
Result fake_GetErrorString(Result, const char** text) {
  *text = "scripted";
  return kSuccess;
}
}  // extern "C"

}  // namespace tilert
