/* An operand of the kernel cuda_sm100f_scaled. TMA reads its elements, and the tensor cores read
 * its block scales. Each of the two is read where it is stored, or from a copy in the workspace. */
#ifndef BSMM_CUDA_HOST_SCALED_SIDE_H
#define BSMM_CUDA_HOST_SCALED_SIDE_H

#include "cuda/host/kernel.h"
#include "cuda/sm100f/scaled_params.h"

typedef struct bsmm_scaled_side {
    bool stored, stored_scales;  /* whether elements and scales are read where they are stored */
    bool spread;                 /* TMA spreads elements of 4 or 6 bits so that each takes a byte */
    uint64_t bytes, scale_bytes; /* the workspace for elements and for scales; 0 if stored */
    uint64_t pitch;              /* the distance of the rows that TMA reads, in bytes */
    bsmm_scale_map map;          /* the scales in the layout nv_128x4 */
    bsmm_cuda_ready pad;
    bsmm_cuda_ready_map rows;
} bsmm_scaled_side;

/* Decides how a row-major operand is read. `packed` says that shared memory holds elements without
 * gaps. One instruction reads `scales` scales of a row. Fails if sizes overflow. */
bsmm_status bsmm_scaled_side_begin(const bsmm_operand *o, bool packed, uint32_t scales,
                                   bsmm_scaled_side *side);

/* Returns the bytes that TMA counts for a row of a stage. */
uint32_t bsmm_scaled_side_row_bytes(const bsmm_operand *o, const bsmm_scaled_side *side);

/* Loads the kernels that copy the operand, and makes the tensor map of its elements, of which a
 * copy reads `tile_rows` rows. The device's context must be current for this and the next
 * function. */
bsmm_status bsmm_scaled_side_make(const bsmm_cuda_device *device, const bsmm_operand *o,
                                  uint32_t tile_rows, bsmm_scaled_side *side);

/* Queues the kernels that copy the operand to the memory at *room, moves *room past the copies, and
 * returns the tensor map of the elements and the address of the scales. */
bsmm_status bsmm_scaled_side_bind(const bsmm_product *p, const bsmm_operand *o,
                                  const bsmm_scaled_side *side, uint8_t **room, CUtensorMap *rows,
                                  const uint8_t **scales);

#endif
