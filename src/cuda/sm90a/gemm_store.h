/* Stores the accumulators of a work unit, i.e. of a tile of D and a range of its K, in the sm_90a
 * GEMM. If the work unit completes the tile, the accumulators become results in D. Otherwise the
 * accumulators go to global memory for another cluster, which continues the tile. gemm_body.h
 * includes this file. */

/* Multiplies accumulators by the epilogue's factor, which is the product of alpha and the global
 * scales of A and B. The function is for stores that need neither C nor bias. The kernel tests only
 * once, when it begins, whether the factor is 1 (`plain`). A comparison in fp64 here would stall,
 * because fp64 instructions share a pipe with the tensor cores. */
static __device__ __forceinline__ void scale_total(const shared *told, float *total) {
    if (told->plain) return;
    if (HALVES && told->power != 0) {
#pragma unroll
        for (int i = 0; i < ACCUMULATORS; i++)
            total[i] *= told->power;
        return;
    }
    const double factor = told->factors.factor;
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i++)
        total[i] = (float)(factor * (double)total[i]);
}

static __device__ __forceinline__ uint32_t pack_pair(uint32_t kind, float low, float high) {
    return kind == BSMM_WGMMA_STORE_BF16 ? bsmm_ptx_cvt_bf16x2(high, low)
                                         : bsmm_ptx_cvt_f16x2(high, low);
}

/* Writes a warp's results for 16 rows and CHUNK_COLS columns of D to a staging buffer in shared
 * memory, in D's 16-bit format. The buffer has the swizzle that TMA expects. In rows of 128 bytes,
 * the 16-byte unit u of row r lies at u ^ (r % 8). In rows of 64 bytes, it lies at u ^ (r / 2 %
 * 4). */
static __device__ __forceinline__ void stage_chunk(const consumer *c, const float *total,
                                                   uint32_t to) {
    const uint32_t line = (uint32_t)c->lane % 16, half = (uint32_t)c->lane / 16, kind = c->p->store;
    to += (16 * (uint32_t)c->warp + line) * (2 * CHUNK_COLS);
#pragma unroll
    for (int j = 0; j < CHUNK_COLS / 8; j += 2) {
        const float *t = total + 4 * j;
        uint32_t unit = ((uint32_t)j + half) ^ line * CHUNK_COLS / 64 % (CHUNK_COLS / 8);
        ptx_stmatrix_x4(to + unit * 16, pack_pair(kind, t[0], t[1]), pack_pair(kind, t[2], t[3]),
                        pack_pair(kind, t[4], t[5]), pack_pair(kind, t[6], t[7]));
    }
}

/* Converts two results to two e5m2 codes. The instruction cvt converts NaN to 0x7f, but bsmm stores
 * NaN as 0x7e. */
static __device__ __forceinline__ uint32_t pack_e5m2(float low, float high) {
    return bsmm_ptx_cvt_e5m2x2(high, low) ^ (isnan(low) ? 1u : 0) ^ (isnan(high) ? 0x100u : 0);
}

/* Writes a thread's results for 16 columns of D to a staging buffer, in D's 8-bit format. The
 * results are four of one row and four of the row 8 rows below. An accumulator times the epilogue's
 * factor is first rounded to odd in fp32 and then to 8 bits, which gives the same code as a single
 * rounding. */
static __device__ __noinline__ void stage_unit(const bsmm_wgmma_params *p, const shared *told,
                                               uint32_t to, float a, float b, float c, float d,
                                               float e, float f, float g, float h) {
    float values[8] = {a, b, c, d, e, f, g, h};
    const bool e5m2 = p->store == BSMM_WGMMA_STORE_E5M2;
    if (HALVES && told->power != 0) {
#pragma unroll
        for (int i = 0; i < 8; i++)
            values[i] *= told->power;
    } else if (!told->plain) {
#pragma unroll
        for (int i = 0; i < 8; i++)
            values[i] = bsmm_gpu_epilogue_odd(told->factors.factor * (double)values[i]);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float *v = values + 2 * i;
        const uint32_t at = to + i / 2 * 8 + i % 2 * 8 * CHUNK_COLS;
        ptx_store_shared_b16(at, e5m2 ? pack_e5m2(v[0], v[1]) : bsmm_ptx_cvt_e4m3x2(v[1], v[0]));
    }
}

