/* This is the epilogue of the sm_100f kernels for many rows of A. A warp converts 32 x 32
 * accumulators at a time to elements of D and stores them. Each lane has the accumulators of one
 * row. scaled_body.h includes this file. */
#include "cuda/sm100f/scaled_results.h"

typedef struct epilogue {
    const bsmm_scaled_params *p;
    shared *told;
    /* TMA stores D from this warp's staging buffers, which together take 4096 bytes of shared
     * memory. */
    uint8_t *staging;
    uint32_t warp, lane;
    uint32_t row; /* `row` is the row of D of this lane. */
    /* `untrusted` is true if all results of the tile must be recomputed in double. */
    bool untrusted;
    /* `chunks` is the number of staging buffers (32 columns of D each) that this warp has passed to
     * TMA. */
    uint32_t chunks;
    /* `is_general` is true if there is a C or a bias, or if D has a second-level scale. The general
     * epilogue then computes the results. If `is_general` is false, a result is its sum times
     * `factor`. A thread keeps `factor` and `is_general` in registers. If they were in shared
     * memory, reading them would often have to wait, because the tensor cores read their operands
     * from there too. */
    double factor;
    bool is_general;
} epilogue;

/* Computes the factors of the epilogue for this warp. The warp must call this function before it
 * calls epilogue_make. */
static __device__ __forceinline__ void begin_factors(const bsmm_scaled_params *p, shared *told) {
    if (threadIdx.x % 32 == 0)
        told->factors[threadIdx.x / 32] = bsmm_gpu_epilogue_begin(&p->epilogue);
    __syncwarp();
}

/* `memory` is the aligned dynamic shared memory. */
static __device__ __forceinline__ epilogue epilogue_make(const bsmm_scaled_params *p,
                                                         uint8_t *memory, shared *told) {
    epilogue f = {};
    f.p = p, f.told = told;
    f.warp = threadIdx.x / 32, f.lane = threadIdx.x % 32;
    f.staging = memory + staging_of(0) + f.warp * (STAGING / EPILOGUE_WARPS);
    f.factor = told->factors[f.warp].factor;
    f.is_general = p->epilogue.c || p->epilogue.bias || told->factors[f.warp].global != 1;
    return f;
}

static __device__ __forceinline__ void epilogue_begin(epilogue *f, corner at, bool untrusted) {
    f->row = at.row + threadIdx.x % TILE_M;
    f->untrusted = untrusted;
    forget_zeros(f->told);
}

static __device__ __noinline__ uint32_t code_any(const bsmm_scaled_params *p,
                                                 const bsmm_gpu_epilogue_factors *factors,
                                                 uint32_t row, uint32_t col, float total) {
    if (row >= p->m || col >= p->n) return 0;
    return bsmm_gpu_epilogue_result(&p->epilogue, factors, row, col, (double)total);
}

/* Returns the offset in bytes of 16-byte unit `unit` of row `row` in a staging buffer. The buffer
 * has the swizzle that TMA expects. If rows have 128 bytes (fp32), unit u of row r is stored at
 * index u ^ (r % 8) of the row. If rows have 64 bytes (bf16, f16), the index is u ^ (r / 2 % 4). If
 * rows have 32 bytes (8-bit elements), the index is u ^ (r / 4 % 2). */
static __device__ __forceinline__ uint32_t unit_at(uint32_t store, uint32_t row, uint32_t unit) {
    const uint32_t bytes = bytes_of(store);
    return bytes == 4   ? row * 128 + (unit ^ (row % 8)) * 16
           : bytes == 2 ? row * 64 + (unit ^ (row / 2 % 4)) * 16
                        : row * 32 + (unit ^ (row / 4 % 2)) * 16;
}

static __device__ __forceinline__ void stage_code(uint32_t store, uint8_t *to, uint32_t lane,
                                                  uint32_t col, uint32_t code) {
    const uint32_t bytes = bytes_of(store), at = col * bytes;
    uint8_t *const element = to + unit_at(store, lane, at / 16) + at % 16;
    if (bytes == 4)
        *(uint32_t *)element = code;
    else if (bytes == 2)
        *(uint16_t *)element = (uint16_t)code;
    else
        *element = (uint8_t)code;
}

/* Rounds a lane's 32 results to elements of D, and writes them to a staging buffer. Callers pass a
 * constant for `store`, so the compiler removes the branches. */
