/* Lists the block-scaled formats that Blackwell's tensor cores multiply as they are stored, and
 * converts their scales to the layout nv_128x4. The kernels cuda_sm100f_scaled and
 * cuda_sm120f_scaled share this file. */
#ifndef BSMM_CUDA_HOST_SCALED_FORMATS_H
#define BSMM_CUDA_HOST_SCALED_FORMATS_H

#include "cuda/host/kernel.h"
#include "cuda/host/recode_calls.h"

typedef enum bsmm_scaled_kind {
    /* BSMM_SCALED_MXF4: both operands are e2m1 with e8m0 scales of 1 x 32 elements. */
    BSMM_SCALED_MXF4,
    /* BSMM_SCALED_NVF4: both operands are e2m1 with e4m3 scales of 1 x 16 elements. */
    BSMM_SCALED_NVF4,
    /* BSMM_SCALED_MXF8F6F4: the operands are any pair of elements of 4, 6 and 8 bits with e8m0
     * scales of 1 x 32 elements. */
    BSMM_SCALED_MXF8F6F4,
    BSMM_SCALED_KINDS
} bsmm_scaled_kind;

typedef struct bsmm_scaled_format {
    /* `scale` is the type of the scales, and `block` is the number of elements of K that share a
     * scale. */
    uint32_t scale, block;
    /* `scale_tiles` is the number of scale tiles in a stage along K. A stage has 128 bytes of each
     * row of an operand in shared memory. A scale tile has the scales of 4 blocks along K for 128
     * rows. */
    uint32_t scale_tiles;
    /* `packed` is true if elements are e2m1 and shared memory holds them without gaps. */
    bool packed;
} bsmm_scaled_format;

extern const bsmm_scaled_format bsmm_scaled_formats[BSMM_SCALED_KINDS];

/* Returns NULL and sets *kind if the tensor cores support the operands, else returns the reason why
 * not. A kernel calls bsmm_cuda_refuse and bsmm_gpu_refuse_extents before this function. */
const char *bsmm_scaled_refuse(const bsmm_product *p, bsmm_scaled_kind *kind, char *why,
                               size_t size);

/* Writes the reason why the scales of A (i is 0) or B (i is 1) do not fit the layout nv_128x4, and
 * returns it. */
const char *bsmm_scaled_refuse_scales(const bsmm_product *p, int i, char *why, size_t size);

/* The functions from here on handle block scales in the layout nv_128x4. */

/* Describes the block scales of an operand. The kernel reads them where the caller stores them, or
 * from the workspace. `stored` is true if it reads them where the caller stores them. */
typedef struct bsmm_scaled_scales {
    bool stored;
    /* `bytes` is the number of bytes of workspace. It is 0 if the kernel reads the scales where the
     * caller stores them. */
    uint64_t bytes;
    bsmm_scale_map map; /* `map` describes the scales in the layout nv_128x4. */
} bsmm_scaled_scales;

/* Decides how the kernel reads an operand's scales. If the scales have the layout nv_128x4 and the
 * number of scales in a row is a multiple of `multiple`, the kernel reads them where the caller
 * stores them. Otherwise each run copies them first. Fails if sizes overflow. */
bsmm_status bsmm_scaled_scales_begin(const bsmm_operand *o, uint32_t multiple,
                                     bsmm_scaled_scales *s);

/* Prepares the copies of A's and B's scales to the workspace. An operand's scales are copied only
 * if the kernel does not read them where the caller stores them. The kernel must require scales to
 * be aligned to 16 bytes (bsmm_kernel.alignment). The device's context must be current for this
 * function and for bsmm_scaled_scales_bind. */
bsmm_status bsmm_scaled_scales_make(const bsmm_product *p, const bsmm_scaled_scales s[2],
                                    bsmm_cuda_ready_relayouts *copies);

/* Queues the copies of A's and B's scales to the memory at `room`, and returns the addresses of the
 * scales that the kernel reads. */
bsmm_status bsmm_scaled_scales_bind(const bsmm_product *p, const bsmm_scaled_scales s[2],
                                    const bsmm_cuda_ready_relayouts *copies, uint8_t *room,
                                    const uint8_t *scales[2]);

#endif
