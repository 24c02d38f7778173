// The part of the CUDA driver's binary interface that tilert calls, declared by ourselves: libcuda is opened at run
// time and no toolkit header is needed to build. Values are fixed by the driver's ABI; tests/runtime/driver_abi_test.cc
// compares every one with cuda.h where a toolkit is installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilert::cuda {

using Result = int;                    // CUresult
using Device = int;                    // CUdevice
using DevicePtr = unsigned long long;  // CUdeviceptr on 64-bit hosts

using Context = struct ContextHandle*;      // CUcontext
using Stream = struct StreamHandle*;        // CUstream
using Event = struct EventHandle*;          // CUevent
using Module = struct ModuleHandle*;        // CUmodule
using Function = struct FunctionHandle*;    // CUfunction
using Library = struct LibraryHandle*;      // CUlibrary
using Kernel = struct KernelHandle*;        // CUkernel
using Graph = struct GraphHandle*;          // CUgraph
using GraphExec = struct GraphExecHandle*;  // CUgraphExec

// CUresult values that tilert tells apart.
inline constexpr Result kSuccess = 0;
inline constexpr Result kInvalidValue = 1;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNotInitialized = 3;
inline constexpr Result kDeinitialized = 4;
inline constexpr Result kStubLibrary = 34;
inline constexpr Result kCallRequiresNewerDriver = 36;
inline constexpr Result kDeviceUnavailable = 46;
inline constexpr Result kNoDevice = 100;
inline constexpr Result kInvalidDevice = 101;
inline constexpr Result kInvalidImage = 200;
inline constexpr Result kInvalidContext = 201;
inline constexpr Result kNoBinaryForGpu = 209;
inline constexpr Result kEccUncorrectable = 214;
inline constexpr Result kInvalidPtx = 218;
inline constexpr Result kJitCompilerNotFound = 221;
inline constexpr Result kUnsupportedPtxVersion = 222;
inline constexpr Result kInvalidHandle = 400;
inline constexpr Result kNotFound = 500;
inline constexpr Result kNotReady = 600;
inline constexpr Result kIllegalAddress = 700;
inline constexpr Result kLaunchOutOfResources = 701;
inline constexpr Result kLaunchTimeout = 702;
inline constexpr Result kContextIsDestroyed = 709;
inline constexpr Result kAssert = 710;
inline constexpr Result kHardwareStackError = 714;
inline constexpr Result kLaunchFailed = 719;
inline constexpr Result kNotSupported = 801;
inline constexpr Result kSystemNotReady = 802;
inline constexpr Result kSystemDriverMismatch = 803;
inline constexpr Result kStreamCaptureUnsupported = 900;
inline constexpr Result kStreamCaptureWrongThread = 908;

// CUdevice_attribute.
inline constexpr int kDeviceMaxThreadsPerBlock = 1;
inline constexpr int kDeviceMultiprocessorCount = 16;
inline constexpr int kDeviceClockRate = 13;
inline constexpr int kDeviceMemoryClockRate = 36;
inline constexpr int kDeviceGlobalMemoryBusWidth = 37;
inline constexpr int kDeviceL2CacheSize = 38;
inline constexpr int kDeviceComputeCapabilityMajor = 75;
inline constexpr int kDeviceComputeCapabilityMinor = 76;
inline constexpr int kDeviceMaxSharedMemoryPerBlockOptin = 97;

// CUfunction_attribute.
inline constexpr int kFuncMaxThreadsPerBlock = 0;
inline constexpr int kFuncSharedSizeBytes = 1;
inline constexpr int kFuncLocalSizeBytes = 3;
inline constexpr int kFuncNumRegs = 4;
inline constexpr int kFuncMaxDynamicSharedSizeBytes = 8;

// CUjit_option.
inline constexpr int kJitErrorLogBuffer = 5;
inline constexpr int kJitErrorLogBufferSizeBytes = 6;

// CUstreamCaptureStatus and CUstreamCaptureMode.
inline constexpr int kCaptureStatusNone = 0;
inline constexpr int kCaptureModeGlobal = 0;
inline constexpr int kCaptureModeThreadLocal = 1;
inline constexpr int kCaptureModeRelaxed = 2;

inline constexpr unsigned kStreamNonBlocking = 1;  // CU_STREAM_NON_BLOCKING

// CUlaunchAttribute and CUlaunchConfig: how cuLaunchKernelEx is told of thread block clusters.
struct LaunchAttribute {
  int id = 0;  // CUlaunchAttributeID
  char reserved[4] = {};
  union {
    char bytes[64];
    uint64_t words[8];
    unsigned cluster[3];  // blocks along x, y and z
  };
};
inline constexpr int kLaunchClusterDimension = 4;
struct LaunchConfig {
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  Stream stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

// CUtensorMap: opaque, a kernel parameter of 128 bytes.
struct alignas(64) TensorMap {
  uint64_t words[16];
};
// CUtensorMapDataType.
inline constexpr int kMapUInt8 = 0, kMapUInt16 = 1, kMapUInt32 = 2, kMapInt32 = 3, kMapUInt64 = 4, kMapInt64 = 5, kMapFloat16 = 6,
                     kMapFloat32 = 7, kMapFloat64 = 8, kMapBFloat16 = 9;
// CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill.
inline constexpr int kMapInterleaveNone = 0;
inline constexpr int kMapSwizzleNone = 0, kMapSwizzle32B = 1, kMapSwizzle64B = 2, kMapSwizzle128B = 3;
inline constexpr int kMapL2Promotion128B = 2;
inline constexpr int kMapFillZero = 0;

}  // namespace tilert::cuda
