/* Declares tensor memory. Each thread block has 128 lanes x 512 columns of 32-bit cells. An address
 * is a lane times 2^16 plus a column. */
#ifndef SIM_PTX_TMEM_H
#define SIM_PTX_TMEM_H
#include "sim.h"

enum { TMEM_LANES = 128, TMEM_COLUMNS = 512, TMEM_UNIT = 32 };
typedef struct ptx_tmem {
    uint32_t cell[TMEM_LANES][TMEM_COLUMNS];
    uint8_t written[TMEM_LANES][TMEM_COLUMNS];
    /* `owner` holds for each 32 columns of tensor memory the number of the allocation to which
     * these columns belong, or 0. */
    uint16_t owner[TMEM_COLUMNS / TMEM_UNIT];
    uint16_t allocations;
    bool relinquished;
    /* `group` is the cta_group of the block's allocations, or 0 before the first allocation. */
    uint8_t group;
} ptx_tmem;

/* Returns the cell of tensor memory at a lane and a column. Stops the warp with an error and
 * returns NULL if the column is not allocated, or if the program reads a cell that it never
 * wrote. */
uint32_t *ptx_tmem_cell(ptx_warp *w, const ptx_inst *i, uint32_t lane, uint32_t column, bool write);
/* Returns a cell of the tensor memory of `block`, which is the warp's own thread block or the
 * other block of its pair. */
uint32_t *ptx_tmem_cell_of(ptx_block *block, ptx_warp *w, const ptx_inst *i, uint32_t lane,
                           uint32_t column, bool write);
/* With cta_group::2, the warp's thread block and another block of the cluster form a pair. Their
 * ranks differ only in the lowest bit. Returns block `half` (0 or 1) of this pair. Stops the warp
 * with an error and returns NULL if there is no such block. */
ptx_block *ptx_pair_block(ptx_warp *w, const ptx_inst *i, uint32_t half);
#endif
