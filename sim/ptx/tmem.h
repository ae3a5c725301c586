/* Tensor memory: 128 lanes of 512 columns of 32 bits for each block. An address is a lane, times
 * 2^16, and a column. */
#ifndef SIM_PTX_TMEM_H
#define SIM_PTX_TMEM_H
#include "sim.h"

enum { TMEM_LANES = 128, TMEM_COLUMNS = 512, TMEM_UNIT = 32 };
typedef struct ptx_tmem {
    uint32_t cell[TMEM_LANES][TMEM_COLUMNS];
    uint8_t written[TMEM_LANES][TMEM_COLUMNS];
    uint16_t owner[TMEM_COLUMNS / TMEM_UNIT]; /* of each 32 columns: the allocation, or 0 */
    uint16_t allocations;
    bool relinquished;
} ptx_tmem;

/* The cell of a lane and column; NULL, and the warp stopped, if it is not allocated, or was never
 * written where it is to be read. */
uint32_t *ptx_tmem_cell(ptx_warp *w, const ptx_inst *i, uint32_t lane, uint32_t column, bool write);
#endif