static __device__ __forceinline__ void stage_as(uint32_t store, uint8_t *to, uint32_t lane,
                                                const float *total) {
    const uint32_t bytes = bytes_of(store);
#pragma unroll
    for (uint32_t unit = 0; unit < CHUNK / 16 * bytes; unit++) {
        const float *const from = total + 16 / bytes * unit;
        uint32_t words[4];
#pragma unroll
        for (uint32_t i = 0; i < 4; i++)
            words[i] = bytes == 4   ? __float_as_uint(from[i])
                       : bytes == 2 ? pack_pair(store, from[2 * i], from[2 * i + 1])
                                    : pack_pair(store, from[4 * i], from[4 * i + 1]) |
                                          pack_pair(store, from[4 * i + 2], from[4 * i + 3]) << 16;
        *(uint4 *)(to + unit_at(store, lane, unit)) =
            make_uint4(words[0], words[1], words[2], words[3]);
    }
}

/* Converts the accumulators of a lane's row to elements of D, and writes them to a staging
 * buffer. */
static __device__ __forceinline__ void stage_all(const epilogue *f, float *total, uint32_t col,
                                                 uint8_t *to) {
    const uint32_t store = f->p->store;
    if (f->is_general) {
        const bsmm_gpu_epilogue_factors *factors = &f->told->factors[f->warp];
#pragma unroll
        for (uint32_t i = 0; i < CHUNK; i++)
            stage_code(store, to, f->lane, i, code_any(f->p, factors, f->row, col + i, total[i]));
        return;
    }
    if (f->factor != 1)
#pragma unroll
        for (int i = 0; i < CHUNK; i++)
            total[i] = (float)(f->factor * (double)total[i]);
    if (store == BSMM_SCALED_STORE_F32)
        stage_as(BSMM_SCALED_STORE_F32, to, f->lane, total);
    else if (store == BSMM_SCALED_STORE_BF16)
        stage_as(BSMM_SCALED_STORE_BF16, to, f->lane, total);
    else if (store == BSMM_SCALED_STORE_F16)
        stage_as(BSMM_SCALED_STORE_F16, to, f->lane, total);
    else if (store == BSMM_SCALED_STORE_E4M3)
        stage_as(BSMM_SCALED_STORE_E4M3, to, f->lane, total);
    else
        stage_as(BSMM_SCALED_STORE_E5M2, to, f->lane, total);
}

/* Computes doubtful results again in double. All lanes of a warp call this function together. Each
 * lane has 32 results in row `row` of D. Bit i of the lane's mask `doubts` is 1 if the result in
 * column `col` + i must be computed again, and bit i of `zeros` is 1 if its accumulator is 0. The
 * new results go to the staging buffer `to` or to D. */
static __device__ __noinline__ void settle(const bsmm_scaled_params *p, shared *told,
                                           uint32_t doubts, uint32_t zeros, uint32_t row,
                                           uint32_t col, uint8_t *to) {
    const uint32_t lane = threadIdx.x % 32;
    for (uint32_t lanes = __ballot_sync(0xffffffffu, doubts); lanes; lanes &= lanes - 1) {
        const uint32_t next = (uint32_t)__ffs((int)lanes) - 1,
                       zero = __shfl_sync(0xffffffffu, zeros, (int)next);
        uint32_t left = __shfl_sync(0xffffffffu, doubts, (int)next);
        for (; left; left &= left - 1) {
            const uint32_t i = (uint32_t)__ffs((int)left) - 1;
            const double sum = sum_of(p, told, row - lane + next, col + i, zero >> i & 1);
            if (lane != next) continue;
            const uint32_t code = bsmm_gpu_epilogue_result(
                &p->epilogue, &told->factors[threadIdx.x / 32], row, col + i, sum);
            if (p->store == BSMM_SCALED_STORE_ANY)
                bsmm_gpu_epilogue_put(&p->epilogue, row, col + i, code);
            else
                stage_code(p->store, to, lane, i, code);
        }
        __syncwarp();
    }
}

/* Returns a mask that says which of the columns `col` to `col` + 31 lie inside D. The mask is 0 if
 * the lane's row lies outside D. */
static __device__ __forceinline__ uint32_t inside(const epilogue *f, uint32_t col) {
    const uint32_t left = f->p->n - col;
    if (f->row >= f->p->m) return 0;
    return left >= CHUNK ? 0xffffffffu : (1u << left) - 1;
}

static __device__ __noinline__ void store_any(const bsmm_scaled_params *p,
                                              const bsmm_gpu_epilogue_factors *factors,
                                              uint32_t row, uint32_t col, float total) {
    bsmm_gpu_epilogue_store(&p->epilogue, factors, row, col, (double)total);
}

/* Stores results of a lane's row in columns `col` to `col` + 31, one element at a time, by the
 * general epilogue. Column col + i is stored only if bit i of `wanted` is set. The caller clears
 * the bits of results that will be recomputed in double. If D and C are the same memory, storing
 * such a result here would overwrite the element of C that the recomputation needs. */
