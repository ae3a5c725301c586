/* Declares the time model. While a cluster executes, the simulator records what its warps and its
 * asynchronous operations do (time_trace.c). After a launch, the model replays the records of a
 * sample of clusters and computes how many cycles the launch takes (time_replay.c).
 * docs/SIMULATOR.md describes the model. */
#ifndef SIM_PTX_TIME_H
#define SIM_PTX_TIME_H
#include "async.h"
#include "sim.h"

/* Names what a warp does. EVENT_RUN stands for `a` consecutive instructions of the PTX text, of
 * which `code` is the first. Each other event describes the last instruction of the preceding
 * EVENT_RUN. */
enum ptx_event_kind {
    EVENT_RUN,
    EVENT_SHARED, /* The instruction occupies shared memory for `a` cycles, of which bank conflicts
                     cause `b`. */
    /* EVENT_MEMORY: the lanes access `b` bytes in all, which lie in the warp's next `a` spans of
     * global memory. */
    EVENT_MEMORY,
    /* EVENT_JOB: the instruction starts asynchronous operation number `a` of the cluster. */
    EVENT_JOB,
    /* EVENT_ARRIVE: the instruction arrives at phase `a` of the cluster, i.e. at one use of a
     * barrier or mbarrier. */
    EVENT_ARRIVE,
    /* EVENT_WAIT: the instruction waits for phase `a` of the cluster, i.e. for one use of a barrier
     * or mbarrier. */
    EVENT_WAIT
};
typedef struct {
    uint32_t kind, code, a, b;
} ptx_event;

/* Describes `rows` times `count` neighboring sectors of global memory. The first sectors of two
 * rows are `stride` sectors apart. */
typedef struct {
    uint32_t first, count, rows, stride;
} ptx_span;
/* SECTOR is the number of bytes of a sector, the unit in which caches move data. LINE is the number
 * of sectors of a cache line. */
enum { SECTOR = 32, LINE = 4 };

#define LIST(type)                                                                                 \
    struct {                                                                                       \
        type *at;                                                                                  \
        uint32_t count, room;                                                                      \
    }

struct ptx_trace {
    LIST(ptx_event) events;
    LIST(ptx_span) spans;
    /* A warp that polls an mbarrier repeats a loop, which is recorded only once. `mark` and
     * `mark_length` describe the list of events at the first poll of this loop that failed. `poll`
     * is the index of the polling instruction plus 1. */
    uint32_t poll, mark, mark_length;
};

/* Describes an asynchronous operation. Its spans, and the phases at which it arrives, are
 * consecutive entries of the lists of the cluster. */
typedef struct {
    const ptx_inst *inst;
    uint32_t block; /* `block` is the rank of the thread block that issued it. */
    uint32_t first_span, spans, first_phase, phases;
    /* `bytes` counts the bytes that TMA moves to or from the shared memory of one thread block. Bit
     * r of `blocks` is set if TMA moves bytes for the block of rank r. */
    uint32_t bytes, blocks;
    /* `m`, `n` and `k` are the size of the part of a matrix product that one thread block computes.
     * `bits` is the number of bits of an element, which determines the rate. `reads` counts the
     * bytes that the operation reads from the shared memory of each block that takes part. */
    uint32_t m, n, k, bits, reads;
    bool pair, store, ordered;
} ptx_job;

/* Describes an object that warps wait for: an mbarrier, or a barrier of a block or a cluster. Each
 * use of the object is a phase, and the cluster numbers its phases. `current` is the number of the
 * current phase. `last` is the number of the previous phase, or 0 if there is none. */
typedef struct {
    uint64_t key;
    uint32_t current, last;
} ptx_waited;

/* Holds what the simulator has recorded while a cluster executed. */
typedef struct ptx_timeline {
    struct ptx_trace
        /* Entry r * warp_count + n of `traces` holds the events of warp n of the thread block of
         * rank r. */
        *traces;
    LIST(ptx_job) jobs;
    LIST(ptx_span) spans;
    /* `arrivals` lists the phases (uses of barriers) at which asynchronous operations arrive. */
    LIST(uint32_t) arrivals;
    /* `phases` holds for each phase (use of a barrier) the number of arrivals. */
    LIST(uint32_t) phases;
    LIST(ptx_waited) waited;
    /* `columns` is the largest number of columns of tensor memory that a block has had. */
    uint32_t columns;
    bool failed; /* `failed` is true if memory ran out. */
} ptx_timeline;

/* Records the instruction that the warp is about to execute. */
void ptx_time_step(ptx_warp *w, const ptx_inst *i);
/* Records that the current instruction accesses `bytes` bytes in each lane of w->mask. */
void ptx_time_access(ptx_warp *w, const ptx_inst *i, const uint64_t *address, int space,
                     uint32_t bytes);
/* Records that an asynchronous operation begins. Returns the number of the operation plus 1, or 0
 * if memory runs out. */
uint32_t ptx_time_job(const ptx_async *job, bool store);
/* Returns the description of the asynchronous operation that runs now, or NULL. */
ptx_job *ptx_time_running(const ptx_cluster *c);
/* Records that the asynchronous operation that runs now accesses `bytes` bytes of global memory. */
void ptx_time_span(ptx_cluster *c, uint64_t address, uint64_t bytes);

/* Names the kinds of objects that warps wait for. */
enum ptx_waited_kind { WAITED_MBARRIER, WAITED_BARRIER, WAITED_CLUSTER };
/* Records that the asynchronous operation that runs now, or the warp if no operation runs, arrives
 * at the current phase of an object. */
void ptx_time_arrive(ptx_warp *w, enum ptx_waited_kind kind, uint64_t number);
/* Records that the current phase of a barrier or mbarrier ends and the next phase begins. */
void ptx_time_turn(ptx_cluster *c, enum ptx_waited_kind kind, uint64_t number);
/* Records that instruction `i` of the warp has waited for the phase of an object that ended last. A
 * wait is recorded when it is over. Other lanes of the warp may have to arrive before that, so that
 * a replay of an earlier record would never end. */
void ptx_time_wait(ptx_warp *w, const ptx_inst *i, enum ptx_waited_kind kind, uint64_t number);
/* Does the work of ptx_time_wait for lanes of the warp that a barrier has blocked and now
 * releases. */
void ptx_time_release(ptx_warp *w, uint32_t lanes, enum ptx_waited_kind kind, uint64_t number);
/* Records that the warp has polled an mbarrier whose phase is not over. */
void ptx_time_poll(ptx_warp *w, const ptx_inst *i);
/* Records that a block has `columns` columns of tensor memory. */
void ptx_time_columns(ptx_warp *w, uint32_t columns);

typedef struct ptx_timing ptx_timing;
/* Begins to time a launch. Returns NULL if memory runs out or the device has no constants. */
ptx_timing *ptx_timing_begin(const ptx_launch *launch);
/* Returns true if the model replays the cluster. */
bool ptx_timing_takes(const ptx_timing *t, uint32_t cluster);
/* Attaches records to a cluster before its warps run. */
void ptx_timing_attach(ptx_timing *t, ptx_cluster *c, uint32_t cluster);
/* Replays the records if the launch has not failed, i.e. `error` is empty, writes launch->times,
 * and frees all memory. If the records cannot be replayed, writes the reason to `error`, which has
 * ERROR_BYTES bytes. */
void ptx_timing_end(ptx_timing *t, ptx_launch *launch, char *error);
#endif
