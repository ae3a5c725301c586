/* Finds data races on shared memory. A race happens if two warps or asynchronous operations access
 * the same byte, at least one of them changes the byte, and no barrier or mbarrier orders the two
 * accesses. The lanes of a warp count as one thread. If an asynchronous operation reads bytes that
 * a warp has written, a fence.proxy.async must lie between the two accesses. */
#ifndef SIM_PTX_RACES_H
#define SIM_PTX_RACES_H
#include "sim.h"

/* Names the kinds of objects by which warps wait for each other. An object also has a number, which
 * is the number of a barrier of a block, or a shared address. */
enum ptx_sync { SYNC_BARRIER, SYNC_CLUSTER, SYNC_ADDRESS, SYNC_FENCE };

/* Forgets all accesses, because the cluster begins with new blocks. Returns false if there is no
 * memory. */
bool ptx_races_begin(ptx_cluster *c);
void ptx_races_free(ptx_cluster *c);

/* Records that a lane reads, or is about to write, bytes at `offset` of a block's shared memory.
 * Stops the warp with an error if the read is a race. */
void ptx_race_access(ptx_warp *w, const ptx_inst *i, ptx_block *b, uint32_t offset, uint32_t bytes,
                     bool write, uint32_t lane);
/* Checks the writes that ptx_race_access has recorded and that have happened now. Writes that
 * change no bit are ignored, because compilers and kernels make several warps store the same
 * value. */
void ptx_races_settle(ptx_warp *w);

/* ptx_race_release records that all accesses so far of the warp, or of the operation that runs now,
 * are visible to all warps that wait for the object afterwards. ptx_race_acquire records that the
 * warp has waited for the object. */
void ptx_race_release(ptx_warp *w, enum ptx_sync kind, uint64_t number);
void ptx_race_acquire(ptx_warp *w, enum ptx_sync kind, uint64_t number);
/* Records that the warp has executed fence.proxy.async. */
void ptx_race_fence(ptx_warp *w);

/* Records that a warp issues an asynchronous operation. `product` is true for a wgmma. Returns the
 * number of the operation, or 0 if nothing is recorded. */
uint32_t ptx_race_issue(ptx_warp *w, bool product);
/* Tells who knows that an operation is complete. END_SIGNALLED means the warps that wait for an
 * mbarrier, END_KNOWN means the warp that issued the operation, and END_ORDERED means the next
 * tcgen05.commit of this warp. */
enum ptx_end { END_SIGNALLED, END_KNOWN, END_ORDERED };
/* ptx_race_start begins the execution of an asynchronous operation, and ptx_race_finish ends it.
 * All signals between the two calls are signals of the operation. If `after_products` is set, the
 * signals also tell that the warp's earlier tcgen05 operations are complete. */
void ptx_race_start(ptx_warp *w, uint32_t job, bool after_products);
void ptx_race_finish(ptx_warp *w, uint32_t job, enum ptx_end end);
/* Records that the operation that runs now accesses bytes at `offset` of a block's shared memory.
 * Stops the warp and returns false if the access is a race, or if a fence is missing. */
bool ptx_race_async(ptx_warp *w, const ptx_inst *i, ptx_block *b, uint32_t offset, uint32_t bytes,
                    bool write);
#endif
