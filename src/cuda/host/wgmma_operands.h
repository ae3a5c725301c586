/* Decides how the sm_90a GEMM kernel and cuda_sm100f_wide get A and B. If TMA can read an operand
 * where the caller stores it, the GEMM kernel reads it there. Otherwise a kernel packs the operand
 * (gpu/pack.h) to the workspace in each run, or once in advance. */
#ifndef BSMM_CUDA_HOST_WGMMA_OPERANDS_H
#define BSMM_CUDA_HOST_WGMMA_OPERANDS_H

#include "cuda/host/wgmma.h"

/* Says whether the GEMM kernel reads one operand where the caller stores it, or packed. */
typedef struct bsmm_wgmma_source {
    bsmm_pack_route route;
    /* `stored` is true if the GEMM kernel reads the operand's elements where the caller stores
     * them. */
    bool stored;
    /* `scaled` is true if the GEMM kernel multiplies sums by scales of this operand. */
    bool scaled;
    /* `half` is true if the GEMM kernel multiplies f16. The elements are then stored as f16, or
     * they are packed to f16. */
    bool half;
    /* `by_row` is true if the operand's fp32 scales are 1 x 128, false if they are 128 x 128. */
    bool by_row;
    bool stored_scales;
    /* `bytes` is the number of bytes of workspace for the packed operand, a multiple of 1024. */
    uint64_t bytes;
    /* `elements_at` and `scales_at` are offsets in bytes, in the operand's part of the workspace,
     * of the packed elements and of the copied scales. They are used only for data that is packed
     * or copied. */
    uint64_t elements_at, scales_at;
    bsmm_wgmma_form form;
} bsmm_wgmma_source;

/* Says in which format the GEMM kernel needs an operand, and what the kernel does with its scales.
 * The plan decides this. */
typedef struct bsmm_wgmma_wish {
    /* `kind` says which block scales the GEMM kernel applies. With BSMM_WGMMA_BLOCK, A has scales
     * of 1 x 128 and B has scales of 128 x 128. */
    bsmm_wgmma_kind kind;
    bsmm_pack_route route;
    uint32_t elem;     /* `elem` is the element type that the tensor cores multiply. */
    uint32_t shift;    /* Only f16 uses `shift`. Packing multiplies all values by 2^shift. */
    bool is_b, scaled; /* `scaled` is true if the GEMM kernel applies scales of the operand. */
    /* `settles` is true if the GEMM kernel tests its accumulators and computes doubtful results
     * again by itself. The packed operand then needs no header with the range of its values,
     * because nobody has to decide before the GEMM whether its result is valid. */
    bool settles;
    /* `by_rows` is true if the fp32 scales of A and of B cover whole rows. The GEMM kernel then
     * sums over all of K before it multiplies by B's scales. */
    bool by_rows;
    /* `row_wide` matters only if each row of the operand has one scale for all of K. If it is true,
     * the GEMM kernel can read these scales where the caller stores them. */
    bool row_wide;
} bsmm_wgmma_wish;

/* Returns true if each row of an operand has one fp32 scale for all of K, and the scales lie in
 * consecutive floats. */
bool bsmm_wgmma_has_row_scales(const bsmm_operand *o);

/* Returns true if the GEMM kernel can read the operand's elements where the caller stores them, for
 * an operand in FP8 with fp32 scales. */
bool bsmm_wgmma_is_stored_fp8(const bsmm_operand *o);

/* Decides how the GEMM kernel gets an operand. */
bsmm_wgmma_source bsmm_wgmma_source_of(const bsmm_product *p, const bsmm_wgmma_wish *wish);

/* Holds the part of a plan's state that belongs to the packing of one operand. */
typedef struct bsmm_wgmma_packer {
    /* `elements` is the launch that packs the elements. It is used if the GEMM kernel does not read
     * them where the caller stores them. */
    bsmm_pack_launch elements;
    /* `half` is the launch that converts the packed elements from bf16 to f16. It runs after
     * `elements` if `halves` is set, i.e. if `elements` packs to bf16 first. */
    bsmm_pack_half_launch half;
    /* `scales` is the launch that copies the block scales. It is used if `packs_scales` is set. */
    bsmm_pack_scales_launch scales;
    bool packs_scales, halves;
} bsmm_wgmma_packer;

/* bsmm_wgmma_fill packs an operand to f16 either by one launch, or by two: the first packs to bf16,
 * and the second converts to f16. Returns true if there is only one launch. The two ways differ if
 * f16 does not hold the operand's values. After one launch the packed elements are then wrong, and
 * a fallback must pack again. After two launches they are correct bf16 elements. */
bool bsmm_wgmma_is_f16_at_once(const bsmm_product *p, const bsmm_operand *o,
                               const bsmm_wgmma_source *source);

/* Loads the kernels with which bsmm_wgmma_fill packs the operand. */
bsmm_status bsmm_wgmma_packer_make(const bsmm_product *p, const bsmm_operand *o,
                                   const bsmm_wgmma_source *source, bsmm_wgmma_packer *made);

/* Holds the options for packing an operand. All members may be 0. */
typedef struct bsmm_wgmma_packing {
    /* `header` is the header of the packed operand, which holds for example the range of its
     * values. The caller has cleared the header. NULL means that the header lies at the beginning
     * of the packed operand. */
    bsmm_pack_header *header;
    /* `overlaps` is true if the caller has queued only packing kernels since it cleared the header.
     * The next packing kernel may then overlap with them. */
    bool overlaps;
    /* If `cleared` is not NULL, packing sets the word in device memory at this address to 0 and
     * does not write the header (bsmm_pack_launch.cleared). */
    uint32_t *cleared;
} bsmm_wgmma_packing;

/* Queues the kernels that pack the operand to `room`, if it needs packing. `room` is device memory
 * aligned to 64 bytes. The packed operand contains no addresses, but only offsets from the
 * beginning of `room`. The caller may therefore copy packed weights to another address and use them
 * there. The device's context must be current. */
bsmm_status bsmm_wgmma_fill(const bsmm_product *p, const bsmm_operand *o,
                            const bsmm_wgmma_source *source, const bsmm_wgmma_packer *made,
                            const bsmm_wgmma_packing *how, void *room);

/* Returns the pointers of an operand that bsmm_wgmma_fill has packed into `room`. */
bsmm_wgmma_side bsmm_wgmma_side_of(const bsmm_operand *o, const bsmm_wgmma_source *source,
                                   uint8_t *room);

#endif
