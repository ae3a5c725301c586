/* The engine's consumers: the scales of a stage, as a warpgroup's threads want them. A part of
 * gemm_body.h, which includes it once, with its macros. */

/* 0, or such that the product of two is safe. */
static __device__ __forceinline__ bool is_moderate(float scale) {
    const uint32_t lowest = (127 - 52) << 23, highest = (127 + 32) << 23;
    return (__float_as_uint(scale) & 0x7fffffff) - lowest < highest - lowest || scale == 0;
}

/* Each lane looks at its rows' scales and at four columns'. */
static __device__ __forceinline__ bool are_moderate(const consumer *c, const factors *f) {
    static_assert(!GEMM_CAREFUL || TILE_N == 128, "32 lanes have four columns each");
    uint32_t cols = f->cols - 8 * (c->lane % 4) + 16 * c->lane;
    bool moderate = is_moderate(f->row[0]) && is_moderate(f->row[1]);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float col[2];
        ptx_load_shared_f32x2(cols + 8 * i, col);
        moderate = moderate && is_moderate(col[0]) && is_moderate(col[1]);
    }
    return __all_sync(0xffffffff, moderate);
}

/* Which block of B an accumulator's columns lie in: the tile's first or second. */
static __device__ __forceinline__ int block_of(const consumer *c, int accumulator) {
    return COL_BLOCKS == 2 && accumulator / (COL_GROUP / 2) >= c->split;
}

static __device__ __forceinline__ factors factors_of(const consumer *c, uint32_t stage,
                                                     uint32_t subtile) {
    factors f = {{1, 1}, {1, 1}, 0, true};
#if GEMM_SCALES != GEMM_UNSCALED
    uint32_t row = c->r.scales + stage * SCALE_BYTES + c->row_scales + 4 * 64 * subtile;
    f.row[0] = ptx_load_shared_f32(row);
    f.row[1] = ptx_load_shared_f32(row + 32);
#endif
#if GEMM_SCALES == GEMM_ROW_BLOCK
    const uint32_t cols = c->r.scales + (COLS_AT - SCALES_AT) + 8 * stage;
    if (COL_BLOCKS == 2)
        ptx_load_shared_f32x2(cols, f.col);
    else
        f.col[0] = ptx_load_shared_f32(cols);
#elif GEMM_SCALES == GEMM_ROW_ROW
    f.cols = c->r.scales + stage * SCALE_BYTES + 4 * TILE_M + 8 * (c->lane % 4);
    if (GEMM_CAREFUL) f.moderate = are_moderate(c, &f);
#endif
    return f;
}
