/* The CUDA driver's entries that the simulator has: types and numbers as in the CUDA Driver API
 * reference. */
#ifndef SIM_PTX_CUDA_H
#define SIM_PTX_CUDA_H
#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct sim_context *CUcontext;
typedef struct sim_module *CUmodule;
typedef struct sim_function *CUfunction;
typedef struct sim_stream *CUstream;
typedef struct sim_event *CUevent;
typedef struct sim_graph *CUgraph;
typedef struct sim_graph *CUgraphExec;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900
};

typedef struct {
    int id;
    char pad[4];
    union {
        char pad[64];
        struct {
            unsigned x, y, z;
        } clusterDim;
    } value;
} CUlaunchAttribute;
enum { CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4 };
typedef struct {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned numAttrs;
} CUlaunchConfig;

#define CU __attribute__((visibility("default")))
/* This thread's last failure in words: what a program of tests reads. */
CU const char *bsmm_sim_message(void);
/* Instructions that all launches of this process have executed, a warp's counted once. */
CU uint64_t bsmm_sim_steps(void);
/* The patterns of the tables' rows; NULL after the last. */
CU const char *bsmm_sim_row(unsigned number);
CUresult sim_fail(CUresult code, const char *format, ...) __attribute__((format(printf, 2, 3)));

typedef struct {
    const char *name;
    uint32_t arch, multiprocessors, l2_bytes, shared_bytes, clock_khz, memory_khz, bus_bits,
        memory_gb;
    const char *model;
} sim_device;
/* The one that BSMM_SIM_ARCH names. */
const sim_device *sim_device_get(void);

/* Work of a stream. While the stream is captured it becomes a node of the graph; else it is done at
 * once. */
typedef struct {
    CUfunction function; /* a launch; else a copy where `from` is set, or else a fill */
    uint32_t grid[3], block[3], cluster[3], shared;
    void *arguments;
    size_t argument_bytes;
    void *to;
    const void *from;
    size_t bytes;
    uint32_t value, unit;
} sim_work;
CUresult sim_submit(CUstream stream, const sim_work *work);
CUresult sim_launch(const sim_work *work);
#endif
