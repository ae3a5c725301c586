/* The kernels cuda_sm100f_wide and cuda_sm100f_wide_groups share this file, which decides how they
 * get A and B. Both kernels multiply elements of 16 bits: bf16 or f16.
 *
 * The tensor cores multiply f16 if one operand is f16 that TMA can read as it is stored, and f16
 * holds every value of the other operand's format. Otherwise they multiply bf16. An operand that is
 * not stored in the format that is multiplied is packed to this format in each run (gpu/pack.h), or
 * once in advance. Packing multiplies elements by their 8-bit scales, which is exact. For a product
 * of bf16, an f16 element becomes the sum of two bf16 parts, and an fp32 element becomes the sum of
 * three.
 *
 * If the packing kernel finds a value that bf16 does not hold, it sets a flag, and the generic GEMM
 * (cuda_sm80_bf16.c) computes the product instead. */
#ifndef BSMM_CUDA_HOST_WIDE_OPERANDS_H
#define BSMM_CUDA_HOST_WIDE_OPERANDS_H

#include "cuda/host/generic.h"
#include "cuda/host/wgmma_operands.h"
#include "cuda/sm100f/scaled_params.h"

typedef struct bsmm_wide_operands {
    uint32_t elem; /* `elem` is the element type that the tensor cores multiply, bf16 or f16. */
    bsmm_wgmma_source sources[2];
    bsmm_wgmma_packer packers[2];
    bsmm_cuda_ready_map maps[2];
    bsmm_cuda_ready clear;
    /* `may_refuse` is true if packing may find values that bf16 does not hold. */
    bool may_refuse;
    bsmm_cuda_generic generic;
} bsmm_wide_operands;

/* Decides how the kernel gets A and B, and returns NULL. If the kernel cannot multiply them,
 * returns the reason. */
const char *bsmm_wide_begin(const bsmm_product *p, bsmm_wide_operands *operands, char *why,
                            size_t size);

/* An element of A or B is stored as one number, or as the sum of two or three bf16 numbers (parts).
 * Each part of an element of A is multiplied by each part of an element of B. Returns the number of
 * these products, i.e. the number of parts of A times the number of parts of B. */
int64_t bsmm_wide_pairs(const bsmm_wide_operands *operands);

/* Returns the descriptor of the instruction tcgen05.mma of kind f16 (PTX ISA, "Instruction
 * descriptor"). It encodes fp32 sums, the type of elements, and the extents of the tile. */
uint32_t bsmm_wide_form_of(const bsmm_wide_operands *operands, uint32_t rows, uint32_t cols);

/* Loads the kernels that pack A and B, and makes the tensor maps of A and B for TMA. One TMA copy
 * reads 128 bytes of each of `a_rows` rows of A or `b_rows` rows of B. The caller must have made
 * the device's context current, also for bsmm_wide_bind and bsmm_wide_run_otherwise. */
bsmm_status bsmm_wide_make(const bsmm_product *p, uint32_t a_rows, uint32_t b_rows,
                           bsmm_wide_operands *operands);

/* Queues the kernels that pack A and B to the workspace. Also sets those parameters of the GEMM
 * kernel that describe the operands: sides, a, b, headers and refused. headers[i] points to the
 * header of packed A or B, in which packing records values that bf16 cannot hold. It stays NULL if
 * packing this operand is always exact, or if the operand is not packed. */
bsmm_status bsmm_wide_bind(const bsmm_product *p, const bsmm_wide_operands *operands,
                           void *workspace, bsmm_scaled_params *params);

/* Queues the generic GEMM, which computes the product if the kernel has set `refused`. */
bsmm_status bsmm_wide_run_otherwise(const bsmm_product *p, const bsmm_wide_operands *operands,
                                    const uint32_t *refused);

/* These functions implement members of bsmm_kernel for cuda_sm100f_wide and
 * cuda_sm100f_wide_groups. The kernel's state must begin with a bsmm_wide_operands. The workspace
 * holds packed operands and their headers. */
uint64_t bsmm_wide_workspace_bytes(const bsmm_product *p, const void *state);
uint64_t bsmm_wide_packed_b_bytes(const bsmm_product *p, const void *state);
void bsmm_wide_name_panels(const bsmm_product *p, const void *state, char *name, size_t size);
bsmm_status bsmm_wide_pack_b(const bsmm_product *p, const void *state, void *packed);

/* BSMM_WIDE_KERNEL sets the members of bsmm_kernel that cuda_sm100f_wide and
 * cuda_sm100f_wide_groups have in common. TMA requires addresses that are multiples of 16. Every
 * tile adds products in ascending order of K, and bsmm_wide_begin sees to it that no result depends
 * on other rows of A. */
#define BSMM_WIDE_KERNEL                                                                           \
    .device = "cuda", .workspace_bytes = bsmm_wide_workspace_bytes,                                \
    .packed_b_bytes = bsmm_wide_packed_b_bytes, .name_panels = bsmm_wide_name_panels,              \
    .pack_b = bsmm_wide_pack_b, .alignment = 16, .features = BSMM_FEATURE_INVARIANT

#endif