/* Converts a warp's results for 16 rows and CHUNK_COLS columns of D to D's 8-bit format, and writes
 * them to a staging buffer in shared memory. The buffer has the swizzle that TMA expects, which
 * moves the 16-byte units of each row. Unit u of row r lies at position u ^ (r / 2 % 4) if rows
 * have 64 bytes, and at position u ^ (r / 4 % 2) if they have 32 bytes. */
static __device__ __forceinline__ void stage_codes(const consumer *c, const shared *told,
                                                   const float *total, uint32_t to) {
    const uint32_t line = (uint32_t)c->lane / 4;
    to += (16 * (uint32_t)c->warp + line) * CHUNK_COLS + (uint32_t)c->lane % 4 * 2;
#pragma unroll
    for (uint32_t j = 0; j < CHUNK_COLS / 16; j++) {
        const float *t = total + 8 * j;
        const uint32_t unit = j ^ line * CHUNK_COLS / 128 % (CHUNK_COLS / 16);
        stage_unit(c->p, told, to + unit * 16, t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]);
    }
}

static __device__ __forceinline__ void wait_written(const consumer *c, uint32_t buffer) {
    wait_for(written_of(&c->r, (uint32_t)c->warpgroup, buffer), ~(c->chunks >> buffer) & 1);
}

/* A warpgroup writes results to a staging buffer in shared memory, and its writer thread stores
 * them to D by TMA. The function passes a filled staging buffer to this thread; `what` tells it
 * what to do with the buffer, and `at` is the position in D. Each warp first executes a fence, so
 * that TMA sees the results that the warp has written to the buffer. */
static __device__ __forceinline__ void give_chunk(consumer *c, shared *told, uint32_t buffer,
                                                  uint32_t what, corner at) {
    chunk *mine = &told->chunks[c->warpgroup][buffer];
    ptx_fence_proxy_async();
    if (c->warp == 0 && c->lane == 0) mine->what = what, mine->at = at;
    __syncwarp();
    if (c->lane == 0) ptx_mbarrier_arrive(staged_of(&c->r, (uint32_t)c->warpgroup, buffer));
    c->chunks ^= 1u << buffer;
}

/* Sends the message `what`, which comes without results, to the writer thread. A warpgroup has
 * STAGING_BUFFERS staging buffers, and every message is sent for one of them, in a fixed cyclic
 * order. After this call, the next results must go to the first buffer. The function therefore
 * sends a message for each buffer: CHUNK_NOTHING for all but the last one, and `what` for the last
 * one. After CHUNK_END there are no more results, so this message is sent for the first buffer
 * only. */
static __device__ __forceinline__ void give_word(consumer *c, shared *told, uint32_t what) {
    const uint32_t last = what == CHUNK_END ? 0 : STAGING_BUFFERS - 1;
    corner nowhere = {0, 0};
#pragma unroll
    for (uint32_t i = 0; i < STAGING_BUFFERS && i <= last; i++) {
        wait_written(c, i);
        give_chunk(c, told, i, i == last ? what : CHUNK_NOTHING, nowhere);
    }
}

/* Runs the loop of a writer thread, which stores the results of one warpgroup to D by TMA. Whenever
 * the warpgroup has filled a staging buffer with results, it writes a message to `told` and signals
 * the writer thread, which then issues the TMA store. The loop returns at the message CHUNK_END. */
static __device__ __forceinline__ void write_chunks(const bsmm_wgmma_params *p, const ring *r,
                                                    uint32_t staging, shared *told,
                                                    uint32_t warpgroup) {
    staging = staging_of(staging, warpgroup);
    for (uint32_t number = 0;; number++) {
        uint32_t buffer = number % STAGING_BUFFERS;
        wait_for(staged_of(r, warpgroup, buffer), number / STAGING_BUFFERS & 1);
        chunk *next = &told->chunks[warpgroup][buffer];
        const uint32_t what = next->what;
        if (what == CHUNK_HANDED)
            ptx_store_release(p->handed_flag + blockIdx.x * CONSUMERS + warpgroup, p->ticket);
        if (what == CHUNK_STORE) {
#pragma unroll
            for (int i = 0; i < BUFFER_CHUNKS; i++)
                ptx_tma_store(&p->d, staging + (buffer + (uint32_t)i) * CHUNK_BYTES,
                              next->at.col + i * CHUNK_COLS, next->at.row);
            ptx_tma_commit();
            if (next->to_memory)
                PTX_TMA_WAIT(0);
            else
                PTX_TMA_WAIT_READ(0);
            next->to_memory = 0;
        }
        ptx_mbarrier_arrive(written_of(r, next_writer(warpgroup), buffer));
        if (what == CHUNK_END) return;
    }
}

