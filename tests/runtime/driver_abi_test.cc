// Our declarations of the driver's ABI against the toolkit's header, where there is one.
#include <gtest/gtest.h>

#include "runtime/driver_api.h"

#if __has_include(<cuda.h>)
#include <cuda.h>
#elif __has_include("/usr/local/cuda/include/cuda.h")
#include "/usr/local/cuda/include/cuda.h"
#endif

namespace tilert {
namespace {

#ifdef CUDA_VERSION

TEST(DriverAbi, Results) {
  EXPECT_EQ(cuda::kInvalidValue, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuda::kNotInitialized, CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(cuda::kDeinitialized, CUDA_ERROR_DEINITIALIZED);
  EXPECT_EQ(cuda::kStubLibrary, CUDA_ERROR_STUB_LIBRARY);
  EXPECT_EQ(cuda::kCallRequiresNewerDriver, CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER);
  EXPECT_EQ(cuda::kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_EQ(cuda::kNoDevice, CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(cuda::kInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuda::kInvalidImage, CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(cuda::kInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuda::kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(cuda::kEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE);
  EXPECT_EQ(cuda::kInvalidPtx, CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(cuda::kJitCompilerNotFound, CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
  EXPECT_EQ(cuda::kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT_EQ(cuda::kInvalidHandle, CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuda::kNotFound, CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuda::kNotReady, CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuda::kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuda::kLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  EXPECT_EQ(cuda::kLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT);
  EXPECT_EQ(cuda::kContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(cuda::kAssert, CUDA_ERROR_ASSERT);
  EXPECT_EQ(cuda::kHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR);
  EXPECT_EQ(cuda::kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuda::kNotSupported, CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuda::kSystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY);
  EXPECT_EQ(cuda::kSystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
  EXPECT_EQ(cuda::kStreamCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuda::kStreamCaptureWrongThread, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
}

TEST(DriverAbi, Attributes) {
  EXPECT_EQ(cuda::kDeviceMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  EXPECT_EQ(cuda::kDeviceMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  EXPECT_EQ(cuda::kDeviceClockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  EXPECT_EQ(cuda::kDeviceMemoryClockRate, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  EXPECT_EQ(cuda::kDeviceGlobalMemoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  EXPECT_EQ(cuda::kDeviceL2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  EXPECT_EQ(cuda::kDeviceComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(cuda::kDeviceComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(cuda::kDeviceMaxSharedMemoryPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  EXPECT_EQ(cuda::kFuncMaxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  EXPECT_EQ(cuda::kFuncSharedSizeBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  EXPECT_EQ(cuda::kFuncLocalSizeBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  EXPECT_EQ(cuda::kFuncNumRegs, CU_FUNC_ATTRIBUTE_NUM_REGS);
  EXPECT_EQ(cuda::kFuncMaxDynamicSharedSizeBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  EXPECT_EQ(cuda::kJitErrorLogBuffer, CU_JIT_ERROR_LOG_BUFFER);
  EXPECT_EQ(cuda::kJitErrorLogBufferSizeBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  EXPECT_EQ(cuda::kCaptureStatusNone, CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(cuda::kCaptureModeGlobal, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_EQ(cuda::kCaptureModeThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  EXPECT_EQ(cuda::kCaptureModeRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(cuda::kStreamNonBlocking, unsigned{CU_STREAM_NON_BLOCKING});
}

TEST(DriverAbi, Handles) {
  EXPECT_EQ(sizeof(cuda::DevicePtr), sizeof(CUdeviceptr));
  EXPECT_EQ(sizeof(cuda::Device), sizeof(CUdevice));
  EXPECT_EQ(sizeof(cuda::Result), sizeof(CUresult));
}

TEST(DriverAbi, LaunchConfig) {
  EXPECT_EQ(sizeof(cuda::LaunchAttribute), sizeof(CUlaunchAttribute));
  EXPECT_EQ(offsetof(cuda::LaunchAttribute, cluster), offsetof(CUlaunchAttribute, value));
  EXPECT_EQ(cuda::kLaunchClusterDimension, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  EXPECT_EQ(sizeof(cuda::LaunchConfig), sizeof(CUlaunchConfig));
  EXPECT_EQ(offsetof(cuda::LaunchConfig, block), offsetof(CUlaunchConfig, blockDimX));
  EXPECT_EQ(offsetof(cuda::LaunchConfig, shared_bytes), offsetof(CUlaunchConfig, sharedMemBytes));
  EXPECT_EQ(offsetof(cuda::LaunchConfig, stream), offsetof(CUlaunchConfig, hStream));
  EXPECT_EQ(offsetof(cuda::LaunchConfig, attributes), offsetof(CUlaunchConfig, attrs));
  EXPECT_EQ(offsetof(cuda::LaunchConfig, attribute_count), offsetof(CUlaunchConfig, numAttrs));
}

TEST(DriverAbi, TensorMaps) {
  EXPECT_EQ(sizeof(cuda::TensorMap), sizeof(CUtensorMap));
  EXPECT_EQ(cuda::kMapUInt8, CU_TENSOR_MAP_DATA_TYPE_UINT8);
  EXPECT_EQ(cuda::kMapUInt16, CU_TENSOR_MAP_DATA_TYPE_UINT16);
  EXPECT_EQ(cuda::kMapUInt32, CU_TENSOR_MAP_DATA_TYPE_UINT32);
  EXPECT_EQ(cuda::kMapInt32, CU_TENSOR_MAP_DATA_TYPE_INT32);
  EXPECT_EQ(cuda::kMapUInt64, CU_TENSOR_MAP_DATA_TYPE_UINT64);
  EXPECT_EQ(cuda::kMapInt64, CU_TENSOR_MAP_DATA_TYPE_INT64);
  EXPECT_EQ(cuda::kMapFloat16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
  EXPECT_EQ(cuda::kMapFloat32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
  EXPECT_EQ(cuda::kMapFloat64, CU_TENSOR_MAP_DATA_TYPE_FLOAT64);
  EXPECT_EQ(cuda::kMapBFloat16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  EXPECT_EQ(cuda::kMapInterleaveNone, CU_TENSOR_MAP_INTERLEAVE_NONE);
  EXPECT_EQ(cuda::kMapSwizzleNone, CU_TENSOR_MAP_SWIZZLE_NONE);
  EXPECT_EQ(cuda::kMapSwizzle32B, CU_TENSOR_MAP_SWIZZLE_32B);
  EXPECT_EQ(cuda::kMapSwizzle64B, CU_TENSOR_MAP_SWIZZLE_64B);
  EXPECT_EQ(cuda::kMapSwizzle128B, CU_TENSOR_MAP_SWIZZLE_128B);
  EXPECT_EQ(cuda::kMapL2Promotion128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
  EXPECT_EQ(cuda::kMapFillZero, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

#else

TEST(DriverAbi, NeedsToolkitHeader) { GTEST_SKIP() << "no cuda.h on this machine"; }

#endif

}  // namespace
}  // namespace tilert
