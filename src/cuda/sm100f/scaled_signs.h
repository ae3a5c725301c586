/* These functions find negative scales. tcgen05 ignores the sign of e4m3 scales, so the kernels
 * compute tiles with negative scales again in double. scaled_body.h includes this file. */

#if SCALED_SIGNED
/* A stage holds scales of three groups of 128 rows: part 0 is for rows of A, and parts 1 and 2 are
 * for rows of B. Returns how many rows A or B has from the first row of part `i` on. If this is
 * less than 128, the remaining scales of the part are padding. */
static __device__ __forceinline__ uint32_t rows_from(const bsmm_scaled_params *p, corner at,
                                                     uint32_t i) {
    const uint32_t rows = i ? p->n : p->m, first = scale_rows_of(at, i) * SCALE_ROWS;
    return rows > first ? rows - first : 0;
}

/* In a scale tile of 128 rows by 4 scales, lane r holds the 16 bytes `w`: one word of `w` has the
 * four scales of row r, and the others have those of rows r + 32, r + 64 and r + 96. Only the first
 * `rows` rows of the tile exist in the operand; the scales of the other rows are padding. Returns
 * the bitwise OR of the words that belong to rows of the operand. */
static __device__ __forceinline__ uint32_t scales_inside(uint4 w, uint32_t rows) {
    const uint32_t lane = threadIdx.x % 32;
    return (lane < rows ? w.x : 0) | (lane + 32 < rows ? w.y : 0) | (lane + 64 < rows ? w.z : 0) |
           (lane + 96 < rows ? w.w : 0);
}

/* Looks for negative e4m3 scales in one stage, which has `tiles` scale tiles (of 4 scales) along K.
 * Returns a nonzero number if this lane has found one. In each scale tile, a lane tests 16 bytes,
 * which are the scales of four rows. It first loads the 16 bytes of all scale tiles and then tests
 * them, so that the latencies of the loads overlap. Without this, the warp would take more time for
 * a stage than the tensor cores take to multiply it. */
static __device__ __forceinline__ uint32_t signs_in_stage(const bsmm_scaled_params *p,
                                                          const uint8_t *scales, corner at,
                                                          uint32_t tiles) {
    const bool whole = tiles == SCALE_TILES && rows_from(p, at, 0) >= SCALE_ROWS &&
                       rows_from(p, at, SCALE_PARTS - 1) >= SCALE_ROWS;
    uint4 w[SCALE_PARTS * SCALE_TILES];
    uint32_t found = 0;
#    pragma unroll
    for (uint32_t t = 0; t < SCALE_PARTS * SCALE_TILES; t++)
        w[t] = *(const uint4 *)(scales + t * SCALE_TILE + threadIdx.x % 32 * 16);
#    pragma unroll
    for (uint32_t t = 0; t < SCALE_PARTS * SCALE_TILES && whole; t++)
        found |= (w[t].x | w[t].y) | (w[t].z | w[t].w);
#    pragma unroll
    for (uint32_t t = 0; t < SCALE_PARTS * SCALE_TILES && !whole; t++)
        if (t % SCALE_TILES < tiles)
            found |= scales_inside(w[t], rows_from(p, at, t / SCALE_TILES));
    return found & 0x80808080u;
}

/* One warp of a thread block runs this function to look for negative scales in the stages of its
 * thread block. After each stage, the warp tells the loading thread that it has read the stage's
 * scales. After each tile, it tells the warps that store D whether the tile has a negative
 * scale. */
static __device__ __forceinline__ void find_signs(const bsmm_scaled_params *p,
                                                  const uint8_t *scales, shared *told) {
    const k_range range = k_range_of(p);
    uint32_t count = 0, number = 0;
    FOR_TILES(p, tile) {
        const corner at = tile_at(p, tile);
        uint32_t found = 0;
        for (uint32_t block = range.first; block < range.end; block++, count++) {
            const uint32_t stage = count % STAGES;
            wait_for(&told->scaled[stage], filled_parity(count));
            found |= signs_in_stage(p, scales + stage * SCALE_BYTES, at, scale_tiles_of(p, block));
            __syncwarp();
            if (threadIdx.x % 32 == 0) ptx_mbarrier_arrive(ptx_shared_address(&told->empty[stage]));
        }
        const uint32_t any = __any_sync(0xffffffffu, found != 0);
        if (threadIdx.x % 32 == 0) {
            told->negative[number % SIGN_TILES] = any;
            ptx_mbarrier_arrive(ptx_shared_address(&told->judged[number % SIGN_TILES]));
        }
        number++;
    }
}

/* In a pair of thread blocks, the leader's multiplying thread issues the products of both. One
 * thread of the other thread block calls this function. It tells the multiplying thread, for each
 * stage, that the scales of this other thread block have arrived. */
static __device__ __forceinline__ void announce_scales(const bsmm_scaled_params *p, shared *told) {
    const k_range range = k_range_of(p);
    uint32_t count = 0;
    FOR_TILES(p, tile)
    for (uint32_t block = range.first; block < range.end; block++, count++) {
        wait_for(&told->scaled[count % STAGES], filled_parity(count));
        group_arrive(&told->full[count % STAGES]);
    }
}

#endif

/* Returns true if tile number `number` of this thread block has a negative scale. Waits until warp
 * 6 has read the tile's scales. */
static __device__ __forceinline__ bool is_negative(shared *told, uint32_t number) {
    if (!SCALED_SIGNED) return false;
    wait_for(&told->judged[number % SIGN_TILES], number / SIGN_TILES & 1);
    return told->negative[number % SIGN_TILES];
}