/* If K of a tile is split, the cluster of one part of K passes its accumulators through global
 * memory to the cluster of the next part. Returns the address to which a thread stores its first
 * accumulator for the next cluster, or from which it loads that accumulator. `block` is the number
 * of the thread block that stores the accumulator. Accumulators are stored as single floats: wider
 * stores would need accumulators in aligned registers, which would cause register bank conflicts
 * during promotion. */
static __device__ __forceinline__ float *handed_to(const bsmm_wgmma_params *p, int32_t block,
                                                   const consumer *c) {
    int64_t at = (int64_t)(block * CONSUMERS + c->warpgroup) * ((ACCUMULATORS + 1) * 128);
    return p->handed + at + threadIdx.x % 128;
}

/* If K of a tile is divided among clusters, a thread block stores its accumulators for the cluster
 * that continues the tile. Returns a word that is stored with them. The word is nonzero if, in the
 * part of K so far, a product of a scale of A and a scale of B was outside the range from 2^-104 to
 * 2^64. If B has one scale per 128 x 128 block (GEMM_ROW_BLOCK), the word is then 1. Otherwise it
 * is the bit mask `unsafe`, which has one bit for each row of the accumulators. */
static __device__ __forceinline__ uint32_t word_of(const consumer *c, const work *unit) {
    if (GEMM_SCALES != GEMM_ROW_BLOCK) return c->unsafe;
    return !are_factors_safe(c, unit->at.row + c->warpgroup * 64 + c->warp * 16);
}
static __device__ __forceinline__ void take_word(consumer *c, uint32_t word) {
    c->unsafe |= word;
    if (GEMM_SCALES == GEMM_ROW_BLOCK && word) c->least[0] = c->least[1] = 0;
}

/* Stores this thread block's accumulators in global memory for the next cluster, which continues
 * the tile. The function then tells the writer thread to set a flag, for which the next cluster
 * waits. The accumulators of all threads of the warpgroup must be visible before the flag is. For
 * this purpose the writer thread sets the flag by a release store, which is cumulative: it also
 * covers what other threads have stored before. */
static __device__ __forceinline__ void hand_over(consumer *c, shared *told, float *total,
                                                 const work *unit) {
    float *to = handed_to(c->p, (int32_t)blockIdx.x, c);
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i++)
        __stcg(to + 128 * i, total[i]);
    if (AGAIN) __stcg(to + 128 * ACCUMULATORS, __uint_as_float(word_of(c, unit)));
    give_word(c, told, CHUNK_HANDED);
}

/* Waits until another thread block has stored all of its accumulators in global memory, and adds
 * them to this thread block's accumulators. The other thread block has the same position in its
 * cluster, and its cluster is `distance` clusters before this one. Its flag equals p->ticket when
 * its accumulators are complete. The function clears this flag after the wait, because a CUDA graph
 * repeats the kernel with the same ticket. */
static __device__ __forceinline__ void take_over(consumer *c, float *total, int32_t distance) {
    const int32_t block = (int32_t)blockIdx.x - distance * CLUSTER;
    uint64_t *flag = c->p->handed_flag + block * CONSUMERS + c->warpgroup;
    if (threadIdx.x % 128 == 0) {
        while (ptx_load_acquire(flag) != c->p->ticket)
            __nanosleep(64);
        *flag = 0;
    }
    ptx_barrier_sync(1 + c->warpgroup, 128);
    const float *from = handed_to(c->p, block, c);
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i++)
        total[i] += __ldcg(from + 128 * i);
    if (AGAIN) take_word(c, __float_as_uint(__ldcg(from + 128 * ACCUMULATORS)));
}

