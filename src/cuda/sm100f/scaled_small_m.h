/* This is the epilogue of the sm_100f kernels for few rows of A, i.e. 1 to 64. scaled_body.h
 * includes this file.
 *
 * The host swaps the operands of these kernels: the kernel's A is the product's B (the weights),
 * and the kernel's B is the product's A. The instruction always multiplies 128 rows of its first
 * operand, which the weights fill. Its second operand has 16, 32 or 64 rows, so that a few rows
 * of activations waste little. The kernel's results are therefore D transposed: lane n of tensor
 * memory has column n of the product's D, and column m of tensor memory has row m. The lanes of a
 * warp store 32 adjacent elements of a row of D.
 *
 * If the weights have few tiles of 128 rows, a cluster of up to 8 thread blocks divides the K of a
 * tile among them (p->parts), so that more SMs read weights at the same time. Each thread block
 * then writes its sums to its shared memory. When all have done so, thread block i adds the sums of
 * the rows i, i + parts, i + 2 parts and so on of D, in ascending order of the thread blocks, and
 * stores these rows. Such a cluster computes only one tile. */
#include "cuda/ptx/grid.h"
#include "cuda/sm100f/scaled_results.h"

enum {
    ROWS = 8,  /* ROWS is the number of rows of the product's D that a thread stores at once. */
    PARTS = 4, /* PARTS is the number of thread blocks from which a thread loads sums at once. */
};

typedef struct epilogue {
    const bsmm_scaled_params *p;
    shared *told;
    uint32_t col; /* `col` is the column of the product's D of this lane. */
    /* `untrusted` is true if all results of the tile must be recomputed in double. */
    bool untrusted;
    /* `plain` is true if the product adds no C and no bias, D has no scale, and D's elements are
     * f32, bf16, f16, e4m3 or e5m2. */
    bool plain;
    double factor;
} epilogue;

/* Returns the state with which a thread finishes a tile of D. The warp's factors of the epilogue
 * must be in told->factors. */
static __device__ __forceinline__ epilogue epilogue_begin(const bsmm_scaled_params *p, shared *told,
                                                          uint32_t tile, bool untrusted) {
    const bsmm_gpu_epilogue_factors *factors = &told->factors[threadIdx.x / 32];
    epilogue f = {p, told, tile * TILE_M + threadIdx.x, untrusted};
    f.plain = p->store != BSMM_SCALED_STORE_ANY && !p->epilogue.c && !p->epilogue.bias &&
              factors->global == 1;
    f.factor = factors->factor;
    forget_zeros(told);
    return f;
}

static __device__ __noinline__ void store_any(const bsmm_scaled_params *p,
                                              const bsmm_gpu_epilogue_factors *factors,
                                              uint32_t row, uint32_t col, float total) {
    bsmm_gpu_epilogue_store(&p->epilogue, factors, row, col, (double)total);
}

/* Stores the element of D in row `row` and in this lane's column. */
static __device__ __forceinline__ void store_one(const epilogue *f, uint32_t row, float total) {
    const bsmm_gpu_epilogue *e = &f->p->epilogue;
    if (!f->plain) {
        store_any(f->p, &f->told->factors[threadIdx.x / 32], row, f->col, total);
        return;
    }
    const uint64_t at = row * e->d_row + f->col;
    if (f->factor != 1) total = (float)(f->factor * (double)total);
    if (f->p->store == BSMM_SCALED_STORE_F32)
        ((float *)e->d)[at] = total;
    else if (bytes_of(f->p->store) == 2)
        ((uint16_t *)e->d)[at] = (uint16_t)pack_pair(f->p->store, total, 0);
    else
        ((uint8_t *)e->d)[at] = (uint8_t)pack_pair(f->p->store, total, 0);
}

/* Computes doubtful results again in double and stores them. All lanes of a warp call this function
 * together, and each lane has a column of D, `col`. Bit i of the lane's mask `doubts` is 1 if the
 * result in row `first` + i * step must be computed again. Bit i of `zeros` is 1 if the accumulator
 * of this result is 0. */
