/* Defines the parameters of the kernels for few rows of A (small_m.c). The host fills them for each
 * product. */
#ifndef BSMM_AMDGPU_CDNA_SMALL_M_PARAMS_H
#define BSMM_AMDGPU_CDNA_SMALL_M_PARAMS_H

#include "gpu/epilogue.h"

enum {
    BSMM_CDNA_SMALL_M_K = 128,   /* the elements of K in a step of the main loop */
    BSMM_CDNA_SMALL_M_EDGE = 16, /* rows and columns of D that one matrix instruction computes */
    BSMM_CDNA_SMALL_M_MOST_WAVES = 8, /* the largest number of waves of a workgroup */
    /* the bytes of LDS of a wave for each 16 rows of A: a step's elements as bf16 */
    BSMM_CDNA_SMALL_M_WAVE_BYTES = BSMM_CDNA_SMALL_M_EDGE * BSMM_CDNA_SMALL_M_K * 2,
    /* Kernels read A, B and B's scales with 31-bit offsets. An offset from this one on lies outside
     * every operand. */
    BSMM_CDNA_SMALL_M_BYTES = INT32_MAX,
};

typedef struct bsmm_cdna_small_m {
    /* A kernel needs these fields first. They are the addresses of the elements of A and B and of
     * B's scales, the sizes in bytes, and the distances from row to row in bytes. */
    const uint8_t *a_data, *b_data, *scales;
    uint32_t a_bytes, b_bytes, scale_bytes, a_pitch, b_pitch, scale_pitch;
    uint32_t m, n, k;
    uint32_t waves; /* the waves of a workgroup, which divide K among them */
    /* the steps of K that each wave computes; the first `longer` waves compute one more */
    uint32_t steps_each, longer;
    uint32_t plain; /* nonzero if the epilogue only rounds sums to D's format */
    bsmm_gpu_operand a, b;
    bsmm_gpu_epilogue epilogue;
} bsmm_cdna_small_m;

#endif
