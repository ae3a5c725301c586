/* The block-scaled formats that Blackwell's tensor cores multiply as they are stored, and their
 * scales in the layout nv_128x4. The kernels cuda_sm100f_scaled and cuda_sm120f_scaled share this
 * file. */
#ifndef BSMM_CUDA_HOST_SCALED_FORMATS_H
#define BSMM_CUDA_HOST_SCALED_FORMATS_H

#include "cuda/host/kernel.h"

typedef enum bsmm_scaled_kind {
    BSMM_SCALED_MXF4,     /* e2m1 with e8m0 scales of 1 x 32 on both sides */
    BSMM_SCALED_NVF4,     /* e2m1 with e4m3 scales of 1 x 16 on both sides */
    BSMM_SCALED_MXF8F6F4, /* any pair of elements of 4, 6 and 8 bits with e8m0 scales of 1 x 32 */
    BSMM_SCALED_KINDS
} bsmm_scaled_kind;

typedef struct bsmm_scaled_format {
    uint32_t scale, block; /* the type of the scales, and the elements of K with the same scale */
    /* The tiles of 4 scales along K for 128 bytes of a row of shared memory, which four
     * instructions multiply. */
    uint32_t scale_tiles;
    bool packed; /* elements are e2m1, and shared memory holds them without gaps */
} bsmm_scaled_format;

extern const bsmm_scaled_format bsmm_scaled_formats[BSMM_SCALED_KINDS];

/* Returns NULL and sets *kind if the tensor cores take the operands, else the reason why not. A
 * kernel first calls bsmm_cuda_refuse and bsmm_cuda_refuse_product. */
const char *bsmm_scaled_refuse(const bsmm_product *p, bsmm_scaled_kind *kind);

/* ---- block scales in the layout nv_128x4 ---- */

/* The block scales of an operand. They are read where they are stored, or from the workspace. */
typedef struct bsmm_scaled_scales {
    bool stored;
    uint64_t bytes;     /* the workspace; 0 if they are read where they are stored */
    bsmm_scale_map map; /* the scales in the layout nv_128x4 */
} bsmm_scaled_scales;

/* Decides how an operand's scales are read. They are stored as the kernel wants them if they have
 * the layout nv_128x4 and their number per row is a multiple of `multiple`. Fails if sizes
 * overflow. */
bsmm_status bsmm_scaled_scales_begin(const bsmm_operand *o, uint32_t multiple,
                                     bsmm_scaled_scales *s);

/* Loads the kernel that moves the scales. The device's context must be current for this and the
 * next function. */
bsmm_status bsmm_scaled_scales_make(const bsmm_cuda_device *device, const bsmm_scaled_scales *s);

/* Queues the kernel that moves the scales to the memory at *room, moves *room past them, and
 * returns the address of the scales. */
bsmm_status bsmm_scaled_scales_bind(const bsmm_product *p, const bsmm_operand *o,
                                    const bsmm_scaled_scales *s, uint8_t **room,
                                    const uint8_t **scales);

#endif
