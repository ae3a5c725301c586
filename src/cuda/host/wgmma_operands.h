/* Decides how the sm_90a GEMM kernel gets A and B. It reads an operand in place if TMA can read it.
 * Otherwise the operand is packed, in the workspace or in advance (gpu/pack.h). */
#ifndef BSMM_CUDA_HOST_WGMMA_OPERANDS_H
#define BSMM_CUDA_HOST_WGMMA_OPERANDS_H

#include "cuda/host/wgmma.h"

/* Says how the GEMM kernel gets one operand: in place or packed. */
typedef struct bsmm_wgmma_source {
    bsmm_pack_route route;
    bool stored; /* true if the GEMM kernel reads the operand's elements in place */
    bool scaled; /* true if the GEMM kernel applies scales of this operand to accumulators */
    bool by_row; /* true if these scales are 1 x 128, false if they are 128 x 128 */
    bool stored_scales;
    uint64_t bytes; /* the bytes of workspace that the operand needs, a multiple of 1024 */
    /* The offsets in the workspace of the packed elements and of the scales, if the GEMM kernel
     * does not read them in place. */
    uint64_t elements_at, scales_at;
    bsmm_wgmma_form form;
} bsmm_wgmma_source;

/* Decides how the GEMM kernel gets an operand. `is_b` says that the operand is B. With
 * BSMM_WGMMA_BLOCK, B's scales are 128 x 128 and A's are 1 x 128. `scaled` says that the GEMM
 * kernel applies scales of the operand. */
bsmm_wgmma_source bsmm_wgmma_source_of(const bsmm_product *p, bsmm_wgmma_kind kind, bool is_b,
                                       bsmm_pack_route route, bool scaled);

/* The state of a plan for packing one operand. */
typedef struct bsmm_wgmma_packer {
    /* the launch that packs the elements, used if they are not read in place */
    bsmm_pack_launch elements;
    /* the launch that copies the block scales, used if `packs_scales` */
    bsmm_pack_scales_launch scales;
    bool packs_scales;
} bsmm_wgmma_packer;

/* Loads the packing kernels that bsmm_wgmma_fill will launch. */
bsmm_status bsmm_wgmma_packer_make(const bsmm_product *p, const bsmm_operand *o,
                                   const bsmm_wgmma_source *source, bsmm_wgmma_packer *made);

/* Options of packing an operand. All members may be 0. */
typedef struct bsmm_wgmma_packing {
    /* A header that is used instead of the header at the beginning of the packed operand, and that
     * the caller has cleared. NULL: the packed operand's own header. */
    bsmm_pack_header *header;
    /* true if the caller has queued only packing kernels since it cleared the header */
    bool overlaps;
} bsmm_wgmma_packing;

/* Queues the kernels that pack the operand, if it needs packing. `room` is device memory for the
 * packed operand, aligned to 64 bytes. The device's context must be current. All offsets are
 * relative to the beginning of `room`, so packed weights may be moved in memory. */
bsmm_status bsmm_wgmma_fill(const bsmm_product *p, const bsmm_operand *o,
                            const bsmm_wgmma_source *source, const bsmm_wgmma_packer *made,
                            const bsmm_wgmma_packing *how, void *room);

/* Returns the pointers of an operand that bsmm_wgmma_fill has packed into `room`. */
bsmm_wgmma_side bsmm_wgmma_side_of(const bsmm_operand *o, const bsmm_wgmma_source *source,
                                   uint8_t *room);

#endif
