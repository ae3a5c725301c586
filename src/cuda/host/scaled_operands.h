/* The sm_100f kernels for block-scaled products (cuda_sm100f_scaled, cuda_sm100f_scaled_small_m)
 * share these functions. The functions prepare loads of elements and scales by TMA, from where the
 * caller stores them or from copies in the workspace. In arrays of two, entry 0 belongs to the
 * product's A, and entry 1 belongs to its B. */
#ifndef BSMM_CUDA_HOST_SCALED_OPERANDS_H
#define BSMM_CUDA_HOST_SCALED_OPERANDS_H

#include "cuda/host/scaled_formats.h"
#include "cuda/host/tma_rows.h"
#include "gpu/params.h"

typedef struct bsmm_scaled_operands {
    bsmm_scaled_kind kind;
    bsmm_tma_rows rows[2];
    bsmm_scaled_scales scales[2];
    bsmm_cuda_ready_relayouts copies; /* `copies` copies scales to the workspace. */
    bsmm_cuda_ready_map scale_maps[2];
} bsmm_scaled_operands;

/* Decides how the kernel reads A and B, and returns NULL. If the kernel cannot read them, writes
 * the reason to `why` and returns it. */
const char *bsmm_scaled_operands_begin(const bsmm_product *p, bsmm_scaled_operands *operands,
                                       char *why, size_t size);

/* Returns the bytes of workspace for copies of elements and scales. */
uint64_t bsmm_scaled_operands_bytes(const bsmm_scaled_operands *operands);

/* Loads the kernels that copy elements and scales, and makes the tensor maps with which TMA reads
 * them. One TMA copy reads `a_rows` rows of A or `b_rows` rows of B. The device's context must be
 * current for this function and for bsmm_scaled_operands_bind. */
bsmm_status bsmm_scaled_operands_make(const bsmm_product *p, uint32_t a_rows, uint32_t b_rows,
                                      bsmm_scaled_operands *operands);

/* Points to the parameters of a kernel that describe one operand: the operand as the caller stores
 * it, and the tensor maps of its elements and scales. */
typedef struct bsmm_scaled_slot {
    bsmm_gpu_operand *side;
    CUtensorMap *elements, *scales;
} bsmm_scaled_slot;

/* Queues the kernels that copy elements and scales to the workspace at `room`, and sets the
 * parameters to which `slots` points. */
bsmm_status bsmm_scaled_operands_bind(const bsmm_product *p, const bsmm_scaled_operands *operands,
                                      uint8_t *room, const bsmm_scaled_slot slots[2]);

/* Returns the instruction descriptor for tcgen05.mma with block scales (PTX ISA, "Instruction
 * descriptor"). The descriptor encodes the types of elements and scales, and the extents of the
 * tile. `first` is the operand whose rows are the rows of the instruction's result. */
uint32_t bsmm_scaled_form_of(const bsmm_scaled_operands *operands, const bsmm_operand *first,
                             const bsmm_operand *second, uint32_t rows, uint32_t cols);

/* Sets the parameters that do not depend on the order of the operands: the epilogue, how D is
 * stored, and the sizes along K. One TMA copy reads `a_rows` rows of A or `b_rows` rows of B. */
void bsmm_scaled_params_set(const bsmm_product *p, const bsmm_scaled_operands *operands,
                            uint32_t a_rows, uint32_t b_rows, bsmm_scaled_params *params);

/* Returns the error bound of Blackwell's kernels for block-scaled products, relative to the sum of
 * the magnitudes of all products. The bound assumes that an instruction adds the accumulator and 32
 * or 64 products at once, and truncates each term 23 bits below the largest term
 * (docs/NUMERICS.md). */
double bsmm_scaled_bound(const bsmm_product *p);

#endif
