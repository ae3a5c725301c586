/* Decides how A and B reach the sm_90a GEMM kernel. It reads an operand in place if TMA can read
 * it. Otherwise the operand is packed, in the workspace or in advance. */
#ifndef BSMM_CUDA_HOST_WGMMA_OPERANDS_H
#define BSMM_CUDA_HOST_WGMMA_OPERANDS_H

#include "cuda/host/wgmma.h"

/* Says how one operand reaches the GEMM kernel: read in place, or packed first. */
typedef struct bsmm_wgmma_source {
    bsmm_pack_route route;
    bool stored; /* True if the GEMM kernel reads the operand's elements where they are stored. */
    bool scaled; /* True if the GEMM kernel applies scales of its own to this operand. */
    bool by_row; /* True if scales are 1 x 128, false if they are 128 x 128. */
    bool stored_scales;
    uint64_t bytes; /* the bytes of workspace that the operand needs, a multiple of 1024 */
    /* Offsets in the workspace of the packed elements and of the copied scales, if the kernel does
     * not read them where they are stored. */
    uint64_t elements_at, scales_at;
    bsmm_wgmma_form form;
} bsmm_wgmma_source;

/* Decides how an operand reaches the GEMM kernel. `is_b` says that it is B, whose scales are 128 x
 * 128 in BSMM_WGMMA_BLOCK. */
bsmm_wgmma_source bsmm_wgmma_source_of(const bsmm_product *p, bsmm_wgmma_kind kind, bool is_b,
                                       bsmm_pack_route route);

/* The state of a plan for packing one operand. */
typedef struct bsmm_wgmma_packer {
    /* The launch that packs the elements, used if they are not read in place. */
    bsmm_pack_launch elements;
    /* the launch that copies the block scales, used if they are copied separately */
    bsmm_pack_scales_launch scales;
    bool packs_scales;
} bsmm_wgmma_packer;

/* Loads the packing kernels that bsmm_wgmma_fill will launch. */
bsmm_status bsmm_wgmma_packer_make(const bsmm_product *p, const bsmm_operand *o,
                                   const bsmm_wgmma_source *source, bsmm_wgmma_packer *made);

/* Says how an operand is packed. All members may be 0. */
typedef struct bsmm_wgmma_packing {
    /* The header to use, outside the packed operand and already cleared. NULL: the packed operand's
     * own header. */
    bsmm_pack_header *header;
    /* True if the caller has queued only packing kernels since the header was cleared. */
    bool overlaps;
} bsmm_wgmma_packing;

/* Queues the packing, if the operand needs any, into `room`: device memory that is aligned to 64
 * bytes. The device's context must be current. Positions in `room` are relative to its beginning,
 * so packed weights may be moved. */
bsmm_status bsmm_wgmma_fill(const bsmm_product *p, const bsmm_operand *o,
                            const bsmm_wgmma_source *source, const bsmm_wgmma_packer *made,
                            const bsmm_wgmma_packing *how, void *room);

/* Returns the pointers of an operand that bsmm_wgmma_fill has packed into `room`. */
bsmm_wgmma_side bsmm_wgmma_side_of(const bsmm_operand *o, const bsmm_wgmma_source *source,
                                   uint8_t *room);

#endif