/* Stores the results of a consumer warpgroup, 64 rows of a tile of D, by TMA. The function writes
 * the results to staging buffers and passes these to the writer thread, which issues the TMA
 * stores. The writer is a separate thread, because a TMA store may stall its thread for a thousand
 * cycles while loads are in flight. TMA leaves out rows and columns past the edges of D. `codes` is
 * true if D's elements have 8 bits; the function then fills the buffers by stage_unit. */
static __device__ __forceinline__ void store_by_map(consumer *c, shared *told, const float *total,
                                                    corner at, bool to_memory, bool codes) {
#pragma unroll
    for (uint32_t i = 0; i < TILE_N / CHUNK_COLS; i += BUFFER_CHUNKS) {
        const uint32_t buffer = i % STAGING_BUFFERS;
        wait_written(c, buffer);
#pragma unroll
        for (uint32_t j = 0; j < BUFFER_CHUNKS; j++) {
            const float *results = total + (i + j) * (CHUNK_COLS / 2);
            const uint32_t to = c->staging + (buffer + j) * CHUNK_BYTES;
            if (codes)
                stage_codes(c, told, results, to);
            else
                stage_chunk(c, results, to);
        }
        if (to_memory && c->lane == 0) told->chunks[c->warpgroup][buffer].to_memory = 1;
        corner chunk_at = {at.row, at.col + (int32_t)i * CHUNK_COLS};
        give_chunk(c, told, buffer, CHUNK_STORE, chunk_at);
    }
}

/* Stores two adjacent fp32 results of a row of D, or one if only one column is left. The function
 * is not inlined for a reason. A store of two floats needs them in a pair of aligned registers. An
 * inlined store would force the accumulators into such registers, and the FMAs of the main loop
 * would then have register bank conflicts. A call copies its arguments to aligned registers
 * instead. */
static __device__ __noinline__ void store_two(float *d, int32_t left, float x, float y) {
    if (left >= 2 && (uintptr_t)d % sizeof(float2) == 0) {
        *(float2 *)d = make_float2(x, y);
        return;
    }
    if (left > 0) d[0] = x;
    if (left > 1) d[1] = y;
}

/* Stores a thread's accumulators as fp32. In each store of a warp, four lanes fill 32 bytes, i.e.
 * one sector, in each of 8 rows. */
static __device__ __forceinline__ void store_floats(const bsmm_wgmma_params *p, const float *total,
                                                    int32_t row, int32_t col) {
    const uint64_t pitch = p->whole.epilogue.d_row;
    float *d = (float *)p->whole.epilogue.d + row * pitch + col;
    int32_t left = p->n - col;
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i += 4, d += 8, left -= 8) {
        if (row < p->m) store_two(d, left, total[i], total[i + 1]);
        if (row + 8 < p->m) store_two(d + 8 * pitch, left, total[i + 2], total[i + 3]);
    }
}

/* Stores four results through the general epilogue: two of row `row` and two of the row 8 rows
 * below, in columns col and col + 1. Bit i of `again` means that row i of the warp's 16 rows will
 * be recomputed. Results of such a row are not stored: if D and C are the same memory, a store
 * would overwrite the C that the recomputation needs. */
static __device__ __noinline__ void store_four(const bsmm_wgmma_params *p,
                                               const bsmm_gpu_epilogue_factors *f, uint32_t again,
                                               int32_t row, int32_t col, float x, float y, float z,
                                               float w) {
    again >>= threadIdx.x % 32 / 4;
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        const int32_t r = i < 2 ? row : row + 8, c = i % 2 ? col + 1 : col;
        const float value = i < 2 ? (i ? y : x) : i == 2 ? z : w;
        if (r < p->m && c < p->n && !(again >> (i < 2 ? 0 : 8) & 1))
            bsmm_gpu_epilogue_store(&p->whole.epilogue, f, (uint32_t)r, (uint32_t)c, (double)value);
    }
}

/* Says for which rows of D the results must be computed again in double. A mask has one bit for
 * each of the warp's 16 rows. The columns of a tile may lie in two 128 x 128 blocks of B, whose
 * scales differ. There are then two masks, one for the columns in each block. */
typedef struct rows_again {
    uint32_t of[COL_BLOCKS];
} rows_again;

