/* Holds the compile-time constants of one MFMA kernel (a kernel for CDNA's matrix instructions):
 * element types, tile and waves. Every function takes the shape by value and is inlined into the
 * kernel, so that the compiler knows the shape's fields as constants. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_SHAPE_H
#define BSMM_AMDGPU_CDNA_GEMM_SHAPE_H

#include "amdgpu/cdna/gemm_layout.h"
#include "amdgpu/isa/memory.h"
#include "amdgpu/isa/mfma.h"

/* A wave has GEMM_WAVE lanes. The tile of a wave has at most GEMM_MOST_ROW_TILES rows and
 * GEMM_MOST_COL_TILES columns of 16 x 16 tiles. Register arrays have these extents. The compiler
 * removes the array elements that a smaller tile does not use. */
enum { GEMM_WAVE = 64, GEMM_MOST_ROW_TILES = 8, GEMM_MOST_COL_TILES = 4 };

typedef struct gemm_shape {
    /* `types` holds the element types of A and B, as the instruction f8f6f4 numbers them. If both
     * types are e2m1, both numbers are GEMM_E2M1_TWICE. */
    uint32_t types[2];
    uint32_t waves_down, waves_across;
    /* `row_tiles` and `col_tiles` are the numbers of a wave's 16 x 16 tiles down and across. */
    uint32_t row_tiles, col_tiles;
    /* `ocp` is 1 if operands are e4m3 on a GPU that multiplies only e4m3fnuz. The kernel then
     * converts their codes to e4m3fnuz codes. */
    uint32_t ocp;
    /* `col_scales` is 1 if every row of B has its own fp32 scale, and 0 if blocks of 128 rows share
     * one. */
    uint32_t col_scales;
    /* `columns` is 1 if both operands are column-major and have 8-bit elements. */
    uint32_t columns;
} gemm_shape;

/* Returns the type number of an operand whose elements have the type `own`. `other` is the type of
 * the other operand's elements. The number is GEMM_E2M1_TWICE if both types are e2m1. */
BSMM_DEVICE uint32_t gemm_type(uint32_t own, uint32_t other) {
    return own == BSMM_F8F6F4_E2M1 && other == own ? (uint32_t)GEMM_E2M1_TWICE : own;
}

/* Returns the shape of a kernel whose workgroups of four waves compute tiles of 64 x 64 results.
 * Small GEMMs use this shape, because large tiles would be too few to occupy all compute units. */
BSMM_DEVICE gemm_shape gemm_small(uint32_t a, uint32_t b) {
    return (gemm_shape){.types = {gemm_type(a, b), gemm_type(b, a)}, 2, 2, 2, 2, 0, 0, 0};
}

/* Returns the shape of a kernel whose workgroups of eight waves compute tiles of 256 x 256 results.
 * Each of the four SIMD units of a compute unit runs two of these waves. While one of the two waves
 * waits for loads, the other can use the matrix core. */
BSMM_DEVICE gemm_shape gemm_large(uint32_t a, uint32_t b) {
    return (gemm_shape){.types = {gemm_type(a, b), gemm_type(b, a)}, 2, 4, 8, 4, 0, 0, 0};
}

/* These functions return two shapes of workgroups for FP8 with fp32 scales. The first has four
 * waves and a tile of 64 x 64 results. The second has eight waves and a tile of 128 x 128 results.
 * Two stages of operands of the second shape fill the 64 KB of LDS of gfx942. */
BSMM_DEVICE gemm_shape gemm_groups_small(uint32_t ocp, uint32_t col_scales, uint32_t columns) {
    return (gemm_shape){.types = {0, 0}, 2, 2, 2, 2, ocp, col_scales, columns};
}

BSMM_DEVICE gemm_shape gemm_groups_large(uint32_t ocp, uint32_t col_scales, uint32_t columns) {
    return (gemm_shape){.types = {0, 0}, 4, 2, 2, 4, ocp, col_scales, columns};
}

typedef BSMM_GLOBAL const uint8_t gemm_memory;
typedef BSMM_IN_LDS uint8_t gemm_lds;

/* Returns the swizzle of a row of an operand in LDS. A row is stored in pieces of 16 bytes (12
 * bytes for 6-bit elements), and the index of each piece is XORed with the swizzle, to avoid bank
 * conflicts. The swizzle depends on the number of LDS banks: 64 on gfx950 and 32 on gfx942. */
