/* Defines the parameters of the kernels for few rows of A (small_m_body.h). The host fills them for
 * each product. */
#ifndef BSMM_AMDGPU_CDNA_SMALL_M_PARAMS_H
#define BSMM_AMDGPU_CDNA_SMALL_M_PARAMS_H

#include "gpu/epilogue.h"

enum {
    /* BSMM_CDNA_SMALL_M_K is the number of elements of K in a step of the main loop. */
    BSMM_CDNA_SMALL_M_K = 128,
    /* BSMM_CDNA_SMALL_M_EDGE is the number of rows and of columns of D that one matrix instruction
     * computes. */
    BSMM_CDNA_SMALL_M_EDGE = 16,
    /* BSMM_CDNA_SMALL_M_MOST_WAVES is the largest number of waves of a workgroup. */
    BSMM_CDNA_SMALL_M_MOST_WAVES = 8,
    /* One step (128 elements of K) of 16 rows of a bf16 or f16 operand takes
     * BSMM_CDNA_SMALL_M_STEP_BYTES of LDS. */
    BSMM_CDNA_SMALL_M_STEP_BYTES = BSMM_CDNA_SMALL_M_EDGE * BSMM_CDNA_SMALL_M_K * 2,
    /* A tile of 16 x 16 sums takes BSMM_CDNA_SMALL_M_TILE_BYTES of LDS. Its rows have four floats
     * of padding. */
    BSMM_CDNA_SMALL_M_TILE_BYTES = BSMM_CDNA_SMALL_M_EDGE * (BSMM_CDNA_SMALL_M_EDGE + 4) * 4,
    /* Kernels read A, B and their scales with 31-bit offsets. An offset of BSMM_CDNA_SMALL_M_BYTES
     * or more lies outside every operand. */
    BSMM_CDNA_SMALL_M_BYTES = INT32_MAX,
};

/* Returns the number of bytes in which a wave keeps one step of A during the main loop. They hold
 * `a_tiles` tiles of 16 rows if A's elements have 16 bits. Other elements do not go through LDS. */
BSMM_SHARED uint32_t bsmm_cdna_small_m_row_bytes(bool a_is_wide, uint32_t a_tiles) {
    return a_is_wide ? a_tiles * BSMM_CDNA_SMALL_M_STEP_BYTES : 0;
}

/* Returns the number of bytes of LDS from the sums of a wave to those of the next wave. Each wave
 * multiplies `a_tiles` tiles of 16 rows of A by `b_tiles` tiles of 16 rows of B. A wave writes its
 * sums to the bytes in which it kept A, unless waves share places for sums (`shares`). */
BSMM_SHARED uint32_t bsmm_cdna_small_m_place_bytes(bool a_is_wide, uint32_t a_tiles,
                                                   uint32_t b_tiles, bool shares) {
    const uint32_t sums = a_tiles * b_tiles * BSMM_CDNA_SMALL_M_TILE_BYTES;
    const uint32_t rows = bsmm_cdna_small_m_row_bytes(a_is_wide, a_tiles);
    return rows > sums && !shares ? rows : sums;
}

/* Returns the number of bytes of LDS of a workgroup with `waves` waves and `places` places for
 * sums. */
BSMM_SHARED uint32_t bsmm_cdna_small_m_lds_bytes(bool a_is_wide, uint32_t a_tiles, uint32_t b_tiles,
                                                 uint32_t waves, uint32_t places) {
    const uint32_t rows = waves * bsmm_cdna_small_m_row_bytes(a_is_wide, a_tiles);
    const uint32_t sums =
        places * bsmm_cdna_small_m_place_bytes(a_is_wide, a_tiles, b_tiles, places < waves);
    return rows > sums ? rows : sums;
}

/* These flags say how a kernel makes results from sums. PLAIN: the epilogue does nothing but round
 * to D's format. A_SCALES, B_SCALES: the results are multiplied by fp32 scales of whole rows of A
 * or of B. The kernel loads all flags at once, so a comparison with PLAIN tells it that it need
 * only round. */
enum {
    BSMM_CDNA_SMALL_M_PLAIN = 1,
    BSMM_CDNA_SMALL_M_A_SCALES = 2,
    BSMM_CDNA_SMALL_M_B_SCALES = 4,
};

/* Describes A or B by the addresses of its elements and scales, their sizes in bytes, and its
 * number of rows. All distances are in bytes. `pitch` is the distance from row to row. scale_step
 * is the distance from the scales of a step (128 elements of K) to the scales of the next step.
 * Each 2^scale_shift rows share their scales, and scale_pitch is the distance from these scales to
 * those of the next 2^scale_shift rows. */
typedef struct bsmm_cdna_small_m_side {
    const uint8_t *data, *scales;
    uint32_t bytes, scale_bytes, rows, pitch, scale_step, scale_pitch, scale_shift;
} bsmm_cdna_small_m_side;

typedef struct bsmm_cdna_small_m {
    bsmm_cdna_small_m_side a, b; /* The fields that a kernel needs first come first. */
    uint32_t k;
    uint32_t waves; /* The `waves` waves of a workgroup divide K among them. */
    /* Each wave multiplies `steps_each` steps of 128 elements of K. The first `longer` waves
     * multiply one step more. */
    uint32_t steps_each, longer;
    uint32_t groups; /* `groups` is the number of workgroups. */
    /* `places` is the number of places in LDS for the sums of a wave. It is `waves`, or half of it
     * if LDS has too little room. Two waves then share a place: one adds the other's sums to its
     * own. Workgroups with up to 16 rows of A have a place for each wave. */
    uint32_t places;
    uint32_t epilogue_flags; /* `epilogue_flags` is a sum of the flags BSMM_CDNA_SMALL_M_PLAIN,
                        _A_SCALES and _B_SCALES. */
    bsmm_gpu_operand a_operand, b_operand;
    bsmm_gpu_epilogue epilogue;
} bsmm_cdna_small_m;

#endif
