/* Declares the time model. While a cluster executes, the simulator records what its warps and
 * asynchronous operations do (time_trace.c). After the launch, the model plays back the records of
 * some clusters with the costs of each instruction, and so finds the number of cycles that the
 * launch takes (time_replay.c). docs/SIMULATOR.md describes the model. */
#ifndef SIM_PTX_TIME_H
#define SIM_PTX_TIME_H
#include "async.h"
#include "sim.h"

/* Names the kinds of events that are recorded for a warp. An EVENT_RUN says that the warp has
 * executed `a` consecutive instructions of the PTX text, of which `code` is the first. Each other
 * event adds something about the last instruction of the EVENT_RUN before it, for example which
 * memory it has accessed. */
enum ptx_event_kind {
    EVENT_RUN,
    /* EVENT_SHARED: the instruction occupies shared memory for `a` cycles. Bank conflicts cause
     * `b` of them. */
    EVENT_SHARED,
    /* EVENT_MEMORY: the lanes together access `b` bytes of global memory. The next `a` entries of
     * the warp's list of address ranges (spans) say where these bytes lie. */
    EVENT_MEMORY,
    /* EVENT_JOB: the instruction starts asynchronous operation number `a` of the cluster. */
    EVENT_JOB,
    /* EVENT_ARRIVE: the instruction arrives at phase number `a`. A phase is one use of a barrier or
     * mbarrier, and a cluster numbers its phases. */
    EVENT_ARRIVE,
    /* EVENT_WAIT: the instruction waits for phase number `a`. A phase is one use of a barrier or
     * mbarrier, and a cluster numbers its phases. */
    EVENT_WAIT
};
typedef struct {
    uint32_t kind, code, a, b;
} ptx_event;

/* Describes a rectangle of global memory: `rows` rows of `count` neighboring sectors each.
 * Consecutive rows begin `stride` sectors apart. */
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
    /* A warp may wait for an mbarrier by polling it in a loop. Each pass of the loop would record
     * the same events. When the warp polls again by the same instruction, the events since its
     * previous poll are therefore removed. `poll` is the index of this instruction plus 1. `mark`
     * is the number of events at the previous poll, and `mark_length` is the value that the field
     * `a` of the last of these events had then. */
    uint32_t poll, mark, mark_length;
};

/* Describes an asynchronous operation of a cluster. The operation reads or writes rectangles of
 * global memory: entries first_span to first_span + spans - 1 of the cluster's list of rectangles.
 * When it is complete, it arrives at phases, i.e. at uses of barriers: entries first_phase to
 * first_phase + phases - 1 of the cluster's list of phases. */
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

/* Describes an mbarrier, or a barrier of a thread block or a cluster, in the record of a cluster.
 * Each use of such an object is a phase. A cluster numbers the phases of all its objects from 1.
 * `current` is the number of the object's current phase, and `last` is the number of its previous
 * one, or 0 if there is none. */
typedef struct {
    uint64_t key;
    uint32_t current, last;
} ptx_waited;

/* Holds what the simulator has recorded while a cluster executed. */
typedef struct ptx_timeline {
    struct ptx_trace
        /* Entry r * warp_count + n of `traces` holds the events of warp n of the thread block with
         * rank r in the cluster. */
        *traces;
    LIST(ptx_job) jobs;
    LIST(ptx_span) spans;
    /* `arrivals` lists the phases (uses of barriers) at which asynchronous operations arrive. */
    LIST(uint32_t) arrivals;
    /* `phases` holds for each phase (use of a barrier) the number of arrivals at it. */
    LIST(uint32_t) phases;
    LIST(ptx_waited) waited;
    /* `columns` is the largest number of columns of tensor memory that a block has allocated. */
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
/* Records that the current phase of a barrier or mbarrier has ended, and that the next one
 * begins. */
void ptx_time_turn(ptx_cluster *c, enum ptx_waited_kind kind, uint64_t number);
/* Records that instruction `i` of the warp has waited for the last completed phase of an object (a
 * barrier or an mbarrier). It is called when the wait is over. If the wait were recorded when it
 * begins, other lanes of the warp might arrive at the same phase later. The model, which plays back
 * the records of a warp in order, would then wait forever. */
void ptx_time_wait(ptx_warp *w, const ptx_inst *i, enum ptx_waited_kind kind, uint64_t number);
/* Records that the lanes in the mask `lanes`, which have waited at a barrier, now continue (see
 * ptx_time_wait). */
void ptx_time_release(ptx_warp *w, uint32_t lanes, enum ptx_waited_kind kind, uint64_t number);
/* Records that the warp has tested an mbarrier whose phase is not complete. */
void ptx_time_poll(ptx_warp *w, const ptx_inst *i);
/* Records that a block has allocated `columns` columns of tensor memory. */
void ptx_time_columns(ptx_warp *w, uint32_t columns);

typedef struct ptx_timing ptx_timing;
/* Begins to time a launch. Returns NULL if there is not enough memory, or if the model does not
 * know the device. */
ptx_timing *ptx_timing_begin(const ptx_launch *launch);
/* Returns true if the time model times this cluster in detail. */
bool ptx_timing_takes(const ptx_timing *t, uint32_t cluster);
/* Attaches a timeline to a cluster. The cluster's warps record in it what they do. Call this
 * function before the warps run. */
void ptx_timing_attach(ptx_timing *t, ptx_cluster *c, uint32_t cluster);
/* Computes the time of a launch from its records, writes launch->times, and frees all memory. If
 * the launch has failed, i.e. if `error` is not empty, the function only frees the memory. If the
 * records are inconsistent, it writes the reason to `error`, which has ERROR_BYTES bytes. */
void ptx_timing_end(ptx_timing *t, ptx_launch *launch, char *error);
#endif
