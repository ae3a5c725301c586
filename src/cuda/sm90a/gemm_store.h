/* Where the engine's accumulators go: to the block that goes on with them, or to D. A part of
 * gemm_body.h, which includes it once, with its macros. */

/* ---- accumulators from block to block ---- */

/* One float at a time: wider accesses would tie accumulators to aligned registers, and promote's
 * operands then meet in the same register banks. */
static __device__ __forceinline__ float *handed_to(const bsmm_wgmma_params *p, int32_t block,
                                                   const consumer *c) {
    int64_t at =
        (int64_t)(block * CONSUMERS + c->warpgroup) * ((SUBTILES * ACCUMULATORS + 1) * 128);
    return p->handed + at + threadIdx.x % 128;
}

static __device__ __forceinline__ void hand_over(const consumer *c, float (*total)[ACCUMULATORS]) {
    float *to = handed_to(c->p, (int32_t)blockIdx.x, c);
#pragma unroll
    for (int i = 0; i < SUBTILES * ACCUMULATORS; i++)
        __stcg(to + 128 * i, total[i / ACCUMULATORS][i % ACCUMULATORS]);
    if (AGAIN) __stcg(to + 128 * SUBTILES * ACCUMULATORS, __uint_as_float(c->unsafe));
    /* The barrier orders all threads' stores before the one that follows it, whose release is
     * cumulative. */
    ptx_barrier_sync(1 + c->warpgroup, 128);
    if (threadIdx.x % 128 == 0)
        ptx_store_release(c->p->handed_flag + blockIdx.x * CONSUMERS + c->warpgroup, c->p->ticket);
}

/* Takes what the block of the cluster before left, and clears its flag for the next launch. */
static __device__ __forceinline__ void take_over(consumer *c, float (*total)[ACCUMULATORS]) {
    int32_t block = (int32_t)blockIdx.x - CLUSTER;
    uint64_t *flag = c->p->handed_flag + block * CONSUMERS + c->warpgroup;
    if (threadIdx.x % 128 == 0) {
        while (ptx_load_acquire(flag) != c->p->ticket)
            __nanosleep(64);
        *flag = 0;
    }
    ptx_barrier_sync(1 + c->warpgroup, 128);
    const float *from = handed_to(c->p, block, c);
#pragma unroll
    for (int i = 0; i < SUBTILES * ACCUMULATORS; i++)
        total[i / ACCUMULATORS][i % ACCUMULATORS] = __ldcg(from + 128 * i);
    if (AGAIN) c->unsafe = __float_as_uint(__ldcg(from + 128 * SUBTILES * ACCUMULATORS));
}

/* ---- store ---- */

/* alpha and the operands' global scales, where the simple stores are used: no C, no bias. */
static __device__ __forceinline__ void scale_total(double factor, float *total) {
    if (factor == 1) return;
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i++)
        total[i] = (float)(factor * (double)total[i]);
}

static __device__ __forceinline__ uint32_t pack_pair(uint32_t kind, float low, float high) {
    return kind == BSMM_WGMMA_STORE_BF16 ? bsmm_ptx_cvt_bf16x2(high, low)
                                         : bsmm_ptx_cvt_f16x2(high, low);
}

/* A warp's 16 rows of a subtile by the copy engine: 32 columns at a time through its own staging,
 * which is swizzled by 64 bytes (16-byte unit u of row r at u ^ (r / 2 % 4)). Clips at D's edges.
 */
static __device__ __forceinline__ void store_by_map(const consumer *c, const float *total,
                                                    uint32_t staging, int32_t row, int32_t col) {
    const uint32_t lane = (uint32_t)c->lane, kind = c->p->store;
    const uint32_t line = lane % 16, swizzle = line / 2 % 4;
#pragma unroll
    for (int chunk = 0; chunk < TILE_N / CHUNK_COLS; chunk++) {
        uint32_t to = staging + (chunk % CHUNKS) * CHUNK_BYTES;
        if (lane == 0) PTX_TMA_WAIT_READ(CHUNKS - 1);
        __syncwarp();
#pragma unroll
        for (int j = 0; j < CHUNK_COLS / 8; j += 2) {
            const float *t = total + 4 * (chunk * (CHUNK_COLS / 8) + j);
            uint32_t unit = ((uint32_t)j + lane / 16) ^ swizzle;
            ptx_stmatrix_x4(to + line * (2 * CHUNK_COLS) + unit * 16, pack_pair(kind, t[0], t[1]),
                            pack_pair(kind, t[2], t[3]), pack_pair(kind, t[4], t[5]),
                            pack_pair(kind, t[6], t[7]));
        }
        ptx_fence_proxy_async();
        __syncwarp();
        if (lane == 0) {
            ptx_tma_store(&c->p->d, to, col + chunk * CHUNK_COLS, row);
            ptx_tma_commit();
        }
    }
}