static __device__ __forceinline__ void store_each(const epilogue *f, const float *total,
                                                  uint32_t col, uint32_t wanted) {
#pragma unroll
    for (int i = 0; i < CHUNK; i++)
        if (wanted >> i & 1)
            store_any(f->p, &f->told->factors[f->warp], f->row, col + (uint32_t)i, total[i]);
}

/* Waits until TMA has finished reading the warp's next staging buffer, and returns this buffer. A
 * warp has two staging buffers for elements of 16 and 8 bits, and one for elements of 32 bits. */
static __device__ __forceinline__ uint8_t *next_buffer(epilogue *f) {
    const bool one = f->p->store == BSMM_SCALED_STORE_F32;
    if (f->lane == 0) {
        if (one)
            PTX_TMA_WAIT_READ(0);
        else
            PTX_TMA_WAIT_READ(1);
    }
    __syncwarp();
    return f->staging + (one ? 0 : f->chunks % 2 * (CHUNK * CHUNK * 2));
}

/* Passes a filled staging buffer to TMA, which copies it to D. TMA leaves out rows and columns past
 * the edges of D. */
static __device__ __forceinline__ void give_buffer(epilogue *f, const uint8_t *from, uint32_t col) {
    ptx_fence_proxy_async();
    __syncwarp();
    if (f->lane == 0) {
        ptx_tma_store(&f->p->d, ptx_shared_address(from), (int32_t)col, (int32_t)f->row);
        ptx_tma_commit();
    }
    f->chunks++;
}

/* Returns true if one of a lane's 32 accumulators may be wrong because its magnitude is too large
 * or too small (is_doubtful). Too small are magnitudes below LEAST. The function subtracts LEAST
 * from the bits of each magnitude. For too small magnitudes the difference wraps around to a large
 * number, so both kinds become large. It is therefore enough to test the largest difference, which
 * takes fewer instructions than a test of each accumulator. */
static __device__ __forceinline__ bool has_doubtful(const uint32_t *bits) {
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < CHUNK; i++)
        most = max(most, (bits[i] & 0x7fffffffu) - LEAST);
    return is_doubtful(most + LEAST);
}

/* Sets bit i of *doubts if accumulator i of a lane may be wrong, and bit i of *zeros if accumulator
 * i is 0. */
static __device__ __forceinline__ void find_doubts(const uint32_t *bits, uint32_t *doubts,
                                                   uint32_t *zeros) {
#pragma unroll
    for (int i = 0; i < CHUNK; i++) {
        const uint32_t magnitude = bits[i] & 0x7fffffffu;
        *doubts |= (uint32_t)is_doubtful(magnitude) << i;
        *zeros |= (uint32_t)(magnitude == 0) << i;
    }
}

/* Converts the accumulators of the warp's 32 rows and of 32 columns (from column `col` on) to
 * elements of D, and stores them. */
static __device__ __forceinline__ void epilogue_store_chunk(epilogue *f, const uint32_t *bits,
                                                            uint32_t col) {
    const uint32_t store = f->p->store, wanted = inside(f, col);
    float total[CHUNK];
    uint32_t doubts = 0, zeros = 0;
#pragma unroll
    for (int i = 0; i < CHUNK; i++)
        total[i] = __uint_as_float(bits[i]);
    if (__any_sync(0xffffffffu, f->untrusted || has_doubtful(bits))) {
        find_doubts(bits, &doubts, &zeros);
        if (f->untrusted) doubts = 0xffffffffu, zeros = 0;
        doubts &= wanted;
    }
    uint8_t *to = NULL;
    if (store == BSMM_SCALED_STORE_ANY) {
        store_each(f, total, col, wanted & ~doubts);
    } else {
        to = next_buffer(f);
        stage_all(f, total, col, to);
    }
    if (__any_sync(0xffffffffu, doubts)) settle(f->p, f->told, doubts, zeros, f->row, col, to);
    if (store != BSMM_SCALED_STORE_ANY) give_buffer(f, to, col);
}

#if !SCALED_GROUPS
/* HELD is the number of chunks (32 columns of an accumulator) that a lane loads from tensor memory
 * before it finishes the results of the first chunk. If the two accumulators share columns of
 * tensor memory, these chunks are the shared columns. The tensor cores may then overwrite the
 * shared columns early, with the next tile. */
enum { HELD = SHARED_COLUMNS ? SHARED_COLUMNS / CHUNK : 1 };

/* An accumulator of a tile lies in columns of tensor memory, and there are two accumulators for
 * alternate tiles. If tensor memory has no room for both, they share some columns: the last columns
 * of the first accumulator (`which` is 0) are the first columns of the second one. Warps read an
 * accumulator in chunks of columns. They read the shared columns first, so that the next tile can
 * soon use them. `chunk` counts the chunks in the order in which they are read. Returns the chunk's
 * first column, counted from the beginning of the accumulator. */
