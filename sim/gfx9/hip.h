/* Declares the HIP functions that the simulator implements. Their types and constants equal those
 * of HIP's public headers. */
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
/* Returns the message of this thread's last failure. The simulator's tests read it. */
HIP const char *bsmm_sim_message(void);
/* Returns the index of the simulated device `number` of an architecture such as "gfx950". The
 * first call creates the device. Returns -1 if the architecture is unknown or there are too many
 * devices. */
HIP int bsmm_sim_device(const char *arch, unsigned number);
/* Returns the number of instructions that all launches of this process have executed. */
HIP uint64_t bsmm_sim_steps(void);
/* Returns the name of entry `number` in the tables of opcodes, or NULL after the last entry. */
HIP const char *bsmm_sim_row(unsigned number);

/* hip_device returns this thread's current device. hip_arch returns a device's architecture (enum
 * gfx9_arch). hip_check_stream fails if the stream belongs to another device than the current one.
 * hip_fail stores this thread's last error and message. */
int hip_device(void);
int hip_arch(int device);
hipError_t hip_check_stream(hipStream_t stream);
hipError_t hip_fail(hipError_t code, const char *format, ...) __attribute__((format(printf, 2, 3)));
#endif
