/* Finds data races on shared memory: two warps access the same byte, at least one of them changes
 * it, and no barrier or mbarrier orders the two accesses. The lanes of a warp count as one
 * thread. */
#ifndef SIM_PTX_RACES_H
#define SIM_PTX_RACES_H
#include "sim.h"

/* Objects by which warps wait for each other. An object of a kind has a number: that of a barrier
 * of a block, or a shared address. */
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

/* Records that what the warp has done is visible to all warps that wait for the object afterwards,
 * or that the warp has waited for the object. */
void ptx_race_release(ptx_warp *w, enum ptx_sync kind, uint64_t number);
void ptx_race_acquire(ptx_warp *w, enum ptx_sync kind, uint64_t number);
#endif