static __device__ __forceinline__ uint32_t column_of(const bsmm_scaled_params *p, uint32_t which,
                                                     uint32_t chunk) {
    const uint32_t first = which || SECOND_AT >= p->tile_n ? 0 : SECOND_AT,
                   col = first + chunk * CHUNK;
    return col < p->tile_n ? col : col - p->tile_n;
}

/* Converts and stores the results of tile number `number` of this thread block. The tile begins at
 * the row and column `at`. If a scale of the tile is negative, the function computes all results
 * again in double. */
static __device__ __forceinline__ void epilogue_store_tile(epilogue *f, uint32_t number,
                                                           corner at) {
    const bsmm_scaled_params *p = f->p;
    const uint32_t which = number & 1,
                   from = f->told->columns + which * SECOND_AT + (f->warp * 32 << 16),
                   chunks = p->tile_n / CHUNK, last = SHARED_COLUMNS ? 0 : chunks - HELD;
    uint32_t bits[HELD][CHUNK];
#    pragma unroll
    for (uint32_t i = 0; i < HELD; i++)
        ptx_tcgen05_load_x32(from + column_of(p, which, i), bits[i]);
    ptx_tcgen05_wait_loads();
    for (uint32_t chunk = 0; chunk < chunks; chunk++) {
        const uint32_t col = at.col + column_of(p, which, chunk);
        if (chunk == last) {
            ptx_tcgen05_fence_before();
            __syncwarp();
            if (f->lane == 0) group_arrive(&f->told->available[SHARED_COLUMNS ? 0 : which]);
        }
        if (chunk == 0) epilogue_begin(f, at, is_negative(f->told, number));
        if (col < p->n) epilogue_store_chunk(f, bits[0], col);
#    pragma unroll
        for (int i = 0; i < (HELD - 1) * CHUNK; i++)
            bits[i / CHUNK][i % CHUNK] = bits[i / CHUNK + 1][i % CHUNK];
        /* tcgen05.ld writes its registers asynchronously, so no instruction may read or copy them
         * before tcgen05.wait::ld. The wait follows the load at once, because the compiler could
         * otherwise move copies of these registers before the wait. */
        if (chunk + HELD < chunks) {
            ptx_tcgen05_load_x32(from + column_of(p, which, chunk + HELD), bits[HELD - 1]);
            ptx_tcgen05_wait_loads();
        }
    }
}

/* Several groups (a group is a thread block or a pair of them) can divide the K of a tile. Each
 * thread block then keeps its sums in its shared memory, in the order [chunk of columns][unit of
 * four columns][row]. Returns the offset in bytes of the four sums of row `row` in unit `unit` of
 * chunk `chunk`. The lanes of a warp have adjacent rows, so that their accesses use all banks. */
static __device__ __forceinline__ uint32_t partial_at(uint32_t chunk, uint32_t unit, uint32_t row) {
    return ((chunk * (CHUNK / 4) + unit) * TILE_M + row) * 16;
}

/* Copies the accumulators of this thread's row to shared memory, where the thread blocks of the
 * cluster add them. This happens only if K is divided, and a cluster then computes a single tile.
 * All tcgen05.mma instructions for this tile have completed, so the accumulators may overwrite the
 * stages. */
static __device__ __forceinline__ void keep_sums(const bsmm_scaled_params *p, uint8_t *memory,
                                                 const shared *told) {
    const uint32_t from = told->columns + (threadIdx.x / 32 * 32 << 16);
    for (uint32_t chunk = 0; chunk < p->tile_n / CHUNK; chunk++) {
        uint32_t bits[CHUNK];
        ptx_tcgen05_load_x32(from + chunk * CHUNK, bits);
        ptx_tcgen05_wait_loads();
#    pragma unroll
        for (uint32_t i = 0; i < CHUNK / 4; i++)
            *(uint4 *)(memory + partial_at(chunk, i, threadIdx.x)) =
                make_uint4(bits[4 * i], bits[4 * i + 1], bits[4 * i + 2], bits[4 * i + 3]);
    }
}

static __device__ __forceinline__ void epilogue_store_tiles(const bsmm_scaled_params *p,
                                                            uint8_t *memory, shared *told) {
    begin_factors(p, told);
    epilogue f = epilogue_make(p, memory, told);
    uint32_t number = 0;
    FOR_TILES(p, tile) {
        const corner at = tile_at(p, tile);
        wait_for(&told->done[number & 1], number / 2 & 1);
        ptx_tcgen05_fence_after();
        if (parts_of(p) > 1)
            keep_sums(p, memory, told);
        else
            epilogue_store_tile(&f, number, at);
        number++;
    }
    if (f.lane == 0) PTX_TMA_WAIT(0);
}
#endif
