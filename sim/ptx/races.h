/* Finds data races on shared memory. A race happens if two warps or asynchronous operations access
 * the same byte, at least one of them changes the byte, and no barrier or mbarrier orders the two
 * accesses. The lanes of a warp count as one thread. If an asynchronous operation reads bytes that
 * a warp has written, a fence.proxy.async must lie between the two accesses. */
#ifndef SIM_PTX_RACES_H
#define SIM_PTX_RACES_H
#include "sim.h"

/* Names the kinds of objects by which warps wait for each other. An object also has a number: the
 * number of a block's barrier, or the shared address of an mbarrier. */
enum ptx_sync { SYNC_BARRIER, SYNC_CLUSTER, SYNC_ADDRESS, SYNC_FENCE };

/* Forgets all accesses when a cluster begins. Returns false if there is not enough memory. */
bool ptx_races_begin(ptx_cluster *c);
void ptx_races_free(ptx_cluster *c);

/* Records that a lane accesses bytes at `offset` of a block's shared memory. A read is checked
 * now, and the warp stops with an error if it is a race. A write is checked later by
 * ptx_races_settle. */
void ptx_race_access(ptx_warp *w, const ptx_inst *i, ptx_block *b, uint32_t offset, uint32_t bytes,
                     bool write, uint32_t lane);
/* Checks the writes that ptx_race_access has recorded, after they have happened. Writes that change
 * no bit are ignored, because in many kernels several warps store the same value. */
void ptx_races_settle(ptx_warp *w);

/* An object is something at which warps wait for each other, such as a barrier or an mbarrier.
 * ptx_race_release records that the warp, or the asynchronous operation that runs now, signals an
 * object. Warps that wait for the object later can see all accesses that came before the signal.
 * ptx_race_acquire records that the warp has waited for the object. */
void ptx_race_release(ptx_warp *w, enum ptx_sync kind, uint64_t number);
void ptx_race_acquire(ptx_warp *w, enum ptx_sync kind, uint64_t number);
/* Records that the warp has executed fence.proxy.async. */
void ptx_race_fence(ptx_warp *w);

/* Records that a warp issues an asynchronous operation, such as a copy. `product` is true if it is
 * a wgmma instruction. Returns the number of the operation, or 0 if nothing is recorded. */
uint32_t ptx_race_issue(ptx_warp *w, bool product);
/* Says how warps learn that an asynchronous operation is complete. Until a warp knows it, an access
 * of the warp to the same bytes is a race. END_SIGNALLED: the warps that wait for the operation's
 * mbarrier know. END_KNOWN: the warp that issued the operation knows at once. END_ORDERED: no warp
 * knows before the issuing warp's next tcgen05.commit. */
enum ptx_end { END_SIGNALLED, END_KNOWN, END_ORDERED };
/* ptx_race_start begins the execution of asynchronous operation `job`, and ptx_race_finish ends it.
 * If an mbarrier is arrived at between the two calls, this arrival signals that the operation is
 * complete. If `after_products` is true, the arrival also signals that the earlier tcgen05
 * operations of this warp are complete. */
void ptx_race_start(ptx_warp *w, uint32_t job, bool after_products);
void ptx_race_finish(ptx_warp *w, uint32_t job, enum ptx_end end);
/* Records that the asynchronous operation that runs now accesses bytes at `offset` of a block's
 * shared memory. Stops the warp and returns false if the access is a race, or if no
 * fence.proxy.async makes the bytes visible. */
bool ptx_race_async(ptx_warp *w, const ptx_inst *i, ptx_block *b, uint32_t offset, uint32_t bytes,
                    bool write);
#endif
