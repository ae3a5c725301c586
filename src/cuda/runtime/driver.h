/* Declares the functions of libcuda.so.1, which the library opens at run time. Types and constants
 * are declared here, so that the build needs no CUDA toolkit. Comments name sections of the CUDA
 * Driver API reference. */
#ifndef BSMM_CUDA_RUNTIME_DRIVER_H
#define BSMM_CUDA_RUNTIME_DRIVER_H

#include "base/base.h"
#include "cuda/runtime/tensor_map.h"
#include "gpu/simulator.h"

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

enum { /* These are values of CUresult that this library distinguishes. */
       CUDA_SUCCESS = 0,
       CUDA_ERROR_INVALID_VALUE = 1,
       CUDA_ERROR_OUT_OF_MEMORY = 2,
       CUDA_ERROR_NOT_INITIALIZED = 3,
       CUDA_ERROR_STUB_LIBRARY = 34,
       CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
       CUDA_ERROR_NO_DEVICE = 100,
       CUDA_ERROR_INVALID_DEVICE = 101,
       CUDA_ERROR_INVALID_IMAGE = 200,
       CUDA_ERROR_INVALID_CONTEXT = 201,
       CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
       CUDA_ERROR_INVALID_PTX = 218,
       CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
       CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
       CUDA_ERROR_INVALID_HANDLE = 400,
       CUDA_ERROR_NOT_FOUND = 500,
       CUDA_ERROR_ILLEGAL_ADDRESS = 700,
       CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
       CUDA_ERROR_MISALIGNED_ADDRESS = 716,
       CUDA_ERROR_LAUNCH_FAILED = 719,
       CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900
};

enum { /* These constants have the values of CUdevice_attribute in cuda.h. */
       CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
       CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
       CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
       CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
       CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
       CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
       CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
       CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
};

enum { /* These constants have the values of CUfunction_attribute in cuda.h. */
       CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
       CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
       CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
       CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14
};

enum { /* These constants have the values of CUpointer_attribute and CUmemorytype in cuda.h. */
       CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
       CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
       CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
       CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
       CU_MEMORYTYPE_HOST = 1,
       CU_MEMORYTYPE_DEVICE = 2
};

/* These constants have the values of the flags of streams, events and stream capture in cuda.h. */
enum {
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2,
    CU_STREAM_CAPTURE_STATUS_NONE = 0
};

/* These constants and structs are for cuLaunchKernelEx. The structs have the layout of
 * CUlaunchAttribute and CUlaunchConfig in cuda.h. */
enum {
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6
};
typedef struct CUlaunchAttribute {
    int id;
    char pad[4];
    union {
        char pad[64];
        struct {
            unsigned int x, y, z;
        } clusterDim;
        int programmaticStreamSerializationAllowed;
    } value;
} CUlaunchAttribute;
typedef struct CUlaunchConfig {
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned int numAttrs;
} CUlaunchConfig;

/* These constants have the values of CUtensorMapDataType, Interleave, Swizzle, L2promotion and
 * FloatOOBfill in cuda.h. */
enum {
    CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
    CU_TENSOR_MAP_DATA_TYPE_UINT16 = 1,
    CU_TENSOR_MAP_DATA_TYPE_UINT32 = 2,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT16 = 6,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT32 = 7,
    CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 = 9,
    /* An element is a group of 16 numbers of 4 or 6 bits, which TMA spreads over 16 bytes of shared
     * memory (CUDA 12.8). */
    CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B = 14,
    CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B = 15,
    CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
    CU_TENSOR_MAP_SWIZZLE_NONE = 0,
    CU_TENSOR_MAP_SWIZZLE_32B = 1,
    CU_TENSOR_MAP_SWIZZLE_64B = 2,
    CU_TENSOR_MAP_SWIZZLE_128B = 3,
    CU_TENSOR_MAP_L2_PROMOTION_NONE = 0,
    CU_TENSOR_MAP_L2_PROMOTION_L2_64B = 1,
    CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2,
    CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3,
    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0
};

typedef struct bsmm_cuda_driver {
#define ENTRY(name, symbol, parameters) CUresult(*name) parameters;
#include "cuda/runtime/driver.def"
#undef ENTRY
    /* bsmm recognizes the simulator by this function. It is NULL for NVIDIA's driver. */
    bsmm_gpu_sim_device *bsmm_sim_device;
} bsmm_cuda_driver;

/* Describes the simulator of NVIDIA GPUs. bsmm_cuda_models lists the names of the GPU models that
 * it simulates. */
extern const bsmm_gpu_simulator bsmm_cuda_simulator;
extern const char *const bsmm_cuda_models[];

/* bsmm_cuda_driver_get returns NVIDIA's driver, and bsmm_cuda_simulator_get returns the simulator.
 * The first call of each function opens and initializes the library. If that fails, later calls
 * return the same error: NOT_FOUND if there is no such library, UNSUPPORTED if it is too old, and
 * DEVICE if cuInit fails. */
bsmm_status bsmm_cuda_driver_get(const bsmm_cuda_driver **driver);
bsmm_status bsmm_cuda_simulator_get(const bsmm_cuda_driver **driver);

/* Returns the status (MEMORY, DEVICE, ...) that corresponds to a CUresult other than CUDA_SUCCESS,
 * and sets the error message. The message contains the name of the failed call, CUDA's name of the
 * error, and a remedy if bsmm knows one. If `driver` is NULL, the message lacks CUDA's name of the
 * error. */
bsmm_status bsmm_cuda_fail(const bsmm_cuda_driver *driver, CUresult result, const char *call);

/* Calls a function of `driver`. If the call fails, the function that contains this macro returns
 * the error. */
#define BSMM_CUDA_TRY(driver, entry, ...)                                                          \
    do {                                                                                           \
        CUresult cuda_result = (driver)->entry(__VA_ARGS__);                                       \
        if (cuda_result != CUDA_SUCCESS) return bsmm_cuda_fail(driver, cuda_result, #entry);       \
    } while (0)

#endif
