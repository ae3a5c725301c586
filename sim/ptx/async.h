/* The copy engine, which runs asynchronous jobs. A job runs as late as possible, i.e. only when no
 * warp can continue, so that a missing wait shows. The seed varies the order of jobs. */
#ifndef SIM_PTX_ASYNC_H
#define SIM_PTX_ASYNC_H
#include "sim.h"

typedef struct ptx_async ptx_async;
struct ptx_async {
    void (*run)(ptx_async *job);
    ptx_warp *warp; /* the warp that issued the job; error messages name it */
    const ptx_inst *inst;
    bool ordered; /* the job runs after all ordered jobs that its block issued before */
    /* `multicast` is a mask of the cluster's blocks that receive a copy, or 0 for only the block of
     * address `to`. */
    uint32_t lane, bytes, multicast;
    uint64_t to, from, barrier, value;
    int32_t at[5]; /* the coordinates of a copy in a tensor; for tcgen05.mma other parameters */
};
/* Adds a copy of the job to the list. If memory runs out, stops the warp and returns false. */
bool ptx_async_add(const ptx_async *job);
/* Runs one job. Returns false if there is none. */
bool ptx_async_run(ptx_cluster *c);
/* Runs all jobs that are left when a cluster ends. */
bool ptx_async_finish(ptx_cluster *c);

/* ptx_mbarrier_complete reports copied bytes, and ptx_mbarrier_arrive reports arrivals, to the
 * mbarrier at a shared address. Either call may complete the current phase of the mbarrier. */
void ptx_mbarrier_complete(ptx_warp *w, const ptx_inst *i, uint64_t address, uint32_t bytes);
void ptx_mbarrier_arrive(ptx_warp *w, const ptx_inst *i, uint64_t address, uint32_t count);

bool ptx_bulk_push(const ptx_async *job);
/* Runs the bulk copies of the lanes in the mask `lanes`, except those of each lane's `pending`
 * youngest groups. If `all` is set, runs all bulk copies of these lanes. */
void ptx_bulks_wait(ptx_warp *w, uint32_t lanes, uint32_t pending, bool all);

void ptx_cluster_check(ptx_cluster *c);
/* Returns the host address of global bytes that a job accesses. Checks the address as for a
 * thread's access, and returns NULL after an error. */
uint8_t *ptx_engine_global(ptx_async *job, uint64_t address, uint32_t bytes);
#endif
