/* Declares the simulated copy engine, which runs asynchronous copies and tcgen05 operations
 * (jobs). A job runs only when no warp can continue, i.e. as late as possible, so that a missing
 * wait gives wrong results. The launch's seed varies the order of jobs. */
#ifndef SIM_PTX_ASYNC_H
#define SIM_PTX_ASYNC_H
#include "races.h"

typedef struct ptx_async ptx_async;
struct ptx_async {
    void (*run)(ptx_async *job);
    /* `warp` points to the warp that issued the job. Error messages name it. */
    ptx_warp *warp;
    const ptx_inst *inst;
    /* If `ordered` is true, the job runs after the earlier ordered jobs of its thread block. If
     * `commits` is true, the job also signals that the earlier tcgen05 operations of its warp are
     * complete. */
    bool ordered, commits;
    /* `multicast` is a mask of the thread blocks in the cluster that receive the copied bytes. If
     * it is 0, only the block that owns the address `to` receives them. */
    uint32_t lane, bytes, multicast;
    uint64_t to, from, barrier, value;
    /* For a copy, `at` holds the coordinates in the tensor. For tcgen05.mma, it holds parameters
     * such as the tensor-memory addresses of the scales (the enum in tcgen05.c numbers them). */
    int32_t at[5];
    /* `disabled` has one bit for each lane of tensor memory. The bit is set if tcgen05.mma leaves
     * the lane unchanged. The lanes of the second thread block of a pair begin at disabled[4]. */
    uint32_t disabled[8];
    /* `timed` is 1 plus the index of the time model's record of this job (time.h), or 0 if there is
     * no record. */
    uint32_t timed;
    /* `race` is the number that the race detector (races.h) gave this asynchronous operation, or 0
     * if the race detector is off. */
    uint32_t race;
};
/* Adds a copy of an asynchronous operation (job) to the list of operations that have not run yet.
 * If memory runs out, stops the warp and returns false. */
bool ptx_async_add(const ptx_async *job);
/* Runs an asynchronous operation (job). Informs the time model and the race detector (races.h). */
void ptx_async_execute(ptx_async *job, enum ptx_end end);
/* Runs one asynchronous operation (job) of the copy engine. Returns false if none is left. */
bool ptx_async_run(ptx_cluster *c);
/* Runs all asynchronous operations (jobs) that remain when a cluster ends. */
bool ptx_async_finish(ptx_cluster *c);

/* ptx_mbarrier_complete reports copied bytes to the mbarrier at a shared address.
 * ptx_mbarrier_arrive reports arrivals. Either call may complete the current phase of the
 * mbarrier. */
void ptx_mbarrier_complete(ptx_warp *w, const ptx_inst *i, uint64_t address, uint32_t bytes);
void ptx_mbarrier_arrive(ptx_warp *w, const ptx_inst *i, uint64_t address, uint32_t count);

bool ptx_bulk_push(const ptx_async *job);
/* Executes the waiting bulk copies of the lanes in the mask `lanes`, as cp.async.bulk.wait_group
 * requires. The copies of a lane form groups. If `all` is false, the `pending` youngest groups of
 * each lane may remain unexecuted. If `all` is true, all copies are executed. */
void ptx_bulks_wait(ptx_warp *w, uint32_t lanes, uint32_t pending, bool all);

void ptx_cluster_check(ptx_cluster *c);
/* Returns the host address of global memory that an asynchronous operation (job) accesses. Checks
 * the address in the same way as the address of a thread's access, and returns NULL after an
 * error. */
uint8_t *ptx_engine_global(ptx_async *job, uint64_t address, uint32_t bytes);
/* Returns the host address of shared memory that an asynchronous operation (job) reads or writes,
 * and checks that no race happens. Returns NULL after an error. */
uint8_t *ptx_engine_shared(ptx_async *job, uint64_t address, uint32_t bytes, bool write);
#endif
