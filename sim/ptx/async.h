/* The copy engine: what it has to do happens as late as the threads allow, in an order that the
 * seed varies. */
#ifndef SIM_PTX_ASYNC_H
#define SIM_PTX_ASYNC_H
#include "sim.h"

typedef struct ptx_async ptx_async;
struct ptx_async {
    void (*run)(ptx_async *job);
    ptx_warp *warp; /* the warp that issued the job; messages name it */
    const ptx_inst *inst;
    bool ordered; /* happens after the earlier ordered ones of its block */
    uint32_t lane, bytes,
        multicast; /* multicast: blocks of the cluster; 0: the one that `to` names */
    uint64_t to, from, barrier, value;
    int32_t at[5]; /* coordinates in a tensor; of products: instruction descriptor, whether D is
                      added, scales */
};
/* false, and the warp stopped: out of memory. */
bool ptx_async_add(const ptx_async *job);
/* Does one of the jobs; false if there is none. */
bool ptx_async_run(ptx_cluster *c);
/* All of them, at the end of a cluster. */
bool ptx_async_finish(ptx_cluster *c);

/* ---- mbarriers ---- */
/* Bytes that arrived for the barrier at a shared address. */
void ptx_mbarrier_complete(ptx_warp *w, const ptx_inst *i, uint64_t address, uint32_t bytes);
void ptx_mbarrier_arrive(ptx_warp *w, const ptx_inst *i, uint64_t address, uint32_t count);

/* ---- bulk groups: copies from shared memory, done when their group is waited for ---- */
bool ptx_bulk_push(const ptx_async *job);
/* Does those of the lanes whose group is not among the `pending` youngest, or all of them. */
void ptx_bulks_wait(ptx_warp *w, uint32_t lanes, uint32_t pending, bool all);

void ptx_cluster_check(ptx_cluster *c);
/* The global or shared bytes that an engine's job touches, as a thread's access. */
uint8_t *ptx_engine_global(ptx_async *job, uint64_t address, uint32_t bytes);
#endif