/* Tests the products of a scale of A and a scale of B for all k blocks, in the warp's 16 rows of D,
 * which begin with row `row`. In the returned mask, bit i is set if row `row` + i has a product
 * outside the range from 2^-104 to 2^64 (is_safe); the results of such a row must be recomputed.
 * The function is used if B has one scale for each 128 x 128 block (GEMM_ROW_BLOCK). It tests the
 * scales of the block column of B that contains column `col` of D. Lane l tests the k blocks l, l +
 * 32 and so on, for all 16 rows. */
static __device__ __noinline__ uint32_t unsafe_rows(const bsmm_wgmma_params *p, int32_t row,
                                                    int32_t col) {
    if (row >= p->m || col >= p->n) return 0;
    const int32_t rows = min(16, p->m - row);
    uint32_t unsafe = 0;
    for (uint32_t k = threadIdx.x % 32 * 128; k < p->whole.k; k += 32 * 128) {
        const float by = bsmm_gpu_scale(&p->whole.sides[1].o, (uint32_t)col, k);
#pragma unroll 4
        for (int32_t i = 0; i < rows; i++) {
            const float scale = bsmm_gpu_scale(&p->whole.sides[0].o, (uint32_t)(row + i), k);
            if (!is_safe(scale, by)) unsafe |= 1u << i;
        }
    }
    return __reduce_or_sync(0xffffffff, unsafe);
}

static __device__ __forceinline__ rows_again unsafe_by_blocks(const consumer *c, int32_t row,
                                                              int32_t col) {
    rows_again again = {};
    if (BY_COLS && c->p->col_factors) {
        const uint32_t rows = unsafe_by_cols(c->p, row, col);
#pragma unroll
        for (int i = 0; i < COL_BLOCKS; i++)
            again.of[i] = rows;
        return again;
    }
    if (__all_sync(0xffffffff, are_factors_safe(c, row))) return again;
#pragma unroll
    for (int i = 0; i < COL_BLOCKS; i++)
        again.of[i] = unsafe_rows(c->p, row, i ? col + c->split * COL_GROUP : col);
    return again;
}

static __device__ __forceinline__ rows_again rows_again_of(const consumer *c, int32_t row,
                                                           int32_t col) {
    rows_again again = {};
    if (GEMM_SCALES == GEMM_ROW_BLOCK) return unsafe_by_blocks(c, row, col);
    if (!AGAIN || !__any_sync(0xffffffff, c->unsafe)) return again;
    const uint32_t rows = (c->unsafe & 1) | (c->unsafe & 2) << 7;
    again.of[0] = __reduce_or_sync(0xffffffff, rows << c->lane / 4);
    return again;
}

static __device__ __forceinline__ uint32_t any_again(const rows_again *again) {
    return again->of[0] | again->of[COL_BLOCKS - 1];
}

/* Computes some results in double from the stored A and B and stores them to D, over wrong results.
 * These are columns [col, end) of some rows: row `row` + i if bit i of `again` is set. */
static __device__ __noinline__ void store_again(const bsmm_wgmma_params *p,
                                                const bsmm_gpu_epilogue_factors *f, uint32_t again,
                                                int32_t row, int32_t col, int32_t end) {
    for (; again; again &= again - 1) {
        int32_t r = row + __ffs((int32_t)again) - 1;
        for (int32_t c = col; c < min(end, p->n) && r < p->m; c++) {
            double sum = bsmm_gpu_epilogue_sum_again(&p->whole.sides[0].o, &p->whole.sides[1].o, r,
                                                     c, p->whole.k);
            if (threadIdx.x % 32 == 0) bsmm_gpu_epilogue_store(&p->whole.epilogue, f, r, c, sum);
        }
    }
}

/* Sets *overflowed if an accumulator is Inf or NaN, or so small that terms may have been lost to
 * underflow. An accumulator of 0 is accepted, because it has lost terms only if all of its products
 * were below 2^-149. */
