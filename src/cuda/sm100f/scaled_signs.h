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

/* In a scale tile of 128 rows by 4 scales, lane r holds four words `w`: one has the four scales of
 * row r, and the others have those of rows r + 32, r + 64 and r + 96. The operand has only `rows`
 * rows from the tile's first row on, and the scales of later rows are padding. Returns the bitwise
 * OR of the words that belong to rows of the operand. */
static __device__ __forceinline__ uint32_t scales_inside(const uint32_t *w, uint32_t rows) {
    const uint32_t lane = threadIdx.x % 32;
    return (lane < rows ? w[0] : 0) | (lane + 32 < rows ? w[1] : 0) |
           (lane + 64 < rows ? w[2] : 0) | (lane + 96 < rows ? w[3] : 0);
}

/* Loads the scales of a k block from tensor memory, from column `from` on. copy_scales tells in
 * which columns they are. tcgen05.cp writes them to the lanes of every warp of a warpgroup, so that
 * a single warp can read all of them. */
static __device__ __forceinline__ void load_scale_columns(uint32_t from, uint32_t *w) {
    const uint32_t at = from + (threadIdx.x / 32 % 4 * 32 << 16);
    ptx_tcgen05_load_x32(at, w);
#    pragma unroll
    for (uint32_t c = 32; c < SCALE_COLUMNS; c += 8)
        ptx_tcgen05_load_x8(at + c, w + c);
    ptx_tcgen05_wait_loads();
}

/* Looks for negative e4m3 scales among the scales `w` of a k block, which has `tiles` scale tiles
 * (of 4 scales) along K. Returns a nonzero number if this lane has found one. */
static __device__ __forceinline__ uint32_t signs_among(const bsmm_scaled_params *p,
                                                       const uint32_t *w, corner at,
                                                       uint32_t tiles) {
    const bool whole = tiles == SCALE_TILES && rows_from(p, at, 0) >= SCALE_ROWS &&
                       rows_from(p, at, SCALE_PARTS - 1) >= SCALE_ROWS;
    uint32_t found = 0;
#    pragma unroll
    for (uint32_t c = 0; c < SCALE_COLUMNS && whole; c++)
        found |= w[c];
#    pragma unroll
    for (uint32_t n = 0; n < SCALE_COLUMNS / 4 && !whole; n++) {
        const bool of_a = n < SCALE_TILES;
        const uint32_t of_b = n - SCALE_TILES, tile = of_a ? n : of_b / B_ROW_BLOCKS,
                       part = of_a ? 0 : 1 + of_b % B_ROW_BLOCKS;
        if (tile < tiles) found |= scales_inside(w + 4 * n, rows_from(p, at, part));
    }
    return found & 0x80808080u;
}

/* One warp of a thread block runs this function to look for negative scales in the k blocks of its
 * thread block. It reads them from tensor memory, because shared memory is busy with other work.
 * After each k block, the warp tells the multiplying thread that it has read the k block's columns.
 * After each tile, it tells the warps that store D whether the tile has a negative scale. */
static __device__ __forceinline__ void find_signs(const bsmm_scaled_params *p, shared *told) {
    const k_range range = k_range_of(p);
    const uint32_t columns = told->columns + SCALES_AT;
    uint32_t count = 0, number = 0;
    FOR_TILES(p, tile) {
        const corner at = tile_at(p, tile);
        uint32_t found = 0;
        for (uint32_t block = range.first; block < range.end; block++, count++) {
            const uint32_t set = count & 1;
            uint32_t w[SCALE_COLUMNS];
            wait_for(&told->copied[set], count / 2 & 1);
            ptx_tcgen05_fence_after();
            load_scale_columns(columns + set * SCALE_COLUMNS, w);
            ptx_tcgen05_fence_before();
            __syncwarp();
            if (threadIdx.x % 32 == 0) group_arrive(&told->read[set]);
            found |= signs_among(p, w, at, scale_tiles_of(p, block));
        }
        const uint32_t any = __any_sync(0xffffffffu, found != 0);
        if (threadIdx.x % 32 == 0) {
            told->negative[number % SIGN_TILES] = any;
            ptx_mbarrier_arrive(ptx_shared_address(&told->judged[number % SIGN_TILES]));
        }
        number++;
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
