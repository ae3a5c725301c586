/* Defines constants that follow from one entry of tiles.def: the use of scales, tile sizes and the
 * layout of shared memory. The host's table of kernels (host/wgmma.c) and the kernels share them.
 */
#ifndef BSMM_CUDA_SM90A_GEMM_TILE_H
#define BSMM_CUDA_SM90A_GEMM_TILE_H

/* These values name the block scales of a GEMM. GEMM_UNSCALED: there are none. GEMM_ROW_BLOCK: A
 * has one scale per 1 x 128 block, and B has one per 128 x 128 block. GEMM_ROW_ROW: both have one
 * scale per 1 x 128 block. TMA loads only scales of 1 x 128 blocks, so the value is also the number
 * of operands whose scales TMA loads. */
#define GEMM_UNSCALED  0
#define GEMM_ROW_BLOCK 1
#define GEMM_ROW_ROW   2

/* GEMM_SCALES_OF_... gives the block scales of a kernel in tiles.def by its kind (BF16, BLOCK, ROW
 * or POW2). */
#define GEMM_SCALES_OF_BF16  GEMM_UNSCALED
#define GEMM_SCALES_OF_BLOCK GEMM_ROW_BLOCK
#define GEMM_SCALES_OF_ROW   GEMM_ROW_ROW
#define GEMM_SCALES_OF_POW2  GEMM_ROW_ROW

#define GEMM_TILE_M(consumers) (64 * (consumers))

/* Shared memory has this layout, from a 1024-byte boundary, in bytes. A stage is a slot of the ring
 * buffer of operand tiles, and a staging buffer holds results for TMA to store.
 *
 *     stages x { A tile: tile_m x 128, B tile: tile_n x 128 }
 *     consumers x chunks x { staging buffer: 64 rows of D x chunk columns x 2 }
 *     stages x { scales of A's rows: 4 tile_m, and with GEMM_ROW_ROW of B's rows: 4 tile_n }
 *     stages x { scales of B's blocks: 8 }
 *     stages x { mbarriers full, empty: 16 }
 *     consumers x chunks x { mbarriers staged, written: 16 } */
#define GEMM_K_BYTES              128
#define GEMM_STAGE_BYTES(m, n)    (((m) + (n)) * GEMM_K_BYTES)
#define GEMM_CHUNK_COLS(n)        ((n) % 64 ? 32 : 64)
#define GEMM_CHUNK_BYTES(n)       (64 * 2 * GEMM_CHUNK_COLS(n))
#define GEMM_SCALE_BYTES(s, m, n) (((s) > 0 ? 4 * (m) : 0) + ((s) > 1 ? 4 * (n) : 0))

#define GEMM_STAGING_AT(m, n, stages) ((stages)*GEMM_STAGE_BYTES(m, n))
#define GEMM_SCALES_AT(m, n, stages, buffers)                                                      \
    (GEMM_STAGING_AT(m, n, stages) + (buffers)*GEMM_CHUNK_BYTES(n))
#define GEMM_COLS_AT(s, m, n, stages, buffers)                                                     \
    (GEMM_SCALES_AT(m, n, stages, buffers) + (stages)*GEMM_SCALE_BYTES(s, m, n))
#define GEMM_BARRIERS_AT(s, m, n, stages, buffers)                                                 \
    (GEMM_COLS_AT(s, m, n, stages, buffers) + (stages)*8)
#define GEMM_MEMORY_BYTES(s, m, n, stages, buffers)                                                \
    (GEMM_BARRIERS_AT(s, m, n, stages, buffers) + ((stages) + (buffers)) * 16)

/* Returns the number of bytes of dynamic shared memory of a launch. The kernel aligns its data to
 * 1024 bytes, but dynamic shared memory may begin at any address. The additional 1024 bytes make
 * room for the alignment. */
#define GEMM_SHARED_BYTES(s, m, n, stages, buffers)                                                \
    (GEMM_MEMORY_BYTES(s, m, n, stages, buffers) + 1024)

#endif
