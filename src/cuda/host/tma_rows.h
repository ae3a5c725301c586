/* The sm_100f kernels load rows of elements by TMA. TMA reads the elements where the caller stores
 * them, or from a copy in the workspace. */
#ifndef BSMM_CUDA_HOST_TMA_ROWS_H
#define BSMM_CUDA_HOST_TMA_ROWS_H

#include "cuda/host/kernel.h"
#include "cuda/sm100f/scaled_params.h"

typedef struct bsmm_tma_rows {
    bool stored; /* `stored` is true if TMA reads the elements where the caller stores them. */
    bool spread; /* `spread` is true if TMA spreads elements of 4 or 6 bits to one byte each. */
    /* `bytes` is the number of bytes of workspace for a copy of the elements, or 0 without a
     * copy. */
    uint64_t bytes;
    uint64_t pitch; /* `pitch` is the distance in bytes between the rows that TMA reads. */
    bsmm_cuda_ready pad;
    bsmm_cuda_ready_map map;
} bsmm_tma_rows;

/* Decides how TMA reads a row-major operand. `packed` says that shared memory holds elements of 4
 * bits without gaps. */
void bsmm_tma_rows_begin(const bsmm_operand *o, bool packed, bsmm_tma_rows *rows);

/* Returns the number of bytes that TMA counts when it copies one row of a stage, i.e. of the
 * operand's tile in shared memory. */
uint32_t bsmm_tma_rows_bytes(const bsmm_operand *o, const bsmm_tma_rows *rows);

/* Loads the kernel that copies the operand's rows to the workspace, and makes the tensor map with
 * which TMA reads the rows. One TMA copy reads `tile_rows` rows. The device's context must be
 * current for this function and for bsmm_tma_rows_bind. */
bsmm_status bsmm_tma_rows_make(const bsmm_cuda_device *device, const bsmm_operand *o,
                               uint32_t tile_rows, bsmm_tma_rows *rows);

/* Queues the kernel that copies the operand's rows to the workspace at *room, unless TMA can read
 * them where the caller stores them. Advances *room past the copy, and returns in *map the tensor
 * map of the elements. */
bsmm_status bsmm_tma_rows_bind(const bsmm_product *p, const bsmm_operand *o,
                               const bsmm_tma_rows *rows, uint8_t **room, CUtensorMap *map);

#endif
