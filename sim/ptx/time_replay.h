/* Declares what the files of the time model share. time.c chooses a sample of the clusters and
 * computes the time of the whole launch from the time of the sample. time_replay.c computes the
 * time of the sample from what its warps did. time_class.c says what an instruction costs.
 * time_units.c models the units that warps share. */
#ifndef SIM_PTX_TIME_REPLAY_H
#define SIM_PTX_TIME_REPLAY_H
#include "common/cache.h"
#include "time.h"

/* Holds the constants of a device (time_devices.def). These are the units: shared_rate and
 * port_rate are bytes per cycle of one SM, l2_rate is bytes per cycle of the device, and hbm_rate
 * is bytes per second. tensor_rate and warp_tensor_rate are products of two 16-bit elements per
 * cycle of one SM. Latencies are cycles. */
typedef struct {
    uint32_t capability, sms, shared_bytes, l1_bytes, l2_bytes, threads;
    double megahertz, launch_us;
    double tensor_rate, warp_tensor_rate, tensor_latency;
    double shared_rate, shared_latency, remote_latency, port_rate, l1_latency, tma_latency;
    double l2_rate, l2_latency, hbm_rate, hbm_latency;
} ptx_device;

/* Models a unit that serves requests at a limited rate. Time is divided into slices of SLICE
 * cycles. taken[i] is the number of cycles of slice i in which the unit serves requests. Requests
 * may be added out of order: a request gets the first free cycles from its own time on, even if
 * requests that were added before it have later cycles. */
typedef struct {
    float *taken;
    /* Entries 0 to count - 1 of `taken` are valid. In all slices before slice number `full`, the
     * unit is busy in every cycle. */
    uint32_t count, full;
} ptx_calendar;
enum { SLICE = 32, PARTITIONS = 4 };
/* Takes `cycles` free cycles of a unit, not before cycle `at`. Returns the cycle in which the last
 * of them ends. */
double ptx_take(ptx_calendar *c, double at, double cycles);

/* Names the pipes of an SM's partition. Every instruction also takes a cycle of the partition's
 * issue slot. */
enum ptx_pipe { PIPE_NONE, PIPE_ALU, PIPE_FMA, PIPE_SPECIAL, PIPE_ACCESS, PIPE_TENSOR, PIPES };
/* Names the queues of asynchronous operations. In each queue, a warp commits groups of operations
 * and waits until a group is complete. */
enum ptx_queue { QUEUE_COPIES, QUEUE_BULK, QUEUE_PRODUCTS, QUEUES };
/* Names the kinds of instructions to which the time model applies rules of their own. */
enum ptx_special {
    ORDINARY,
    RENAMED, /* RENAMED: the assembler removes the instruction by giving a register another name. */
    /* ACCESS: the instruction accesses memory. A recorded event (time.h) describes the access and
     * decides when it is complete. */
    ACCESS,
    COMMITS,
    WAITS,
    MULTIPLIES, /* MULTIPLIES stands for a wgmma instruction. */
    TENSOR_MEMORY,
    WAITS_TENSOR_MEMORY
};
/* Describes what an instruction costs. */
typedef struct {
    uint8_t special, pipe, queue;
    uint32_t results; /* `results` is a mask of the operands that the instruction writes. */
    float cycles, latency;
    /* `bytes` is the number of bytes of shared memory that one warp of a wgmma reads. */
    uint32_t bytes;
    /* `ordering` is true if the assembler moves no instruction across this one, which is a branch,
     * a barrier, a fence or a load that orders memory. */
    bool ordering;
} ptx_class;
/* Returns the costs of an instruction on a device. */
ptx_class ptx_class_of(const ptx_inst *i, const ptx_device *d);

typedef struct {
    double issue[PARTITIONS], pipe[PARTITIONS][PIPES], tensor_memory[PARTITIONS];
    /* The tensor pipe of an SM starts its operations one after another, but the result of an
     * operation is complete some cycles after the pipe is free again. `tensor` is the cycle from
     * which the pipe is free, and `tensor_done` is the cycle in which all its operations are
     * complete. */
    double tensor, tensor_done;
    /* `first` and `last` are the first and the last cycle of the tcgen05.mma and wgmma operations
     * of this SM. `busy` is the number of cycles in which such operations run. */
    double first, last, busy;
    ptx_calendar shared, in, out;
    sim_cache *l1;
} ptx_sm;

typedef struct {
    const ptx_device *device;
    ptx_sm *sms;
    ptx_calendar l2, hbm;
    sim_cache *cache;
    /* `share` is the fraction of the rates of L2 and HBM that the sampled SMs together get. */
    double share, written;
    ptx_times *times;
} ptx_units;

struct ptx_timing {
    const ptx_launch *launch;
    const ptx_device *device;
    /* `size` counts the blocks of a cluster, and `warps` counts the warps of a block. */
    uint32_t size, warps;
    /* `all` is the number of clusters of the launch, and `taken` is the number of clusters in the
     * sample. */
    uint32_t all, taken;
    /* `sms` is the number of SMs that run the sample of clusters. `resident` is the number of
     * thread blocks that run on one SM at the same time. */
    uint32_t sms, resident;
    ptx_timeline *timelines;
};

/* Returns the cycle in which the last byte of a span (a rectangle of global memory, time.h) arrives
 * at an SM. If `cached` is true, L1 keeps the span. */
double ptx_read_span(ptx_units *u, ptx_sm *sm, const ptx_span *s, double at, bool cached);
/* Returns the cycle in which L2 has accepted a span (a rectangle of global memory, time.h) that an
 * SM writes. */
double ptx_write_span(ptx_units *u, ptx_sm *sm, const ptx_span *s, double at);
/* Occupies shared memory for the time of moving `bytes` bytes, not before cycle `at`. Returns the
 * cycle in which this time ends. */
double ptx_take_shared(const ptx_units *u, ptx_sm *sm, double at, double bytes);
/* Runs an asynchronous operation, which begins in cycle `at`. sms[r] is the SM that runs the thread
 * block of rank r of the cluster. Returns the cycle in which the operation is complete. *read
 * becomes the cycle in which the operation has read its operands from shared memory. */
double ptx_run_job(ptx_units *u, const ptx_timeline *t, const ptx_job *job, ptx_sm *sms, double at,
                   double *read);
/* Computes the time of the sampled clusters from their records. Writes the fields of launch->times
 * that describe the sampled clusters, and writes to launch->hot the source lines at which warps
 * wait longest. On failure returns false and writes the reason to `error`, which has ERROR_BYTES
 * bytes. */
bool ptx_replay(const ptx_timing *t, ptx_launch *launch, char *error);
#endif
