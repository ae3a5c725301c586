/* Declares the functions of HIP's driver, libamdhip64.so, which bsmm opens at run time. The
 * simulator is another library with the same functions. The types and constants here repeat those
 * of the HIP Runtime API reference, so that the build does not need ROCm. Comments name the types
 * and sections of the reference. */
#ifndef BSMM_AMDGPU_RUNTIME_DRIVER_H
#define BSMM_AMDGPU_RUNTIME_DRIVER_H

#include "gpu/simulator.h"

typedef int hipError_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipStream_t *hipStream_t;

enum { /* These are values of hipError_t that bsmm handles or returns. */
       hipSuccess = 0,
       hipErrorInvalidValue = 1,
       hipErrorOutOfMemory = 2,
       hipErrorNotInitialized = 3,
       hipErrorInvalidDevicePointer = 17,
       hipErrorInsufficientDriver = 35,
       hipErrorNoDevice = 100,
       hipErrorInvalidDevice = 101,
       hipErrorInvalidImage = 200,
       hipErrorNoBinaryForGpu = 209,
       hipErrorInvalidHandle = 400,
       hipErrorNotFound = 500,
       hipErrorIllegalAddress = 700,
       hipErrorLaunchOutOfResources = 701,
       hipErrorLaunchFailure = 719,
       hipErrorNotSupported = 801,
       hipErrorStreamCaptureUnsupported = 900
};

enum { /* These are values of hipDeviceAttribute_t that bsmm asks for. */
       hipDeviceAttributeL2CacheSize = 19,
       hipDeviceAttributeComputeCapabilityMajor = 23,
       hipDeviceAttributeComputeCapabilityMinor = 61,
       hipDeviceAttributeMultiprocessorCount = 63,
       hipDeviceAttributeMaxSharedMemoryPerBlock = 74
};

/* These are values of hipPointer_attribute and of hipMemoryType. Versions of HIP before 6 have
 * another number for hipMemoryTypeDevice, which is hipMemoryTypeDevice5 here. */
enum {
    HIP_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
    HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
    hipMemoryTypeDevice = 2,
    hipMemoryTypeDevice5 = 1
};

enum { /* These are values of hipMemcpyKind and of hipStreamCaptureMode. */
       hipMemcpyHostToDevice = 1,
       hipMemcpyDeviceToHost = 2,
       hipMemcpyDeviceToDevice = 3,
       hipStreamCaptureModeRelaxed = 2
};

typedef struct bsmm_hip_driver {
#define ENTRY(name, parameters) hipError_t(*name) parameters;
#include "amdgpu/runtime/driver.def"
#undef ENTRY
    /* These two functions return a text instead of a hipError_t, so they are not in driver.def. */
    const char *(*hipGetErrorName)(hipError_t error);
    const char *(*hipGetErrorString)(hipError_t error);
    /* `bsmm_sim_device` is the function by which bsmm recognizes the simulator. It is NULL for
     * AMD's driver. */
    bsmm_gpu_sim_device *bsmm_sim_device;
    int version;     /* `version` is the HIP version, e.g. 60342131 for HIP 6.3.42131. */
    int device_type; /* `device_type` is the value of hipMemoryTypeDevice in this HIP version. */
} bsmm_hip_driver;

/* bsmm_hip_simulator is the simulator of AMD GPUs. bsmm_hip_models are the names of the processors
 * that it simulates, e.g. "gfx942". */
extern const bsmm_gpu_simulator bsmm_hip_simulator;
extern const char *const bsmm_hip_models[];

/* bsmm_hip_driver_get returns AMD's driver, and bsmm_hip_simulator_get returns the simulator. The
 * first call of each opens and initialises the library. If that fails, later calls return the same
 * error: NOT_FOUND if there is no such library, UNSUPPORTED if it lacks a function, and DEVICE if
 * it does not start. */
bsmm_status bsmm_hip_driver_get(const bsmm_hip_driver **driver);
bsmm_status bsmm_hip_simulator_get(const bsmm_hip_driver **driver);

/* Turns a hipError_t other than hipSuccess into a bsmm_status (MEMORY, DEVICE, ...). The error
 * message contains the name of the failed call, HIP's name of the error and, if bsmm knows it, a
 * remedy. */
bsmm_status bsmm_hip_fail(const bsmm_hip_driver *driver, hipError_t error, const char *call);

/* Calls a function of `driver` and returns from the calling function if it fails. */
#define BSMM_HIP_TRY(driver, entry, ...)                                                           \
    do {                                                                                           \
        hipError_t hip_error = (driver)->entry(__VA_ARGS__);                                       \
        if (hip_error != hipSuccess) return bsmm_hip_fail(driver, hip_error, #entry);              \
    } while (0)

#endif