static __device__ __noinline__ void settle(const bsmm_scaled_params *p, shared *told,
                                           uint32_t doubts, uint32_t zeros, uint32_t first,
                                           uint32_t step, uint32_t col) {
    const uint32_t lane = threadIdx.x % 32;
    for (uint32_t lanes = __ballot_sync(0xffffffffu, doubts); lanes; lanes &= lanes - 1) {
        const uint32_t next = (uint32_t)__ffs((int)lanes) - 1,
                       zero = __shfl_sync(0xffffffffu, zeros, (int)next);
        uint32_t left = __shfl_sync(0xffffffffu, doubts, (int)next);
        for (; left; left &= left - 1) {
            const uint32_t i = (uint32_t)__ffs((int)left) - 1, row = first + i * step;
            const double sum = sum_of(p, told, col - lane + next, row, zero >> i & 1);
            if (lane == next)
                bsmm_gpu_epilogue_store(&p->epilogue, &told->factors[threadIdx.x / 32], row, col,
                                        sum);
        }
        __syncwarp();
    }
}

/* Returns a mask of the rows `first`, `first` + step and so on that lie inside the product's D. The
 * mask is 0 if the lane's column lies outside D. The kernel's operands are swapped, so D has p->n
 * rows and p->m columns. */
static __device__ __forceinline__ uint32_t inside(const epilogue *f, uint32_t first,
                                                  uint32_t step) {
    if (first >= f->p->n || f->col >= f->p->m) return 0;
    const uint32_t rows = (f->p->n - first - 1) / step + 1;
    return rows >= ROWS ? (1u << ROWS) - 1 : (1u << rows) - 1;
}

/* Stores this lane's results in the rows `first`, `first` + step and so on of D. A result that must
 * be recomputed is not stored before it is recomputed. If D and C are the same memory, a store
 * would overwrite the C that the recomputation needs. */
static __device__ __forceinline__ void epilogue_store_rows(const epilogue *f, const float *total,
                                                           uint32_t first, uint32_t step) {
    uint32_t doubts = 0, zeros = 0;
#pragma unroll
    for (uint32_t i = 0; i < ROWS; i++) {
        const uint32_t magnitude = __float_as_uint(total[i]) & 0x7fffffffu;
        doubts |= (uint32_t)is_doubtful(magnitude) << i;
        zeros |= (uint32_t)(magnitude == 0) << i;
    }
    const uint32_t wanted = inside(f, first, step);
    if (f->untrusted) doubts = wanted, zeros = 0;
    doubts &= wanted;
#pragma unroll
    for (uint32_t i = 0; i < ROWS; i++)
        if ((wanted & ~doubts) >> i & 1) store_one(f, first + i * step, total[i]);
    if (__any_sync(0xffffffffu, doubts)) settle(f->p, f->told, doubts, zeros, first, step, f->col);
}

/* Several thread blocks can split the K of a tile of D. Each of them then stores an array of fp32
 * sums over its part of K in its shared memory. Returns the index in this array of the sum for row
 * `row` and column `col` of the tile of D. */
static __device__ __forceinline__ uint32_t partial_at(uint32_t row, uint32_t col) {
    return row * TILE_M + col;
}

/* Stores the results of this thread block's tiles to D. If several thread blocks divide K among
 * them, this thread block has only partial sums. The function then writes them to shared memory,
 * where the epilogue of the cluster adds them. The sums overwrite the stages of operands, so the
 * function first waits until all products have completed. */
