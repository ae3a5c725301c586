/* Declares what the files of the time model share. time.c chooses the sample and extrapolates from
 * it, time_replay.c replays the warps, time_class.c says what an instruction costs, and
 * time_units.c models the units that warps share. */
#ifndef SIM_PTX_TIME_REPLAY_H
#define SIM_PTX_TIME_REPLAY_H
#include "common/cache.h"
#include "time.h"

/* Holds the constants of a device (time_devices.def). Rates of memory are bytes per cycle of an SM
 * (shared_rate, port_rate) or of the device (l2_rate), or bytes per second (hbm_rate). Rates of
 * tensor cores are products per cycle of an SM, for elements of 16 bits. Latencies are cycles. */
typedef struct {
    uint32_t capability, sms, shared_bytes, l1_bytes, l2_bytes, threads;
    double megahertz, launch_us;
    double tensor_rate, warp_tensor_rate, tensor_latency;
    double shared_rate, shared_latency, remote_latency, port_rate, l1_latency, tma_latency;
    double l2_rate, l2_latency, hbm_rate, hbm_latency;
} ptx_device;

/* Models a unit that serves requests at a limited rate. It counts for each SLICE cycles how many of
 * them are taken, so a request can use cycles before those of a later request that came first. */
typedef struct {
    float *taken;
    uint32_t count, full; /* The slices before `full` are taken whole. */
} ptx_calendar;
enum { SLICE = 32, PARTITIONS = 4 };
/* Takes `cycles` cycles of a unit, from cycle `at` on. Returns the cycle in which they end. */
double ptx_take(ptx_calendar *c, double at, double cycles);

/* Names the pipes of an SM's partition. Every instruction also takes a cycle of the partition's
 * issue slot. */
enum ptx_pipe { PIPE_NONE, PIPE_ALU, PIPE_FMA, PIPE_SPECIAL, PIPE_ACCESS, PIPE_TENSOR, PIPES };
/* Names the queues of groups that a warp commits and waits for. */
enum ptx_queue { QUEUE_COPIES, QUEUE_BULK, QUEUE_PRODUCTS, QUEUES };
/* Names instructions that the replay treats apart. */
enum ptx_special {
    ORDINARY,
    RENAMED, /* The assembler removes the instruction, by giving a register another name. */
    ACCESS,  /* Its results come by an event. */
    COMMITS,
    WAITS,
    MULTIPLIES, /* wgmma */
    TENSOR_MEMORY,
    WAITS_TENSOR_MEMORY
};
/* Says what an instruction costs. */
typedef struct {
    uint8_t special, pipe, queue;
    uint32_t results; /* A mask of the operands that the instruction writes. */
    float cycles, latency;
    uint32_t bytes; /* The bytes of shared memory that one warp of a wgmma reads. */
} ptx_class;
/* Finds the class of an instruction on a device. */
ptx_class ptx_class_of(const ptx_inst *i, const ptx_device *d);

typedef struct {
    double issue[PARTITIONS], pipe[PARTITIONS][PIPES], tensor_memory[PARTITIONS];
    double tensor, tensor_done; /* When the tensor pipe is free, and when its products are done. */
    double first, last, busy;   /* Of the products of tcgen05 and wgmma, in cycles. */
    ptx_calendar shared, in, out;
    sim_cache *l1;
} ptx_sm;

typedef struct {
    const ptx_device *device;
    ptx_sm *sms;
    ptx_calendar l2, hbm;
    sim_cache *cache;
    /* `share` is the part of the rates of L2 and HBM that the sampled SMs get. */
    double share, written;
    ptx_times *times;
} ptx_units;

struct ptx_timing {
    const ptx_launch *launch;
    const ptx_device *device;
    uint32_t size, warps;   /* Count the blocks of a cluster and the warps of a block. */
    uint32_t all, taken;    /* Count the clusters of the launch and of the sample. */
    uint32_t sms, resident; /* The SMs of the sample, and the blocks that run on each at once. */
    ptx_timeline *timelines;
};

/* Returns the cycle in which the last byte of a span arrives at an SM. `cached` says that L1 keeps
 * it. */
double ptx_read_span(ptx_units *u, ptx_sm *sm, const ptx_span *s, double at, bool cached);
/* Returns the cycle in which L2 has accepted a span from an SM. */
double ptx_write_span(ptx_units *u, ptx_sm *sm, const ptx_span *s, double at);
/* Takes shared memory for `bytes` bytes. */
double ptx_take_shared(const ptx_units *u, ptx_sm *sm, double at, double bytes);
/* Runs an asynchronous operation that begins in cycle `at` on `sm`, the SM of its block. `sms` is
 * the SM of the first block of the cluster. Returns the cycle in which it is complete. The cycle in
 * which it has read shared memory becomes *read. */
double ptx_run_job(ptx_units *u, const ptx_timeline *t, const ptx_job *job, ptx_sm *sms, double at,
                   double *read);
/* Replays the sample and writes the measured fields of launch->times. Returns false if memory runs
 * out. */
bool ptx_replay(const ptx_timing *t, ptx_times *times);
#endif