BSMM_DEVICE uint32_t gemm_swizzle(uint32_t type, uint32_t row) {
#if defined(__gfx950__)
    return gemm_swizzle_of(type, row, 64);
#else
    return gemm_swizzle_of(type, row, 32);
#endif
}

BSMM_DEVICE uint32_t gemm_threads(gemm_shape s) {
    return s.waves_down * s.waves_across * GEMM_WAVE;
}

/* Returns the number of rows of A (if `side` is 0) or of B (if `side` is 1) in a workgroup's
 * tile. */
BSMM_DEVICE uint32_t gemm_rows(gemm_shape s, uint32_t side) {
    return BSMM_CDNA_EDGE * (side ? s.waves_across * s.col_tiles : s.waves_down * s.row_tiles);
}

/* Returns the argument `tiles` that gemm_row_of needs for A (side 0) or B (side 1). gemm_row_of
 * tells in which order LDS holds the rows of an operand. */
BSMM_DEVICE uint32_t gemm_order(gemm_shape s, uint32_t side) {
    return side ? s.col_tiles : 1;
}

/* Returns true if workgroups of this shape prefetch to L2. Only the largest shape does: eight
 * waves, 256 rows of A and of B. */
BSMM_DEVICE bool gemm_scouts(gemm_shape s) {
    return gemm_rows(s, 0) == 256 && gemm_rows(s, 1) == 256 && gemm_threads(s) == 512;
}

/* Returns true if workgroups of this shape load both stages of a tile before its main loop. The
 * first step of a tile then has code of its own. In it, the workgroup also stores the results of
 * its previous tile (gemm_begin_row). Workgroups do this only if A and B are both e2m1. With other
 * element types, the kernel would need more registers than a wave has. */
BSMM_DEVICE bool gemm_loads_both(gemm_shape s) {
    return gemm_scouts(s) && s.types[0] == GEMM_E2M1_TWICE;
}

/* Before a workgroup stores the results of a tile, it prefetches the operands of the first steps of
 * its next tile to L2. Returns the number of these steps. */
BSMM_DEVICE uint32_t gemm_scouted_first(gemm_shape s) {
    return gemm_scouts(s) ? 6 : 0;
}

BSMM_DEVICE uint32_t gemm_side_bytes(gemm_shape s, uint32_t side) {
    return gemm_rows(s, side) * gemm_row_bytes(s.types[side]);
}

BSMM_DEVICE uint32_t gemm_stage_bytes(gemm_shape s) {
    return BSMM_CDNA_STAGE_BYTES(gemm_rows(s, 0), gemm_rows(s, 1), gemm_bits(s.types[0]),
                                 gemm_bits(s.types[1]));
}

/* Returns a pointer to the kernel's parameters. The empty assembly hides from the compiler that the
 * pointer is the same in every call. The compiler then reads a field where it is used. Otherwise it
 * would read all fields ahead of the branches that need them, and they would fill the scalar
 * registers. */
BSMM_DEVICE const bsmm_cdna_gemm *gemm_params_here(void) {
    const void __attribute__((address_space(4))) *here = __builtin_amdgcn_kernarg_segment_ptr();
    __asm__ volatile("" : "+s"(here));
    return (const bsmm_cdna_gemm *)here;
}

/* Returns the thread's number. The empty assembly hides from the compiler that the number is the
 * same in every call. The compiler then computes addresses from it anew for each stage, instead of
 * keeping them in registers. */
BSMM_DEVICE uint32_t gemm_thread_here(void) {
    uint32_t thread = bsmm_thread();
    __asm__ volatile("" : "+v"(thread));
    return thread;
}

/* Returns the thread's number, for code at the beginning or the end of a tile. On gfx950, a
 * workgroup may compute several tiles. The compiler would then keep values that such code computes
 * from the number in registers from one tile to the next. To avoid this, the function hides from
 * the compiler that the number is always the same (gemm_thread_here). */
BSMM_DEVICE uint32_t gemm_thread_of_tile(void) {
#if defined(__gfx950__)
    return gemm_thread_here();
#else
    return bsmm_thread();
#endif
}

BSMM_DEVICE uint32_t gemm_lane(void) {
    return bsmm_thread() % GEMM_WAVE;
}

/* Returns the wave's number in its workgroup. readfirstlane tells the compiler that all lanes have
 * the same value. */
BSMM_DEVICE uint32_t gemm_wave(void) {
    return (uint32_t)__builtin_amdgcn_readfirstlane((int32_t)(bsmm_thread() / GEMM_WAVE));
}

#endif
