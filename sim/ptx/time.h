/* Declares the time model. While a cluster executes, the simulator records what its warps and its
 * asynchronous operations do (time_trace.c). After a launch, the model replays the records of a
 * sample of clusters and computes how many cycles the launch takes (time_replay.c).
 * docs/SIMULATOR.md describes the model. */
#ifndef SIM_PTX_TIME_H
#define SIM_PTX_TIME_H
#include "async.h"
#include "sim.h"

/* Names what a warp does. EVENT_RUN is a run of `a` instructions of the text, from `code` on. The
 * other events follow the run that ends with their instruction. */
enum ptx_event_kind {
    EVENT_RUN,
    EVENT_SHARED, /* The instruction occupies shared memory for `a` cycles; conflicts cause `b`. */
    EVENT_MEMORY, /* It accesses the next `a` spans of the warp, which have `b` bytes. */
    EVENT_JOB,    /* It starts asynchronous operation number `a` of the cluster. */
    EVENT_ARRIVE, /* It arrives at phase `a` of the cluster. */
    EVENT_WAIT    /* It waits for phase `a`. */
};
typedef struct {
    uint32_t kind, code, a, b;
} ptx_event;

/* Describes `rows` times `count` neighboring sectors of global memory. The first sectors of two
 * rows are `stride` sectors apart. */
typedef struct {
    uint32_t first, count, rows, stride;
} ptx_span;
/* The bytes of a sector, by which caches move data, and the sectors of a cache line. */
enum { SECTOR = 32, LINE = 4 };

#define LIST(type)                                                                                 \
    struct {                                                                                       \
        type *at;                                                                                  \
        uint32_t count, room;                                                                      \
    }

struct ptx_trace {
    LIST(ptx_event) events;
    LIST(ptx_span) spans;
    /* While a warp polls an mbarrier, its loop is recorded once. The mark is the state of the list
     * at the first poll of the loop that failed, and `poll` is this instruction plus 1. */
    uint32_t poll, mark, mark_length;
};

/* Describes an asynchronous operation. Its spans, and the phases at which it arrives, are
 * consecutive entries of the lists of the cluster. */
typedef struct {
    const ptx_inst *inst;
    uint32_t block; /* The rank of the thread block that issued it. */
    uint32_t first_span, spans, first_phase, phases;
    /* `bytes` counts the bytes that TMA moves to or from the shared memory of one block, and
     * `blocks` is a mask of these blocks. */
    uint32_t bytes, blocks;
    /* The size of a matrix product, for each block that takes part. `bits` is the number of bits of
     * an element, which determines the rate, and `reads` counts bytes of shared memory. */
    uint32_t m, n, k, bits, reads;
    bool pair, store, ordered;
} ptx_job;

/* Describes an object that warps wait for, i.e. an mbarrier or a barrier of a block or cluster.
 * `current` is the number of its current phase, and `last` that of the phase before, or 0. */
typedef struct {
    uint64_t key;
    uint32_t current, last;
} ptx_waited;

/* Holds the records of a cluster. */
typedef struct ptx_timeline {
    struct ptx_trace
        *traces; /* Entry r * warp_count + n is that of warp n of the block of rank r. */
    LIST(ptx_job) jobs;
    LIST(ptx_span) spans;
    LIST(uint32_t) arrivals; /* Lists the phases at which asynchronous operations arrive. */
    LIST(uint32_t) phases;   /* Holds for each phase the number of arrivals. */
    LIST(ptx_waited) waited;
    uint32_t columns; /* The most columns of tensor memory that a block has had. */
    bool failed;      /* True if memory ran out. */
} ptx_timeline;

/* Records the instruction that the warp is about to execute. */
void ptx_time_step(ptx_warp *w, const ptx_inst *i);
/* Records that the current instruction accesses `bytes` bytes in each lane of w->mask. */
void ptx_time_access(ptx_warp *w, const ptx_inst *i, const uint64_t *address, int space,
                     uint32_t bytes);
/* Records the begin of an asynchronous operation. Returns its number plus 1, or 0. */
uint32_t ptx_time_job(const ptx_async *job, bool store);
/* Returns the record of the operation that runs now, or NULL. */
ptx_job *ptx_time_running(const ptx_cluster *c);
/* Records that the operation that runs now accesses bytes of global memory. */
void ptx_time_span(ptx_cluster *c, uint64_t address, uint64_t bytes);

/* Names the kinds of objects that warps wait for. */
enum ptx_waited_kind { WAITED_MBARRIER, WAITED_BARRIER, WAITED_CLUSTER };
/* Record an arrival of the warp, or of the operation that runs now, at the current phase of an
 * object, the end of this phase, and a wait for the last phase or the current one. */
void ptx_time_arrive(ptx_warp *w, enum ptx_waited_kind kind, uint64_t number);
void ptx_time_turn(ptx_cluster *c, enum ptx_waited_kind kind, uint64_t number);
void ptx_time_wait(ptx_warp *w, enum ptx_waited_kind kind, uint64_t number, bool current);
/* Records that the warp has polled an mbarrier, whose phase is not over. */
void ptx_time_poll(ptx_warp *w, const ptx_inst *i);
void ptx_time_columns(ptx_warp *w, uint32_t columns);

typedef struct ptx_timing ptx_timing;
/* Begins to time a launch. Returns NULL if memory runs out or the device has no constants. */
ptx_timing *ptx_timing_begin(const ptx_launch *launch);
/* Returns true if the model replays the cluster. */
bool ptx_timing_takes(const ptx_timing *t, uint32_t cluster);
/* Attaches records to a cluster before its warps run. */
void ptx_timing_attach(ptx_timing *t, ptx_cluster *c, uint32_t cluster);
/* Replays the records if `replay` is set, writes launch->times, and frees all memory. */
void ptx_timing_end(ptx_timing *t, bool replay, ptx_launch *launch);
#endif
