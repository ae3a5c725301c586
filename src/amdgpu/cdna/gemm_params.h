/* Defines the parameters of the MFMA kernels. These kernels multiply with the matrix instructions
 * of CDNA. The host fills the parameters for each product. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_PARAMS_H
#define BSMM_AMDGPU_CDNA_GEMM_PARAMS_H

#include "gpu/epilogue.h"

enum {
    /* BSMM_CDNA_EDGE is the number of rows and columns of D that one matrix instruction
     * computes. */
    BSMM_CDNA_EDGE = 16,
    BSMM_CDNA_K = 128, /* BSMM_CDNA_K is the number of elements along K in a stage. */
    /* BSMM_CDNA_XCDS is the number of XCDs, i.e. of dies with their own L2; consecutive workgroups
     * run on different XCDs. */
    BSMM_CDNA_XCDS = 8,
    /* BSMM_CDNA_BAND_ROWS is the number of rows of tiles in a band. Workgroups compute D band by
     * band, and each band column by column (gemm_schedule.h). */
    BSMM_CDNA_BAND_ROWS = 8,
    /* BSMM_CDNA_SCALES is the number of scale blocks along K after which the layout of a row's
     * scales repeats. The scale of block i + BSMM_CDNA_SCALES is therefore always the same number
     * of bytes after the scale of block i. */
    BSMM_CDNA_SCALES = 8,
    /* BSMM_CDNA_SCALE_UNITS is the number of units (128 elements of K each) whose e8m0 scales LDS
     * holds (gemm_scales.h). */
    BSMM_CDNA_SCALE_UNITS = 8,
    /* BSMM_CDNA_PART_WAVES is the number of waves of a workgroup that adds the sums of all parts of
     * K (gemm_parts.c). A wave computes 16 rows and BSMM_CDNA_PART_COLS columns of D. */
    BSMM_CDNA_PART_WAVES = 4,
    BSMM_CDNA_PART_COLS = 32,
    /* BSMM_CDNA_LDS_950 is the number of bytes of LDS of a compute unit of gfx950. */
    BSMM_CDNA_LDS_950 = 160 * 1024,
};

/* BSMM_CDNA_STAGE_BYTES is the number of bytes of a stage in LDS. A stage has BSMM_CDNA_STAGE_K
 * elements along K of `a_rows` rows of A and of `b_rows` rows of B. BSMM_CDNA_STAGE_K is 256 if
 * both operands have 4-bit elements, else 128. `a_bits` and `b_bits` are the numbers of bits of an
 * element. */
#define BSMM_CDNA_STAGE_K(a_bits, b_bits) (BSMM_CDNA_K * ((a_bits) + (b_bits) == 8 ? 2 : 1))
#define BSMM_CDNA_STAGE_BYTES(a_rows, b_rows, a_bits, b_bits)                                      \
    (((a_rows) * (a_bits) + (b_rows) * (b_bits)) * (BSMM_CDNA_STAGE_K(a_bits, b_bits) / 8))

/* These are sizes for GEMMs with e8m0 scales. `rows` is the number of rows of A and B together in a
 * workgroup's tile, and `stage` is the size of a stage of operands in bytes. BSMM_CDNA_TRAY is the
 * size in bytes of a thread's tray, i.e. of its buffer for scales in LDS (gemm_trays).
 * BSMM_CDNA_SCALE_BYTES is the number of bytes of LDS for scales. BSMM_CDNA_STAGES is the number of
 * stages in LDS: three if three stages and the scales fit, else two. The expressions are constant,
 * because tables of the host code contain them. */
#define BSMM_CDNA_TRAY              32
#define BSMM_CDNA_SCALE_BYTES(rows) ((BSMM_CDNA_SCALE_UNITS * 4 + BSMM_CDNA_TRAY) * (rows))
#define BSMM_CDNA_STAGES(stage, rows)                                                              \
    (3 * (stage) + BSMM_CDNA_SCALE_BYTES(rows) <= BSMM_CDNA_LDS_950 ? 3 : 2)

/* Describes the operand A or B and how a kernel reads it. */
typedef struct bsmm_cdna_side {
    bsmm_gpu_operand o;
    /* `pitch` is the number of bytes from one row of the operand to the next, or from column to
     * column if it is column-major. */
    uint64_t pitch;
    uint32_t rows; /* `rows` is the number of the operand's rows: M for A, N for B. */
    /* `direct` is 1 if the alignment of the data and of the distance between rows allows direct
     * loads from memory to LDS, else 0. */
    uint32_t direct;
    /* These fields tell where the scales of a row are. The distances between them need not be
     * equal, but they repeat after P = BSMM_CDNA_SCALES scale blocks. The scale of block i + n * P
     * along K (0 <= i < P) lies scale_at[i] + n * scale_period scales after the scale of block 0 of
     * the same row. */
    uint32_t scale_at[BSMM_CDNA_SCALES], scale_period;
    /* `scales_in_row` is 1 if the scales of a row of the operand are consecutive in memory. */
    uint32_t scales_in_row;
} bsmm_cdna_side;

typedef struct bsmm_cdna_gemm {
    bsmm_cdna_side sides[2]; /* `sides` describes A (index 0) and B (index 1). */
    bsmm_gpu_epilogue epilogue;
    /* If `parts` is above 1, K is divided into `parts` parts of part_k elements, which different
     * workgroups multiply (split-K). The last part may have fewer elements. The kernel then stores
     * no results in D. Instead it stores the fp32 sums of each part as a row-major matrix at
     * `sums`, one matrix after another. Such a matrix has whole tiles, row_tiles times col_tiles of
     * them. part_k is a multiple of BSMM_CDNA_SCALES blocks of scales, and of four times
     * BSMM_CDNA_K. */
    float *sums;
    uint32_t parts, part_k;
    /* `tiles_reciprocal` is 2^32 / (row_tiles * col_tiles), rounded up, or 0 if K is not divided
     * into parts. A workgroup computes the number of its part of K as the workgroup's number times
     * `tiles_reciprocal`, divided by 2^32. */
    uint64_t tiles_reciprocal;
    /* k is K. row_tiles and col_tiles are the numbers of workgroup tiles of D along M and along N.
     */
    uint32_t k, row_tiles, col_tiles;
    /* `groups` is the number of workgroups of the launch. If it is smaller than the number of tiles
     * times `parts`, workgroups compute several tiles, one after another. */
    uint32_t groups;
    /* `only_rounds` is 1 if the epilogue only rounds sums to D's format (provided that all global
     * scales are 1), and lanes can store 16 bytes of a row of D at once. Otherwise it is 0. */
    uint32_t only_rounds;
    /* The kernel multiplies every sum by `factor`. It is 4 if the GPU reads e4m3 elements as
     * e4m3fnuz, because the same bits then mean half the value, in A and in B. In all other cases
     * the factor is 1. */
    float factor;
} bsmm_cdna_gemm;

#endif
