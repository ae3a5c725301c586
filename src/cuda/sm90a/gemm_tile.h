/* What follows from a row of tiles.def, for the host's table and for the kernel: scales, threads,
 * and the map of shared memory. */
#ifndef BSMM_CUDA_SM90A_GEMM_TILE_H
#define BSMM_CUDA_SM90A_GEMM_TILE_H

/* How many operands have 1 x 128 scales, which come row by row. Of one, B's scales are 128 x 128.
 */
#define GEMM_UNSCALED  0
#define GEMM_ROW_BLOCK 1
#define GEMM_ROW_ROW   2

/* Of each kind. */
#define GEMM_SCALES_OF_BF16  GEMM_UNSCALED
#define GEMM_SCALES_OF_BLOCK GEMM_ROW_BLOCK
#define GEMM_SCALES_OF_ROW   GEMM_ROW_ROW
#define GEMM_SCALES_OF_POW2  GEMM_ROW_ROW

#define GEMM_TILE_M(subtiles, consumers) (64 * (subtiles) * (consumers))

/* Shared memory from a 1024-byte boundary, in bytes:
 *
 *     stages x { A tile: tile_m x 128, B tile: tile_n x 128 }
 *     consumers x chunks x { 64 rows of D x chunk columns x 2 }
 *     stages x { scales of A's rows: 4 tile_m, and, if both operands have them, of B's: 4 tile_n }
 *     stages x { scales of B's blocks: 8 }
 *     stages x { barriers full, empty: 16 }
 *     consumers x chunks x { barriers staged, written: 16 } */
#define GEMM_K_BYTES              128
#define GEMM_STAGE_BYTES(m, n)    (((m) + (n)) * GEMM_K_BYTES)
#define GEMM_CHUNK_COLS(n)        ((n) % 64 ? 32 : 64)
#define GEMM_CHUNK_BYTES(n)       (64 * 2 * GEMM_CHUNK_COLS(n))
#define GEMM_SCALE_BYTES(s, m, n) (((s) > 0 ? 4 * (m) : 0) + ((s) > 1 ? 4 * (n) : 0))

#define GEMM_STAGING_AT(m, n, stages) ((stages)*GEMM_STAGE_BYTES(m, n))
#define GEMM_SCALES_AT(m, n, stages, places)                                                       \
    (GEMM_STAGING_AT(m, n, stages) + (places)*GEMM_CHUNK_BYTES(n))
#define GEMM_COLS_AT(s, m, n, stages, places)                                                      \
    (GEMM_SCALES_AT(m, n, stages, places) + (stages)*GEMM_SCALE_BYTES(s, m, n))
#define GEMM_BARRIERS_AT(s, m, n, stages, places)                                                  \
    (GEMM_COLS_AT(s, m, n, stages, places) + (stages)*8)
#define GEMM_MEMORY_BYTES(s, m, n, stages, places)                                                 \
    (GEMM_BARRIERS_AT(s, m, n, stages, places) + ((stages) + (places)) * 16)

/* What a launch asks for: dynamic shared memory may begin anywhere. */
#define GEMM_SHARED_BYTES(s, m, n, stages, places)                                                 \
    (GEMM_MEMORY_BYTES(s, m, n, stages, places) + 1024)

#endif