static __device__ __forceinline__ void store_floats(const bsmm_wgmma_params *p, const float *total,
                                                    int32_t row, int32_t col) {
    float *d = (float *)p->epilogue.d;
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i++) {
        int32_t r = row + i % 4 / 2 * 8, c = col + i / 4 * 8 + i % 2;
        if (r < p->m && c < p->n) d[r * p->epilogue.d_row + c] = total[i];
    }
}

static __device__ __noinline__ void store_any(const bsmm_wgmma_params *p,
                                              const bsmm_epilogue_factors *f, int32_t row,
                                              int32_t col, float value) {
    if (row < p->m && col < p->n) bsmm_epilogue_store(&p->epilogue, f, row, col, (double)value);
}

/* Which of the warp's 16 rows of a subtile have had a factor out of range, one bit each. */
static __device__ __forceinline__ uint32_t unsafe_rows(const consumer *c, int subtile) {
    uint32_t mine = c->unsafe >> 2 * subtile, rows = (mine & 1) | (mine & 2) << 7;
    return __reduce_or_sync(0xffffffff, rows << c->lane / 4);
}

/* The rows of `again` over what has been stored: from the operands as they are, in double. */
static __device__ __noinline__ void store_again(const bsmm_wgmma_params *p,
                                                const bsmm_epilogue_factors *f, uint32_t again,
                                                int32_t row, int32_t col) {
    if (threadIdx.x % 32 == 0) PTX_TMA_WAIT(0);
    __syncwarp();
    for (; again; again &= again - 1) {
        int32_t r = row + __ffs((int32_t)again) - 1;
        for (int32_t c = col; c < min(col + TILE_N, p->n) && r < p->m; c++) {
            double sum = bsmm_epilogue_sum_again(&p->stored[0], &p->stored[1], r, c, p->k);
            if (threadIdx.x % 32 == 0) bsmm_epilogue_store(&p->epilogue, f, r, c, sum);
        }
    }
}

static __device__ __forceinline__ void watch(uint32_t *overflowed, const float *total) {
    if (!overflowed) return;
    bool finite = true;
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i++)
        finite = finite && fabsf(total[i]) <= 3.402823466e38f;
    if (!finite) *overflowed = 1;
}

static __device__ __forceinline__ void store(const consumer *c, const bsmm_epilogue_factors *f,
                                             float (*total)[ACCUMULATORS], uint32_t staging,
                                             corner at) {
    const bsmm_wgmma_params *p = c->p;
#pragma unroll
    for (int s = 0; s < SUBTILES; s++) {
        int32_t row = at.row + (c->warpgroup * SUBTILES + s) * 64 + c->warp * 16;
        int32_t my_row = row + c->lane / 4, my_col = at.col + 2 * (c->lane % 4);
        if (GEMM_WIDE) watch(p->overflowed, total[s]);
        if (p->store == BSMM_WGMMA_STORE_ANY) {
#pragma unroll
            for (int i = 0; i < ACCUMULATORS; i++)
                store_any(p, f, my_row + i % 4 / 2 * 8, my_col + i / 4 * 8 + i % 2, total[s][i]);
        } else {
            scale_total(f->factor, total[s]);
            if (p->store == BSMM_WGMMA_STORE_F32)
                store_floats(p, total[s], my_row, my_col);
            else
                store_by_map(c, total[s], staging, row, at.col);
        }
        const uint32_t again = AGAIN ? unsafe_rows(c, s) : 0;
        if (again) store_again(p, f, again, row, at.col);
    }
}