static __device__ __forceinline__ void watch(uint32_t *overflowed, const float *total) {
    if (!overflowed) return;
    /* Each entry of the arrays below collects every CHAINS-th accumulator. Several independent sums
     * hide the latency of the additions. Kernels with block scales have registers for only one. */
    enum { CHAINS = GEMM_SCALES == GEMM_UNSCALED ? 4 : 1 };
    bool lost = false;
    /* zero[] adds up the accumulators times 0. It becomes NaN if any accumulator is Inf or NaN. */
    float zero[CHAINS], least[CHAINS];
#pragma unroll
    for (int i = 0; i < CHAINS; i++)
        zero[i] = 0, least[i] = 1;
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i++) {
        zero[i % CHAINS] = fmaf(total[i], 0, zero[i % CHAINS]);
        least[i % CHAINS] = fminf(least[i % CHAINS], fabsf(total[i]));
    }
#pragma unroll
    for (int i = 1; i < CHAINS; i++)
        zero[0] += zero[i], least[0] = fminf(least[0], least[i]);
    const bool finite = zero[0] == 0;
    if (least[0] < 0x1p-118f)
#pragma unroll
        for (int i = 0; i < ACCUMULATORS; i++)
            lost = lost || (total[i] != 0 && fabsf(total[i]) < 0x1p-118f);
    if (!finite || lost) *overflowed = 1;
}

/* Stores the results of one thread one at a time, by the epilogue that supports every kind of D.
 * Leaves out the rows in *again, which are computed again in double. */
static __device__ __forceinline__ void store_each(const consumer *c, const shared *told,
                                                  const float *total, const rows_again *again,
                                                  int32_t row, int32_t col) {
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i += 4) {
        const uint32_t rows = block_of(c, i) ? again->of[COL_BLOCKS - 1] : again->of[0];
        store_four(c->p, &told->factors, rows, row, col + 2 * i, total[i], total[i + 1],
                   total[i + 2], total[i + 3]);
    }
}

static __device__ __forceinline__ void store_rows_again(const consumer *c, const shared *told,
                                                        const rows_again *again, int32_t row,
                                                        int32_t col) {
    const int32_t middle = COL_BLOCKS == 2 ? col + c->split * COL_GROUP : col + TILE_N;
    if (c->p->store >= BSMM_WGMMA_STORE_E4M3)
        for (uint32_t i = 0; i < STAGING_BUFFERS; i++)
            wait_written(c, i);
    __syncwarp();
    store_again(c->p, &told->factors, again->of[0], row, col, min(middle, col + TILE_N));
    if (COL_BLOCKS == 2)
        store_again(c->p, &told->factors, again->of[COL_BLOCKS - 1], row, middle, col + TILE_N);
}

/* Multiplies each sum over all of K by the fp32 scale of its row of A and that of its row of B.
 * Sets *p->overflowed if a result may be wrong because it has overflowed or has lost terms to
 * underflow; the host has then queued another kernel that computes D again. */
static __device__ __forceinline__ void scale_by_rows(const bsmm_wgmma_params *p, float *total,
                                                     int32_t row, int32_t col) {
    if (GEMM_SCALES != GEMM_UNSCALED || !p->col_factors) return;
    float rows[2];
    load_row_factors(p, row, rows);
    if (!are_factors_moderate(p, rows, col)) *p->overflowed = 1;
    multiply_by_cols(p, rows, total, col);
    watch(p->overflowed, total);
}

static __device__ __forceinline__ void store(consumer *c, shared *told, float *total, corner at) {
    const bsmm_wgmma_params *p = c->p;
    corner mine = {at.row + c->warpgroup * 64, at.col};
    int32_t row = mine.row + c->warp * 16;
    int32_t my_row = row + c->lane / 4, my_col = at.col + 2 * (c->lane % 4);
    const rows_again again = rows_again_of(c, row, at.col);
    if (GEMM_WIDE) watch(p->overflowed, total);
    scale_by_rows(p, total, my_row, my_col);
    if (p->store == BSMM_WGMMA_STORE_ANY) {
        store_each(c, told, total, &again, my_row, my_col);
    } else if (p->store == BSMM_WGMMA_STORE_E4M3 || p->store == BSMM_WGMMA_STORE_E5M2) {
        store_by_map(c, told, total, mine, any_again(&again) != 0, true);
    } else {
        scale_total(told, total);
        if (p->store == BSMM_WGMMA_STORE_F32)
            store_floats(p, total, my_row, my_col);
        else
            store_by_map(c, told, total, mine, any_again(&again) != 0, false);
    }
    if (any_again(&again)) store_rows_again(c, told, &again, row, at.col);
}
