/* These functions find negative scales. tcgen05 ignores the sign of e4m3 scales. scaled_body.h
 * includes this file. */

/* Looks for negative e4m3 scales in one block of 128 rows. In each scale tile, a lane tests the 16
 * bytes that hold the scales of the four rows r, r + 32, r + 64 and r + 96, where r is the lane's
 * number. The result is nonzero if the lane has found a negative scale. Scales of row `rows` and
 * later rows are padding and are ignored. */
static __device__ __forceinline__ uint32_t signs_of(const uint8_t *scales, uint32_t tiles,
                                                    uint32_t rows) {
    const uint32_t lane = threadIdx.x % 32;
    uint32_t found = 0;
    for (uint32_t t = 0; t < tiles; t++) {
        const uint4 w = *(const uint4 *)(scales + t * SCALE_TILE + lane * 16);
        found |= (lane < rows ? w.x : 0) | (lane + 32 < rows ? w.y : 0) |
                 (lane + 64 < rows ? w.z : 0) | (lane + 96 < rows ? w.w : 0);
    }
    return found & 0x80808080u;
}

/* Does the work of signs_of if there are SCALE_TILES scale tiles and all of their 128 rows count.
 * A lane loads all its bytes before it tests them. The warp would otherwise be slower than the
 * products, which wait for it. */
static __device__ __forceinline__ uint32_t signs_of_whole(const uint8_t *scales) {
    uint4 w[SCALE_TILES];
    uint32_t found = 0;
#pragma unroll
    for (uint32_t t = 0; t < SCALE_TILES; t++)
        w[t] = *(const uint4 *)(scales + t * SCALE_TILE + threadIdx.x % 32 * 16);
#pragma unroll
    for (uint32_t t = 0; t < SCALE_TILES; t++)
        found |= (w[t].x | w[t].y) | (w[t].z | w[t].w);
    return found & 0x80808080u;
}

/* Part `i` of a stage's scales belongs to a block of 128 rows of A (part 0) or of B (parts 1 and
 * 2). Returns the number of rows from the first row of this block to the last row of A or B. */
static __device__ __forceinline__ uint32_t rows_from(const bsmm_scaled_params *p, corner at,
                                                     uint32_t i) {
    const uint32_t rows = i ? p->n : p->m, first = scale_rows_of(at, i) * SCALE_ROWS;
    return rows > first ? rows - first : 0;
}

/* Looks for negative scales in one stage, which has `tiles` scale tiles along K. The result is
 * nonzero if the lane has found one. */
static __device__ __forceinline__ uint32_t signs_in_stage(const bsmm_scaled_params *p,
                                                          const uint8_t *scales, corner at,
                                                          uint32_t tiles) {
    uint32_t found = 0;
#pragma unroll
    for (uint32_t i = 0; i < SCALE_PARTS; i++) {
        const uint32_t rows = rows_from(p, at, i);
        found |= rows >= SCALE_ROWS && tiles == SCALE_TILES
                     ? signs_of_whole(scales + i * PART_BYTES)
                     : signs_of(scales + i * PART_BYTES, tiles, rows);
    }
    return found;
}

/* Looks for negative scales in the stages of this thread block. After each stage, the warp tells
 * the multiplying thread that it has read the stage's scales. */
static __device__ __forceinline__ void find_signs(const bsmm_scaled_params *p,
                                                  const uint8_t *scales, shared *told) {
    const k_range range = k_range_of(p);
    uint32_t count = 0, turn = 0;
    FOR_TILES(p, tile) {
        const corner at = tile_at(p, tile);
        uint32_t found = 0;
        for (uint32_t block = range.first; block < range.end; block++, count++) {
            const uint32_t stage = count % STAGES;
            wait_for(&told->scaled[stage], filled_parity(count));
            found |= signs_in_stage(p, scales + stage * SCALE_BYTES, at, scale_tiles_of(p, block));
            const uint32_t any = __any_sync(0xffffffffu, found != 0);
            if (threadIdx.x % 32 != 0) continue;
            if (block == range.end - 1) told->negative[turn % SIGN_TILES] = any;
            group_arrive(&told->full[stage]);
        }
        turn++;
    }
}
