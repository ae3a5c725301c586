/* Declares the CUDA driver functions that the simulator implements. Types and constants are those
 * of the CUDA Driver API reference. */
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
typedef struct sim_pool *CUmemoryPool;

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
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
    CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
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

typedef struct {
    int type, id;
} CUmemLocation;
typedef struct {
    CUmemLocation location;
    int flags;
} CUmemAccessDesc;
typedef struct {
    int allocType, handleTypes;
    CUmemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
} CUmemPoolProps;

#define CU __attribute__((visibility("default")))
/* Returns the message of this thread's last failure, for test programs. */
CU const char *bsmm_sim_message(void);
/* Returns the number of instructions that all launches of this process have executed. An
 * instruction that a warp executes counts once. */
CU uint64_t bsmm_sim_steps(void);
/* Returns the pattern of entry `number` in the tables of PTX instructions, or NULL after the last
 * entry. A pattern describes an opcode with its modifiers, e.g. "isspacep.global|shared". */
CU const char *bsmm_sim_row(unsigned number);
/* Returns the target and name of a kernel that this process has launched without an error, such as
 * "sm_90a gemm_bf16". Returns NULL after the last kernel. The pointer is valid until the next
 * launch. */
CU const char *bsmm_sim_launched(unsigned number);
/* Returns the index of the simulated device `number` of a model such as "sm_100". The first call
 * creates the device. Returns -1 for an unknown model or too many devices. bsmm recognizes the
 * simulator by this function, because NVIDIA's driver lacks it. */
CU int bsmm_sim_device(const char *model, unsigned number);
CUresult sim_fail(CUresult code, const char *format, ...) __attribute__((format(printf, 2, 3)));

typedef struct {
    const char *name;
    uint32_t arch, multiprocessors, l2_bytes, shared_bytes, clock_khz, memory_khz, bus_bits,
        memory_gb;
    const char *model;
} sim_device;
/* Returns the properties of a device, or NULL if there is no such device. */
const sim_device *sim_device_of(CUdevice device);
/* Returns the number of SMs that a device reports. */
int sim_multiprocessors(CUdevice device);
/* Returns the device of this thread's current context, or device 0 if no context is current. */
int sim_current_device(void);
CUcontext sim_context_of(CUdevice device);
/* Returns the device of a context, or -1 if the pointer is no context. */
int sim_device_of_context(CUcontext context);
/* If the allocation that begins at `at` belongs to a memory pool, tells the pool that it is
 * freed. */
void sim_pool_forget(CUdeviceptr at);

/* Holds the work that one driver call submits to a stream: a launch, a copy or a fill. If the
 * program is capturing the stream, the work becomes a node of the graph. Otherwise the simulator
 * does it at once. */
typedef struct {
    /* `function` is the kernel of a launch. For a copy, `function` is NULL and `from` is the
     * source. For a fill, both are NULL. */
    CUfunction function;
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