static __device__ __forceinline__ void epilogue_store_tiles(const bsmm_scaled_params *p,
                                                            uint8_t *memory, shared *told) {
    const uint32_t lanes = threadIdx.x / 32 * 32 << 16;
    uint32_t number = 0;
    if (threadIdx.x % 32 == 0)
        told->factors[threadIdx.x / 32] = bsmm_gpu_epilogue_begin(&p->epilogue);
    __syncwarp();
    FOR_TILES(p, tile) {
        const uint32_t which = number & 1, from = told->columns + which * TILE_N + lanes;
        wait_for(&told->done[which], number / 2 & 1);
        ptx_tcgen05_fence_after();
        const epilogue f = epilogue_begin(p, told, tile, is_negative(told, number));
        number++;
        for (uint32_t row = 0; row < p->tile_n; row += ROWS) {
            uint32_t bits[ROWS];
            float total[ROWS];
            ptx_tcgen05_load_x8(from + row, bits);
            ptx_tcgen05_wait_loads();
            if (row == p->tile_n - ROWS) {
                ptx_tcgen05_fence_before();
                __syncwarp();
                if (threadIdx.x % 32 == 0) group_arrive(&told->available[which]);
            }
#pragma unroll
            for (uint32_t i = 0; i < ROWS; i++)
                total[i] = __uint_as_float(bits[i]);
            if (p->parts == 1)
                epilogue_store_rows(&f, total, row, 1);
            else
#pragma unroll
                for (uint32_t i = 0; i < ROWS; i++)
                    ((float *)memory)[partial_at(row + i, threadIdx.x)] = total[i];
        }
    }
}

/* Returns true if a thread block of the cluster has found a negative scale. */
static __device__ __forceinline__ bool is_any_negative(const bsmm_scaled_params *p,
                                                       const shared *told) {
    uint32_t any = 0;
    for (uint32_t part = 0; SCALED_SIGNED && part < p->parts; part++)
        any |= *(const uint32_t *)ptx_grid_map(&told->negative[0], part);
    return any;
}

/* The thread blocks of a cluster have divided K, and each has a sum of every result of the tile in
 * its shared memory. This function adds the sums of PARTS of these thread blocks to `total`, in
 * ascending order of their numbers, beginning with number `part`. total[i] is the result in the
 * lane's column and in row row + i * p->parts of D. A load from another thread block takes a few
 * hundred cycles, so all loads begin before the first addition. If there is no such row or thread
 * block, the lane loads the sum of the last one instead. A sum that was loaded in place of a
 * missing thread block is not added. */
static __device__ __forceinline__ void add_parts(const bsmm_scaled_params *p, uint32_t partials,
                                                 uint32_t row, uint32_t part, float *total) {
    float sums[PARTS][ROWS];
#pragma unroll
    for (uint32_t k = 0; k < PARTS; k++) {
        const uint32_t from = ptx_mapa(partials, min(part + k, p->parts - 1));
#pragma unroll
        for (uint32_t i = 0; i < ROWS; i++)
            sums[k][i] = __uint_as_float(ptx_grid_load_u32(
                from + 4 * partial_at(min(row + i * p->parts, p->n - 1), threadIdx.x)));
    }
#pragma unroll
    for (uint32_t k = 0; k < PARTS; k++)
#pragma unroll
        for (uint32_t i = 0; i < ROWS; i++)
            if (part + k < p->parts) total[i] += sums[k][i];
}

/* The thread blocks of a cluster have sums of different parts of K for the same tile. Adds these
 * sums for some rows of A, which this thread block has to store, and stores the results. */
static __device__ __forceinline__ void epilogue_store_parts(const bsmm_scaled_params *p,
                                                            uint32_t partials, shared *told) {
    const epilogue f = epilogue_begin(p, told, ptx_cluster_id(), is_any_negative(p, told));
    for (uint32_t row = part_of_block(); row < p->n; row += ROWS * p->parts) {
        float total[ROWS] = {};
        for (uint32_t part = 0; part < p->parts; part += PARTS)
            add_parts(p, partials, row, part, total);
        epilogue_store_rows(&f, total, row, p->parts);
    }
}

/* If a cluster of thread blocks has split K, waits until all of them have written their sums, and
 * stores this thread block's rows of the tile. All threads call this function. No thread block may
 * end while another one reads its sums. */
static __device__ __forceinline__ void join_parts(const bsmm_scaled_params *p, uint32_t partials,
                                                  shared *told) {
    if (p->parts == 1) return;
    ptx_cluster_arrive();
    ptx_cluster_wait();
    if (threadIdx.x < TILE_M) epilogue_store_parts(p, partials, told);
    __syncwarp();
    ptx_cluster_arrive();
    ptx_cluster_wait();
}
