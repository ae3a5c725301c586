/* The constants of one kernel of the MFMA engine: types, tile, waves. Every function takes the
 * shape by value and is inlined, so that a kernel is compiled for its own. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_SHAPE_H
#define BSMM_AMDGPU_CDNA_GEMM_SHAPE_H

#include "amdgpu/cdna/gemm_layout.h"
#include "amdgpu/isa/memory.h"
#include "amdgpu/isa/mfma.h"

/* Arrays in registers have the extents of the largest tile; unused parts vanish. */
enum { GEMM_WAVE = 64, GEMM_MOST_ROW_TILES = 8, GEMM_MOST_COL_TILES = 4 };

typedef struct gemm_shape {
    uint32_t types[2]; /* of A and B, as f8f6f4 numbers them */
    uint32_t waves_down, waves_across;
    uint32_t row_tiles, col_tiles; /* 16 x 16 tiles of a wave, down and across */
    uint32_t ocp;                  /* 1: e4m3 for a unit that reads e4m3fnuz */
    uint32_t col_scales;           /* of fp32 scales: 1: every column of D has its own */
    uint32_t columns;              /* 1: both operands are column-major, of 8 bits */
} gemm_shape;

/* 64 x 64 by four waves: for products that do not fill the GPU with large tiles. */
BSMM_DEVICE gemm_shape gemm_small(uint32_t a, uint32_t b) {
    return (gemm_shape){.types = {a, b}, 2, 2, 2, 2, 0, 0, 0};
}

/* 256 x 256 by eight waves, two on each SIMD, which take turns at the matrix core. */
BSMM_DEVICE gemm_shape gemm_large(uint32_t a, uint32_t b) {
    return (gemm_shape){.types = {a, b}, 2, 4, 8, 4, 0, 0, 0};
}

/* FP8 with fp32 scales: 64 x 64 by four waves, or 128 x 128 by eight, whose two stages fill the 64
 * KB of LDS that gfx942 has. */
BSMM_DEVICE gemm_shape gemm_groups_small(uint32_t ocp, uint32_t col_scales, uint32_t columns) {
    return (gemm_shape){.types = {0, 0}, 2, 2, 2, 2, ocp, col_scales, columns};
}

BSMM_DEVICE gemm_shape gemm_groups_large(uint32_t ocp, uint32_t col_scales, uint32_t columns) {
    return (gemm_shape){.types = {0, 0}, 4, 2, 2, 4, ocp, col_scales, columns};
}

typedef BSMM_GLOBAL const uint8_t gemm_memory;
typedef BSMM_IN_LDS uint8_t gemm_lds;

/* CDNA4 has 64 banks. */
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

/* Rows of A (side 0), or of B, in a tile. */
BSMM_DEVICE uint32_t gemm_rows(gemm_shape s, uint32_t side) {
    return BSMM_CDNA_EDGE * (side ? s.waves_across * s.col_tiles : s.waves_down * s.row_tiles);
}

BSMM_DEVICE uint32_t gemm_side_bytes(gemm_shape s, uint32_t side) {
    return gemm_rows(s, side) * gemm_row_bytes(s.types[side]);
}

BSMM_DEVICE uint32_t gemm_stage_bytes(gemm_shape s) {
    return gemm_side_bytes(s, 0) + gemm_side_bytes(s, 1);
}

/* The kernel's parameters again, as if they were others: what is read through this pointer is not
 * read ahead of the branch that needs it, which would fill all scalar registers. */
BSMM_DEVICE const bsmm_cdna_gemm *gemm_params_here(void) {
    const void __attribute__((address_space(4))) *here = __builtin_amdgcn_kernarg_segment_ptr();
    __asm__ volatile("" : "+s"(here));
    return (const bsmm_cdna_gemm *)here;
}

/* The thread's number, as if it were another each time: addresses that are made of it are not kept
 * in registers from stage to stage. */
BSMM_DEVICE uint32_t gemm_thread_here(void) {
    uint32_t thread = bsmm_thread();
    __asm__ volatile("" : "+v"(thread));
    return thread;
}

BSMM_DEVICE uint32_t gemm_lane(void) {
    return bsmm_thread() % GEMM_WAVE;
}

/* The same for all lanes, and the compiler is told so. */
BSMM_DEVICE uint32_t gemm_wave(void) {
    return (uint32_t)__builtin_amdgcn_readfirstlane((int32_t)(bsmm_thread() / GEMM_WAVE));
}

#endif
