/* Declares the state of the time model, which three files share. time_replay.c decides which warp
 * continues and makes warps wait at barriers, time_warp.c runs instructions, and time_state.c
 * allocates the state. */
#ifndef SIM_PTX_TIME_STATE_H
#define SIM_PTX_TIME_STATE_H
#include "common/turns.h"
#include "time_replay.h"

enum { GROUPS = 32 };
#define NOBODY UINT32_MAX

/* Holds the completion cycles of a warp's groups of asynchronous operations. `done` has the
 * committed groups, with the youngest last. `open` is the completion cycle of the group that the
 * warp has not committed yet. */
typedef struct {
    double done[GROUPS], open;
    uint32_t count;
} ptx_groups;

typedef struct {
    const struct ptx_trace *trace;
    double ready, tensor_memory;
    double late; /* `late` is the cycle in which all postponed instructions have their results. */
    /* `registers` holds for each register the cycle in which its value is ready. */
    double *registers;
    /* `causes` holds for each register what a warp that needs its value waits for (STALL_...). */
    uint8_t *causes;
    ptx_groups queues[QUEUES];
    uint32_t cluster, block, partition, event, done, span;
    uint32_t code; /* `code` is the index of the warp's current instruction. */
    /* `next` is the next warp in the list of warps that wait for the same phase (use of a
     * barrier). */
    uint32_t next;
} ptx_replayed;

typedef struct {
    double time;
    uint32_t missing, waiting;
    uint8_t cause;
} ptx_phase;

typedef struct {
    const ptx_timing *t;
    ptx_units units;
    const ptx_class *classes;
    ptx_replayed *warps;
    /* `phases` holds the state of the phases (uses of barriers and mbarriers) of each cluster. */
    struct {
        ptx_phase *at;
    } * phases;
    sim_turns turns; /* `turns` holds the warps that can continue. */
    uint32_t warp_count, predicates;
    ptx_times *r;
    /* stalls[k][c] is the number of cycles that warps wait at instruction k of the module for cause
     * c. */
    double (*stalls)[STALLS];
    double end;
} ptx_replay_state;

/* ptx_state_make allocates the state. It returns false if there is not enough memory.
 * ptx_state_free frees the state. */
bool ptx_state_make(ptx_replay_state *p);
void ptx_state_free(ptx_replay_state *p);

/* Returns the first SM of the cluster of a warp. Clusters are assigned to the SMs in turn. */
ptx_sm *ptx_cluster_sms(const ptx_replay_state *p, const ptx_replayed *w);
/* Makes a warp wait until cycle `at`, and counts these cycles as waiting for `cause`. */
void ptx_wait_until(ptx_replay_state *p, ptx_replayed *w, double at, int cause);
void ptx_add_to_queue(ptx_groups *q, double done);
/* Each of these functions runs one instruction of a warp in the time model. If the instruction
 * accesses shared or global memory, *e describes the access. */
void ptx_replay_instruction(ptx_replay_state *p, ptx_replayed *w, ptx_sm *sm, uint32_t code);
void ptx_replay_shared(ptx_replay_state *p, ptx_replayed *w, ptx_sm *sm, const ptx_event *e);
void ptx_replay_memory(ptx_replay_state *p, ptx_replayed *w, ptx_sm *sm, const ptx_event *e);
#endif
