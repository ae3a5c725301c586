/* An operand of the kernel cuda_sm100f_scaled. TMA reads its elements, and the tensor cores read
 * its block scales. Elements and scales are each read where the caller stores them, or from a copy
 * in the workspace. */
#ifndef BSMM_CUDA_HOST_SCALED_SIDE_H
#define BSMM_CUDA_HOST_SCALED_SIDE_H

#include "cuda/host/scaled_formats.h"
#include "cuda/sm100f/scaled_params.h"

typedef struct bsmm_scaled_side {
    bool stored;    /* true if the elements are read where the caller stores them */
    bool spread;    /* TMA spreads elements of 4 or 6 bits so that each takes a byte */
    uint64_t bytes; /* the bytes of workspace for a copy of the elements, 0 without a copy */
    uint64_t pitch; /* the distance of the rows that TMA reads, in bytes */
    bsmm_scaled_scales scales;
    bsmm_cuda_ready pad;
    bsmm_cuda_ready_map rows;
} bsmm_scaled_side;

/* Decides how the kernel reads a row-major operand. `packed` says that shared memory holds elements
 * of 4 bits without gaps. One instruction of the tensor cores reads `scales` scales of a row. Fails
 * if sizes overflow. */
bsmm_status bsmm_scaled_side_begin(const bsmm_operand *o, bool packed, uint32_t scales,
                                   bsmm_scaled_side *side);

/* Returns the number of bytes that TMA counts when it copies one row of a stage, i.e. of the
 * operand's tile in shared memory. */
uint32_t bsmm_scaled_side_row_bytes(const bsmm_operand *o, const bsmm_scaled_side *side);

/* Loads the kernels that copy the operand to the workspace, and makes the tensor map with which TMA
 * reads its elements. One TMA copy reads `tile_rows` rows. The device's context must be current for
 * this function and for bsmm_scaled_side_bind. */
bsmm_status bsmm_scaled_side_make(const bsmm_cuda_device *device, const bsmm_operand *o,
                                  uint32_t tile_rows, bsmm_scaled_side *side);

/* Queues the kernels that copy the operand to the workspace at *room, and moves *room behind the
 * copies. Returns in *rows the tensor map of the elements, and in *scales the address of the
 * scales. */
bsmm_status bsmm_scaled_side_bind(const bsmm_product *p, const bsmm_operand *o,
                                  const bsmm_scaled_side *side, uint8_t **room, CUtensorMap *rows,
                                  const uint8_t **scales);

#endif
