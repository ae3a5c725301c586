/* The functions of HIP that the simulator implements. Types and constants are those of HIP's public
 * headers. */
#ifndef SIM_GFX9_HIP_H
#define SIM_GFX9_HIP_H
#include <stddef.h>
#include <stdint.h>

typedef enum {
    hipSuccess = 0,
    hipErrorInvalidValue = 1,
    hipErrorOutOfMemory = 2,
    hipErrorNotInitialized = 3,
    hipErrorInvalidDevice = 101,
    hipErrorInvalidImage = 200,
    hipErrorNoBinaryForGpu = 209,
    hipErrorInvalidHandle = 400,
    hipErrorNotFound = 500,
    hipErrorNotReady = 600,
    hipErrorIllegalAddress = 700,
    hipErrorLaunchFailure = 719,
    hipErrorNotSupported = 801
} hipError_t;
typedef struct hip_stream *hipStream_t;
typedef struct hip_event *hipEvent_t;
typedef struct hip_module *hipModule_t;
typedef struct hip_function *hipFunction_t;
typedef void *hipDeviceptr_t;

#define HIP __attribute__((visibility("default")))
/* Returns the last failure of this thread in words. Test programs read it. */
HIP const char *bsmm_sim_message(void);
/* The index of device `number` of an architecture ("gfx950"); devices are made as they are asked
 * for. -1: no such architecture, or too many devices. */
HIP int bsmm_sim_device(const char *arch, unsigned number);
/* Instructions that all launches of this process have executed. */
HIP uint64_t bsmm_sim_steps(void);
/* Returns an opcode of the tables, in the order of their names, or NULL past the last one. */
HIP const char *bsmm_sim_row(unsigned number);

/* This thread's current device, and the architecture of one. */
int hip_device(void);
int hip_arch(int device);
hipError_t hip_check_stream(hipStream_t stream);
hipError_t hip_fail(hipError_t code, const char *format, ...) __attribute__((format(printf, 2, 3)));
#endif
